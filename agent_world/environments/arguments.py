"""Checks a tool's arguments against its schema, before anything reaches the sandbox."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

from agent_world.environments.model import Json

_KEPT = 4096
# By identity, as hashing a schema costs more than checking against it; the entry keeps the schema, so its id stays its.
_validators: OrderedDict[int, tuple[Mapping[str, Json], Validator]] = OrderedDict()


def complaint(schema: Mapping[str, Json], arguments: Any) -> str | None:
    """What is wrong with `arguments`, in one sentence for the caller; None when they are valid."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return f"the arguments have no JSON form ({error})"
    error = best_match(_validator(schema).iter_errors(arguments))
    if error is None:
        return None
    place = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in error.absolute_path)
    return f"{place.removeprefix('.')}: {error.message}" if place else error.message


def _validator(schema: Mapping[str, Json]) -> Validator:
    kept = _validators.get(id(schema))
    if kept is None:
        kept = _validators[id(schema)] = (schema, Draft202012Validator(schema))
        if len(_validators) > _KEPT:
            _validators.popitem(last=False)
    return kept[1]
