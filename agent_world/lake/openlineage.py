"""OpenLineage events of what a lake knows: one COMPLETE RunEvent a batch, datasets with their exact version.

The wire format is that of openlineage.io, spec 2-0-2. It is an export: the lake is the store, and nobody else is asked.
The run that wrote a batch, as a rule Dagster's, is named as its parent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from agent_world.identity import VersionId, artifact_id_of

if TYPE_CHECKING:
    from agent_world.lake.view import View

NAMESPACE = "agent-world"
_PRODUCER = "urn:agent-world"
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
_FACETS = "https://openlineage.io/spec/facets"


def run_events(view: View, namespace: str = NAMESPACE, only: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """One event a batch that made versions, in commit order; `namespace` names the lake.

    With `only` what made these versions, and of their batches only these outputs.
    """
    made: dict[str, list[str]] = {}
    for row in view.rows("versions", columns=["version_id", "batch"]):
        if only is None or row["version_id"] in only:
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
                "run": {"runId": str(UUID(batch["batch"][:32])), "facets": _run_facets(namespace, batch)},
                "job": {"namespace": namespace, "name": batch["stage"], "facets": {"jobType": _job_type()}},
                "inputs": [_dataset(namespace, v, graph.kind(v)) for v in sorted(inputs - set(outputs))],
                "outputs": [_dataset(namespace, v, graph.kind(v)) for v in sorted(outputs)],
                "producer": _PRODUCER,
                "schemaURL": f"{_SPEC}/RunEvent",
            }


def _run_facets(namespace: str, batch: dict[str, Any]) -> dict[str, Any]:
    facets = {
        "processing_engine": _facet(
            "ProcessingEngineRunFacet", "1-1-1", name="agent-world", version=batch["code_version"]
        ),
        "agent_world_batch": {
            "_producer": _PRODUCER,
            "_schemaURL": f"{_SPEC}/RunFacet",
            **{name: batch[name] for name in ("batch", "partition", "derivation")},
        },
    }
    if batch["run_id"]:
        run = {"runId": _uuid(batch["run_id"])}
        facets["parent"] = _facet("ParentRunFacet", "1-2-0", run=run, job={"namespace": namespace, "name": "run"})
    return facets


def _job_type() -> dict[str, Any]:
    return _facet("JobTypeJobFacet", "2-0-4", processingType="BATCH", integration="AGENT_WORLD", jobType="STAGE")


def _dataset(namespace: str, version: str, kind: str) -> dict[str, Any]:
    facets = {"version": _facet("DatasetVersionDatasetFacet", "1-0-1", datasetVersion=version)}
    if kind:
        facets["datasetType"] = _facet("DatasetTypeDatasetFacet", "1-0-1", datasetType=kind.upper())
    # Names of artifacts repeat between kinds: a theme, its database and its environment share one key.
    name = f"{kind or 'unknown'}/{artifact_id_of(VersionId(version))}"
    return {"namespace": namespace, "name": name, "facets": facets}


def _facet(schema: str, revision: str, /, **fields: Any) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_FACETS}/{revision}/{schema}.json#/$defs/{schema}", **fields}


def _uuid(run_id: str) -> str:
    try:
        return str(UUID(run_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"{_PRODUCER}:{run_id}"))
