"""MLflow: one parent run a loop, one nested run a round, found again by tag so that a resumed loop goes on in them."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_world.models.named import lay_down

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run
    from mlflow.entities.model_registry import ModelVersion

EXPERIMENT = "agent-world"
MODEL = "agent-world-policy"
_KEY = "agent_world.key"
_PARENT = "mlflow.parentRunId"
_BATCH = 900
"""MLflow takes at most 1,000 metrics in one call."""


class Tracker:
    """Writes one loop to MLflow.

    Args:
        uri: tracking URI (``sqlite:///...`` or a server).
        artifacts: where a new experiment puts its artifacts.
        loop: the identity of the loop: the same loop resumed finds its runs again.
    """

    def __init__(self, uri: str, artifacts: str, loop: str) -> None:
        import mlflow
        from mlflow import MlflowClient
        from mlflow.environment_variables import MLFLOW_ENABLE_ASYNC_TRACE_LOGGING

        logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of every table it makes
        mlflow.set_tracking_uri(uri)  # the trace exporter reads only the global one
        MLFLOW_ENABLE_ASYNC_TRACE_LOGGING.set(False)  # else traces are written behind the caller's back
        self.uri, self.loop = uri, loop
        self.client: MlflowClient = MlflowClient(uri)
        found = self.client.get_experiment_by_name(EXPERIMENT)
        self.experiment: str = found.experiment_id if found else self.client.create_experiment(EXPERIMENT, artifacts)

    def loop_run(self, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """The parent run of this loop."""
        return self._run("loop", f"loop-{self.loop[:8]}", parameters, tags)

    def round_run(self, round: str, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """The nested run of one round; its parent must exist."""
        parent = self._find("loop")
        parents = {_PARENT: parent.info.run_id} if parent else {}
        return self._run(round, round, {"round": round, **parameters}, {**parents, **tags})

    def log(self, run: str, series: Sequence[tuple[str, float, int]]) -> None:
        """Log (metric, value, step) triples; a step already logged is not logged twice."""
        from mlflow.entities import Metric

        known: dict[str, set[int]] = {}
        fresh = []
        for name, value, step in series:
            if name not in known:
                known[name] = {point.step for point in self.client.get_metric_history(run, name)}
            if step not in known[name]:
                fresh.append(Metric(name, value, 0, step))
        for start in range(0, len(fresh), _BATCH):
            self.client.log_batch(run, metrics=fresh[start : start + _BATCH])

    def register(self, run: str, checkpoint: str, files: Mapping[str, bytes], tags: Mapping[str, str]) -> None:
        """A registry version of this checkpoint, made once; its source is a copy of `files` that MLflow can fetch."""
        from mlflow.exceptions import MlflowException

        if self._registered(checkpoint):
            return
        try:
            self.client.create_registered_model(MODEL)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        path = f"checkpoints/{checkpoint}"
        with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
            lay_down(files, Path(folder))
            self.client.log_artifacts(run, folder, path)
        self.client.create_model_version(
            MODEL, f"runs:/{run}/{path}", run_id=run, tags={"lake_version": checkpoint, **tags}
        )

    def crown(self, checkpoint: str) -> None:
        """Give this checkpoint the alias champion, if it is registered."""
        found = self._registered(checkpoint)
        if found:
            self.client.set_registered_model_alias(MODEL, "champion", found.version)

    def traced(self, tag: str, value: str, named_by: str) -> set[str]:
        """What the tag `named_by` says of each trace whose `tag` has this value."""
        found = self.client.search_traces(
            locations=[self.experiment], filter_string=f"tags.`{tag}` = '{value}'", include_spans=False
        )
        return {trace.info.tags.get(named_by, "") for trace in found}

    def trace(
        self,
        run: str,
        name: str,
        steps: Sequence[tuple[str, Any, Any]],
        tags: Mapping[str, str],
        *,
        asked: Any,
        came_of_it: Any,
    ) -> None:
        """One agent trace of the run, with a span for each (tool, input, output)."""
        root = self.client.start_trace(
            name, span_type="AGENT", inputs=asked, tags=dict(tags), experiment_id=self.experiment, run_id=run
        )
        for tool, given, returned in steps:
            span = self.client.start_span(
                tool, trace_id=root.trace_id, parent_id=root.span_id, span_type="TOOL", inputs=given
            )
            self.client.end_span(root.trace_id, span.span_id, outputs=returned)
        self.client.end_trace(root.trace_id, outputs=came_of_it)

    def finish(self, run: str, tags: Mapping[str, str]) -> None:
        """Close a run and tie it to what was made in it."""
        for key, value in tags.items():
            self.client.set_tag(run, key, value)
        self.client.set_terminated(run)

    def is_open(self, run: str) -> bool:
        """Whether a run was not closed yet; one that was keeps its end."""
        return self.client.get_run(run).info.status == "RUNNING"

    def _registered(self, checkpoint: str) -> ModelVersion | None:
        versions = self.client.search_model_versions(f"name = '{MODEL}'")
        return next((v for v in versions if v.tags.get("lake_version") == checkpoint), None)

    def _run(self, key: str, name: str, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        found = self._find(key)
        if not found:
            keyed = {_KEY: f"{self.loop}/{key}", **tags}
            run = self.client.create_run(self.experiment, run_name=name, tags=keyed).info.run_id
            for parameter, value in parameters.items():
                self.client.log_param(run, parameter, value)
            return run
        run = found.info.run_id
        if self.is_open(run):
            for name, value in tags.items():  # whoever goes on with it stands in the place of who began it
                self.client.set_tag(run, name, value)
        return run

    def _find(self, key: str) -> Run | None:
        runs = self.client.search_runs([self.experiment], f"tags.`{_KEY}` = '{self.loop}/{key}'", max_results=1)
        return runs[0] if runs else None
