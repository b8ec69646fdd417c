"""Bookings: held, confirmed and cancelled places of an event whose capacity the data states."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.booking import BookingLedger
from agent_world.discovery.toolsmith.answers.reads import value_of
from agent_world.discovery.toolsmith.contract import Out
from agent_world.discovery.toolsmith.reads.lookup import unknown_key
from agent_world.discovery.toolsmith.source import Query, column_of, links_of, quoted
from agent_world.discovery.toolsmith.view import Entity, Field, View, own_field
from agent_world.discovery.toolsmith.words import article, ascii_words, snake
from agent_world.discovery.toolsmith.workflows.base import Fit, Overlay, ThemeWords, free_noun, said_verb, theme_score
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record
from agent_world.discovery.toolsmith.workflows.holders import Holder, column, holder_of
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import booking as sources
from agent_world.environments.model import Meaning

NAME = "booking"
_NOUNS = ("booking", "reservation", "seat", "ticket", "itinerary", "passenger", "guest", "room", "trip", "appointment")
_VERBS = ("book", "reserve", "schedule", "hold", "rebook", "board", "seat")
_CAPACITY = {
    "seats": "seats",
    "seat": "seats",
    "capacity": "places",
    "places": "places",
    "rooms": "rooms",
    "beds": "beds",
    "berths": "berths",
    "slots": "slots",
    "vacancies": "vacancies",
    "stock": "pieces",
}
_HAPPENS = {"departure", "arrival", "start", "departed", "started", "opening"}
_STATES = {"held": "not firm yet", "confirmed": "firm", "cancelled": "called off"}


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Entities that state a capacity themselves or through what they refer to."""
    found = []
    for entity in view.entities:
        capacity = _capacity(entity) if entity.key and len(entity.rows) >= 10 else None
        if capacity is None:
            continue
        happens = _happens(entity)
        taking_place = [row for row in entity.rows if happens is None or value_of(row, happens) is not None]
        sizes = [value for row in taking_place if (value := value_of(row, capacity)) is not None]
        if sum(size >= 3 for size in sizes) < max(5, 0.2 * len(entity.rows)):
            continue
        why = f"{capacity.words} bounds how many can come" + (
            f", {happens.words} tells what takes place" if happens else ""
        )
        score = 3.0 + bool(happens) + 0.5 * (capacity.via is not None) + theme_score(theme, _NOUNS, _VERBS)
        found.append(Fit(score=score, subject=entity, parts={"capacity": capacity, "happens": happens}, why=why))
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, capacity, happens = fit.subject, fit.parts["capacity"], fit.parts["happens"]
    verb = said_verb(theme, "book", "reserve")
    nouns = ("reservation", "booking") if verb == "reserve" else ("booking", "reservation")
    record = Record(one=free_noun(view, *nouns), prefix="BK", states=_STATES)
    unit = _unit(capacity)
    holder = holder_of(
        view, subject, "passenger" if {"flight", "trip", "train"} & set(ascii_words(subject.one)) else "guest"
    )
    places = {row[subject.key.name]: value_of(row, capacity) for row in subject.rows}
    idle = {row[subject.key.name] for row in subject.rows if happens and value_of(row, happens) is None}
    key, id_name = subject.key_name, record.id_name
    tools = {
        "book": snake(f"{verb} {subject.one}"),
        "check": snake(f"check {subject.one} {unit}"),
        **{name: f"{name}_{record.name}" for name in ("change", "move", "confirm", "cancel", "get")},
    }

    def ledger() -> BookingLedger:
        book = BookingLedger(
            places=places,
            idle=idle,
            holders=holder.keys,
            names={"record": id_name, "event": key, "holder": holder.name, "unit": unit, "subject": snake(subject.one)},
        )
        book.operations = {
            tools["book"]: lambda **a: book.book(a[key], a[holder.name], a[unit]),
            tools["change"]: lambda **a: book.resize(a[id_name], a[unit]),
            tools["move"]: lambda **a: book.move(a[id_name], a[key]),
            tools["confirm"]: lambda **a: book.transition(a[id_name], id_name, ["held"], "confirmed", "not_held"),
            tools["cancel"]: lambda **a: book.transition(
                a[id_name], id_name, ["held", "confirmed"], "cancelled", "already_cancelled"
            ),
            tools["get"]: lambda **a: book.show(a[id_name]),
            tools["check"]: lambda **a: book.check(a[key]),
        }
        return book

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, holder, unit, id_name, places, idle, rng)
    flow = _shared(
        capacity,
        happens,
        unit,
        Flow(view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios),
    )
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *holder.tables),
        tables=(flow.table(column(unit, "integer", "measure", unit)),),
        drafts=_drafts(flow, tools, capacity, happens, unit, verb, max(v for v in places.values() if v is not None)),
    )


