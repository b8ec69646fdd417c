"""What a lake knows as W3C PROV-JSON: versions are entities, batches activities, the code their agent.

Edges keep their roles. A retired version is invalidated by the batch that said so, until one reinstates it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agent_world.identity import canonical_json

if TYPE_CHECKING:
    from agent_world.lake.view import View

PREFIX = {"aw": "urn:agent-world:"}

Item = tuple[str, dict[str, Any]]


def document(view: View, only: Collection[str] | None = None) -> Iterator[str]:
    """The document in pieces of text, one record a line; with `only` these versions and what made them."""
    batches = {row["batch"]: row for row in view.rows("batches")}
    versions = [row for row in view.rows("versions") if only is None or row["version_id"] in only]
    used = {row["batch"] for row in versions}
    named = [batch for key, batch in batches.items() if key in used]
    gone = _retired(view, {row["version_id"] for row in versions})
    sayers = [batches[row["batch"]] for row in gone if row["batch"] not in used]
    activities = [*named, *{batch["batch"]: batch for batch in sayers}.values()]
    sections: dict[str, Iterator[Item]] = {
        "entity": _entities(view, versions),
        "activity": map(_activity, activities),
        "agent": _agents(activities),
        "wasGeneratedBy": _numbered("g", (_at(row, batches) for row in versions)),
        "used": _numbered("u", _used(view, versions)),
        "wasDerivedFrom": _numbered("d", _derived(view, versions)),
        "wasAssociatedWith": _numbered("a", map(_associated, activities)),
        "wasInvalidatedBy": _numbered("i", (_at(row, batches) for row in gone)),
    }
    yield f'{{"prefix":{canonical_json(PREFIX)}'
    for name, items in sections.items():
        before = f',\n"{name}":{{\n'
        for key, record in items:
            yield f"{before}{canonical_json(key)}:{canonical_json(record)}"
            before = ",\n"
        if before == ",\n":
            yield "}"
    yield "}\n"


def _entities(view: View, versions: list[dict[str, Any]]) -> Iterator[Item]:
    graph = view.graph
    known = {row["version_id"] for row in versions}
    for row in versions:
        yield (
            _version(row["version_id"]),
            {
                "prov:type": _name("kind", row["kind"]),
                "aw:artifact": row["artifact_id"],
                "aw:contentHash": row["content_hash"],
                "aw:rev": row["rev"],
            },
        )
    ends = {link.parent for row in versions for link in graph.neighbours(row["version_id"], up=True)}
    for version in sorted(ends - known):  # made from, but not itself asked for
        yield _version(version), {"prov:type": _name("kind", graph.kind(version) or "unknown")}


def _activity(batch: dict[str, Any]) -> Item:
    told = {f"aw:{name}": batch[name] for name in ("stage", "partition", "derivation", "run_id") if batch[name]}
    return _batch(batch["batch"]), {"prov:endTime": _time(batch), **told}


def _agents(batches: list[dict[str, Any]]) -> Iterator[Item]:
    for code in dict.fromkeys(batch["code_version"] for batch in batches):
        software = {"$": "prov:SoftwareAgent", "type": "prov:QUALIFIED_NAME"}
        yield _code({"code_version": code}), {"prov:type": software, "aw:codeVersion": code}


def _at(row: dict[str, Any], batches: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """That a batch made, or did away with, a version."""
    batch = batches[row["batch"]]
    return {
        "prov:entity": _version(row["version_id"]),
        "prov:activity": _batch(row["batch"]),
        "prov:time": _time(batch),
    }


def _associated(batch: dict[str, Any]) -> dict[str, Any]:
    return {"prov:activity": _batch(batch["batch"]), "prov:agent": _code(batch)}


def _used(view: View, versions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What each batch read: the parents that it did not make itself."""
    made: dict[str, set[str]] = {}
    for row in versions:
        made.setdefault(row["batch"], set()).add(row["version_id"])
    graph = view.graph
    for batch, outputs in made.items():
        parents = {link.parent for version in outputs for link in graph.neighbours(version, up=True)}
        for parent in sorted(parents - outputs):
            yield {"prov:activity": _batch(batch), "prov:entity": _version(parent)}


def _derived(view: View, versions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    graph = view.graph
    for row in versions:
        for link in graph.neighbours(row["version_id"], up=True):
            yield {
                "prov:generatedEntity": _version(link.child),
                "prov:usedEntity": _version(link.parent),
                "prov:activity": _batch(row["batch"]),
                "aw:role": link.role,
            }


def _retired(view: View, versions: set[str]) -> list[dict[str, Any]]:
    """The last word on each version that is retired."""
    where = {"event_type": ["retired", "reinstated"]}
    said = view.rows("events", where=where, columns=["event_type", "version_id", "batch"])
    last = {row["version_id"]: row for row in said if row["version_id"] in versions}
    return [row for row in last.values() if row["event_type"] == "retired"]


def _numbered(letter: str, records: Iterator[dict[str, Any]]) -> Iterator[Item]:
    return ((f"_:{letter}{number}", record) for number, record in enumerate(records, 1))


def _version(version_id: str) -> str:
    return f"aw:{_local('version', version_id)}"


def _batch(batch: str) -> str:
    return f"aw:{_local('batch', batch)}"


def _code(batch: dict[str, Any]) -> str:
    return f"aw:{_local('code', batch['code_version'])}"


def _name(*parts: str) -> dict[str, str]:
    return {"$": f"aw:{_local(*parts)}", "type": "prov:QUALIFIED_NAME"}


def _local(*parts: str) -> str:
    """The local part of a qualified name; what PROV does not allow there is percent-encoded."""
    return "/".join(quote(part, safe="/@+!$&*") for part in parts)


def _time(batch: dict[str, Any]) -> str:
    return batch["committed_at"].isoformat()
