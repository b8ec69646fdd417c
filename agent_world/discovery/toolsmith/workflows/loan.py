"""Loans: one open loan an item, a limit a borrower, a length that follows from the item's own data."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.loan import LoanLedger
from agent_world.discovery.toolsmith.fields import measure_fields, time_fields
from agent_world.discovery.toolsmith.reads.lookup import unknown_key
from agent_world.discovery.toolsmith.source import quoted
from agent_world.discovery.toolsmith.view import Entity, Field, View
from agent_world.discovery.toolsmith.words import article, snake
from agent_world.discovery.toolsmith.workflows.base import (
    Fit,
    Overlay,
    ThemeWords,
    around,
    first_bound,
    free_noun,
    named_by,
    said_verb,
    theme_score,
    words_of,
)
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record
from agent_world.discovery.toolsmith.workflows.holders import Holder, column, holder_of
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import loan as sources

NAME = "loan"
_NOUNS = ("loan", "library", "rental", "borrower", "lending", "copy", "shelf", "rent", "inventory", "archive")
_VERBS = ("lend", "borrow", "rent", "return", "renew", "hire", "checkout")
_LENT = {
    "book",
    "film",
    "movie",
    "album",
    "record",
    "disc",
    "instrument",
    "plane",
    "vehicle",
    "car",
    "tool",
    "device",
    "painting",
    "artwork",
    "item",
    "equipment",
    "specimen",
    "sample",
    "bicycle",
    "boat",
    "game",
    "publication",
}
_STATES = {"out": "with the borrower", "returned": "back again", "lost": "gone for good"}
_USUAL, _SHORT, _LIMIT, _RENEWALS = 21, 7, 3, 2


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Entities of things that can be handed out, better with a value that makes some loans short."""
    found = []
    for entity in view.entities:
        asked = theme_score(theme, _NOUNS, _VERBS)
        if entity.key is None or len(entity.rows) < 12 or entity.is_dimension:
            continue
        if not words_of(entity) & _LENT and not (asked >= 1 and named_by(theme, entity)):
            continue
        years = [field for field in time_fields(entity) if field.column.role == "year"]
        bound = first_bound(entity, [*years, *measure_fields(entity)])
        score = 1.2 + 0.8 * bool(bound) + asked
        why = f"each {entity.one} is one thing" + (f", {bound[0].words} makes some loans short" if bound else "")
        found.append(Fit(score=score, subject=entity, parts={"bound": bound}, why=why))
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, bound = fit.subject, fit.parts["bound"]
    record = Record(one=free_noun(view, "loan", "rental", "lending"), prefix="LN", states=_STATES)
    holder = holder_of(view, subject, "borrower")
    key, id_name = subject.key_name, record.id_name
    verb = said_verb(theme, "lend", "rent")
    tools = {
        "lend": snake(f"{verb} {subject.one}"),
        "renew": f"renew_{record.name}",
        "pass": f"hand_over_{record.name}",
        "return": f"return_{record.name}",
        "lose": f"report_{record.name}_lost",
        "get": f"get_{record.name}",
    }
    days = {row[subject.key.name]: _USUAL for row in subject.rows}
    if bound:
        days = {row[subject.key.name]: _days(row[bound[0].column.name], bound[1]) for row in around(subject, bound[0])}

    def ledger() -> LoanLedger:
        kept = LoanLedger(
            days=days,
            borrowers=holder.keys,
            limit=_LIMIT,
            renewals=_RENEWALS,
            names={"loan": id_name, "item": key, "borrower": holder.name},
        )
        kept.operations = {
            tools["lend"]: lambda **a: kept.lend(a[key], a[holder.name]),
            tools["renew"]: lambda **a: kept.renew(a[id_name]),
            tools["pass"]: lambda **a: kept.hand_over(a[id_name], a[holder.name]),
            tools["return"]: lambda **a: kept.transition(a[id_name], id_name, ["out"], "returned", "not_out"),
            tools["lose"]: lambda **a: kept.transition(a[id_name], id_name, ["out"], "lost", "not_out"),
            tools["get"]: lambda **a: kept.show(a[id_name]),
        }
        return kept

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, holder, id_name, days, rng)
    flow = _shared(
        Flow(view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios), bound
    )
    table = flow.table(
        column("due", "text", "date", "day it is due"), column("renewals", "integer", "measure", "renewals")
    )
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *holder.tables),
        tables=(table,),
        drafts=_drafts(flow, tools, verb, bound),
    )


