"""Projections kept as Delta tables, so that readers fold only the tail and other engines find every table.

They are caches. Each carries `folded_through`, the `events` version up to which it was folded, in the application
transaction of the commit that wrote its rows. All tables of one rebuild share a generation folder; ``current.json``
names the generation in use, so that a rebuild becomes visible at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from agent_world.identity import canonical_json
from agent_world.lake.errors import DamagedError, blame_full_disk
from agent_world.lake.faults import reach
from agent_world.lake.fold import FOLD
from agent_world.lake.log import TABLE_OPTIONS
from agent_world.lake.parquet import scan
from agent_world.lake.storage import Storage
from agent_world.lake.tables import Base, Entry
from lake_schemas import TABLES

FOLDER = "projections"
POINTER = f"{FOLDER}/current.json"
ROW = "_row"
"""Extra column of the stored tables: the place of the row, since files have no order of their own."""

FOLDED_THROUGH = "folded_through"
"""The application of the transaction that says how far a stored table is folded."""

_MANY_FILES = 64
_WRITER = WriterProperties(compression="ZSTD", compression_level=1)
_MANY_COMMITS = 256  # an unchanged table may lag behind by so many; reading over them costs little


class Compacted(NamedTuple):
    """One table: its data files before and after, and the column it is ordered by now, if it was worth it."""

    table: str
    files_before: int
    files_after: int
    ordered_by: str | None


class Projections:
    """The stored projections of one lake."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def generation(self) -> str | None:
        """The generation that readers use; None before the first one, or when its meaning is outdated."""
        try:
            pointer = json.loads(self._storage.read(POINTER))
            return pointer["generation"] if pointer["fold"] == FOLD else None
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None  # none yet, or a cache that cannot be read: fold again

    def use(self, generation: str) -> None:
        """Make a generation the one that readers use, at once."""
        self._storage.write(POINTER, canonical_json({"fold": FOLD, "generation": generation}).encode())

    def next_generation(self) -> str:
        """A generation name that is not in use."""
        used = [int(key.split("/")[1]) for key in self._folders()]
        return f"{max(used, default=0) + 1:06}"

    def base(self, name: str, generation: str | None = None) -> Base | None:
        """The stored table; None when there is none that can be used."""
        generation = generation or self.generation()
        table = None if generation is None else self._open(generation, name)
        through = None if table is None else self._through(table)
        if table is None or through is None:
            return None
        schema = pa.schema([*((c.name, c.type) for c in TABLES[name].all_columns), (ROW, pa.int64())])
        try:
            parts = list(scan(self._storage, f"{FOLDER}/{generation}/{name}", table))
            if any(part.schema.names != schema.names for part in parts):
                return None  # another schema
            rows = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)]).sort_by(ROW)
        except (DamagedError, OSError, pa.ArrowException):
            return None  # a cache with holes is no cache: fold again
        last = pc.max(rows.column(ROW)).as_py()
        if rows.num_rows != (0 if last is None else last + 1):
            return None  # rows lost
        return Base(through, rows.drop_columns([ROW]))

    def damage(self, name: str) -> str | None:
        """Why the table that is stored under the schema of today cannot be used; None when it can, or there is none."""
        generation = self.generation()
        folder = f"{FOLDER}/{generation}/{name}"
        if generation is None or self.base(name, generation) is not None or not any(self._storage.list(folder)):
            return None
        table = self._open(generation, name)
        if table is None:
            return "its log cannot be read"
        names = [*(column.name for column in TABLES[name].all_columns), ROW]
        try:
            others = any(part.schema.names != names for part in scan(self._storage, folder, table))
        except (DamagedError, OSError, pa.ArrowException) as error:
            return str(error.why if isinstance(error, DamagedError) else error)
        return None if others or self._through(table) is None else "rows are missing"

    def folded_through(self, name: str) -> int:
        """The `events` version that the stored table has seen; -1 when there is none."""
        generation = self.generation()
        table = None if generation is None else self._open(generation, name)
        through = None if table is None else self._through(table)
        return -1 if through is None else through

    def tables(self) -> Iterator[tuple[str, DeltaTable]]:
        """The stored tables of the generation in use, by key of their folder."""
        generation = self.generation()
        if generation is None:
            return
        for name in TABLES:
            table = self._open(generation, name)
            if table is not None:
                yield f"{FOLDER}/{generation}/{name}", table

    def compact(self, order_by: Callable[[str], str | None], worth_rows: int) -> Iterator[Compacted]:
        """Rewrite tables of several files into few; those of `worth_rows` and more are ordered by a column."""
        generation = self.generation()
        for name in TABLES if generation is not None else ():
            with self._storage.exclusive(f"projection-{generation}-{name}") as held:
                table = self._open(str(generation), name) if held else None
                if table is not None:
                    with self._storage.discreet():
                        yield from _compacted(name, table, order_by(name), worth_rows)

    def save(self, name: str, entry: Entry, generation: str | None = None) -> bool:
        """Store a table as it is folded now, unless another writer holds it or is ahead; whether it is stored."""
        if entry.settled and entry.through - (entry.stored_through or 0) < _MANY_COMMITS:
            return False
        generation = generation or self.generation()
        if generation is None:
            generation = self.next_generation()
            self.use(generation)
        with self._storage.exclusive(f"projection-{generation}-{name}") as held:
            if not held:
                return False
            with blame_full_disk(self._storage.uri, f"projection {name}"):
                try:
                    # A second attempt finds what the first one stored, if only its reply was lost.
                    return self._storage.patient(lambda: self._write(self._make(generation, name), name, entry))
                except CommitFailedError:
                    return False  # the holder of an expired lease came back and was faster

    def _write(self, table: DeltaTable, name: str, entry: Entry) -> bool:
        stored = table.transaction_version(FOLDED_THROUGH)
        if stored is not None and stored >= entry.through:
            return False
        rows = entry.fold.table()
        grown = stored == entry.stored_through and entry.fold.kept == entry.stored_rows
        start = entry.stored_rows if grown and len(table.file_uris()) < _MANY_FILES else 0
        numbers = pa.array(range(start, rows.num_rows), type=pa.int64())
        reach("projection")
        write_deltalake(
            table,
            rows.slice(start).append_column(ROW, numbers),
            mode="append" if start else "overwrite",
            writer_properties=_WRITER,
            commit_properties=CommitProperties(
                app_transactions=[Transaction(FOLDED_THROUGH, entry.through)], max_commit_retries=0
            ),
        )
        entry.settle()
        return True

    def _make(self, generation: str, name: str) -> DeltaTable:
        schema = pa.schema([*TABLES[name].arrow, pa.field(ROW, pa.int64())])
        return self._open(generation, name) or DeltaTable.create(
            self._uri(generation, name),
            schema,
            mode="ignore",
            description=TABLES[name].meaning,
            configuration=TABLE_OPTIONS,
            storage_options=self._storage.options,
        )

    def _open(self, generation: str, name: str) -> DeltaTable | None:
        uri, options = self._uri(generation, name), self._storage.options
        try:
            return self._storage.patient(lambda: DeltaTable(uri, storage_options=options))
        except DeltaError:
            return None  # not there, or a cache that cannot be read: fold again

    def _through(self, table: DeltaTable) -> int | None:
        return self._storage.patient(lambda: table.transaction_version(FOLDED_THROUGH))

    def _uri(self, generation: str, name: str) -> str:
        return self._storage.table_uri(f"{FOLDER}/{generation}/{name}")

    def _folders(self) -> list[str]:
        return [item.key for item in self._storage.list(FOLDER) if item.key != POINTER]


def _compacted(name: str, table: DeltaTable, column: str | None, worth_rows: int) -> Iterator[Compacted]:
    before = len(table.file_uris())
    entries = pa.table(table.get_add_actions())
    options = {"writer_properties": _WRITER, "commit_properties": CommitProperties(max_commit_retries=0)}
    ordered = column is not None and (pc.sum(entries.column("num_records")).as_py() or 0) >= worth_rows
    if ordered:
        table.optimize.z_order([str(column)], **options)
    elif before > 1:
        table.optimize.compact(**options)
    if ordered or before > 1:
        yield Compacted(name, before, len(table.file_uris()), column if ordered else None)
