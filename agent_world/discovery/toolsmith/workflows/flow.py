"""Writes the tools of one overlay from templates: what its records are called, and the tools that all overlays have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import Template

from agent_world.discovery.toolsmith.contract import Kind, Out, Param, Result, make_tool
from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.reads.lookup import key_param
from agent_world.discovery.toolsmith.source import quoted
from agent_world.discovery.toolsmith.view import Entity, View
from agent_world.discovery.toolsmith.words import article, listed, snake
from agent_world.discovery.toolsmith.workflows.holders import Holder, column, reference
from agent_world.discovery.toolsmith.workflows.scenarios import Scenarios
from agent_world.environments.model import Column, ForeignKey, Meaning, Table

_GAP = re.compile(r"\n{4,}")
HINTS = {"text": "str", "integer": "int", "real": "float"}

TRANSITION = '''
from toolkit import Refused


def $tool(world, *, $record_id: str) -> dict:
    """$doc"""
    $record = world.db.execute("SELECT $needed FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
    ${known}
    ${allowed}
    ${rule}
    world.db.execute("UPDATE $records SET status = '$target' WHERE $record_id = ?", ($record_id,))
    return {"$record_id": $record_id, "status": "$target"}
'''

SHOW = '''
from toolkit import Refused


def $tool(world, *, $record_id: str) -> dict:
    """One $record_words by its id."""
    $record = world.db.execute("SELECT * FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
    ${known}
    return dict($record)
'''

KNOWN = """
if $record is None:
    raise Refused("not_found", f"There is no $record_words {$record_id}; use the id it was made with.")
