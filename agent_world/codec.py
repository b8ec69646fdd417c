"""Frozen dataclasses to JSON payloads and back, checked on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def encode(value: Any) -> Any:
    """The JSON form of a dataclass value (tuples become lists)."""
    return _adapter(type(value)).dump_python(value, mode="json")


def decode(cls: type[T], payload: Mapping[str, Any]) -> T:
    """The value of type `cls` that `payload` is the JSON form of.

    Raises:
        pydantic.ValidationError: the payload does not have the shape of `cls`.
    """
    return _adapter(cls).validate_python(payload)
