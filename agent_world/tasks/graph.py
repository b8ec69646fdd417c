"""The tool graph: a complete weighted digraph, each edge with the typed evidence for its weight (method.md 5a).

Strong (3, directed): a required input of the target is an id that only the source mints, so nothing else can give it.
Weak (2, both ways): an input of one may come from an output of the other or from the database. Independent (1): no
such tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agent_world.environments.model import Environment, Meaning, Tool

STRONG, WEAK, INDEPENDENT = 3, 2, 1

_HANDED_ON = {"key", "minted", "label", "filter", "value", "status"}
_TAKEN_UP = {"key", "label", "filter", "status"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why an edge has its weight: `output` of one tool has the meaning that `input` of the other asks for.

    `via` is "minted" (the id exists only after the call), "key", "label" or "value" (a value of the same column).
    """

    giver: str
    output: str
    taker: str
    input: str
    table: str
    column: str
    via: Literal["minted", "key", "label", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One directed edge between two different tools."""

    source: str
    target: str
    weight: Literal[1, 2, 3]
    evidence: tuple[Evidence, ...] = ()


class ToolGraph:
    """The edges of one environment, looked up by their ends."""

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self.edges = edges
        self._by_ends = {(edge.source, edge.target): edge for edge in edges}

    def edge(self, source: str, target: str) -> Edge:
        """The edge from `source` to `target`.

        Raises:
            KeyError: one of them is no tool of this environment, or they are the same.
        """
        return self._by_ends[(source, target)]

    def has_strong_predecessor(self, tool: str) -> bool:
        """Whether `tool` cannot be the first call of an episode."""
        return any(edge.target == tool and edge.weight == STRONG for edge in self.edges)


def tool_graph(environment: Environment) -> ToolGraph:
    """The complete digraph over the tools of `environment`, in the order of its tools."""
    born_empty = {table.name for table in environment.database.tables if table.rows == 0}
    given = {
        (giver.name, taker.name): _evidence(giver, taker)
        for giver in environment.tools
        for taker in environment.tools
        if giver.name != taker.name
    }
    edges = []
    for (source, target), evidence in given.items():
        minted = tuple(
            item
            for item in evidence
            if item.via == "minted" and item.table in born_empty and item.input in required(environment.tool(target))
        )
        both = evidence + given[(target, source)]
        if minted:
            edges.append(Edge(source=source, target=target, weight=STRONG, evidence=minted))
        elif both:
            edges.append(Edge(source=source, target=target, weight=WEAK, evidence=both))
        else:
            edges.append(Edge(source=source, target=target, weight=INDEPENDENT))
    return ToolGraph(tuple(edges))


def required(tool: Tool) -> list[str]:
    """The parameters that a call of `tool` must give, in schema order."""
    wanted = set(tool.input_schema.get("required", ()))
    return [name for name in tool.input_schema.get("properties", {}) if name in wanted]


def _evidence(giver: Tool, taker: Tool) -> tuple[Evidence, ...]:
    found = []
    for output, given in giver.outputs.items():
        for parameter, wanted in taker.inputs.items():
            via = _via(given, wanted)
            if via and given.table and given.column:
                found.append(
                    Evidence(
                        giver=giver.name, output=output, taker=taker.name, input=parameter,
                        table=given.table, column=given.column, via=via,
                    )
                )  # fmt: skip
    return tuple(found)


def _via(given: Meaning, wanted: Meaning) -> Literal["minted", "key", "label", "value"] | None:
    if (given.table, given.column) != (wanted.table, wanted.column):
        return None
    if given.kind not in _HANDED_ON or wanted.kind not in _TAKEN_UP:
        return None
    if wanted.kind == "key":
        return "minted" if given.kind == "minted" else "key"
    return "label" if wanted.kind == "label" else "value"