"""

SUBJECT = """
$subject = world.db.execute(
    "SELECT $subject_needed FROM $subject_table WHERE $subject_column = ?", ($subject_key,)
).fetchone()
if $subject is None:
    raise Refused("not_found", f"There is no $subject_words {$subject_key}; search the $subject_many.")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the records of an overlay are called: `one` in words, `prefix` of its minted ids, `states` explained."""

    one: str
    prefix: str
    states: Mapping[str, str]

    @property
    def name(self) -> str:
        """What its names start with."""
        return snake(self.one)

    @property
    def table(self) -> str:
        """The table that keeps it."""
        return f"{self.name}es" if self.name.endswith(("s", "x", "ch")) else f"{self.name}s"

    @property
    def id_name(self) -> str:
        """What its id is called."""
        return f"{self.name}_id"

    def made(self) -> Out:
        """The id that a call makes."""
        return Out(
            name=self.id_name,
            kind="string",
            words=f"id of the new {self.one}",
            meaning=Meaning(kind="minted", table=self.table, column=self.id_name),
        )

    def own(self) -> Out:
        """The id of a record in a result."""
        return Out(name=self.id_name, kind="string", words=f"id of the {self.one}", meaning=self._key())

    def which(self) -> Param:
        """The parameter that says which record."""
        return Param(name=self.id_name, kind="string", words=f"id of the {self.one}", meaning=self._key())

    def status(self, *values: str) -> Out:
        """The state, one of `values` (all states when none is given)."""
        values = values or tuple(self.states)
        words = f"new status {values[0]}" if len(values) == 1 else f"status ({self.explained(*values)})"
        return Out(
            name="status",
            kind="string",
            words=words,
            values=values,
            meaning=Meaning(kind="status", table=self.table, column="status"),
        )

    def explained(self, *values: str) -> str:
        """States with what they mean."""
        return listed((f"{value}: {self.states[value]}" for value in values or self.states), "or")

    def out(
        self,
        name: str,
        words: str,
        kind: Kind = "integer",
        meaning: str = "value",
        *,
        nullable: bool = False,
        minimum: float | None = None,
    ) -> Out:
        """A result field about this record."""
        return Out(
            name=name,
            kind=kind,
            words=words,
            nullable=nullable,
            minimum=minimum,
            meaning=Meaning(kind=meaning, table=self.table, column=None if meaning == "count" else name),
        )

    def quantity(self, name: str, words: str, maximum: int, minimum: int = 1) -> Param:
        """A number that the caller chooses."""
        return Param(
            name=name,
            kind="integer",
            words=words,
            minimum=minimum,
            maximum=maximum,
            meaning=Meaning(kind="quantity", table=self.table, column=name),
        )

    def choice(self, name: str, words: str, values: Sequence[str]) -> Param:
        """A word that the caller chooses."""
        return Param(
            name=name,
            kind="string",
            words=words,
            enum=tuple(values),
            meaning=Meaning(kind="filter", table=self.table, column=name),
        )

    def _key(self) -> Meaning:
        return Meaning(kind="key", table=self.table, column=self.id_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One overlay being written: its records, what they are about, who holds them, and the stories that test it."""

    view: View
    workflow: str
    subject: Entity
    record: Record
    holder: Holder | None
    scenarios: Scenarios
    extra: Mapping[str, str] = field(default_factory=dict)

    def with_blocks(self, **templates: str) -> Flow:
        """This flow with more parts of source that its templates share, each of which may use those before it."""
        flow = self
        for name, template in templates.items():
            flow = replace(flow, extra={**flow.extra, name: render(template, **flow.names).rstrip("\n")})
        return flow

    @property
    def names(self) -> dict[str, str]:
        """What every template may say."""
        own = names_of(self.subject, self.record, self.holder) | dict(self.extra)
        return own | {"known": render(KNOWN, **own), "subject_check": render(SUBJECT, **own)}

    def table(self, *columns: Column, keys: Sequence[ForeignKey] = ()) -> Table:
        """The table of the records: id, subject, holder (where there is one), `columns`, status."""
        held = [] if self.holder is None else [self.holder.column()]
        return self.own_table(
            self.record.table,
            self.record.one,
            [
                column(self.record.id_name, "text", "identifier", f"id of the {self.record.one}"),
                subject_column(self.subject),
                *held,
                *columns,
                column("status", "text", "category", "status"),
            ],
            [self.record.id_name],
            [reference(self.subject.key_name, self.subject), *(self.holder.key() if self.holder else []), *keys],
        )

    def own_table(
        self, name: str, one: str, columns: Sequence[Column], key: Sequence[str], keys: Sequence[ForeignKey]
    ) -> Table:
        """A table of this overlay that starts empty."""
        return Table(
            name=name,
            singular=one,
            plural=name.replace("_", " "),
            columns=tuple(columns),
            primary_key=tuple(key),
            rows=0,
            foreign_keys=tuple(keys),
            workflow=self.workflow,
            added_in=self.view.database.round,
        )

    def draft(
        self,
        *,
        name: str,
        pattern: str,
        what: str,
        template: str,
        params: Sequence[Param],
        fields: Sequence[Out],
        tables: Sequence[str] = (),
        writes: bool = True,
        refusals: Sequence[str] = (),
        said: Sequence[str] = (),
        listing: str | None = None,
        **more: str,
    ) -> Draft:
        """One tool, with the tests that its stories gave it."""
        tool = make_tool(
            environment=self.view.database.database_id,
            name=name,
            pattern=pattern,
            what=what,
            params=params,
            result=Result(fields=tuple(fields), listing=listing),
            source=render(template, **{**self.names, "tool": name, **more}),
            tables=[self.record.table, *tables],
            writes=writes,
            workflow=self.workflow,
            refusals=refusals,
            said=said,
            nouns=[self.subject.one] if any(param.name == self.subject.key_name for param in params) else [],
        )
        return Draft(tool=tool, tests=tuple(self.scenarios.tests.get(name, ())), about=self.subject.name)

    def transition(
        self,
        *,
        name: str,
        what: str,
        doc: str,
        allowed: Sequence[str],
        target: str,
        code: str,
        pattern: str = "transition",
        needed: str = "status",
        rule: str = "",
        refusals: Sequence[str] = (),
        said: Sequence[str] = (),
        tables: Sequence[str] = (),
    ) -> Draft:
        """A tool that moves a record from one of the states `allowed` to `target`."""
        record = self.record
        return self.draft(
            name=name,
            pattern=pattern,
            template=TRANSITION,
            params=[record.which()],
            tables=tables,
            what=f"{what} The {record.one} becomes {target.upper()}.",
            fields=[record.own(), record.status(target)],
            refusals=[f"an unknown {record.one} (not_found)", self.wrong_state(allowed, code), *refusals],
            said=said,
            doc=doc,
            target=target,
            needed=needed,
            rule=render(rule, **self.names) if rule else "",
            allowed=self.state_check(allowed, code),
        )

    def show(self, *fields: Out, name: str | None = None) -> Draft:
        """The tool that reads one record back."""
        record = self.record
        return self.draft(
            name=name or f"get_{record.name}",
            pattern="inspect",
            template=SHOW,
            params=[record.which()],
            writes=False,
            what=f"Show one {record.one}.",
            fields=fields,
            refusals=[f"an unknown {record.one} (not_found)"],
            said=["look up", f"state of {article(record.one)}"],
        )

    def state_check(self, allowed: Sequence[str], code: str) -> str:
        """Statements that refuse a record in another state."""
        name = self.record.name
        held = f'!= "{allowed[0]}"' if len(allowed) == 1 else f"not in {tuple(allowed)!r}".replace("'", '"')
        return (
            f'if {name}["status"] {held}:\n'
            f'    raise Refused("{code}", f"This {self.record.one} is {{{name}[\'status\']}}; '
            f'this needs one that is {listed(allowed, "or")}.")\n'
        )

    def wrong_state(self, allowed: Sequence[str], code: str) -> str:
        """The refusal of another state in words."""
        return f"{article(self.record.one)} that is not {listed(allowed, 'or')} ({code})"

    def subject_param(self) -> Param:
        """The parameter that says what a record is about."""
        return key_param(self.subject)

    def subject_out(self) -> Out:
        """The result field that says what a record is about."""
        param = key_param(self.subject)
        return Out(name=param.name, kind=param.kind, words=param.words, meaning=param.meaning)


