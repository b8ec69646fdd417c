"""What other tools are handed: OpenLineage events and PROV-JSON, valid, and from the lake alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

import jsonschema
import pytest
from click.testing import CliRunner

from agent_world.errors import BadInputError
from agent_world.lake import Lake, open_lake
from agent_world.lake import lineage as lin
from agent_world.lake.lineage_export import NotTakenError, made_from, post_events, write_events
from agent_world.lake.openlineage import run_events
from agent_world.lake.prov import document
from dagster_project.cli import cli

RUN = "6e9a7f3e-54b1-4f3f-8f0e-3a1b2c3d4e5f"

FACET = {
    "type": "object",
    "required": ["_producer", "_schemaURL"],
    "properties": {name: {"type": "string", "pattern": "^[a-z]+:.+"} for name in ("_producer", "_schemaURL")},
}


def facets(**required: dict) -> dict:
    """Facets of which these hold these fields, whatever else there is."""
    named = {
        name: {"allOf": [FACET, {"properties": fields, "required": list(fields)}]} for name, fields in required.items()
    }
    return {"type": "object", "properties": named, "additionalProperties": FACET}


TEXT = {"type": "string", "minLength": 1}
NAMED = {"type": "object", "required": ["namespace", "name"], "properties": {"namespace": TEXT, "name": TEXT}}
DATASET = NAMED | {
    "required": ["namespace", "name", "facets"],
    "properties": {"facets": facets(version={"datasetVersion": TEXT}, datasetType={"datasetType": TEXT})},
}
EVENT = {  # what spec 2-0-2 asks of a RunEvent and the facets' own specifications of the facets that are sent
    "type": "object",
    "required": ["eventType", "eventTime", "run", "job", "inputs", "outputs", "producer", "schemaURL"],
    "properties": {
        "eventType": {"const": "COMPLETE"},
        "schemaURL": {"const": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"},
        "run": {
            "required": ["runId", "facets"],
            "properties": {
                "facets": facets(
                    parent={"run": {"required": ["runId"]}, "job": NAMED}, processing_engine={"version": TEXT}
                )
            },
        },
        "job": NAMED | {"properties": {"facets": facets(jobType={"processingType": TEXT, "integration": TEXT})}},
        "inputs": {"type": "array", "items": DATASET},
        "outputs": {"type": "array", "minItems": 1, "items": DATASET},
    },
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = open_lake(tmp_path_factory.mktemp("exported") / "lake")
    with lake.begin("themes", derivation="d", run_id=RUN) as batch:
        theme = batch.create("theme", "rail", {"title": "Zürich — rail"})
        other = batch.create("theme", 'road, "B" (x=1)', {"title": "road"})
    with lake.begin("databases", "rail", derivation="d", run_id="by hand", code_version="2+dirty") as batch:
        database = batch.create("database", "rail", {}, parents=[(theme, "theme")])
        batch.create("tool", "rail/find", {"name": "find"}, parents=[(database, "database"), (theme, "about")])
    with lake.begin("databases", "road", derivation="d") as batch:
        batch.create("database", "road", {}, parents=[(other, "theme")])
    with lake.begin("verdicts", derivation="d") as batch:
        batch.record("runs", {"run": "r", "status": "started"})
        batch.retire(other, "too wide")
        batch.retire(database, "too small")
    with lake.begin("verdicts", derivation="again") as batch:
        batch.reinstate(database, "created", "it was not")
    return lake


def prov(lake: Lake, **options) -> dict:
    return json.loads("".join(document(lake, **options)))


def test_every_event_is_valid_and_names_exact_versions_and_its_run(lake: Lake):
    events = list(run_events(lake))
    assert [event["job"]["name"] for event in events] == ["themes", "databases", "databases"]
    for event in events:
        jsonschema.Draft202012Validator(EVENT).validate(event)
        UUID(event["run"]["runId"])
        assert datetime.fromisoformat(event["eventTime"]).tzinfo
    names = [dataset["name"] for event in events for dataset in event["outputs"]]
    assert sorted(names)[:3] == ["database/rail", "database/road", "theme/rail"]  # one key, two datasets
    [themes, made, _] = events
    assert themes["run"]["facets"]["parent"]["run"]["runId"] == RUN
    assert UUID(made["run"]["facets"]["parent"]["run"]["runId"]).version == 5  # a run id that is none
    assert "parent" not in events[2]["run"]["facets"]
    assert made["run"]["facets"]["processing_engine"]["version"] == "2+dirty"
    assert made["run"]["facets"]["agent_world_batch"]["partition"] == "rail"
    [read] = made["inputs"]
    assert read["facets"]["version"]["datasetVersion"] == lake.resolve("theme", "rail")


def test_only_what_some_versions_were_made_from_is_exported(lake: Lake):
    tool = lake.resolve("tool", "rail/find")
    only = made_from(lake, [tool])
    assert only == {tool, *(hop.version_id for hop in lin.upstream(lake, tool).hops)}
    outputs = [d["facets"]["version"]["datasetVersion"] for e in run_events(lake, only=only) for d in e["outputs"]]
    assert sorted(outputs) == sorted(only)
    assert len(prov(lake, only=only)["wasGeneratedBy"]) == len(only)
    alone = prov(lake, only={tool})  # parents are named even where nobody asked for them
    assert len(alone["entity"]) == 3 and len(alone["wasGeneratedBy"]) == 1


def test_prov_says_what_the_lake_says_and_names_nothing_that_is_not_there(lake: Lake):
    found = prov(lake)
    entities, activities, agents = (set(found[name]) for name in ("entity", "activity", "agent"))
    kinds = {"prov:entity": entities, "prov:generatedEntity": entities, "prov:usedEntity": entities,
             "prov:activity": activities, "prov:agent": agents}  # fmt: skip
    for name, records in found.items():
        for record in records.values() if name != "prefix" else ():
            assert all(value in kinds[key] for key, value in record.items() if key in kinds), (name, record)
    version = {entity: record["aw:artifact"] + record["prov:type"]["$"] for entity, record in found["entity"].items()}
    assert len(set(version.values())) == lake.table("versions").num_rows
    derived = found["wasDerivedFrom"].values()
    edges = lake.read("edges")
    assert sorted(record["aw:role"] for record in derived) == sorted(edge["role"] for edge in edges)
    assert len(found["used"]) == 2  # what a batch made itself, it did not read
    [gone] = found["wasInvalidatedBy"].values()
    assert version[gone["prov:entity"]].startswith("road, ")
    assert all(c.isalnum() or c in ":/@+!$&*%-._~" for entity in entities for c in entity)


def test_exports_are_the_same_from_a_copy_with_nothing_but_the_lake(lake: Lake, tmp_path: Path):
    shutil.copytree(lake.uri, tmp_path / "copy")
    out = {name: tmp_path / name for name in ("events", "prov")}
    arguments = [
        "lineage",
        "export",
        "--openlineage",
        out["events"],
        "--prov",
        out["prov"],
        "--lake",
        tmp_path / "copy",
    ]
    code = (
        "import sys; from dagster_project.cli import cli; cli.main(sys.argv[1:], standalone_mode=False);"
        " assert 'dagster' not in sys.modules"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
        env=os.environ | {"DAGSTER_HOME": str(tmp_path / "deleted")},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert [json.loads(line) for line in out["events"].read_text("utf-8").splitlines()] == list(run_events(lake))
    assert json.loads(out["prov"].read_text("utf-8")) == prov(lake)


class Receiver:
    """An OpenLineage server on loopback: checks every event, and fails as it is told."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.taken: list[dict] = []
        self.faults: list[int] = []
        """Status of the next answers, until there are none left."""


@contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.paths.append(self.path)
            receiver.keys.append(self.headers["Authorization"])
            status = receiver.faults.pop(0) if receiver.faults else 201
            if status == 201:
                event = json.loads(body)
                jsonschema.Draft202012Validator(EVENT).validate(event)
                receiver.taken.append(event)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"not so" if status != 201 else b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_gets_every_event_once_in_order_though_it_is_busy_at_first(lake: Lake, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "planted-key")
    with receiving() as (receiver, url):
        receiver.faults = [503, 429]
        told = CliRunner().invoke(cli, ["lineage", "export", "--openlineage", url, "--lake", lake.uri])
        assert told.exit_code == 0 and "3 OpenLineage events" in told.output and "planted-key" not in told.output
        assert receiver.taken == list(run_events(lake))
        assert set(receiver.paths) == {"/api/v1/lineage"} and set(receiver.keys) == {"Bearer planted-key"}
        assert post_events(run_events(lake), f"{url}/elsewhere?x=1") == 3
        assert receiver.paths[-1] == "/elsewhere?x=1" and receiver.keys[-1] is None


def test_a_server_that_refuses_is_named_without_its_secrets(lake: Lake):
    with receiving() as (receiver, url):
        receiver.faults = [201, 422]
        secret = url.replace("//", "//user:planted@") + "/x?key=planted"
        with pytest.raises(NotTakenError, match=r"/x did not take event 2: 422 not so") as refused:
            post_events(run_events(lake), secret, "planted")
        assert len(receiver.paths) == 2 and "planted" not in str(refused.value)
    with pytest.raises(NotTakenError, match="did not take event 1: Connect"):
        post_events(run_events(lake), url)
    with pytest.raises(BadInputError, match="it is no address of a server"):
        post_events(run_events(lake), "ftp://host")


def test_a_file_is_written_whole_or_not_at_all(lake: Lake, tmp_path: Path):
    path = tmp_path / "events"
    path.write_text("before")

    def breaking() -> Iterator[dict]:
        yield {}
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        write_events(breaking(), path)
    assert path.read_text() == "before" and [each.name for each in tmp_path.iterdir()] == ["events"]
    with pytest.raises(BadInputError, match="No such file or directory; name a file that can be written"):
        write_events(run_events(lake), tmp_path / "nowhere" / "x")
