"""JSON from a hostile writer: one meaning or none."""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn

Flaw = Literal[
    "not_text", "not_json", "key_twice", "not_finite", "lone_surrogate", "nested_too_deeply", "endless_number"
]
_DEPTH = 128
"""How many lists and objects may lie in each other: far from where any reader, or our own code, runs out of stack."""


class StrictJsonError(ValueError):
    """A text that is not JSON, or that readers disagree on; `flaw` says in which way."""

    def __init__(self, flaw: Flaw, detail: str) -> None:
        super().__init__(flaw, detail)
        self.flaw, self.detail = flaw, detail

    def __str__(self) -> str:
        return f"{self.flaw}: {self.detail}"


def loads(line: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        StrictJsonError: not UTF-8, not JSON, nested too deeply, or what readers disagree on: a key twice in an object,
            NaN or an infinity, a lone surrogate, an integer of thousands of digits.
    """
    try:
        value = _DECODER.decode(line.decode())
    except StrictJsonError:
        raise
    except UnicodeDecodeError as error:
        raise StrictJsonError("not_text", str(error)) from None
    except json.JSONDecodeError as error:
        raise StrictJsonError("not_json", str(error)) from None
    except RecursionError:
        raise StrictJsonError("nested_too_deeply", f"more than {_DEPTH} levels") from None
    except ValueError as error:
        # All that is left: the interpreter refuses to read an integer of more digits than it would write.
        raise StrictJsonError("endless_number", str(error)) from None
    if line.count(b"[") + line.count(b"{") > _DEPTH:
        _refuse_depth(value)
    if b"\\ud" in line or b"\\uD" in line:
        _refuse_lone_surrogates(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise StrictJsonError("key_twice", "an object names a key twice")
    return value


def _constant(name: str) -> NoReturn:
    raise StrictJsonError("not_finite", f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise StrictJsonError("not_finite", f"{text[:20]} is too large for a number")
    return value


def _refuse_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return
    raise StrictJsonError("nested_too_deeply", f"more than {_DEPTH} levels")


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise StrictJsonError("lone_surrogate", "half of a pair is no text") from None


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
