"""JSON from a hostile writer: one meaning or none."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def loads(line: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: not UTF-8, not JSON, nested too deeply, or what readers disagree on: a key twice in an object, NaN
            or an infinity, a lone surrogate, an integer of thousands of digits.
    """
    try:
        value = _DECODER.decode(line.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if b"\\ud" in line or b"\\uD" in line:
        _refuse_lone_surrogates(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object names a key twice")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:20]} is too large for a number")
    return value


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate is no text") from None


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