def _drafts(flow: Flow, tools: dict[str, str], verb: str, bound: tuple[Field, Any] | None) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    item, made, own, which = flow.subject_param(), record.made(), record.own(), record.which()
    due = record.out("due", "day it is due (YYYY-MM-DD)", "string")
    renewals = record.out("renewals", "times renewed", minimum=0)
    length = f"for {_USUAL} days"
    if bound:
        length += f", or {_SHORT} where {bound[0].words} is {bound[1]} or more"
    no_record, not_out = f"an unknown {record.one} (not_found)", flow.wrong_state(["out"], "not_out")
    too_many = f"a {holder.words} who has {_LIMIT} out already (too_many_loans)"
    return (
        flow.draft(
            name=tools["lend"],
            pattern="create",
            template=sources.LEND,
            params=[item, holder.param(record.table)],
            what=f"{verb.capitalize()} {article(subject.one)} to {article(holder.words)} {length}. "
            f"The {record.one} becomes OUT.",
            fields=[made, record.status("out"), due],
            tables=[subject.name, *holder.tables],
            refusals=[
                f"an unknown {subject.one} (not_found)",
                *holder.refusals,
                f"{article(subject.one)} that is out or lost (not_available)",
                too_many,
            ],
            said=["borrow", "hand out", "take home"],
        ),
        flow.draft(
            name=tools["renew"],
            pattern="change",
            template=sources.RENEW,
            params=[which],
            tables=[subject.name],
            what=f"Renew {article(record.one)}: it is due one more loan time later, at most {_RENEWALS} times.",
            fields=[own, due, renewals],
            refusals=[no_record, not_out, "a third renewal (no_more_renewals)"],
            said=["extend", "keep longer", "prolong"],
        ),
        flow.draft(
            name=tools["pass"],
            pattern="change",
            template=sources.HAND_OVER,
            params=[which, holder.param(record.table)],
            what=f"Pass what is out on to another {holder.words}; the due day stays.",
            fields=[own, holder.out(record.table)],
            tables=holder.tables,
            refusals=[no_record, not_out, *holder.refusals, f"the same {holder.words} again (same_borrower)", too_many],
            said=["transfer", "give to"],
        ),
        flow.transition(
            name=tools["return"],
            what=f"Take back what was lent; the {subject.one} can be lent again.",
            doc=f"Close {article(record.one)}.",
            allowed=["out"],
            target="returned",
            code="not_out",
            said=["bring back", "give back"],
        ),
        flow.transition(
            name=tools["lose"],
            what=f"Note that what was lent is lost; the {subject.one} cannot be lent again.",
            doc="Write off what is out.",
            allowed=["out"],
            target="lost",
            code="not_out",
            said=["missing", "write off"],
        ),
        flow.show(own, flow.subject_out(), holder.out(record.table), due, renewals, record.status()),
    )


