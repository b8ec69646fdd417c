"""M2 themes from the Google API discovery documents that come with google-api-python-client (Apache-2.0)."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_world.discovery.text import plain_text
from agent_world.discovery.themes.documents import Draft, ThemeDocument, UnusableDocumentError
from agent_world.discovery.themes.vocabulary import of_prose, of_tools
from agent_world.errors import BadInputError

_MAX_TOOLS = 64


class GoogleDiscoveryConnector:
    """The largest version of every API in the discovery cache."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _installed_folder()

    def documents(self) -> Iterator[ThemeDocument]:
        """One document an API, by API name."""
        versions: dict[str, list[Path]] = {}
        for path in sorted(self._folder.glob("*.json")):
            if path.name != "index.json":
                versions.setdefault(path.name.split(".")[0], []).append(path)
        for name, paths in versions.items():
            largest = max(paths, key=lambda path: (path.stat().st_size, path.name))
            yield ThemeDocument(
                source="M2", origin=f"google_discovery:{name}", licence="Apache-2.0", data=largest.read_bytes()
            )

    def parse(self, document: ThemeDocument) -> Draft:
        """The theme of an API: title, description, methods with their parameters, resources and fields as nouns."""
        try:
            model = json.loads(document.data)
            title = model["title"]
            methods = sorted(_methods(model), key=lambda method: method["id"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnusableDocumentError(
                document.origin, "broken_document", f"not a discovery document: {error!r}"
            ) from error
        description = plain_text(model.get("description") or "") or title
        nouns, verbs = of_tools({"name": _reversed_id(method["id"])} for method in methods)
        return Draft(
            document=document,
            title=title,
            description=description[:2000],
            nouns=nouns or of_prose(description)[0],
            verbs=verbs,
            raw_tools=tuple(_tool(method, model) for method in methods[:_MAX_TOOLS]),
        )


def _installed_folder() -> Path:
    spec = importlib.util.find_spec("googleapiclient")
    if spec is None or spec.origin is None:
        raise BadInputError("google-api-python-client", "it is not installed", "run `make install`")
    return Path(spec.origin).parent / "discovery_cache" / "documents"


def _methods(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (node.get("methods") or {}).values()
    for resource in (node.get("resources") or {}).values():
        yield from _methods(resource)


def _reversed_id(identity: str) -> str:
    """`books.volumes.associated.list` as an action on a thing: "list volumes associated"."""
    parts = identity.split(".")[1:]
    return " ".join([parts[-1], *parts[:-1]]) if parts else identity


def _tool(method: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, parameter in (method.get("parameters") or {}).items():
        properties[name] = {key: parameter[key] for key in ("type", "description", "enum") if key in parameter}
    body = (model.get("schemas") or {}).get((method.get("request") or {}).get("$ref"), {})
    for name, field in (body.get("properties") or {}).items():
        properties.setdefault(name, _field(field))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name, p in (method.get("parameters") or {}).items() if p.get("required")]
    if required:
        schema["required"] = required
    return {"name": method["id"], "description": (method.get("description") or "")[:400], "input_schema": schema}


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    """One level of a request field: a nested schema is an object, so that cycles end here."""
    found: dict[str, Any] = {"type": "object" if "$ref" in field else field.get("type", "string")}
    if field.get("description"):
        found["description"] = field["description"][:160]
    if isinstance(field.get("enum"), list):
        found["enum"] = field["enum"]
    return found
