"""`TrainJob.options` as the settings of one back-end: every name must be known, every value of the right type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

from agent_world.errors import BadInputError

T = TypeVar("T")


def names_of(cls: type) -> set[str]:
    """The settings that a dataclass has."""
    return {field.name for field in fields(cls)}


def settings(cls: type[T], options: Mapping[str, str | int | float | bool], **given: Any) -> T:
    """The dataclass `cls` filled from `options` and from what the job itself says (`given`), which no option changes.

    Raises:
        BadInputError: an option that does not exist, has another type, or is missing.
    """
    known = names_of(cls) - given.keys()
    types = get_type_hints(cls)
    for name, value in options.items():
        if name not in known:
            raise BadInputError(f"option {name}", "there is no such option here", f"known are: {_listed(known)}")
        if not _fits(value, types[name]):
            raise BadInputError(f"option {name}", f"{value!r} is no {types[name]}", "correct the value")
    missing = {field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING} - {
        *options,
        *given,
    }
    if missing:
        raise BadInputError("the options of the training job", f"missing: {_listed(missing)}", "add them")
    return cls(**given, **options)


def _fits(value: object, type_: Any) -> bool:
    if type_ is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(type_, type):
        return type(value) is type_
    return any(_fits(value, part) for part in getattr(type_, "__args__", ()) if part is not type(None)) or (
        value in getattr(type_, "__args__", ())
    )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