def names_of(subject: Entity, record: Record, holder: Holder | None) -> dict[str, str]:
    """What templates call the subject, the record and the holder."""
    names = {
        "record": record.name,
        "record_id": record.id_name,
        "records": record.table,
        "record_words": record.one,
        "prefix": record.prefix,
        "subject": variable(subject),
        "subject_name": snake(subject.one),
        "subject_words": subject.one,
        "subject_many": subject.many,
        "a_subject": article(subject.one),
        "subject_key": subject.key_name,
        "subject_hint": HINTS[subject.key.type],
        "subject_table": quoted(subject.name).replace('"', '\\"'),
        "subject_column": quoted(subject.key.name).replace('"', '\\"'),
        "subject_needed": "1",
    }
    return names | (holder.names if holder else {})


def variable(entity: Entity) -> str:
    """What the source calls a row of `entity`: its noun, unless its key is called so."""
    name = snake(entity.one)
    return f"{name}_row" if name == entity.key_name else name


def subject_column(subject: Entity) -> Column:
    """The column by which a record refers to its subject."""
    return column(subject.key_name, subject.key.type, "reference", subject.key_words)


def render(template: str, **names: str) -> str:
    """The source that `template` stands for. A line that is only ``${block}`` takes the block's lines, or goes."""
    lines: list[str] = []
    for line in template.strip("\n").split("\n"):
        block = line.strip()
        if block.startswith("${") and block.endswith("}") and block.count("$") == 1:
            indent = line[: len(line) - len(line.lstrip())]
            text = names[block[2:-1]].strip("\n")
            lines += [f"{indent}{part}" if part else "" for part in text.split("\n")] if text else []
        else:
            lines.append(Template(line).substitute(names))
    return _GAP.sub("\n\n\n", "\n".join(lines)) + "\n"
