"""The documents of `D` as MCP resources: those that some tool of the environment works with, as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types

from agent_world.environments.model import Environment
from agent_world.environments.state import EnvironmentState, State

SCHEME = "document"
_MIME_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "sql": "application/sql",
    "html": "text/html",
    "tex": "text/x-tex",
    "yaml": "application/yaml",
    "md": "text/markdown",
    "txt": "text/plain",
}


def readable(environment: Environment) -> list[str]:
    """The paths of the documents that an agent may read: what no tool touches, it would not get to see either."""
    return sorted({path for tool in environment.tools for path in tool.documents})


def resources(environment: Environment, state: EnvironmentState) -> Iterator[types.Resource]:
    """The documents that are there now."""
    known = {document.path: document for document in environment.database.documents}
    for path in readable(environment):
        text = text_of(state, path)
        if text is not None:
            yield types.Resource(
                uri=uri_of(environment, path),
                name=path,
                title=known[path].title if path in known else None,
                mime_type=mime_type(path),
                size=len(text.encode()),
            )


def text_of(state: EnvironmentState, path: str) -> str | None:
    """The text of a document; None when there is none, as in every state that is not records and documents."""
    return state.document(path) if isinstance(state, State) else None


def uri_of(environment: Environment, path: str) -> str:
    """``document://<key of the environment>/<path>``."""
    return f"{SCHEME}://{environment.environment_id}/{quote(path)}"


def place_of(uri: str) -> tuple[str, str] | None:
    """The key of the environment and the path that a URI names; None when it is no such URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != SCHEME or parts.query or parts.fragment:
        return None
    return parts.netloc, unquote(parts.path.removeprefix("/"))


def mime_type(path: str) -> str:
    """By the ending of the path."""
    return _MIME_TYPES.get(path.rpartition(".")[2].lower(), "text/plain")
