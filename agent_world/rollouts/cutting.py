"""Cuts long observations: what a policy sees, is trained on and replays to is short enough to be read.

The cut keeps the shape of a value, so that whoever reads fields and items still can: long texts and lists lose their
end, records that hold too much their longest fields. It depends on the value alone, not on the order of its keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from agent_world.environments.model import Json

LONGEST_OBSERVATION = 16_384
"""An observation whose JSON has more characters is cut to about as many."""

CUT = "[cut]"
"""The field of a cut observation that says what was left out, such as ``items: 20 of 400 items``."""

_LEAST = 64
"""Nothing is cut to fewer characters than this: it is left out instead."""
_MOST_NOTES = 12


def shown(value: Json, limit: int = LONGEST_OBSERVATION) -> Json:
    """`value` itself when its JSON has at most `limit` characters, else a part of it with the field `CUT`."""
    if _size(value) <= limit:
        return value
    notes: list[str] = []
    part = _shortened(value, limit, "", notes)
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more places"]
    return {**(part if isinstance(part, dict) else {"result": part}), CUT: notes}


def _shortened(value: Json, room: int, path: str, notes: list[str]) -> Json:
    room = max(room, 0)  # what stands around deeply nested values may have used it up
    if isinstance(value, Mapping):
        return _some_fields(value, room, path, notes)
    if isinstance(value, (list, tuple)):
        return _first_items(value, room, path, notes)
    text = value if isinstance(value, str) else json.dumps(value)
    kept = text[: len(text) * room // _size(text)]
    notes.append(f"{_name(path)}: {len(kept)} of {len(text)} characters")
    return kept + "…"


def _first_items(items: Sequence[Json], room: int, path: str, notes: list[str]) -> list[Json]:
    kept: list[Json] = []
    for item in items:
        room -= _size(item) + 2
        if room < 0:
            break
        kept.append(item)
    if not kept and items:
        kept.append(_shortened(items[0], room + _size(items[0]), f"{path}[0]", notes))
    if len(kept) < len(items):
        notes.append(f"{_name(path)}: {len(kept)} of {len(items)} items")
    return kept


def _some_fields(record: Mapping[str, Json], room: int, path: str, notes: list[str]) -> dict[str, Json]:
    """The shortest fields whole; the others share what is left, unless that is next to nothing for each."""
    heads = {key: _size(key) + 4 for key in record}
    sizes = {key: heads[key] + _size(item) for key, item in record.items()}
    kept: dict[str, Json] = {}
    for key in sorted(record, key=lambda key: (sizes[key], key)):
        share = room // (len(record) - len(kept))
        if sizes[key] > share and share - heads[key] >= _LEAST:
            kept[key] = _shortened(record[key], share - heads[key], f"{path}.{key}", notes)
            room -= share
        elif sizes[key] <= room:
            kept[key] = record[key]
            room -= sizes[key]
        else:
            break
    if len(kept) < len(record):
        notes.append(f"{_name(path)}: {len(kept)} of {len(record)} fields")
    return {key: kept[key] for key in record if key in kept}


def _name(path: str) -> str:
    return path.removeprefix(".") or "the result"


def _size(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False))
