"""Lists that a solution pages through: their conditions for people, for the tool and, apart from it, in SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_world.environments.model import Json, Meaning
from agent_world.tasks.catalogue import Catalogue, Lister, Output
from agent_world.tasks.graph import required
from agent_world.tasks.phrases import Group
from agent_world.tasks.programs.parts import Access, Member, column_sql, draw_member, name_only
from agent_world.tasks.saying import Given, conditions, is_at_most
from agent_world.tasks.values import value_for

_TRIES = 12

EVERY_PAGE = '''def every_item(call, tool, arguments):
    """The items of all pages of a list."""
    page, items = 1, []
    while True:
        result = call(tool, {**arguments, "page": page} if page > 1 else arguments)
        items += result["items"]
        if page >= result["pages"]:
            return items
        page += 1'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A list whose rows SQL can find as well."""

    catalogue: Catalogue
    lister: Lister
    owners: tuple[Access, ...]

    def draw(self, rng: random.Random, low: int, high: int) -> Listing | None:
        """Arguments that let between `low` and `high` rows through."""
        tool = self.lister.tool
        for _ in range(_TRIES):
            given: dict[str, Given] = {}
            owner: tuple[str, Access, Member] | None = None
            rows: dict[str, dict[str, Json]] = {}
            for parameter in (*self.lister.parents, *self.lister.filters):
                needed = parameter in required(tool)
                if not needed and rng.random() > 0.6:
                    continue
                meaning = tool.inputs[parameter]
                if parameter in self.lister.parents:
                    ways = [item for item in self.owners if item.table == meaning.table]
                    member = draw_member(ways[0], rng) if ways else None
                    if member is not None and owner is None:
                        owner = (parameter, name_only(ways[0]), member)
                        given[parameter] = Given(value=None, meaning=meaning, thing=member.thing)
                else:
                    value = value_for(self.catalogue, tool, parameter, rows, rng)
                    if value is not None:
                        given[parameter] = Given(value=value, meaning=meaning)
            if not given or not set(required(tool)) <= given.keys():
                continue
            listing = Listing(scan=self, given=given, owner=owner).bounded(rng.randint(low, high))
            if low <= listing.size <= high:
                return listing
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One drawn list: its arguments as said, and the named row it belongs to, if any (parameter, access, row)."""

    scan: Scan
    given: dict[str, Given]
    owner: tuple[str, Access, Member] | None

    @property
    def tool(self) -> str:
        """The tool that gives it."""
        return self.scan.lister.tool.name

    @property
    def group(self) -> Group:
        """The rows, in words."""
        table = self.scan.catalogue.database.table(self.scan.lister.table)
        return Group(plural=table.plural, conditions=conditions(self.scan.catalogue, self.scan.lister.tool, self.given))

    @property
    def functions(self) -> list[str]:
        """What the solution needs to read it."""
        return [EVERY_PAGE, *([self.owner[1].code()] if self.owner else [])]

    def code(self) -> list[str]:
        """Statements that leave all its items in `items`."""
        lines = []
        parts = [f"{name!r}: {item.value!r}" for name, item in self.given.items() if item.value is not None]
        if self.owner is not None:
            parameter, access, member = self.owner
            lines.append(f"owner = {access.name}(call, {member.said!r})")
            parts.insert(0, f"{parameter!r}: owner[{access.key!r}]")
        lines.append(f"items = every_item(call, {self.tool!r}, {{{', '.join(parts)}}})")
        return lines

    def where(self) -> tuple[str, list[Json]]:
        """The SQL condition over `t` and its values."""
        catalogue, table = self.scan.catalogue, self.scan.lister.table
        parts, values = [], []
        for parameter, item in self.given.items():
            meaning = item.meaning
            if self.owner is not None and parameter == self.owner[0]:
                link = catalogue.reference(table, meaning.table or "", parameter)
                owner = catalogue.database.table(self.owner[2].table)
                by = owner.label if self.owner[1].finder is not None else owner.primary_key[0]
                column = link.column if link else ""
                parts.append(f't."{column}" IN (SELECT p."{meaning.column}" FROM "{owner.name}" p WHERE p."{by}" = ?)')
                values.append(self.owner[2].said)
                continue
            expression = column_sql(catalogue, table, Output(array=None, field=parameter, meaning=as_value(meaning)))
            sign = "=" if meaning.kind != "threshold" else "<=" if is_at_most(parameter) else ">="
            parts.append(f"{expression} {sign} ?")
            values.append(int(item.value) if isinstance(item.value, bool) else item.value)
        return " AND ".join(parts), values

    def bounded(self, size: int) -> Listing:
        """The same list with its bound, if it has one, moved so that about `size` rows pass."""
        bound = next((name for name, item in self.given.items() if item.meaning.kind == "threshold"), None)
        if bound is None:
            return self
        others = Listing(scan=self.scan, given={n: i for n, i in self.given.items() if n != bound}, owner=self.owner)
        meaning = self.given[bound].meaning
        where, values = others.where()
        order = "ASC" if is_at_most(bound) else "DESC"
        row = self.scan.catalogue.facts.db.execute(
            f'SELECT t."{meaning.column}" FROM "{self.scan.lister.table}" t'
            f' WHERE t."{meaning.column}" IS NOT NULL AND {where or "1"} ORDER BY 1 {order} LIMIT 1 OFFSET ?',
            [*values, size - 1],
        ).fetchone()
        if row is None:
            return self
        moved = Given(value=row[0], meaning=meaning)
        return Listing(scan=self.scan, given={**self.given, bound: moved}, owner=self.owner)

    @property
    def size(self) -> int:
        """How many rows SQL finds."""
        where, values = self.where()
        return self.scan.catalogue.facts.db.execute(
            f'SELECT count(*) FROM "{self.scan.lister.table}" t WHERE {where}', values
        ).fetchone()[0]

    def select(self, fields: Sequence[Output]) -> tuple[str, list[Json]]:
        """The statement by which the verifier reads `fields` of its rows."""
        catalogue, table = self.scan.catalogue, self.scan.lister.table
        shown = [f'{column_sql(catalogue, table, item)} AS "{item.field}"' for item in fields]
        where, values = self.where()
        return f'SELECT {", ".join(shown)} FROM "{table}" t WHERE {where}', values


def scans(catalogue: Catalogue, names: Sequence[Access]) -> list[Scan]:
    """The lists whose filters and items all stand for columns of `D`."""
    found = []
    for lister in catalogue.listers:
        table = catalogue.database.table(lister.table)
        if table.rows < 8 or lister.page is None or lister.tool.workflow is not None:
            continue
        wanted = [Output(array=None, field=name, meaning=as_value(lister.tool.inputs[name])) for name in lister.filters]
        names_rows = any(o.meaning.kind == "key" and o.meaning.table == lister.table for o in lister.facts)
        if names_rows and all(column_sql(catalogue, lister.table, item) for item in wanted):
            links = [
                catalogue.reference(lister.table, lister.tool.inputs[name].table or "", name) for name in lister.parents
            ]
            if all(links):
                found.append(Scan(catalogue=catalogue, lister=lister, owners=tuple(names)))
    return found


def as_value(meaning: Meaning) -> Meaning:
    """The meaning of a value of the column that a filter or a bound compares with."""
    return replace(meaning, kind="value")
