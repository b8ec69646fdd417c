"""M2 themes from function documentation in JSON or JSON lines: one file, one theme (`func_doc` sets, own exports)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_world.discovery.themes.documents import Draft, ThemeDocument, UnusableDocumentError
from agent_world.discovery.themes.vocabulary import of_tools
from agent_world.discovery.words import name_words
from agent_world.errors import BadInputError


class FunctionDocConnector:
    """Every .json and .jsonl file below `path`; whether a file is JSON or JSON lines is read off its content."""

    def __init__(self, path: Path, licence: str = "not stated") -> None:
        self._path, self._licence = path, licence

    def documents(self) -> Iterator[ThemeDocument]:
        """One document a file, by path.

        Raises:
            BadInputError: the path does not exist.
        """
        if not self._path.exists():
            raise BadInputError(str(self._path), "there is no function documentation here", "give a file or a folder")
        paths = [self._path] if self._path.is_file() else sorted(self._path.rglob("*.json*"))
        for path in paths:
            yield ThemeDocument(
                source="M2", origin=f"function_docs:{path.stem}", data=path.read_bytes(), licence=self._licence
            )

    def parse(self, document: ThemeDocument) -> Draft:
        """The functions of a file. A broken line becomes a nameless tool, which the checks set aside."""
        tools = tuple(_functions(_items(document)))
        if not any(isinstance(tool, Mapping) and "name" in tool for tool in tools):
            raise UnusableDocumentError(document.origin, "no_tools", "no function documentation in this file")
        title = " ".join(name_words(document.origin.rpartition(":")[2])).capitalize()
        named = [tool for tool in tools if isinstance(tool.get("name"), str)]
        nouns, verbs = of_tools(named)
        description = " ".join(str(tool.get("description") or "") for tool in named).strip()[:2000]
        return Draft(
            document=document, title=title, description=description or title, raw_tools=tools, nouns=nouns, verbs=verbs
        )


def _items(document: ThemeDocument) -> Iterator[Any]:
    text = document.data.decode("utf-8", "replace")
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        pass
    else:
        yield from whole if isinstance(whole, list) else [whole]
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                yield {"broken_line": number, "error": str(error), "text": line[:2000]}


def _functions(items: Iterator[Any]) -> Iterator[Mapping[str, Any]]:
    """The documentation objects, also where a line wraps them (`function`, `functions`, OpenAI's `tools`)."""
    for item in items:
        inner = next(
            (item[key] for key in ("function", "functions", "tools") if isinstance(item, Mapping) and key in item), None
        )
        if isinstance(inner, list):
            yield from _functions(iter(inner))
        elif isinstance(inner, Mapping):
            yield inner
        elif isinstance(item, Mapping):
            yield {**item, "name": re.sub(r"^.*\.", "", item["name"])} if isinstance(item.get("name"), str) else item