def _drafts(
    flow: Flow, tools: dict[str, str], capacity: Field, happens: Field | None, unit: str, verb: str, most: int
) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    event, made, own, which = flow.subject_param(), record.made(), record.own(), record.which()
    count = record.quantity(unit, f"how many {unit}", most)
    count_out = record.out(unit, f"number of {unit}", minimum=1)
    left = record.out(f"{unit}_left", f"{unit} left after this", meaning="count", minimum=0)
    off = (
        [f"{article(subject.one)} without {happens.words}, which does not take place (not_running)"] if happens else []
    )
    too_many = f"more {unit} than are left (not_enough_{unit})"
    limits = [
        f"an unknown {subject.one} (not_found)",
        *off,
        f"{article(subject.one)} whose {unit} nobody knows (capacity_unknown)",
    ]
    no_record = f"an unknown {record.one} (not_found)"
    not_held = flow.wrong_state(["held"], "not_held")
    tables = [subject.name, *([capacity.via.parent.name] if capacity.via else [])]
    counted = Meaning(kind="count", table=record.table)
    return (
        flow.draft(
            name=tools["book"],
            pattern="create",
            template=sources.BOOK,
            params=[event, holder.param(record.table), count],
            what=f"{verb.capitalize()} {unit} of {article(subject.one)} for one {holder.words}. "
            f"The {record.one} becomes HELD.",
            fields=[made, record.status("held"), left],
            tables=[*tables, *holder.tables],
            refusals=[
                *limits,
                too_many,
                *holder.refusals,
                f"a second {record.one} of the same {holder.words} there (already_booked)",
            ],
            said=["reserve" if verb == "book" else "book", f"get {unit}"],
        ),
        flow.draft(
            name=tools["change"],
            pattern="change",
            template=sources.RESIZE,
            params=[which, count],
            tables=tables,
            what=f"Change how many {unit} a held {record.one} is for.",
            fields=[own, count_out, left],
            refusals=[no_record, not_held, too_many],
            said=[f"more {unit}", f"fewer {unit}"],
        ),
        flow.draft(
            name=tools["move"],
            pattern="change",
            template=sources.MOVE,
            params=[which, event],
            tables=tables,
            what=f"Move a held {record.one} with all its {unit} to another {subject.one}.",
            fields=[own, flow.subject_out(), left],
            said=["rebook", "switch", "transfer"],
            refusals=[
                no_record,
                not_held,
                f"the same {subject.one} again (same_{snake(subject.one)})",
                *limits,
                too_many,
            ],
        ),
        flow.transition(
            name=tools["confirm"],
            what=f"Confirm a held {record.one}; after that it can no longer be changed.",
            doc=f"Make a held {record.one} firm.",
            allowed=["held"],
            target="confirmed",
            code="not_held",
            said=["make firm", "finalise"],
        ),
        flow.transition(
            name=tools["cancel"],
            pattern="cancel",
            what=f"Call off a {record.one}; its {unit} are free again.",
            doc=f"Call off a {record.one} and free its {unit}.",
            allowed=["held", "confirmed"],
            target="cancelled",
            code="already_cancelled",
            said=["cancel", "drop", "give back"],
        ),
        flow.show(own, flow.subject_out(), holder.out(record.table), count_out, record.status()),
        flow.draft(
            name=tools["check"],
            pattern="inspect",
            template=sources.CHECK,
            params=[event],
            tables=tables,
            writes=False,
            what=f"How many {unit} of {article(subject.one)} are taken and how many are free.",
            refusals=limits,
            said=["availability", "room left", "still free"],
            fields=[
                flow.subject_out(),
                Out(
                    name="capacity",
                    kind="integer",
                    words=f"{unit} in all",
                    meaning=Meaning(kind="value", table=capacity.meaning.table, column=capacity.column.name),
                ),
                Out(name="taken", kind="integer", words=f"{unit} taken", minimum=0, meaning=counted),
                Out(name="left", kind="integer", words=f"{unit} left", minimum=0, meaning=counted),
            ],
        ),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    unit: str,
    id_name: str,
    places: dict[Any, int | None],
    idle: set[Any],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    running = [event for event, size in places.items() if event not in idle and size is not None and size >= 3]
    first, second = rng.sample(running, 2)
    small = min(running, key=lambda event: (places[event], str(event)))
    ana, bo = holder.examples(rng, 2)

    def book(event: Any, who: Any, number: int) -> tuple[str, dict[str, Any]]:
        return tools["book"], {key: event, holder.name: who, unit: number}

    def of(tool: str, call: int, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    def check(event: Any) -> tuple[str, dict[str, Any]]:
        return tools["check"], {key: event}

    add(tools["book"], f"holds {unit}", "typical", book(first, ana, 2))
    add(tools["book"], "counts what others hold", "effect", book(first, ana, 2), book(first, bo, 1))
    add(tools["book"], "can be looked up", "effect", book(second, bo, 2), of("get", 0))
    add(tools["book"], "gives all there are", "edge", book(small, ana, places[small]))
    add(
        tools["book"],
        "may be made again when it was called off",
        "edge",
        book(small, ana, places[small]),
        of("cancel", 0),
        book(small, ana, places[small]),
    )
    add(tools["book"], "refuses one more", "refusal", book(small, ana, places[small]), book(small, bo, 1))
    add(tools["book"], "refuses the same person twice", "refusal", book(first, ana, 1), book(first, ana, 1))
    add(tools["book"], f"refuses an unknown {subject.one}", "refusal", book(unknown_key(subject), ana, 1))
    for event in sorted(idle, key=str)[:1]:
        add(tools["book"], "refuses what does not take place", "refusal", book(event, ana, 1))
    for event in [event for event, size in places.items() if size is None and event not in idle][:1]:
        add(tools["book"], f"refuses unknown {unit}", "refusal", book(event, ana, 1))
    scenarios.invalid(tools["book"], f"refuses no {unit}", {key: first, holder.name: ana, unit: 0})
    add(tools["change"], "takes more", "typical", book(first, ana, 1), of("change", 0, **{unit: 3}))
    add(tools["change"], "takes fewer", "typical", book(first, ana, 3), of("change", 0, **{unit: 1}))
    add(tools["change"], "takes all there are", "edge", book(small, ana, 1), of("change", 0, **{unit: places[small]}))
    add(
        tools["change"],
        "leaves others out",
        "edge",
        book(first, bo, 2),
        book(small, ana, 1),
        of("change", 1, **{unit: places[small]}),
    )
    add(
        tools["change"],
        "refuses a confirmed one",
        "refusal",
        book(first, ana, 1),
        of("confirm", 0),
        of("change", 0, **{unit: 2}),
    )
    add(
        tools["change"],
        "changes the one that is meant",
        "effect",
        book(first, ana, 1),
        book(second, bo, 2),
        of("change", 1, **{unit: 1}),
        of("get", 1),
    )
    add(tools["move"], "moves to another", "typical", book(first, ana, 2), of("move", 0, **{key: second}))
    add(
        tools["move"],
        f"frees the {unit} it leaves",
        "effect",
        book(first, ana, 2),
        of("move", 0, **{key: second}),
        check(first),
    )
    add(tools["move"], f"keeps its {unit}", "edge", book(first, bo, 3), of("move", 0, **{key: second}), of("get", 0))
    add(tools["move"], "refuses where it is already", "refusal", book(first, ana, 1), of("move", 0, **{key: first}))
    add(
        tools["move"],
        "refuses where there is no room",
        "refusal",
        book(small, bo, places[small]),
        book(first, ana, 1),
        of("move", 1, **{key: small}),
    )
    for tool in ("confirm", "cancel"):
        scenarios.transition(tools[tool], tools["get"], id_name, [book(first, ana, 1)], [book(second, bo, 2)])
    add(tools["confirm"], "refuses a cancelled one", "refusal", book(first, ana, 1), of("cancel", 0), of("confirm", 0))
    add(
        tools["cancel"],
        f"frees its {unit}",
        "effect",
        book(small, ana, places[small]),
        of("cancel", 0),
        book(small, bo, 1),
    )
    add(tools["cancel"], "calls off a confirmed one", "edge", book(first, ana, 1), of("confirm", 0), of("cancel", 0))
    add(tools["get"], "shows what was made", "typical", book(first, ana, 2), of("get", 0))
    add(tools["get"], "shows the second one made", "edge", book(first, ana, 2), book(second, bo, 1), of("get", 1))
    add(tools["get"], "shows a cancelled one", "edge", book(first, ana, 2), of("cancel", 0), of("get", 0))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "BK0"}))
    add(tools["check"], "counts nothing at first", "typical", check(first))
    add(tools["check"], "counts what is held", "effect", book(first, ana, 2), check(first))
    add(tools["check"], "leaves others out", "effect", book(first, ana, 2), book(second, bo, 1), check(second))
    add(tools["check"], "comes down to zero", "edge", book(small, ana, places[small]), check(small))
    add(tools["check"], "refuses the unknown", "refusal", check(unknown_key(subject)))


