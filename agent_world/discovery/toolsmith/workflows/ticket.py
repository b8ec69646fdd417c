"""Issues: reported on an asset, assigned, resolved, reopened; how urgent one is follows from the asset's own data."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.ticket import TicketLedger
from agent_world.discovery.toolsmith.contract import Out, Param, page_param
from agent_world.discovery.toolsmith.fields import measure_fields
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
    theme_score,
    words_of,
)
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record
from agent_world.discovery.toolsmith.workflows.holders import WORKERS, Holder, column, holder_of
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import ticket as sources
from agent_world.environments.model import Meaning

NAME = "ticket"
_NOUNS = (
    "ticket",
    "issue",
    "incident",
    "maintenance",
    "fault",
    "asset",
    "alert",
    "support",
    "case",
    "defect",
    "monitor",
)
_VERBS = ("report", "resolve", "repair", "inspect", "maintain", "assign", "escalate", "monitor", "troubleshoot", "fix")
_ASSETS = frozenset(
    "action airport area bridge building bus code device element endpoint index instance isotope license machine "
    "package park place plane port region road room school server service ship stadium station subdivision system "
    "train vehicle volume zone".split()
)
_STATES = {
    "open": "nobody works on it",
    "assigned": "somebody works on it",
    "resolved": "done",
    "reopened": "back again",
}
_PROBLEMS = {"fault": "something is broken", "wrong data": "a fact is wrong", "question": "somebody asks"}
_PRIORITIES = ("high", "normal")
_LIMIT = 2


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Entities that can have problems, better with a quantity that says how much depends on one."""
    found = []
    for entity in view.entities:
        if entity.key is None or len(entity.rows) < 12 or entity.is_dimension:
            continue
        asset = bool(words_of(entity) & _ASSETS)
        bound = first_bound(entity, measure_fields(entity))
        score = 0.3 + 0.7 * asset + 0.8 * bool(bound) + 0.6 * bool(entity.label) + theme_score(theme, _NOUNS, _VERBS)
        why = f"{entity.many} can have problems" + (f", {bound[0].words} says how urgent they are" if bound else "")
        found.append(Fit(score=score, subject=entity, parts={"bound": bound}, why=why))
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, bound = fit.subject, fit.parts["bound"]
    record = Record(one=free_noun(view, "issue", "ticket", "incident"), prefix="IS", states=_STATES)
    worker = holder_of(view, subject, "assignee", WORKERS)
    key, id_name = subject.key_name, record.id_name
    item = snake(subject.one)
    tools = {
        "report": f"report_{item}_{record.name}",
        "assign": f"assign_{record.name}",
        "escalate": f"escalate_{record.name}",
        "resolve": f"resolve_{record.name}",
        "reopen": f"reopen_{record.name}",
        "get": f"get_{record.name}",
        "about": f"list_{record.table}_of_{item}",
    }
    urgent = {row[subject.key.name]: False for row in subject.rows}
    if bound:
        urgent = {
            row[subject.key.name]: _is_urgent(row[bound[0].column.name], bound[1]) for row in around(subject, bound[0])
        }

    def ledger() -> TicketLedger:
        kept = TicketLedger(
            urgent=urgent,
            workers=worker.keys,
            limit=_LIMIT,
            names={"ticket": id_name, "asset": key, "worker": worker.name},
        )
        kept.operations = {
            tools["report"]: lambda **a: kept.report(a[key], a["problem"]),
            tools["assign"]: lambda **a: kept.assign(a[id_name], a[worker.name]),
            tools["escalate"]: lambda **a: kept.escalate(a[id_name]),
            tools["resolve"]: lambda **a: kept.transition(
                a[id_name], id_name, ["assigned"], "resolved", "not_assigned"
            ),
            tools["reopen"]: lambda **a: kept.transition(a[id_name], id_name, ["resolved"], "reopened", "not_resolved"),
            tools["get"]: lambda **a: kept.show(a[id_name]),
            tools["about"]: lambda **a: kept.about(a[key], a.get("page", 1)),
        }
        return kept

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, worker, id_name, urgent, rng)
    flow = _shared(
        Flow(view=view, workflow=NAME, subject=subject, record=record, holder=None, scenarios=scenarios), worker, bound
    )
    own = worker.column()
    table = flow.table(
        column("problem", "text", "category", "kind of problem"),
        column("priority", "text", "category", "priority"),
        column(own.name, own.type, own.role, own.words, nullable=True),
        keys=worker.key(),
    )
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *worker.tables),
        tables=(table,),
        drafts=_drafts(flow, tools, worker, bound),
    )


