"""Tools over the documents of `D`: look-ups and corrections in sheets, sections and notes in pages."""

from __future__ import annotations

from collections.abc import Mapping

from agent_world.discovery.toolsmith.documents.pages import page_drafts
from agent_world.discovery.toolsmith.documents.sheets import sheet_drafts
from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.view import View
from agent_world.environments.model import DOCUMENTS_FOLDER
from agent_world.identity import rng


def document_drafts(view: View, files: Mapping[str, bytes], seed: int) -> list[Draft]:
    """Drafts for every document that the author can make out: sheets first, pages for the rest."""
    drafts: list[Draft] = []
    for document in view.database.documents:
        data = files[f"{DOCUMENTS_FOLDER}/{document.path}"]
        random = rng(seed, "document", view.database.database_id, document.path)
        drafts += sheet_drafts(view, document, data, random) or page_drafts(view, document, data, random)
    return drafts
