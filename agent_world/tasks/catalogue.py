"""What the tools of one environment can do for a plan, read from the meaning of their inputs and outputs alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agent_world.environments.model import Environment, ForeignKey, Json, Meaning, Tool
from agent_world.tasks.documents import Sheets
from agent_world.tasks.facts import Facts
from agent_world.tasks.graph import ToolGraph, required, tool_graph

_ASKED = frozenset({"value", "filter", "label", "status", "count", "aggregate"})
_LISTED = re.compile(r"^(?P<list>[^.\[\]]+)\[\]\.(?P<field>[^.\[\]]+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One result field of a tool: `field` of the result itself, or of each element of its list `array`."""

    array: str | None
    field: str
    meaning: Meaning

    def read(self, result: Mapping[str, Json], index: int = 0) -> Json:
        """Its value in `result`, in the element `index` where it is listed; None when it is not there."""
        if self.array is None:
            return result.get(self.field)
        elements = result.get(self.array) or []
        return elements[index].get(self.field) if index < len(elements) else None


def outputs(tool: Tool) -> list[Output]:
    """The result fields of `tool` that carry a meaning, in declared order, but for what lies deeper than one list."""
    found = []
    for path, meaning in tool.outputs.items():
        listed = _LISTED.match(path)
        if listed:
            found.append(Output(array=listed["list"], field=listed["field"], meaning=meaning))
        elif not re.search(r"[.\[\]]", path):
            found.append(Output(array=None, field=path, meaning=meaning))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder:
    """A tool that finds a row of `table` by its name: `parameter` takes the label, `key` gives the row's key."""

    tool: Tool
    table: str
    parameter: str
    key: Output
    label: Output | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Getter:
    """A tool that gives one row's facts: `parameter` takes the key of `table`."""

    tool: Tool
    table: str
    parameter: str
    facts: tuple[Output, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lister:
    """A tool that lists rows of `table`, narrowed by `filters`; `parents` are filters that take another table's key."""

    tool: Tool
    table: str
    facts: tuple[Output, ...]
    filters: tuple[str, ...]
    parents: tuple[str, ...]
    page: str | None

    @property
    def array(self) -> str:
        """The list among its result fields."""
        return self.facts[0].array or ""


class Catalogue:
    """The tools of one environment by what they do, with its facts and its tool graph."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.database = environment.database
        self.facts = Facts(self.database, environment.files)
        self.sheets = Sheets(environment.files)
        self.reads = tuple(tool for tool in environment.tools if not tool.writes)
        self.writers = tuple(tool for tool in environment.tools if tool.writes)

    @cached_property
    def graph(self) -> ToolGraph:
        """The tool graph of this environment."""
        return tool_graph(self.environment)

    @cached_property
    def finders(self) -> dict[str, list[Finder]]:
        """Table -> the tools that find its rows by name."""
        found: dict[str, list[Finder]] = {}
        for tool in self.reads:
            fields = outputs(tool)
            for parameter, meaning in tool.inputs.items():
                if meaning.kind != "label" or meaning.table is None or required(tool) not in ([], [parameter]):
                    continue
                keys = [item for item in fields if item.meaning.kind == "key" and item.meaning.table == meaning.table]
                if not keys:
                    continue
                same = [
                    item for item in fields if item.meaning.kind == "label" and item.meaning.table == meaning.table
                    and item.meaning.column == meaning.column and item.array == keys[0].array
                ]  # fmt: skip
                found.setdefault(meaning.table, []).append(
                    Finder(
                        tool=tool,
                        table=meaning.table,
                        parameter=parameter,
                        key=keys[0],
                        label=same[0] if same else None,
                    )
                )
        return found

    @cached_property
    def getters(self) -> dict[str, list[Getter]]:
        """Table -> the tools that give the facts of one row."""
        found: dict[str, list[Getter]] = {}
        for tool in self.reads:
            wanted = required(tool)
            if len(wanted) != 1 or tool.inputs.get(wanted[0], Meaning(kind="text")).kind != "key":
                continue
            table = tool.inputs[wanted[0]].table
            facts = tuple(item for item in outputs(tool) if item.array is None and item.meaning.kind in _ASKED)
            if table and facts and not any(item.array for item in outputs(tool)):
                found.setdefault(table, []).append(
                    Getter(tool=tool, table=table, parameter=wanted[0], facts=facts)
                )  # fmt: skip
        return found

    @cached_property
    def listers(self) -> list[Lister]:
        """The tools that list rows and can be called without knowing a row of the list."""
        found = []
        for tool in self.reads:
            facts = tuple(item for item in outputs(tool) if item.array is not None)
            table = subject(tool)
            if not facts or table is None or not any(item.meaning.table == table for item in facts):
                continue
            filters = tuple(name for name, meaning in tool.inputs.items() if meaning.kind in ("filter", "threshold"))
            parents = tuple(
                name for name, meaning in tool.inputs.items() if meaning.kind == "key" and meaning.table != table
            )
            page = next(
                (name for name, meaning in tool.inputs.items() if meaning.kind == "page" and name == "page"), None
            )
            if set(required(tool)) <= {*filters, *parents}:
                found.append(Lister(tool=tool, table=table, facts=facts, filters=filters, parents=parents, page=page))
        return found

    def states(self, meaning: Meaning) -> list[str]:
        """Every value that tools declare for the column that `meaning` speaks of, sorted."""
        found: set[str] = set()
        for tool in self.environment.tools:
            properties = tool.output_schema.get("properties", {})
            for output in outputs(tool):
                if (output.meaning.table, output.meaning.column) == (meaning.table, meaning.column):
                    part = properties.get(output.array, {}).get("items", {}).get("properties", {})
                    declared = (part if output.array else properties).get(output.field, {})
                    found |= {value for value in declared.get("enum", ()) if isinstance(value, str)}
        return sorted(found)

    def reference(self, table: str, parent: str, hint: str = "") -> ForeignKey | None:
        """The foreign key by which `table` refers to `parent`; of several, the one whose column resembles `hint`."""
        keys = [key for key in self.database.table(table).foreign_keys if key.parent == parent]
        if len(keys) > 1:
            keys.sort(key=lambda key: -_alike(key.column, hint))
        return keys[0] if keys else None

    def own_reference(self, table: str, field: str) -> ForeignKey | None:
        """The foreign key of `table` to itself that a result field follows: `parent`, `parent_title`."""
        keys = [key for key in self.database.table(table).foreign_keys if key.parent == table]
        return next((key for key in keys if field == key.column or field.startswith(f"{key.column}_")), None)


def subject(tool: Tool) -> str | None:
    """The table that a tool is about: the first that it declares."""
    return tool.tables[0] if tool.tables else None


def _alike(column: str, hint: str) -> int:
    mine, theirs = set(re.split(r"[^a-z0-9]+", column.lower())), set(re.split(r"[^a-z0-9]+", hint.lower()))
    return len(mine & theirs) * 10 + (hint.lower() in column.lower())