def _drafts(flow: Flow, tools: dict[str, str], worker: Holder, bound: tuple[Field, Any] | None) -> tuple:
    subject, record = flow.subject, flow.record
    asset, made, own, which = flow.subject_param(), record.made(), record.own(), record.which()
    kinds = ", ".join(f"{kind}: {meaning}" for kind, meaning in _PROBLEMS.items())
    problem = record.choice("problem", f"kind of problem ({kinds})", tuple(_PROBLEMS))
    problem_out = Out(
        name="problem", kind="string", words="kind of problem", values=tuple(_PROBLEMS), meaning=problem.meaning
    )
    priority = Out(
        name="priority",
        kind="string",
        words="priority (high or normal)",
        values=_PRIORITIES,
        meaning=Meaning(kind="filter", table=record.table, column="priority"),
    )
    high = Out(name="priority", kind="string", words="new priority high", values=("high",), meaning=priority.meaning)
    shown_worker = worker.out(record.table)
    maybe_worker = Out(
        name=worker.name,
        kind=shown_worker.kind,
        words=f"{shown_worker.words}, if any",
        meaning=shown_worker.meaning,
        nullable=True,
    )
    urgency = f" Its priority is high where {bound[0].words} is {bound[1]} or more, else normal." if bound else ""
    no_record, unknown = f"an unknown {record.one} (not_found)", f"an unknown {subject.one} (not_found)"
    who = Param(name=worker.name, kind=shown_worker.kind, words=shown_worker.words, meaning=shown_worker.meaning)
    return (
        flow.draft(
            name=tools["report"],
            pattern="create",
            template=sources.REPORT,
            params=[asset, problem],
            tables=[subject.name],
            what=f"Report {article(record.one)} of {article(subject.one)}. The {record.one} becomes OPEN.{urgency}",
            fields=[made, record.status("open"), priority],
            refusals=[unknown, "the same problem while it is unresolved (already_reported)"],
            said=["complain", "raise", "file"],
        ),
        flow.draft(
            name=tools["assign"],
            pattern="transition",
            template=sources.ASSIGN,
            params=[which, who],
            what=f"Give an open or reopened {record.one} to somebody. The {record.one} becomes ASSIGNED.",
            fields=[own, record.status("assigned"), shown_worker],
            tables=worker.tables,
            refusals=[
                no_record,
                flow.wrong_state(["open", "reopened"], "not_open"),
                *worker.refusals,
                f"somebody who works on {_LIMIT} already (too_busy)",
            ],
            said=["hand to", "put on"],
        ),
        flow.draft(
            name=tools["escalate"],
            pattern="change",
            template=sources.ESCALATE,
            params=[which],
            what=f"Raise the priority of {article(record.one)} to high.",
            fields=[own, high],
            refusals=[no_record, "a resolved one (resolved)", "one that is high already (already_high)"],
            said=["make urgent", "speed up"],
        ),
        flow.transition(
            name=tools["resolve"],
            what=f"Close an assigned {record.one}.",
            doc=f"Close {article(record.one)}.",
            allowed=["assigned"],
            target="resolved",
            code="not_assigned",
            said=["fix", "finish", "done"],
        ),
        flow.transition(
            name=tools["reopen"],
            what=f"Take a resolved {record.one} up again.",
            doc="Take it up again.",
            allowed=["resolved"],
            target="reopened",
            code="not_resolved",
            said=["not fixed", "back again"],
        ),
        flow.show(own, flow.subject_out(), problem_out, priority, maybe_worker, record.status()),
        flow.draft(
            name=tools["about"],
            pattern="children",
            template=sources.ABOUT,
            params=[asset, page_param()],
            writes=False,
            what=f"List what was reported on one {subject.one}, in order of problem.",
            refusals=[unknown],
            fields=[own, problem_out, record.status()],
            tables=[subject.name],
            listing=record.table,
            said=["history", "open problems"],
        ),
    )