def _capacity(entity: Entity) -> Field | None:
    """The whole number that bounds an entity: its own, or that of what it refers to."""
    own = [own_field(entity, c) for c in entity.table.columns if _bounds(c)]
    for link in entity.links:
        for parent_column in link.parent.table.columns:
            if _bounds(parent_column):
                field = own_field(link.parent, parent_column)
                own.append(
                    Field(
                        name=field.name,
                        owner=entity,
                        column=parent_column,
                        meaning=field.meaning,
                        words=field.words,
                        via=link,
                    )
                )
    return own[0] if own else None


def _bounds(column_: Any) -> bool:
    return (
        column_.type == "integer"
        and column_.role in {"measure", "category"}
        and any(word in _CAPACITY for word in ascii_words(column_.name))
    )


def _happens(entity: Entity) -> Field | None:
    """A time that is missing where the event did not take place."""
    for role in ("clock", "date"):
        for own in entity.with_roles(role):
            missing = len(entity.rows) - len(entity.values(own))
            if 0 < missing <= 0.3 * len(entity.rows) and set(ascii_words(own.name)) & _HAPPENS:
                return own_field(entity, own)
    return None


def _unit(capacity: Field) -> str:
    return next(_CAPACITY[word] for word in ascii_words(capacity.column.name) if word in _CAPACITY)


def _shared(capacity: Field, happens: Field | None, unit: str, flow: Flow) -> Flow:
    """The flow with the parts of source that its templates share."""
    subject = flow.subject
    links = links_of([capacity])
    shown = [(column_of(capacity, links), "capacity")]
    running = ""
    if happens:
        shown.append((column_of(happens, links), happens.name))
        running = (
            f'if $subject["{happens.name}"] is None:\n'
            f'    raise Refused("not_running", "This {subject.one} has no {happens.words}: it does not take place; '
            'choose another.")'
        )
    prefix = f"{quoted(subject.name)}." if links else ""
    query = Query(entity=subject, shown=shown, links=links, where=[f"{prefix}{quoted(subject.key.name)} = ?"])
    return flow.with_blocks(
        unit=unit,
        capacity_sql=query.text(),
        running=running,
        free=sources.FREE,
        held_only=flow.state_check(["held"], "not_held"),
        held=sources.HELD,
    )
