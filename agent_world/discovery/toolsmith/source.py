"""Writes the source of reading tools: SQL over an entity and its parents, and the Python function around it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_world.discovery.toolsmith.contract import Param
from agent_world.discovery.toolsmith.view import Entity, Field, Link

_WIDTH = 100
_AND = "\n  AND "
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_SQL_WORDS = frozenset(
    "abort action add after all alter always analyze and as asc attach before begin between by cascade case cast check "
    "collate column commit conflict constraint create cross current database default deferrable delete desc detach "
    "distinct do drop each else end escape except exclude exclusive exists explain fail filter first following for "
    "foreign from full generated glob group groups having if ignore immediate in index indexed inner insert instead "
    "intersect into is isnull join key last left like limit match materialized natural no not nothing notnull null "
    "nulls of offset on or order others outer over partition plan pragma preceding primary query raise range recursive "
    "references regexp reindex release rename replace restrict returning right rollback row rows savepoint select set "
    "table temp then ties to transaction trigger unbounded union unique update using vacuum values view virtual when "
    "where window with without".split()
)


def quoted(identifier: str) -> str:
    """An SQL identifier, in quotes only where it needs them."""
    if _PLAIN.fullmatch(identifier) and identifier not in _SQL_WORDS:
        return identifier
    return '"' + identifier.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A SELECT over `entity` and the parents that its fields, conditions and order need."""

    entity: Entity
    shown: Sequence[tuple[str, str]]
    links: Sequence[Link] = ()
    where: Sequence[str] = ()
    group: Sequence[str] = ()
    order: Sequence[str] = ()

    def text(self) -> str:
        """The statement, a clause a line."""
        joins = [
            f"LEFT JOIN {quoted(link.parent.name)}{_as(link, self.links)} ON "
            f"{alias(link, self.links)}.{quoted(link.key.parent_column)} = "
            f"{quoted(self.entity.name)}.{quoted(link.column.name)}"
            for link in _distinct(self.links)
        ]
        return "\n".join(
            [
                _wrapped("SELECT", (_named(expression, name) for expression, name in self.shown)),
                f"FROM {quoted(self.entity.name)}",
                *joins,
                *([f"WHERE {_AND.join(self.where)}"] if self.where else []),
                *([f"GROUP BY {', '.join(self.group)}"] if self.group else []),
                *([f"ORDER BY {', '.join(self.order)}"] if self.order else []),
            ]
        )


def links_of(fields: Iterable[Field]) -> list[Link]:
    """The links that `fields` are reached by."""
    return _distinct([field.via for field in fields if field.via is not None])


def column_of(field: Field, links: Sequence[Link]) -> str:
    """The SQL expression of a field in a query over its entity that joins `links`."""
    if field.via is not None:
        return f"{alias(field.via, links)}.{quoted(field.column.name)}"
    prefix = f"{quoted(field.owner.name)}." if links else ""
    return f"{prefix}{quoted(field.column.name)}"


def select(fields: Sequence[Field], links: Sequence[Link]) -> list[tuple[str, str]]:
    """The expressions and names of `fields`."""
    return [(column_of(field, links), field.name) for field in fields]


def key_order(entity: Entity, links: Sequence[Link]) -> list[str]:
    """The expressions that break ties."""
    prefix = f"{quoted(entity.name)}." if links else ""
    names = entity.table.primary_key or tuple(column.name for column in entity.table.columns)
    return [f"{prefix}{quoted(name)}" for name in names]


def alias(link: Link, links: Sequence[Link]) -> str:
    """The name under which a parent is joined: its own, unless two links lead to it or it is the entity itself."""
    rivals = [other for other in links if other.parent.name == link.parent.name]
    same = len({other.column.name for other in rivals} | {link.column.name}) > 1
    if not same and not any(key.parent == link.parent.name for key in link.parent.table.foreign_keys):
        return quoted(link.parent.name)
    return quoted(f"{link.column.name}_{link.parent.one.replace(' ', '_')}")


