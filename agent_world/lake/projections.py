"""Projections kept as Delta tables, so that readers fold only the tail and other engines find every table.

They are caches. Each carries `folded_through`, the `events` version up to which it was folded, in the application
transaction of the commit that wrote its rows. All tables of one rebuild share a generation folder; ``current.json``
names the generation in use, so that a rebuild becomes visible at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

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

_FOLDED_THROUGH = "folded_through"
_MANY_FILES = 64
_MANY_COMMITS = 256  # an unchanged table may lag behind by so many; reading over them costs little


class Projections:
    """The stored projections of one lake."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def generation(self) -> str | None:
        """The generation that readers use; None before the first one, or when its meaning is outdated."""
        try:
            pointer = json.loads(self._storage.read(POINTER))
        except FileNotFoundError:
            return None
        return pointer["generation"] if pointer["fold"] == FOLD else None

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
        through = None if table is None else table.transaction_version(_FOLDED_THROUGH)
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

    def folded_through(self, name: str) -> int:
        """The `events` version that the stored table has seen; -1 when there is none."""
        generation = self.generation()
        table = None if generation is None else self._open(generation, name)
        through = None if table is None else table.transaction_version(_FOLDED_THROUGH)
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
                    return self._write(self._make(generation, name), name, entry)
                except CommitFailedError:
                    return False  # the holder of an expired lease came back and was faster

    def _write(self, table: DeltaTable, name: str, entry: Entry) -> bool:
        stored = table.transaction_version(_FOLDED_THROUGH)
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
            writer_properties=WriterProperties(compression="ZSTD", compression_level=1),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(_FOLDED_THROUGH, entry.through)], max_commit_retries=0
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
        try:
            return DeltaTable(self._uri(generation, name), storage_options=self._storage.options)
        except DeltaError:
            return None  # not there, or a cache that cannot be read: fold again

    def _uri(self, generation: str, name: str) -> str:
        return self._storage.table_uri(f"{FOLDER}/{generation}/{name}")

    def _folders(self) -> list[str]:
        return [item.key for item in self._storage.list(FOLDER) if item.key != POINTER]
