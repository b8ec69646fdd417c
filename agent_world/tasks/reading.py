"""What an executed call lets a task do next: facts that may be asked for, and values that later calls may take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_world.environments.model import Json, Meaning, Table, Tool
from agent_world.tasks.catalogue import Catalogue, Output, outputs, subject
from agent_world.tasks.facts import fold
from agent_world.tasks.phrases import Fact, Group, Thing, bare, number, quote
from agent_world.tasks.saying import Given, fact_words, field_name, group_of, relation_words, said, schema_of

AGGREGATE_GUESS = 0.02
"""The chance of guessing a mean or a sum."""

_ASKED = ("value", "filter", "label", "status", "count", "aggregate")
_LONGEST_ANSWER = 60
_COMMON = 0.34
_NO_ANSWER = re.compile(r"[\n\"\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A value of a result that a later call may take; `thing` is the row it identifies, or whose fact it is."""

    value: Json
    meaning: Meaning
    thing: Thing
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Askable:
    """A fact of a result that a question may ask for. `guess` is the chance of guessing it without looking.

    `field` is how an answer may call it.
    """

    value: Json
    fact: Fact
    field: str
    schema: Mapping[str, Json]
    guess: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All that one result offers. `met` is the row that the call looked up."""

    handles: tuple[Handle, ...] = ()
    askable: tuple[Askable, ...] = ()
    met: Thing | None = None


def read(catalogue: Catalogue, tool: Tool, given: Mapping[str, Given], result: Mapping[str, Json]) -> Reading:
    """What `result` of a call of `tool` with arguments `given` offers; nothing when nothing in it can be told apart."""
    reader = _Reader(catalogue, tool, given, result)
    own = subject(tool)
    if tool.writes:
        return reader.of_write()
    if reader.array is None:
        return reader.of_record()
    if any(item.meaning.kind == "label" and item.meaning.table == own for item in given.values()):
        return reader.of_search()
    if any(
        item.array and item.meaning.kind in ("key", "label") and item.meaning.table == own for item in reader.fields
    ):
        return reader.of_list()
    return reader.of_groups()


class _Reader:
    """One result under reading."""

    def __init__(
        self, catalogue: Catalogue, tool: Tool, given: Mapping[str, Given], result: Mapping[str, Json]
    ) -> None:
        self.catalogue, self.tool, self.given, self.result = catalogue, tool, given, result
        self.fields = outputs(tool)
        self.array = next((output.array for output in self.fields if output.array is not None), None)

    @property
    def table(self) -> Table:
        """The table that the tool is about."""
        return self.catalogue.database.table(subject(self.tool) or "")

    @property
    def group(self) -> Group:
        """The rows that the arguments let through."""
        return group_of(self.catalogue, self.tool, self.given)

    def of_record(self) -> Reading:
        """One record: facts of the row that was given, or figures over a set of rows."""
        if self.tool.documents:
            return Reading(askable=self._facts(self._entry(), None, 0))
        named = next(
            (item for item in self.given.values() if item.meaning.kind in ("key", "label") and item.thing), None
        )
        figures = [output for output in self.fields if output.meaning.kind in ("count", "aggregate")]
        if named is not None:
            table = named.meaning.table
            if not figures or any(o.meaning.kind == "key" and o.meaning.table == table for o in self.fields):
                return self._of_row(named.thing, table, 0)
        if figures:
            return Reading(askable=self._figures(figures, self.group))
        return self._of_row(self._only_one(), subject(self.tool), 0)

    def _only_one(self) -> Thing | None:
        """The row that a look-up by another value than its key gives, where no other row has that value."""
        table, column = self.table, next(iter(self.given.values())).meaning.column if self.given else None
        value = next((item.value for item in self.given.values()), None)
        if column is None or self.catalogue.facts.share(table.name, column, value) * table.rows > 1.5:
            return None
        return Thing(noun=table.singular, pick=Group(plural=table.singular, conditions=self.group.conditions).say())

    def _entry(self) -> Thing | None:
        """The part of a document that was read, as the description of the tool calls it."""
        shown = next((quote(item.value) for item in self.given.values()), None)
        noun = next(iter(self.given), "entry").replace("_", " ")
        sentence = self.tool.description.split(". ")[0]
        part = re.search(rf"\bone {re.escape(noun)}\b( .+)$", sentence)
        if shown is not None and part is not None:
            return Thing(noun=noun, phrase=f"the {noun} {shown}{part[1]}")
        place = re.search(r"\bin (the .+?)(?:, by .+)?$", sentence)
        if shown is None or place is None:
            return None
        return Thing(noun="entry", phrase=f"the entry {shown} in {place[1]}")

    def of_search(self) -> Reading:
        """A search by name: the one hit that bears exactly that name."""
        named = next(item for item in self.given.values() if item.meaning.kind == "label")
        label = next((o for o in self.fields if o.array and _same_column(o.meaning, named.meaning)), None)
        if label is None or named.thing is None:
            return Reading()
        elements = self.result.get(label.array or "") or []
        hits = [i for i, element in enumerate(elements) if fold(element.get(label.field)) == fold(named.value)]
        return self._of_row(named.thing, named.meaning.table, hits[0]) if len(hits) == 1 else Reading()

    def of_list(self) -> Reading:
        """A list: its size, and its first row where that stands out or is the only one."""
        group, table = self.group, self.table
        counts = [output for output in self.fields if output.array is None and output.meaning.kind == "count"]
        sizes = self._figures(counts, group) if group.conditions and not self._leaves_out() else ()
        thing = self._standing_out(group)
        if thing is None and self.result.get("total") == 1:
            only = Group(plural=table.singular, conditions=group.conditions)
            thing = Thing(noun=table.singular, pick=f"only {only.say()}")
        if thing is None:
            return Reading(askable=sizes)
        handles = self._handles(thing, table.name, 0)
        return Reading(handles=handles, askable=(*self._facts(thing, table.name, 0), *sizes))

    def of_groups(self) -> Reading:
        """A summary by groups: the group on top, where no other ties with it, and its figures."""
        listed = [output for output in self.fields if output.array is not None]
        by = next((output for output in listed if output.meaning.kind not in ("count", "aggregate")), None)
        figures = [output for output in listed if output.meaning.kind in ("count", "aggregate")]
        if by is None or not figures or len(self.result.get(self.array or "") or []) < 2:
            return Reading()
        name, first, second = by.read(self.result), figures[0].read(self.result), figures[0].read(self.result, 1)
        if not isinstance(name, str) or name.isdigit() or not first or not second or first <= second:
            return Reading()
        noun = bare(said(self.tool, by))
        top = Thing(noun=noun, pick=f"{noun} with the most {self.group.say()}")
        fact = Fact(words=top.pick or noun)
        schema = schema_of(self.catalogue, self.tool, by)
        asked = Askable(value=name, fact=fact, field=field_name(noun), schema=schema, guess=0.1)
        return Reading(askable=(asked, *self._figures(figures, top, of=f" of {self.table.plural}")))

    def of_write(self) -> Reading:
        """A change: the row that it made or changed."""
        minted = next((item for item in self.fields if item.meaning.kind == "minted" and item.array is None), None)
        table = minted.meaning.table if minted is not None else subject(self.tool)
        if table is None:
            return Reading()
        if minted is None:
            of_table = [i for i in self.given.values() if i.meaning.kind == "key" and i.meaning.table == table]
            about = of_table[0].thing if of_table else None
        else:
            about = Thing(noun=self.catalogue.database.table(table).singular, made=True)
        if about is None:
            return Reading()
        handles = self._handles(about, table, 0)
        if minted is not None:
            meaning = Meaning(kind="key", table=table, column=minted.meaning.column)
            handles = (*handles, Handle(value=minted.read(self.result), meaning=meaning, thing=about))
        return Reading(handles=handles, askable=self._facts(about, table, 0))

    def _of_row(self, about: Thing | None, table: str | None, index: int) -> Reading:
        if about is None:
            return Reading()
        handles = self._handles(about, table, index)
        return Reading(handles=handles, askable=self._facts(about, table, index), met=about)

    def _facts(self, about: Thing | None, table: str | None, index: int) -> tuple[Askable, ...]:
        """The fields that tell something about `about` which was not said and which a guess would rarely hit."""
        told = {_form(item.value) for item in self.given.values()}
        told |= {_form(about.name)} if about is not None and about.name is not None else set()
        found = []
        for output in self.fields:
            value, meaning = output.read(self.result, index), output.meaning
            if output.array != self.array or meaning.kind not in _ASKED or _form(value) in told:
                continue
            if about is not None and isinstance(value, str) and quote(value) in about.say():
                continue
            if meaning.kind != "status" and value in (0, 1) and (self.tool.writes or self._is_new(meaning)):
                continue  # the rank of the first entry, what is left of one
            guess = self._guess(meaning, value)
            if guess is None:
                continue
            # What a write leaves over ("seats left after this") is no fact of the row it made.
            stands_alone = self.tool.writes and (meaning.kind in ("count", "aggregate") or meaning.table != table)
            words = fact_words(self.catalogue, self.tool, output, table)
            fact = Fact(words=words, about=None if stands_alone else about)
            schema = schema_of(self.catalogue, self.tool, output)
            found.append(Askable(value=value, fact=fact, field=field_name(words), schema=schema, guess=guess))
        return tuple(found)

    def _figures(self, fields: Sequence[Output], about: Group | Thing, *, of: str = "") -> tuple[Askable, ...]:
        """Counts and aggregates over `about`; `of` says what is counted where `about` does not."""
        found = []
        for output in fields:
            value = output.read(self.result)
            if not value or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            is_count = output.meaning.kind == "count"
            words = f"number{of}" if is_count else said(self.tool, output)
            found.append(
                Askable(
                    value=value,
                    fact=Fact(words=words, about=about),
                    field="number" if is_count else field_name(words),
                    schema=schema_of(self.catalogue, self.tool, output),
                    guess=_guess_of_figure(value) if is_count else AGGREGATE_GUESS,
                )
            )
        return tuple(found)

    def _handles(self, about: Thing, table: str | None, index: int) -> tuple[Handle, ...]:
        """The values that identify `about`, a row it refers to, or a fact of it that others may share."""
        found = []
        for output in self.fields:
            meaning, value = output.meaning, output.read(self.result, index)
            if output.array != self.array or value is None or meaning.table is None or meaning.column is None:
                continue
            above = self.catalogue.own_reference(table, output.field) if meaning.table == table else None
            if meaning.kind == "key" and meaning.table == table and above is None:
                found.append(Handle(value=value, meaning=meaning, thing=about))
            elif meaning.kind in ("key", "label") and table is not None and (meaning.table != table or above):
                link = above or self.catalogue.reference(table, meaning.table, output.field)
                if link is not None:
                    words = relation_words(self.catalogue, table, meaning.table, link.column)
                    noun = self.catalogue.database.table(meaning.table).singular
                    parent = Thing(noun=noun, relation=(words, about))
                    found.append(Handle(value=value, meaning=meaning, thing=parent))
            elif meaning.kind in ("filter", "status") and isinstance(value, str):
                words = fact_words(self.catalogue, self.tool, output, table)
                found.append(Handle(value=value, meaning=meaning, thing=about, words=words))
        return tuple(found)

    def _standing_out(self, group: Group) -> Thing | None:
        """The first element as a person picks it, `the track with the highest price`, where no other ties with it."""
        if len(self.result.get(self.array or "") or []) < 2:
            return None
        if any(item.meaning.kind == "order" for item in self.given.values()):
            return self._by_quantity(group)
        return self._by_name(group)

    def _by_quantity(self, group: Group) -> Thing | None:
        table = self.table
        own = [o for o in self.fields if o.array and o.meaning.table == table.name and o.meaning.kind == "value"]
        ranked = sorted((o for o in own if self._is_monotone(o)), key=lambda output: output.field not in self.tool.name)
        if not ranked:
            return None
        first, second = (ranked[0].read(self.result, index) for index in (0, 1))
        if first == second:
            return None
        timed = table.column(ranked[0].meaning.column or "").role in ("date", "clock", "year")
        which = ("latest" if first > second else "earliest") if timed else ("highest" if first > second else "lowest")
        among = f" among the {group.say()}" if group.conditions else ""
        return Thing(noun=table.singular, pick=f"{table.singular} with the {which} {said(self.tool, ranked[0])}{among}")

    def _by_name(self, group: Group) -> Thing | None:
        table = self.table
        label = next((o for o in self.fields if o.array and _same_column(o.meaning, _label_of(table))), None)
        if label is None:
            return None
        names = [fold(element.get(label.field)) for element in self.result[self.array or ""]]
        if names != sorted(names) or not all("a" <= name[:1] <= "z" for name in names) or names[0][0] == names[1][0]:
            return None
        among = group.say() if group.conditions else f"all {table.plural}"
        return Thing(noun=table.singular, pick=f"{table.singular} that comes first in the alphabet among the {among}")

    def _leaves_out(self) -> bool:
        """Whether a ranking has fewer rows than there are: those without the quantity that it ranks by."""
        if not any(meaning.kind == "order" for meaning in self.tool.inputs.values()):
            return False
        shown = [o.meaning for o in self.fields if o.array and o.meaning.table == self.table.name]
        return any(self.table.column(m.column).nullable for m in shown if m.column and m.column in self.tool.name)

    def _is_monotone(self, output: Output) -> bool:
        values = [element.get(output.field) for element in self.result[self.array or ""]]
        if any(not isinstance(value, int | float) or isinstance(value, bool) for value in values):
            return False
        return values in (sorted(values), sorted(values, reverse=True))

    def _guess(self, meaning: Meaning, value: Json) -> float | None:
        """The chance of a lucky guess; None when the value is none to ask for."""
        if value is None or isinstance(value, bool | list | dict) or value == "":
            return None
        if isinstance(value, str) and (len(value) > _LONGEST_ANSWER or _NO_ANSWER.search(value)):
            return None
        if meaning.kind == "status":
            return 0.5
        if meaning.kind in ("count", "aggregate"):
            return _guess_of_figure(value) if isinstance(value, int) else AGGREGATE_GUESS
        if meaning.table is None or meaning.column is None or not self._is_recorded(meaning):
            return 0.1
        share = self.catalogue.facts.share(meaning.table, meaning.column, value)
        is_common = share > 0.02 and self.catalogue.facts.is_mode(meaning.table, meaning.column, value)
        return None if share > _COMMON or is_common else max(share, 0.005)

    def _is_new(self, meaning: Meaning) -> bool:
        """Whether the table that `meaning` speaks of holds nothing but what the episode made."""
        return meaning.table is not None and self.catalogue.database.table(meaning.table).rows == 0

    def _is_recorded(self, meaning: Meaning) -> bool:
        """Whether `D` holds values of the column from the start."""
        table = self.catalogue.database.table(meaning.table or "")
        return table.rows > 0 and any(column.name == meaning.column for column in table.columns)


def _guess_of_figure(value: Json) -> float:
    return 1 / (2 + abs(value))


def _same_column(one: Meaning, other: Meaning) -> bool:
    return (one.kind, one.table, one.column) == (other.kind, other.table, other.column)


def _label_of(table: Table) -> Meaning:
    return Meaning(kind="label", table=table.name, column=table.label)


def _form(value: Json) -> str:
    return fold(number(value))
