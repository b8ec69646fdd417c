"""Frozen dataclasses to JSON payloads and back, checked on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import Field, TypeAdapter, WrapSerializer

T = TypeVar("T")

LEFT_OUT_WHEN_EMPTY = Field(exclude_if=lambda value: not value)
"""Annotates a field that the JSON form has only when not empty: what was made before it came keeps its identity."""

OF_ANY_KIND = WrapSerializer(lambda value, serialize: serialize(dict(value)))
"""Annotates a mapping that need not be a dict."""


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
