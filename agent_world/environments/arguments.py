"""Checks a tool's arguments against its schema, before anything reaches the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jsonschema

from agent_world.environments.model import Json
from agent_world.identity import canonical_json


def complaint(schema: Mapping[str, Json], arguments: Any) -> str | None:
    """What is wrong with `arguments`, in one sentence for the caller; None when they are valid."""
    error = jsonschema.exceptions.best_match(_validator(_identity(schema)).iter_errors(arguments))
    if error is None:
        return None
    place = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in error.absolute_path)
    return f"{place.removeprefix('.')}: {error.message}" if place else error.message


@lru_cache(maxsize=4096)
def _validator(schema: str) -> jsonschema.protocols.Validator:
    import json

    return jsonschema.Draft202012Validator(json.loads(schema))


def _identity(schema: Mapping[str, Json]) -> str:
    return canonical_json(schema)
