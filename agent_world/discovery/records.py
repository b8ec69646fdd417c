"""Nested JSON and XML to flat record tables: every list or map of similar records becomes a table.

A record's nested map of scalars is flattened into columns, a nested collection of records becomes a child table
that carries the key of its parent, and a list of scalars stays in its cell as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

MIN_RECORDS = 6
MIN_KEYED_RECORDS = 20
_MAX_DEPTH = 4
_MAX_FLAT_KEYS = 24

Records = dict[str, list[dict[str, Any]]]
"""Table name to its records, every value a scalar or a list."""


def cell(value: Any) -> str | None:
    """The text of a scalar; lists and maps become canonical JSON; empty text is null."""
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return json.dumps(items, ensure_ascii=False, sort_keys=True, default=str) if value else None
    return str(value)


def as_table(records: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
    """Header (keys in order of first appearance) and text rows of `records`."""
    header: dict[str, None] = {}
    for record in records:
        header.update(dict.fromkeys(map(str, record)))
    names = tuple(header)
    return names, [tuple(cell(record.get(name)) for name in names) for record in records]


def records_of_json(document: Any, name: str) -> Records:
    """All record tables inside a JSON document."""
    found: Records = {}
    if isinstance(document, list) and document and all(_is_fixture(item) for item in document[:50]):
        for item in document:
            row = {"pk": item["pk"], **item["fields"]}
            found.setdefault(str(item["model"]).rpartition(".")[2], []).append(row)
        return found
    _walk(document, name, found, 0)
    return _named(found, name)


def records_of_xml(data: bytes, name: str) -> Records:
    """A table for every repeated element that has text-only children; nesting becomes `parent` columns.

    Raises:
        xml.etree.ElementTree.ParseError: not XML.
    """
    root = ElementTree.fromstring(data)
    found: Records = {}
    _walk_xml(root, {}, found)
    return _named(found, name)


def _named(found: Records, name: str) -> Records:
    """The tables that are long enough; one whose own name has no letter is called `name`."""
    found = {table if any(map(str.isalpha, table)) else name: rows for table, rows in found.items()}
    return {table: rows for table, rows in found.items() if len(rows) >= MIN_RECORDS}


def _is_fixture(item: Any) -> bool:
    return isinstance(item, Mapping) and {"model", "pk", "fields"} <= set(item)


def _collection(value: Any, minimum: int) -> list[dict[str, Any]] | None:
    """The records of a list of maps, or of a map of maps (its keys become `key`), else None."""
    if isinstance(value, list) and len(value) >= 1 and all(isinstance(item, Mapping) for item in value):
        return [dict(item) for item in value]
    if isinstance(value, Mapping) and len(value) >= minimum and all(isinstance(v, Mapping) for v in value.values()):
        return [{"key": key, **item} for key, item in value.items()]
    return None


def _walk(value: Any, name: str, found: Records, depth: int) -> None:
    records = _collection(value, MIN_KEYED_RECORDS if depth < 2 else MIN_RECORDS)
    if records is not None and len(records) >= MIN_RECORDS:
        _add([({}, record) for record in records], name, found, depth)
    elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
        mapped = {key: item for key, item in value.items() if isinstance(item, Mapping)}
        if MIN_KEYED_RECORDS <= len(mapped) < len(value):  # records with a stray scalar, such as a version, among them
            _walk(mapped, name, found, depth)
            return
        for key, item in value.items():
            if isinstance(item, (list, Mapping)):
                _walk(item, str(key), found, depth + 1)


def _add(records: list[tuple[dict[str, Any], dict[str, Any]]], name: str, found: Records, depth: int) -> None:
    """Add (keys of the ancestors, record) pairs as one table; nested collections of all of them become child tables."""
    while name in found:
        name += "_2"
    own_records = [record for _, record in records]
    names = list(dict.fromkeys(key for record in own_records for key in record))
    flat = {key: _flat_keys(own_records, key) for key in names}
    children = [key for key in names if not flat[key] and depth < _MAX_DEPTH and _is_child(own_records, key)]
    key_field = _key_field(own_records)
    found[name] = rows = []
    nested: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {key: [] for key in children}
    for number, (ancestors, record) in enumerate(records, 1):
        row: dict[str, Any] = {} if key_field else {f"{name}_number": number} if children else {}
        row.update(ancestors)
        for key, value in record.items():
            if flat[key]:
                names = {inner: _flat_name(key, inner, flat[key]) for inner in flat[key]}
                row.update({names[inner]: value.get(inner) for inner in flat[key]} if value else {})
            elif key in nested:
                inside = {**ancestors, name: record[key_field] if key_field else number}
                nested[key].extend((inside, item) for item in _collection(value, 1) or ())
            else:
                row[key] = value
        rows.append(row)
    for key, items in nested.items():
        if len(items) >= MIN_RECORDS:
            _add(items, key, found, depth + 1)


def _flat_name(key: str, inner: str, siblings: Sequence[str]) -> str:
    """The column of one value of a map: that of a map that only wraps a value is the map's."""
    return key if len(siblings) == 1 and inner.lower() == "value" else f"{key}_{inner}"


def _flat_keys(records: list[dict[str, Any]], key: str) -> tuple[str, ...]:
    """The inner keys when `key` is a map of scalars with a fixed shape, else ()."""
    values = [record[key] for record in records if isinstance(record.get(key), Mapping) and record[key]]
    if not values or any(record.get(key) is not None and not isinstance(record[key], Mapping) for record in records):
        return ()
    inner = list(dict.fromkeys(name for value in values for name in value))
    if len(inner) > _MAX_FLAT_KEYS or any(isinstance(item, Mapping) for value in values for item in value.values()):
        return ()
    common = all(sum(name in value for value in values) >= 0.2 * len(values) for name in inner)
    return tuple(inner) if common else ()


def _is_child(records: list[dict[str, Any]], key: str) -> bool:
    values = [record[key] for record in records if record.get(key)]
    return bool(values) and all(_collection(value, 1) is not None for value in values)


def _key_field(records: list[dict[str, Any]]) -> str | None:
    """The first field whose values are scalar, present everywhere and unique."""
    for name in records[0]:
        values = [record.get(name) for record in records]
        if all(isinstance(value, (str, int)) for value in values) and len(set(values)) == len(values):
            return name
    return None


def _leaves(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    yield from element.attrib.items()
    for child in element:
        text = (child.text or "").strip()
        if len(child) == 0 and not child.attrib and text:
            yield child.tag, text


def _walk_xml(element: ElementTree.Element, ancestors: dict[str, str], found: Records) -> None:
    fields: dict[str, str] = {}
    for name, text in _leaves(element):
        fields.setdefault(name, text)
    inside = dict(ancestors)
    if len(fields) >= 2 or (len(element) and fields):
        own = next(iter(fields.values()))
        row = {name: text for name, text in fields.items()}
        for tag, key in ancestors.items():
            row.setdefault("parent" if tag == element.tag else tag, key)
        row["leaf"] = "false" if any(child.tag == element.tag for child in element) else "true"
        found.setdefault(element.tag, []).append(row)
        inside[element.tag] = own
    for child in element:
        if len(child):
            _walk_xml(child, inside, found)