def function(
    name: str,
    doc: str,
    params: Sequence[Param],
    body: str,
    *,
    imports: Sequence[str] = (),
    modules: Sequence[str] = (),
    constants: str = "",
    helpers: str = "",
) -> str:
    """A module with one public function. `imports` are names of toolkit, `modules` whole lines of other imports."""
    signature = ", ".join(["world", *(["*"] if params else []), *(param.signature() for param in params)])
    head = "\n".join(modules) + ("\n\n" if modules and imports else "")
    head += f"from toolkit import {', '.join(sorted(imports, key=_import_order))}\n" if imports else ""
    parts = [part.strip("\n") for part in (head, constants) if part.strip("\n")]
    top = "\n\n".join(parts)
    definition = f'def {name}({signature}) -> dict:\n    """{doc}"""\n{textwrap.indent(body.strip(chr(10)), "    ")}\n'
    return "\n\n\n".join(part for part in (top, helpers.strip("\n"), definition) if part)


def fetch(query: Query, bound: Mapping[str, str], method: str) -> str:
    """The statement's execution as a Python expression; `bound` gives the Python expression of each parameter."""
    values = ", ".join(f'"{name}": {expression}' for name, expression in bound.items())
    arguments = f"    {{{values}}},\n" if bound else ""
    statement = textwrap.indent(query.text().replace("\\", "\\\\"), "    ")
    return f'world.db.execute(\n    """\n{statement}\n    """,\n{arguments}).{method}()'


def shape_helper(fields: Sequence[Field]) -> tuple[str, str]:
    """The helper that makes a row what the tool shows, and the call of it: ("", "dict(row)") when nothing changes."""
    flags = [field for field in fields if field.column.role == "flag"]
    if not flags:
        return "", "dict(row)"
    lines = ["def _shown(row) -> dict:", "    item = dict(row)"]
    for field in flags:
        cast = f'bool(item["{field.name}"])'
        guard = f'None if item["{field.name}"] is None else ' if field.nullable else ""
        lines.append(f'    item["{field.name}"] = {guard}{cast}')
    return "\n".join([*lines, "    return item"]), "_shown(row)"


def refuse_unknown(entity: Entity, argument: str, cure: str) -> str:
    """The statement that refuses a key nobody has."""
    assert entity.key is not None
    return (
        f"known = world.db.execute(\n"
        f'    "SELECT 1 FROM {_inline(entity.name)} WHERE {_inline(entity.key.name)} = ?", ({argument},)\n'
        f").fetchone()\n"
        f"if known is None:\n"
        f'    raise Refused("not_found", f"There is no {entity.one} {{{argument}}}; {cure}")\n'
    )


def _inline(identifier: str) -> str:
    """An identifier inside a one-line SQL text that is itself in double quotes."""
    return quoted(identifier).replace('"', '\\"')


def _wrapped(clause: str, items: Iterable[str]) -> str:
    """A clause with its items, broken between them into lines that can be read."""
    lines = [clause]
    for item in items:
        if len(lines[-1]) + len(item) > _WIDTH and lines[-1] != clause:
            lines.append(" " * len(clause))
        lines[-1] += f" {item},"
    return "\n".join(lines).removesuffix(",")


def _named(expression: str, name: str) -> str:
    return expression if expression.rpartition(".")[2] == name else f"{expression} AS {quoted(name)}"


def _as(link: Link, links: Sequence[Link]) -> str:
    name = alias(link, links)
    return "" if name == quoted(link.parent.name) else f" AS {name}"


def _distinct(links: Iterable[Link]) -> list[Link]:
    found: dict[str, Link] = {}
    for link in links:
        found.setdefault(link.column.name, link)
    return list(found.values())


def _import_order(name: str) -> tuple[bool, str]:
    return not name[0].isupper(), name
