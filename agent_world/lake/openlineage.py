"""OpenLineage events of what a lake knows: one COMPLETE RunEvent a batch, datasets with their exact version.

The wire format is that of openlineage.io, spec 2-0-2 with the facet DatasetVersionDatasetFacet 1-0-1. It is an export;
the lake itself is the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agent_world.identity import VersionId, artifact_id_of

if TYPE_CHECKING:
    from agent_world.lake.view import View

_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_VERSION_FACET = "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json"
_PRODUCER = "urn:agent-world"


def run_events(view: View, namespace: str) -> Iterator[dict[str, Any]]:
    """One event a batch that made versions, in commit order; `namespace` names the lake."""
    made: dict[str, list[str]] = {}
    for row in view.rows("versions", columns=["version_id", "batch"]):
        made.setdefault(row["batch"], []).append(row["version_id"])
    graph = view.graph
    for batch in view.rows("batches"):
        outputs = made.get(batch["batch"], [])
        if outputs:
            inputs = {link.parent for version in outputs for link in graph.neighbours(version, up=True)}
            yield {
                "eventType": "COMPLETE",
                "eventTime": batch["committed_at"].isoformat(),
                # A run id must be a UUID: the batch is what ran, and its key is a hash.
                "run": {"runId": str(UUID(batch["batch"][:32]))},
                "job": {"namespace": namespace, "name": batch["stage"]},
                "inputs": [_dataset(namespace, version) for version in sorted(inputs - set(outputs))],
                "outputs": [_dataset(namespace, version) for version in sorted(outputs)],
                "producer": _PRODUCER,
                "schemaURL": _SPEC,
            }


def _dataset(namespace: str, version: str) -> dict[str, Any]:
    facet = {"_producer": _PRODUCER, "_schemaURL": _VERSION_FACET, "datasetVersion": version}
    return {"namespace": namespace, "name": artifact_id_of(VersionId(version)), "facets": {"version": facet}}
