"""Where a version came from and what came of it. Edges name exact versions, so an answer never means "latest"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from agent_world.identity import VersionId, artifact_id_of, canonical_json, sha256
from agent_world.lake import rows
from agent_world.lake.errors import NotFoundError
from agent_world.lake.graph import Graph, Hop, Link
from agent_world.lake.moments import At

if TYPE_CHECKING:
    import networkx as nx

    from agent_world.lake.lake import Lake
    from agent_world.lake.view import View

LIMIT = 10_000
CALLS = "calls"
"""Role of a tool that the child really called."""

HOLDS = ("tool",)
"""Roles by which a child merely holds a parent beside others; who used the parent through it says so itself."""


class Answer(NamedTuple):
    """Versions reached from `version_id`, nearest first, and the edges among them."""

    version_id: str
    hops: list[Hop]
    links: list[Link]
    truncated: bool
    as_of: int
    """Version of the events table."""


class Impact(NamedTuple):
    """What a change of a version touches."""

    version_id: str
    used_by: list[Link]
    """Edges from versions that used it: for a tool, those that really called it."""
    held_by: list[Link]
    """Edges from versions that merely hold it, such as the environment of a tool."""
    affected: list[Hop]
    """Everything made from those that used it, themselves included; nearest first."""
    kinds: dict[str, int]
    left_out: dict[str, int]
    """How many more there are in `used_by` and in `held_by`."""
    truncated: bool
    """Whether anything was left out; how much more is `affected` is not counted."""
    as_of: int


class Path(NamedTuple):
    """A shortest way between two versions, whichever of them was made from the other."""

    first: str
    second: str
    links: list[Link] | None
    """The steps from `first` to `second`, roles of one step joined by commas; None: neither was made from the other."""
    truncated: bool
    """Whether the search was given up: there may be a way after all."""
    as_of: int


class Step(NamedTuple):
    """One batch to run again: what it read, with which code and derivation, and what it made."""

    stage: str
    partition: str
    derivation: str
    code_version: str
    inputs: list[str]
    outputs: list[str]


class Reproduced(NamedTuple):
    """A plan in the order of work; where it was carried out, the outputs that came out different."""

    version_id: str
    steps: list[Step]
    carried_out: bool
    differing: list[str]


def upstream(view: View, version_id: str, *, depth: int | None = None, limit: int = LIMIT) -> Answer:
    """What a version was made from, all the way.

    Raises:
        NotFoundError: no such version.
    """
    return _answer(view, version_id, up=True, depth=depth, limit=limit)


def downstream(view: View, version_id: str, *, depth: int | None = None, limit: int = LIMIT) -> Answer:
    """What was made from a version, all the way.

    Raises:
        NotFoundError: no such version.
    """
    return _answer(view, version_id, up=False, depth=depth, limit=limit)


def impact(view: View, version_id: str, *, limit: int = LIMIT) -> Impact:
    """What used a version, and what was made from that. A tool is used by what called it, not by its environment.

    Each list holds at most `limit`.

    Raises:
        NotFoundError: no such version.
    """
    graph = _graph_with(view, version_id)
    links = graph.neighbours(version_id, up=False)
    used = [link for link in links if link.role not in HOLDS]
    held = [link for link in links if link.role in HOLDS]
    left_out = {"used_by": max(0, len(used) - limit), "held_by": max(0, len(held) - limit)}
    walk = graph.walk(version_id, up=False, limit=limit, without=HOLDS)
    return Impact(
        version_id,
        used[:limit],
        held[:limit],
        walk.hops,
        dict(sorted(Counter(graph.kind(hop.version_id) for hop in walk.hops).items())),
        left_out,
        walk.truncated or any(left_out.values()),
        view.tables.version(),
    )


def path(view: View, first: str, second: str, *, limit: int | None = None) -> Path:
    """The shortest chain that leads from one version to the other, and what each step of it was to the next.

    With `limit` the search looks at so many versions at most, each way.

    Raises:
        NotFoundError: no such version.
    """
    graph = _graph_with(view, first, second)
    room = len(graph.names) if limit is None else limit
    there = graph.chain(first, second, limit=room)
    back = graph.chain(second, first, limit=room) if there.versions is None else there
    links = None
    if back.versions is not None:
        links = [_step_of(graph, child, parent) for child, parent in pairwise(back.versions)]
        links = links if there.versions else links[::-1]
    truncated = links is None and (there.truncated or back.truncated)
    return Path(first, second, links, truncated, view.tables.version())


def why(view: View, version_id: str, *, limit: int = LIMIT) -> dict[str, Any]:
    """How a version came to be: batch, code, parents, everything said about it since, and the gates it met.

    Each list holds at most `limit`; `left_out` counts the rest.

    Raises:
        NotFoundError: no such version.
    """
    version = view.version(VersionId(version_id))
    about = rows.having(view.table("events"), version_id=version_id)
    columns = ["event_type", "commit_version", "stage", "partition", "derivation", "run_id", "code_version", "payload"]
    said = about.filter(pc.not_equal(about.column("event_type"), "created")).select(columns).to_pylist()
    created = rows.having(about, event_type="created").slice(0, 1).to_pylist()[0]
    verdicts = view.rows("gate_verdicts", where={"subject": version_id})
    names = ("gate", "accepted", "reason", "evidence")
    lists = {
        "parents": created["parents"],
        "since": said,
        "gates": [{name: row[name] for name in names} for row in verdicts],
    }
    return {
        **{name: version[name] for name in ("version_id", "artifact_id", "kind", "rev", "content_hash")},
        **{name: created[name] for name in ("stage", "partition", "derivation", "derivation_hash", "run_id")},
        "code_version": created["code_version"],
        "created_at": created["ts"],
        **_cut(lists, limit),
        "as_of": view.tables.version(),
    }


def diff(view: View, first: str, second: str, *, limit: int = LIMIT) -> dict[str, Any]:
    """What differs between two versions: payload by path, files, parents, and how they were made.

    Each list holds at most `limit`; `left_out` counts the rest.

    Raises:
        NotFoundError: no such version.
    """
    sides = [VersionId(first), VersionId(second)]
    found = [view.version(side) for side in sides]
    payloads = [view.payload(side) for side in sides]
    files = [{leaf.path: leaf.sha256 for leaf in view.tree(row["blob_root"] or "")} for row in found]
    parents = [{(link.parent, link.role) for link in view.graph.neighbours(side, up=True)} for side in sides]
    lists = {
        "payload": dict(sorted(_changes(payloads[0], payloads[1], ""))),
        "files": _files(files[0], files[1]),
        "parents_only_first": sorted(map(list, parents[0] - parents[1])),
        "parents_only_second": sorted(map(list, parents[1] - parents[0])),
    }
    return {
        "first": first,
        "second": second,
        **_cut(lists, limit),
        "same_derivation": found[0]["derivation_hash"] == found[1]["derivation_hash"],
        "as_of": view.tables.version(),
    }


def reproduce(
    lake: Lake, version_id: str, execute: Callable[[Step], Iterable[str]] | None = None, *, run_id: str | None = None
) -> Reproduced:
    """The batches that lead to a version, in order. With `execute` each is run again and its outputs compared.

    `execute` runs one step, somewhere else than in this lake, and gives the version ids that came out. A version that
    comes out otherwise is recorded as `diverged`, never overwritten.

    Raises:
        NotFoundError: no such version.
    """
    walk = upstream(lake, version_id, limit=1 << 62)
    needed = [version_id, *(hop.version_id for hop in walk.hops)]
    made: dict[str, list[str]] = {}
    for version in needed:
        made.setdefault(lake.version(VersionId(version))["batch"], []).append(version)
    batches = [row for row in lake.rows("batches") if row["batch"] in made]
    steps = [_step(lake, row, sorted(made[row["batch"]])) for row in batches]
    if execute is None:
        return Reproduced(version_id, steps, False, [])
    differing: list[str] = []
    for row, step in zip(batches, steps, strict=True):
        found = set(execute(step))
        lost = [version for version in step.outputs if version not in found]
        second = {artifact_id_of(VersionId(version)): version for version in sorted(found)}
        alarms = {version: second[a] for version in lost if (a := artifact_id_of(VersionId(version))) in second}
        if alarms:
            key = sha256(canonical_json(alarms))
            with lake.begin("alarm", row["batch"], derivation=key, run_id=run_id) as batch:
                for version, other in alarms.items() if not batch.done else ():
                    derivation = lake.version(VersionId(version))["derivation_hash"]
                    batch.alarm(VersionId(version), derivation, other)
        differing += lost
    return Reproduced(version_id, steps, True, differing)


def as_of(lake: Lake, ref: str, at: At, *, limit: int = LIMIT) -> dict[str, Any]:
    """Which version of an artifact was current at a point in time, and its direct lineage as known then.

    `ref` is an artifact, or a version of any time, of whose artifact and kind the current version is meant; or a unique
    start of either. Each list holds at most `limit`; `left_out` counts the rest.

    Raises:
        NotFoundError: nothing of that name existed then, it may mean artifacts of several kinds, or there is no such
            point.
    """
    view = lake.at(at)
    named = lake.find(ref) if "@" in ref else view.find(ref)  # a version may be newer than the point
    kind, artifact = lake.kind_of(named), artifact_id_of(named)
    if not view.rows("versions", where={"kind": kind, "artifact_id": artifact}):
        raise NotFoundError(kind, ref, why=f"there was no {kind} {artifact!r} at {at}")
    current = view.resolve(kind, artifact)
    lists = {
        "parents": [[link.parent, link.role] for link in view.graph.neighbours(current, up=True)],
        "children": [[link.child, link.role] for link in view.graph.neighbours(current, up=False)],
    }
    return {
        "artifact_id": artifact,
        "version_id": current,
        "rev": view.version(current)["rev"],
        **_cut(lists, limit),
        "as_of": view.tables.version(),
    }


def to_networkx(view: View, answer: Answer) -> nx.MultiDiGraph:
    """The sub-graph of an answer, child to parent, with kinds on nodes and roles on edges, to look at or hand on."""
    import networkx as nx

    graph = nx.MultiDiGraph(as_of=answer.as_of, truncated=answer.truncated)
    for version in (answer.version_id, *(hop.version_id for hop in answer.hops)):
        graph.add_node(version, kind=view.graph.kind(version))
    graph.add_edges_from((link.child, link.parent, {"role": link.role}) for link in answer.links)
    return graph


def _answer(view: View, version_id: str, *, up: bool, depth: int | None, limit: int) -> Answer:
    graph = _graph_with(view, version_id)
    walk = graph.walk(version_id, up=up, depth=depth, limit=limit)
    links = graph.links([version_id, *(hop.version_id for hop in walk.hops)])
    return Answer(version_id, walk.hops, links, walk.truncated, view.tables.version())


def _graph_with(view: View, *version_ids: str) -> Graph:
    graph = view.graph
    for version in version_ids:
        if version not in graph or not graph.kind(version):
            view.version(VersionId(version))  # says what there is instead
    return graph


def _step_of(graph: Graph, child: str, parent: str) -> Link:
    return Link(
        child, parent, ", ".join(link.role for link in graph.neighbours(child, up=True) if link.parent == parent)
    )


def _cut(lists: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The first `limit` of each list or mapping, with how many more there are."""
    left_out = {name: max(0, len(items) - limit) for name, items in lists.items()}
    shown = {
        name: dict(islice(items.items(), limit)) if isinstance(items, dict) else items[:limit]
        for name, items in lists.items()
    }
    return {**shown, "left_out": left_out, "truncated": any(left_out.values())}


def _step(lake: Lake, batch: Mapping[str, Any], outputs: list[str]) -> Step:
    names = ("stage", "partition", "derivation", "code_version")
    inputs = {link.parent for version in outputs for link in lake.graph.neighbours(version, up=True)}
    return Step(**{name: batch[name] for name in names}, inputs=sorted(inputs - set(outputs)), outputs=outputs)


def _changes(first: Any, second: Any, path: str) -> Iterable[tuple[str, list[Any]]]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted({*first, *second}):
            yield from _changes(first.get(key), second.get(key), f"{path}.{key}" if path else key)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for place, (a, b) in enumerate(zip(first, second, strict=True)):
            yield from _changes(a, b, f"{path}[{place}]")
    elif first != second:
        yield path, [first, second]


def _files(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, list[str | None]]:
    """sha256 on both sides of the files that differ."""
    paths = sorted({*first, *second})
    return {path: [first.get(path), second.get(path)] for path in paths if first.get(path) != second.get(path)}
