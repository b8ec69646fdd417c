"""No task text gives its workflow away: no tool name, no identifier of two or more words (design.md 7).

Plain words are allowed, also when they are the words of a column; what leaks is the identifier's own spelling
(``tail_number``, ``tailNumber``, ``tailnum``). The name of a tool leaks in words as well when it has three or more.
Field names of the answer are names that the task makes public; they may be no tool's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from agent_world.environments.model import Environment
from agent_world.tasks.model import Task

_TOKEN = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_WORDS_OF_A_TOOL_NAME = 3
_SHORTEST_PART = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One identifier found in a task's text; `where` is ``instruction`` or ``answer_schema.<field>``."""

    where: str
    identifier: str
    kind: Literal["tool", "identifier"]


def leaks(task: Task, environment: Environment) -> list[Leak]:
    """Everything in the public texts of `task` that names a tool or spells an identifier."""
    tools = {tool.name for tool in environment.tools}
    identifiers = {_key(name): name for name in _identifiers(environment) if _compound(name)}
    found = []
    for where, text in _texts(task):
        named = f"{where.removeprefix('answer_schema.')} {text}"
        found += [Leak(where=where, identifier=name, kind="tool") for name in sorted(tools) if _names_tool(named, name)]
        tokens = dict.fromkeys(_key(token) for token in _TOKEN.findall(text) if _compound(token))
        found += [
            Leak(where=where, identifier=identifiers[token], kind="identifier")
            for token in tokens
            if token in identifiers and identifiers[token] not in tools
        ]
    return found


def _texts(task: Task) -> Iterator[tuple[str, str]]:
    yield "instruction", task.instruction
    for name, schema in task.answer_schema["properties"].items():
        yield f"answer_schema.{name}", _descriptions(schema)


def _descriptions(schema: Mapping[str, Any]) -> str:
    inner = [schema.get("items", {}), *schema.get("properties", {}).values()]
    return " ".join([str(schema.get("description", "")), *(_descriptions(part) for part in inner if part)])


def _names_tool(text: str, name: str) -> bool:
    words = [re.escape(word) for word in _words(name)]
    if len(words) == 1:
        # A tool that is called by one plain word does not forbid the word.
        return False
    between = r"[\s_-]+" if len(words) >= _WORDS_OF_A_TOOL_NAME else "_+"
    spelled = between.join(words)
    joined = "".join(words)
    return re.search(rf"(?<!\w)(?:{spelled}|{joined})(?!\w)", text, re.IGNORECASE) is not None


def _identifiers(environment: Environment) -> Iterator[str]:
    for table in environment.database.tables:
        yield table.name
        for column in table.columns:
            yield column.name
            yield column.original
    for tool in environment.tools:
        yield from _properties(tool.input_schema)
        yield from _properties(tool.output_schema)


def _properties(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from _properties(inner)
    if "items" in schema:
        yield from _properties(schema["items"])


def _compound(name: str) -> bool:
    return len(_words(name)) > 1


@lru_cache(maxsize=20_000)
def _words(name: str) -> tuple[str, ...]:
    """The words of an identifier: by underscore, by camel case, and where it is one run of letters by a word list."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_a-zA-Z]+", name)
    if len(parts) > 1 or not name.isascii() or not name.isalpha():
        return tuple(part.lower() for part in parts) or (name.lower(),)
    import wordninja

    words = tuple(wordninja.split(name.lower()))
    # A word that the list does not know comes apart in crumbs: invoice as in + voice, emoji as em + oji.
    return words if all(len(word) >= _SHORTEST_PART for word in words) else (name.lower(),)


def _key(token: str) -> str:
    return token.replace("_", "").casefold()