def _shared(flow: Flow, worker: Holder, bound: tuple[Field, Any] | None) -> Flow:
    names = {key.replace("holder", "worker"): value for key, value in worker.names.items()}
    priority, constant = 'priority = "normal"', ""
    if bound:
        name = bound[0].column.name
        value = f'$subject["{name}"]'
        constant = f"URGENT_FROM = {bound[1]!r}"
        priority = f'priority = "high" if {value} is not None and {value} >= URGENT_FROM else "normal"'
        names["subject_needed"] = quoted(name).replace('"', '\\"')
    return flow.with_blocks(
        **names,
        priority=priority,
        urgent_constant=constant,
        limit=str(_LIMIT),
        a_record=article(flow.record.one),
        must_be_open=flow.state_check(["open", "reopened"], "not_open"),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    worker: Holder,
    id_name: str,
    urgent: dict[Any, bool],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    calm = [asset for asset, high in urgent.items() if not high]
    grave = [asset for asset, high in urgent.items() if high]
    one, two, three = rng.sample(calm, 3)
    ana, bo = worker.examples(rng, 2)

    def report(asset: Any, problem: str = "fault") -> tuple[str, dict[str, Any]]:
        return tools["report"], {key: asset, "problem": problem}

    def of(tool: str, call: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    def to(who: Any, call: int = 0) -> tuple[str, dict[str, Any]]:
        return of("assign", call, **{worker.name: who})

    add(tools["report"], "opens one", "typical", report(one))
    add(tools["report"], "can be looked up", "effect", report(two, "question"), of("get"))
    for asset in grave[:1]:
        add(tools["report"], "is urgent here", "edge", report(asset))
    add(tools["report"], "is not urgent up to the bound", "edge", report(calm[-1]))
    add(tools["report"], "takes another problem of the same", "edge", report(one), report(one, "wrong data"))
    add(tools["report"], "refuses the same problem twice", "refusal", report(one), report(one))
    add(tools["report"], f"refuses an unknown {subject.one}", "refusal", report(unknown_key(subject)))
    scenarios.invalid(tools["report"], "refuses a problem it does not know", {key: one, "problem": "fire"})
    add(tools["assign"], "gives it to somebody", "typical", report(one), to(ana))
    add(tools["assign"], "is kept", "effect", report(two), to(bo), of("get"))
    add(tools["assign"], "takes a reopened one", "edge", report(one), to(ana), of("resolve"), of("reopen"), to(bo))
    add(tools["assign"], "gives the second one made", "edge", report(one), report(two), to(bo, 1))
    add(
        tools["assign"],
        "refuses who has enough",
        "refusal",
        report(one),
        report(two),
        report(three),
        to(ana, 0),
        to(ana, 1),
        to(ana, 2),
    )
    add(
        tools["assign"],
        "counts each one's work apart",
        "effect",
        *[report(one), report(two), report(three)],
        *[to(ana, 0), to(ana, 1), to(bo, 2)],
    )
    add(tools["assign"], "is refused twice", "refusal", report(one), to(ana), to(bo))
    add(tools["escalate"], "raises it", "typical", report(one), of("escalate"))
    add(tools["escalate"], "is kept", "effect", report(two), of("escalate"), of("get"))
    add(tools["escalate"], "raises the second one made", "edge", report(one), report(two), of("escalate", 1))
    add(tools["escalate"], "is refused twice", "refusal", report(one), of("escalate"), of("escalate"))
    for asset in grave[-1:]:
        add(tools["escalate"], "refuses what is urgent by itself", "refusal", report(asset), of("escalate"))
    add(tools["escalate"], "refuses a resolved one", "refusal", report(one), to(ana), of("resolve"), of("escalate"))
    scenarios.transition(tools["resolve"], tools["get"], id_name, [report(one), to(ana)], [report(two), to(bo)])
    add(tools["resolve"], "refuses an open one", "refusal", report(one), of("resolve"))
    scenarios.transition(
        tools["reopen"],
        tools["get"],
        id_name,
        [report(one), to(ana), of("resolve")],
        [report(two), to(bo), of("resolve")],
    )
    add(tools["get"], "shows what was reported", "typical", report(one), of("get"))
    add(tools["get"], "shows who works on it", "edge", report(one), to(ana), of("get"))
    add(tools["get"], "shows the second one made", "edge", report(one), report(two, "question"), of("get", 1))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "IS0"}))
    add(
        tools["about"],
        "lists two problems",
        "typical",
        report(one, "question"),
        report(one),
        (tools["about"], {key: one}),
    )
    add(tools["about"], "is empty at first", "edge", (tools["about"], {key: two}))
    add(tools["about"], "leaves others out", "effect", report(one), report(two), (tools["about"], {key: two}))
    add(tools["about"], "refuses the unknown", "refusal", (tools["about"], {key: unknown_key(subject)}))


def _is_urgent(value: Any, bound: Any) -> bool:
    return value is not None and value >= bound