def _shared(flow: Flow, bound: tuple[Field, Any] | None) -> Flow:
    subject = flow.subject
    if bound is None:
        return flow.with_blocks(
            days_constants=f"LOAN_DAYS = {_USUAL}",
            days="days = LOAN_DAYS",
            subject_of_record="",
            limit=str(_LIMIT),
            renewals=str(_RENEWALS),
            subject_title=subject.one.capitalize(),
            must_be_out=flow.state_check(["out"], "not_out"),
        )
    name = bound[0].column.name
    value = f'$subject["{name}"]'
    return flow.with_blocks(
        subject_needed=quoted(name).replace('"', '\\"'),
        limit=str(_LIMIT),
        renewals=str(_RENEWALS),
        days_constants=f"LOAN_DAYS, SHORT_LOAN_DAYS, SHORT_FROM = {_USUAL}, {_SHORT}, {bound[1]!r}",
        days=f"days = SHORT_LOAN_DAYS if {value} is not None and {value} >= SHORT_FROM else LOAN_DAYS",
        subject_of_record=sources.SUBJECT_OF_RECORD,
        subject_title=subject.one.capitalize(),
        must_be_out=flow.state_check(["out"], "not_out"),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    id_name: str,
    days: dict[Any, int],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    usual = [item for item, length in days.items() if length == _USUAL]
    short = [item for item, length in days.items() if length == _SHORT]
    one, two, three, four = rng.sample(usual, 4)
    ana, bo = holder.examples(rng, 2)

    def lend(item: Any, who: Any) -> tuple[str, dict[str, Any]]:
        return tools["lend"], {key: item, holder.name: who}

    def of(tool: str, call: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    add(tools["lend"], "hands one out", "typical", lend(one, ana))
    add(tools["lend"], "can be looked up", "effect", lend(two, bo), of("get"))
    for item in short[:1]:
        add(tools["lend"], "is short for this one", "edge", lend(item, ana))
    add(tools["lend"], "is long up to the bound", "edge", lend(usual[-1], ana))
    add(tools["lend"], "hands out what came back", "edge", lend(one, ana), of("return"), lend(one, bo))
    add(tools["lend"], "refuses what is out", "refusal", lend(one, ana), lend(one, bo))
    add(tools["lend"], "refuses what is lost", "refusal", lend(one, ana), of("lose"), lend(one, bo))
    add(
        tools["lend"],
        "counts each borrower apart",
        "effect",
        *[lend(item, ana) for item in (one, two, three)],
        lend(four, bo),
    )
    add(tools["lend"], "refuses a fourth at once", "refusal", *[lend(item, ana) for item in (one, two, three, four)])
    add(tools["lend"], f"refuses an unknown {subject.one}", "refusal", lend(unknown_key(subject), ana))
    add(tools["renew"], "puts off the day", "typical", lend(one, ana), of("renew"))
    add(tools["renew"], "works twice", "edge", lend(one, ana), of("renew"), of("renew"))
    for item in short[:1]:
        add(tools["renew"], "is short for this one", "edge", lend(item, ana), of("renew"))
    add(tools["renew"], "is kept", "effect", lend(two, bo), of("renew"), of("get"))
    add(tools["renew"], "refuses a third time", "refusal", lend(one, ana), of("renew"), of("renew"), of("renew"))
    add(tools["renew"], "refuses what came back", "refusal", lend(one, ana), of("return"), of("renew"))
    add(tools["pass"], "gives it to somebody else", "typical", lend(one, ana), of("pass", **{holder.name: bo}))
    add(tools["pass"], "keeps the day", "effect", lend(one, ana), of("pass", **{holder.name: bo}), of("get"))
    add(
        tools["pass"],
        "makes room for another",
        "edge",
        lend(one, ana),
        lend(two, ana),
        lend(three, ana),
        of("pass", 1, **{holder.name: bo}),
        lend(four, ana),
    )
    add(tools["pass"], "refuses the same one", "refusal", lend(one, ana), of("pass", **{holder.name: ana}))
    add(
        tools["pass"],
        "refuses who has enough",
        "refusal",
        lend(four, bo),
        lend(one, ana),
        lend(two, ana),
        lend(three, ana),
        of("pass", 0, **{holder.name: ana}),
    )
    for tool in ("return", "lose"):
        scenarios.transition(tools[tool], tools["get"], id_name, [lend(one, ana)], [lend(two, bo)])
    add(tools["get"], "shows what was lent", "typical", lend(one, ana), of("get"))
    add(tools["get"], "shows the second one made", "edge", lend(one, ana), lend(two, bo), of("get", 1))
    add(tools["get"], "shows what came back", "edge", lend(one, ana), of("return"), of("get"))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "LN0"}))


def _days(value: Any, bound: Any) -> int:
    return _SHORT if value is not None and value >= bound else _USUAL
