"""How the fields, filters and references of tools are said, from the words of the data's columns and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent_world.environments.model import Json, Meaning, Tool
from agent_world.tasks.catalogue import Catalogue, Output, subject
from agent_world.tasks.facts import fold
from agent_world.tasks.phrases import Condition, Group, Thing, plain

_AT_MOST = re.compile(r"^(max|until|latest|to|before|at_most|up_to|under)(_|$)")
_KEY_ENDING = re.compile(r"(?i)\s*\b(ids?|code|key|ref|number|no)$")
_UNIT = re.compile(r"\s*\(([^)]*)\)\s*$")
_ASIDE = re.compile(r", now \w+$|^new (?=status)| from 1$| after this$|(?<=^status) \w+$")
_HOW_MANY = re.compile(r"^how many (\w+) (?:are |it has(?: now)?$)")
_FILLERS = {"the", "of", "in", "a", "an"}
_WORDS_OF_A_FIELD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One argument as a person would say it: a value with its meaning, and the row it names or is taken from."""

    value: Json
    meaning: Meaning
    thing: Thing | None = None


def said(tool: Tool, output: Output) -> str:
    """The words of a result field: its own description, without what follows in brackets."""
    words = str(_declared(tool, output).get("description") or output.field.replace("_", " "))
    return plain(_HOW_MANY.sub(r"number of \1 ", _ASIDE.sub("", _UNIT.sub("", words))))


def fact_words(catalogue: Catalogue, tool: Tool, output: Output, table: str | None) -> str:
    """How to ask for a result field of a row of `table`: the words of its column, or of the row that it names."""
    meaning = output.meaning
    if meaning.kind not in ("value", "filter", "label", "status") or meaning.table is None or meaning.column is None:
        return said(tool, output)
    above = catalogue.own_reference(table, output.field) if table and meaning.table == table else None
    if meaning.table == table and above is None:
        return column_words(catalogue, meaning)
    link = above or (catalogue.reference(table, meaning.table, output.field) if table else None)
    if table is None or link is None:
        return said(tool, output)
    role = relation_words(catalogue, table, meaning.table, link.column)
    names_it = meaning.column == catalogue.database.table(meaning.table).label
    return role if names_it else f"{role} {column_words(catalogue, meaning)}"


def schema_of(catalogue: Catalogue, tool: Tool, output: Output) -> dict[str, Json]:
    """The published form of a result field: its type without null, its words, all its values where they are few.

    What one call can give is no choice: the status that lending always ends in would give the answer away. So a closed
    set of values is that of all tools together.
    """
    declared = _declared(tool, output)
    kind = declared.get("type", "string")
    kind = next(name for name in kind if name != "null") if isinstance(kind, list) else kind
    schema: dict[str, Json] = {"type": kind, "description": str(declared.get("description") or said(tool, output))}
    values = catalogue.states(output.meaning) if declared.get("enum") else []
    if len(values) > 1 and kind == "string":
        schema["enum"] = values
    return schema


def with_words(schema: Mapping[str, Json], words: str) -> dict[str, Json]:
    """`schema` described by `words` and, in brackets, by the unit or remark that its own description ends in."""
    remark = _UNIT.search(str(schema.get("description", "")))
    return {**schema, "description": f"{words} ({remark[1]})" if remark else words}


def field_name(words: str) -> str:
    """A name for an answer field, made of the words in which the question asks for it."""
    kept = [word for word in re.findall(r"[a-z0-9]+", fold(words)) if word not in _FILLERS]
    return "_".join(kept[:_WORDS_OF_A_FIELD]) or "value"


def group_of(catalogue: Catalogue, tool: Tool, given: Mapping[str, Given]) -> Group:
    """The rows that a list, a ranking or a summary is about."""
    table = catalogue.database.table(subject(tool) or "")
    return Group(plural=table.plural, conditions=conditions(catalogue, tool, given))


