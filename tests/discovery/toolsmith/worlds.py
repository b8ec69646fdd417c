"""A small made-up ferry line that carries every kind of tool, and a theme to go with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_world.discovery.documents import Format, render
from agent_world.discovery.model import RawTable
from agent_world.discovery.structure import structure
from agent_world.environments.model import DOCUMENTS_FOLDER, Database, Document, Source
from agent_world.environments.state import logical_digest
from agent_world.identity import VersionId, sha256

SOURCE = Source(package="ferries", version="1", file="ferries.csv", sha256=sha256("ferries"), licence="CC0-1.0")
_TOWNS = (
    "Ålesund", "Bergen", "Kiel", "Rønne", "Gdańsk", "Turku", "Visby", "100% Bay", "Low_Point", "Tallinn", "Riga",
    "Oulu", "Lübeck", "Malmö", "Gamla Riga", "Vaasa", "Kotka", "Pärnu", "Skagen", "Horten", "Moss", "Årnes", "Luleå",
    "Kemi",
)  # fmt: skip
_FIRST_NAMES = ("Ana", "Bo", "Iris", "Tom", "Zoë", "Lea", "Jan", "Eva", "Ola")
_SAILING = ("sailing_id", "ship_id", "origin", "destination", "departure_time", "date", "price", "line_code")
_REGIONS = ("North Sea", "Baltic", "Bothnia")


@dataclass(frozen=True)
class Words:
    """A theme as far as the author reads it."""

    title: str = "Ferry line"
    description: str = "Bookings, crews and sailings of a ferry line."
    nouns: Sequence[str] = ("sailing", "ship", "port", "employee", "booking", "price")
    verbs: Sequence[str] = ("book", "cancel", "assign")


def raw_table(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> RawTable:
    """A table as a source file would hold it."""
    cells = tuple(tuple(None if cell is None else str(cell) for cell in row) for row in rows)
    return RawTable(
        name=name, header=tuple(header), rows=cells, total=len(cells), source=replace(SOURCE, file=f"{name}.csv")
    )


def tables() -> list[RawTable]:
    """Ports, ships, sailings and employees: links, gaps, codes, flags, prices, seats, clock times."""
    ports = [
        (f"P{n:03d}", town, _REGIONS[n % 3], f"C{n // 2:02d}", 40 * n + 7, "false" if n % 4 == 0 else "true")
        for n, town in enumerate(_TOWNS)
    ]
    ships = [
        (
            f"S{n:03d}",
            f"MS {town}",
            1961 + 2 * n,
            3 + 11 * n,
            f"{1_000 + 250 * n:,} t",
            f'["bar", "deck {n % 5}"]',
            f"P{n % 8:03d}",
        )
        for n, town in enumerate(_TOWNS)
    ]
    sailings = [
        (
            f"V{n:04d}", f"S{(7 * n) % 24:03d}", f"P{(5 * n) % 24:03d}", f"P{(5 * n + 1 + n % 7) % 24:03d}",
            None if n % 9 == 4 else f"{6 + n % 16}{(n * 7) % 60:02d}", f"2025-{1 + n % 12:02d}-{1 + n % 28:02d}",
            None if n % 11 == 5 else f"{12 + (n * 13) % 90}.50", f"L{n % 60}",
        )
        for n in range(120)
    ]  # fmt: skip
    employees = [
        (f"E{n:03d}", f"{first} {last}", f"P{(n * 5) % 8:03d}", 30_000 + 731 * n)
        for n, (first, last) in enumerate(
            (first, last) for last in ("Ruiz", "Ångström", "Novak", "Okafor") for first in _FIRST_NAMES
        )
    ]  # fmt: skip
    return [
        raw_table("ports", ("port_id", "name", "region", "code", "depth", "active"), ports),
        raw_table("ships", ("ship_id", "name", "year", "seats", "tonnage", "extras", "port_id"), ships),
        raw_table("sailings", _SAILING, sailings),
        raw_table("employees", ("employee_id", "name", "port_id", "salary"), employees),
    ]  # fmt: skip


def ferries(*documents: tuple[Document, bytes]) -> tuple[Database, dict[str, bytes]]:
    """The ferry line as a database, with `documents` beside the records."""
    database, files = structure(tables(), database_id="ferries", theme=VersionId("ferries@0"))
    files |= {f"{DOCUMENTS_FOLDER}/{document.path}": data for document, data in documents}
    known = tuple(document for document, _ in documents)
    return replace(database, documents=known, digest=logical_digest(files)), files


def sheet(form: Format, header: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[Document, bytes]:
    """A small table as a document."""
    document = Document(
        path=f"harbour-fees.{form}", format=form, title="harbour fees by port", source=SOURCE, added_in=1
    )
    return document, render(form, "harbour_fees", header, rows)


def page(form: str, text: str) -> tuple[Document, bytes]:
    """A page of prose as a document."""
    document = Document(path=f"guide.{form}", format=form, title="About the line", source=SOURCE, added_in=1)
    return document, text.encode()
