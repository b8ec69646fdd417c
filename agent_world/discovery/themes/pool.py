"""All themes within reach: the documents of the default sources, parsed but not yet checked."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import agent_world
from agent_world.discovery.faults import fault
from agent_world.discovery.model import Quarantined
from agent_world.discovery.themes.botocore import BotocoreConnector
from agent_world.discovery.themes.documents import Connector, Draft, UnusableDocumentError
from agent_world.discovery.themes.function_docs import FunctionDocConnector
from agent_world.discovery.themes.google_discovery import GoogleDiscoveryConnector
from agent_world.discovery.themes.mcp_stdio import McpConnector
from agent_world.discovery.themes.openapi import OpenApiConnector
from agent_world.discovery.themes.prd_markdown import BUNDLED, PrdConnector
from agent_world.identity import canonical_json, sha256

FOREIGN = Path(agent_world.__file__).parent.parent / ".mcp"
"""Where `make install` puts foreign MCP servers and the archive of OpenAPI descriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeSources:
    """Where themes come from. Folders that do not exist are left out, with a note among the faults."""

    mcp: Path | None = FOREIGN
    openapi: tuple[Path, ...] = field(default_factory=lambda: tuple(sorted((FOREIGN / "documents").glob("*.tgz"))))
    prds: tuple[Path, ...] = (BUNDLED,)
    function_docs: tuple[Path, ...] = ()
    packages: bool = True

    def documentation(self) -> list[Connector]:
        """The connectors of tool documentation (M2)."""
        connectors: list[Connector] = [BotocoreConnector(), GoogleDiscoveryConnector()] if self.packages else []
        connectors.extend(OpenApiConnector(path) for path in self.openapi)
        connectors.extend(FunctionDocConnector(path) for path in self.function_docs)
        return connectors

    def all(self) -> list[Connector]:
        """The connectors of every source: M1, M2, M3."""
        servers: list[Connector] = [McpConnector(self.mcp)] if self.mcp else []
        return [*servers, *self.documentation(), *(PrdConnector(path) for path in self.prds)]


def drafts_of(connectors: Sequence[Connector], origins: Collection[str] | None = None) -> Iterator[Draft | Quarantined]:
    """The documents of these connectors (all, or those of `origins`), parsed.

    One that cannot be used comes as a quarantined item.
    """
    for connector in connectors:
        for document in connector.documents():
            if origins is not None and document.origin not in origins:
                continue
            try:
                yield connector.parse(document)
            except UnusableDocumentError as error:
                yield fault("themes", error.origin, error.reason, error.detail, document.data)


def default_pool() -> list[Draft]:
    """The usable tool documentation of the default sources."""
    return [item for item in drafts_of(ThemeSources().documentation()) if isinstance(item, Draft)]


def default_pool_key() -> str:
    """What the default pool depends on: package versions and the archives at hand."""
    versions = [importlib.metadata.version(name) for name in ("botocore", "google-api-python-client")]
    archives = [[path.name, path.stat().st_size] for path in ThemeSources().openapi]
    return sha256(canonical_json([versions, archives]))