def conditions(catalogue: Catalogue, tool: Tool, given: Mapping[str, Given]) -> tuple[Condition, ...]:
    """What the filters, bounds and parents among the arguments restrict a list to."""
    found: list[Condition] = []
    bounds: dict[str, dict[str, Json]] = {}
    for parameter, item in given.items():
        meaning = item.meaning
        if meaning.kind in ("filter", "status"):
            comparison = "same" if item.thing is not None else "marked" if isinstance(item.value, bool) else "is"
            words = filter_words(catalogue, tool, parameter)
            found.append(Condition(words=words, comparison=comparison, value=item.value, like=item.thing))
        elif meaning.kind == "threshold":
            words = column_words(catalogue, meaning) or parameter.replace("_", " ")
            bounds.setdefault(words, {})["at most" if is_at_most(parameter) else "at least"] = item.value
        elif meaning.kind in ("key", "label") and item.thing is not None:
            words = _owner_words(catalogue, tool, parameter)
            shared = item.thing.relation is not None and item.thing.relation[0] == words
            like = item.thing.relation[1] if item.thing.relation is not None and shared else item.thing
            found.append(Condition(words=words, comparison="same" if shared else "is", like=like))
    for words, bound in bounds.items():
        if len(bound) == 2:
            value = bound["at least"], bound["at most"]  # a tuple: conditions are compared as sets are
            found.append(Condition(words=words, comparison="between", value=value))
        else:
            found += [Condition(words=words, comparison=side, value=value) for side, value in bound.items()]
    return tuple(found)


def is_at_most(parameter: str) -> bool:
    """Whether a bound is an upper one, told by the name of its parameter."""
    return _AT_MOST.match(parameter) is not None


def filter_words(catalogue: Catalogue, tool: Tool, parameter: str) -> str:
    """What a filter compares with: a fact of the rows, or a row they refer to."""
    meaning, own = tool.inputs[parameter], subject(tool)
    if own is not None and meaning.table is not None and meaning.table != own:
        link = catalogue.reference(own, meaning.table, parameter)
        if link is not None:
            return relation_words(catalogue, own, meaning.table, link.column)
    words = column_words(catalogue, meaning) or parameter.replace("_", " ")
    # The flight number of a flight is often called "flight" as well.
    is_named_like_row = own is not None and words == catalogue.database.table(own).singular
    return "number" if is_named_like_row else words


def column_words(catalogue: Catalogue, meaning: Meaning) -> str:
    """The words of the column that `meaning` speaks of, empty when it speaks of none."""
    if meaning.table is None or meaning.column is None:
        return ""
    return plain(catalogue.database.table(meaning.table).column(meaning.column).words)


def relation_words(catalogue: Catalogue, table: str, parent: str, column: str) -> str:
    """How a row of `table` refers to its row of `parent`: `artist`, `origin`, `departure airport`."""
    words = plain(catalogue.database.table(table).column(column).words)
    noun = catalogue.database.table(parent).singular
    if words.endswith(f" of the {noun}"):
        return noun
    role = _KEY_ENDING.sub("", words)
    rivals = [key for key in catalogue.database.table(table).foreign_keys if key.parent == parent]
    is_named_by_key = role != words and noun not in role and len(rivals) == 1
    return noun if is_named_by_key or len(role) < 3 else role


def _owner_words(catalogue: Catalogue, tool: Tool, parameter: str) -> str:
    parent, own = tool.inputs[parameter].table or "", subject(tool) or ""
    link = catalogue.reference(own, parent, parameter)
    return relation_words(catalogue, own, parent, link.column) if link else catalogue.database.table(parent).singular


def _declared(tool: Tool, output: Output) -> Mapping[str, Json]:
    properties = tool.output_schema.get("properties", {})
    if output.array is not None:
        properties = properties.get(output.array, {}).get("items", {}).get("properties", {})
    return properties.get(output.field, {})
