"""M2 themes from the AWS service models that come with botocore (Apache-2.0)."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_world.discovery.text import plain_text
from agent_world.discovery.themes.documents import Draft, ThemeDocument, UnusableDocumentError
from agent_world.discovery.themes.vocabulary import of_tools
from agent_world.errors import BadInputError

_MAX_TOOLS = 64
_TYPES = {
    "string": "string",
    "integer": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "boolean": "boolean",
    "list": "array",
    "map": "object",
    "structure": "object",
    "timestamp": "string",
    "blob": "string",
    "character": "string",
}


class BotocoreConnector:
    """The newest version of every service model in botocore's data folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _installed_folder()

    def documents(self) -> Iterator[ThemeDocument]:
        """One document a service, by service name."""
        for service in sorted(path for path in self._folder.iterdir() if path.is_dir()):
            models = sorted(service.glob("*/service-2.json*"))
            if models:
                data = models[-1].read_bytes()
                yield ThemeDocument(
                    source="M2",
                    origin=f"botocore:{service.name}",
                    licence="Apache-2.0",
                    data=gzip.decompress(data) if models[-1].suffix == ".gz" else data,
                )

    def parse(self, document: ThemeDocument) -> Draft:
        """The theme of a service: title, first sentences, operations with their top-level parameters."""
        try:
            model = json.loads(document.data)
            metadata, operations, shapes = model["metadata"], model["operations"], model["shapes"]
            title = metadata["serviceFullName"]
        except (ValueError, KeyError, TypeError) as error:
            raise UnusableDocumentError(
                document.origin, "broken_document", f"not a service model: {error!r}"
            ) from error
        nouns, verbs = of_tools({"name": name} for name in sorted(operations))
        return Draft(
            document=document,
            title=title,
            nouns=nouns,
            verbs=verbs,
            description=plain_text(model.get("documentation") or "")[:2000] or title,
            raw_tools=tuple(_tool(operations[name], shapes) for name in sorted(operations)[:_MAX_TOOLS]),
        )


def _installed_folder() -> Path:
    spec = importlib.util.find_spec("botocore")
    if spec is None or spec.origin is None:
        raise BadInputError("botocore", "it is not installed", "run `make install`")
    return Path(spec.origin).parent / "data"


def _tool(operation: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
    shape = shapes.get(operation.get("input", {}).get("shape"), {"members": {}})
    properties = {name: _property(member, shapes) for name, member in (shape.get("members") or {}).items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if shape.get("required"):
        schema["required"] = list(shape["required"])
    return {
        "name": operation.get("name"),
        "description": plain_text(operation.get("documentation") or "")[:400],
        "input_schema": schema,
    }


def _property(member: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
    shape = shapes.get(member["shape"], {})
    found: dict[str, Any] = {"type": _TYPES.get(shape.get("type", "string"), "string")}
    text = plain_text(member.get("documentation") or "")[:160]
    if text:
        found["description"] = text
    if shape.get("enum"):
        found["enum"] = list(shape["enum"])
    return found
