"""A small data package of our own, on disk as if it were installed: its files can be changed between two minings."""

from __future__ import annotations

import importlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from agent_world.discovery.model import Theme
from agent_world.identity import sha256

NAME = "ferry-lines"
TOWNS = (
    "Ammarvik", "Brattoy", "Crossness", "Dunhaven", "Eidsund", "Farholm", "Gullsby", "Hestnes", "Innervik", "Jorsund",
    "Kalvoy", "Langholm", "Marsund", "Nordby", "Olderoy",
)  # fmt: skip
THEME = Theme(
    theme_id="prd:ferry-desk",
    source="M3",
    origin="prd:ferry-desk",
    title="Ferry desk of a coastal company",
    description="Which ferry sails from which harbour, how many berths a harbour has, and what a crossing costs.",
    tools=(),
    nouns=("ferry", "harbour", "sailing", "berth", "town", "deck", "fare", "crossing"),
    verbs=("sail", "moor", "cross"),
    licence="CC0-1.0",
    sha256=sha256("ferry desk"),
)
"""A theme that the package has data for."""

BACKGROUND = tuple(f"invoices of shop {word}" for word in "abcdefghijklmnopqrstuvwxyz" * 2)
"""Texts against which the words of the theme are distinctive."""

_OTHERS = {
    "stars": "magnitude", "coins": "diameter", "mosses": "height", "dialects": "speakers", "quarries": "depth",
    "organs": "pipes", "comets": "period",
}  # fmt: skip


def harbours(*, berths: int = 3, ragged: bool = False) -> str:
    """The harbours as CSV; `berths` are those of the first, and a ragged file has a row with a cell too many."""
    rows = [f"H{n:02d},{town},{berths if n == 1 else 2 + n % 4}" for n, town in enumerate(TOWNS, 1)]
    return "\n".join(["harbour_code,town,berths", *rows, *(["H99,Nowhere,2,too many"] if ragged else [])]) + "\n"


def sailings() -> str:
    """The sailings as CSV; each leaves from a harbour."""
    rows = [f"S{n:03d},H{1 + n * 7 % len(TOWNS):02d},ferry {n % 5},{40 + n * 3 % 71}" for n in range(1, 61)]
    return "\n".join(["sailing_code,harbour_code,ferry,fare", *rows]) + "\n"


def pages(**texts: str) -> bytes:
    """An archive of documentation, a page of HTML for each text."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in texts.items():
            data = f"<html><body><h1>{name}</h1><p>{text}</p></body></html>".encode()
            entry = tarfile.TarInfo(f"docs/{name}.html")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def install(site: Path, files: Mapping[str, str | bytes], *, version: str = "1.0") -> None:
    """Write the package into the folder `site`, which must be on the path, over what is there."""
    info = site / f"{NAME.replace('-', '_')}-{version}.dist-info"
    for old in site.glob("*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    metadata = (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\nSummary: Tables\n"
        "License-Expression: CC0-1.0\n\nTables of a region, each collected by another society.\n"
    )
    written = {f"ferry_lines/{name}": text for name, text in {**_others(), **files}.items()}
    written |= {f"{info.name}/METADATA": metadata}
    for name, text in written.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(text.encode() if isinstance(text, str) else text)
    record = "".join(f"{name},,\n" for name in (*written, f"{info.name}/RECORD"))
    (info / "RECORD").write_text(record, encoding="utf-8")
    importlib.invalidate_caches()


def _others() -> dict[str, str]:
    """Tables that have nothing to do with ferries, so that the words of the theme are rare."""
    return {
        f"{name}.csv": "\n".join([f"{name}_name,{measure}", *(f"{name} {n * n},{n * 13 % 97}" for n in range(1, 20))])
        for name, measure in _OTHERS.items()
    }
