"""Requests: only for what the data says is eligible, decided once, with one appeal."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.reads import value_of
from agent_world.discovery.toolsmith.answers.review import ReviewLedger
from agent_world.discovery.toolsmith.contract import Out
from agent_world.discovery.toolsmith.reads.lookup import unknown_key
from agent_world.discovery.toolsmith.source import quoted
from agent_world.discovery.toolsmith.view import Entity, Field, View, own_field
from agent_world.discovery.toolsmith.words import article, ascii_words, mark, snake
from agent_world.discovery.toolsmith.workflows.base import Fit, Overlay, ThemeWords, free_noun, theme_score
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record
from agent_world.discovery.toolsmith.workflows.holders import Holder, column, holder_of
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import review as sources
from agent_world.environments.model import Meaning

NAME = "review"
_NOUNS = (
    "review",
    "approval",
    "request",
    "claim",
    "application",
    "compliance",
    "audit",
    "permission",
    "certification",
    "policy",
)
_VERBS = (
    "approve",
    "review",
    "submit",
    "certify",
    "claim",
    "request",
    "reject",
    "authorise",
    "authorize",
    "audit",
    "comply",
    "verify",
)
_BARS = {
    "deprecated",
    "obsolete",
    "retired",
    "discontinued",
    "cancelled",
    "closed",
    "historic",
    "withdrawn",
    "inactive",
    "superseded",
    "radioactive",
    "theoretical",
    "historical",
}
_ALLOWS = {
    "approved",
    "active",
    "valid",
    "billable",
    "leaf",
    "current",
    "available",
    "official",
    "libre",
    "enabled",
    "independent",
    "free",
    "supported",
    "member",
    "monoisotopic",
}
_STATES = {"pending": "not decided yet", "approved": "granted", "rejected": "turned down", "withdrawn": "taken back"}


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Entities with a flag that says what may be asked for."""
    found = []
    for entity in view.entities:
        if entity.key is None or len(entity.rows) < 12 or entity.is_dimension:
            continue
        flags = [own_field(entity, c) for c in entity.with_roles("flag")]
        gate = next((f for f in flags if _words(f) & (_BARS | _ALLOWS) and _open_share(entity, f)), None)
        if gate is None:
            continue
        eligible = [row for row in entity.rows if bool(value_of(row, gate)) != bool(_words(gate) & _BARS)]
        allowing = [f for f in flags if f.name != gate.name and _words(f) & _ALLOWS]
        second = next((f for f in allowing if sum(bool(value_of(row, f)) for row in eligible) >= 3), None)
        score = 2.4 + 0.4 * bool(second) + theme_score(theme, _NOUNS, _VERBS)
        found.append(
            Fit(
                score=score,
                subject=entity,
                parts={"gate": gate, "second": second},
                why=f"{mark(gate.column.name)} says which {entity.many} may be asked for",
            )
        )
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, gate, second = fit.subject, fit.parts["gate"], fit.parts["second"]
    said = {word for noun in theme.nouns for word in ascii_words(noun)}
    nouns = [noun for noun in ("claim", "application") if noun in said]
    record = Record(one=free_noun(view, *nouns, "request", "application"), prefix="RQ", states=_STATES)
    holder = holder_of(view, subject, "requester")
    key, id_name = subject.key_name, record.id_name
    tools = {
        "submit": f"submit_{snake(subject.one)}_{record.name}",
        "count": f"count_{record.table}",
        **{name: f"{name}_{record.name}" for name in ("approve", "reject", "appeal", "withdraw", "get")},
    }
    bars = bool(_words(gate) & _BARS)
    keys = [row[subject.key.name] for row in subject.rows]
    barred = {row[subject.key.name] for row in subject.rows if bool(value_of(row, gate)) == bars}
    fit_keys = {row[subject.key.name] for row in subject.rows if second is None or value_of(row, second)}

    def ledger() -> ReviewLedger:
        kept = ReviewLedger(
            items=set(keys),
            barred=barred,
            fit=fit_keys,
            holders=holder.keys,
            names={"request": id_name, "item": key, "holder": holder.name},
        )
        kept.operations = {
            tools["submit"]: lambda **a: kept.submit(a[key], a[holder.name]),
            tools["approve"]: lambda **a: kept.approve(a[id_name]),
            tools["reject"]: lambda **a: kept.transition(a[id_name], id_name, ["pending"], "rejected", "not_pending"),
            tools["withdraw"]: lambda **a: kept.transition(
                a[id_name], id_name, ["pending", "approved"], "withdrawn", "not_withdrawable"
            ),
            tools["appeal"]: lambda **a: kept.appeal(a[id_name]),
            tools["get"]: lambda **a: kept.show(a[id_name]),
            tools["count"]: lambda **a: kept.count(a["status"]),
        }
        return kept

    scenarios = Scenarios(ledger)
    granted = [item for item in keys if item not in barred and item in fit_keys]
    refused = [item for item in keys if item not in barred and item not in fit_keys]
    _stories(scenarios, tools, subject, holder, id_name, granted, refused, sorted(barred, key=str), rng)
    flow = _shared(
        Flow(view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios),
        gate,
        bars,
        second,
    )
    table = flow.table(column("appeals", "integer", "measure", "appeals"))
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *holder.tables),
        tables=(table,),
        drafts=_drafts(flow, tools, gate, bars, second),
    )


def _drafts(flow: Flow, tools: dict[str, str], gate: Field, bars: bool, second: Field | None) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    made, own, which = record.made(), record.own(), record.which()
    appeals = record.out("appeals", "how often it was brought up again", minimum=0)
    no_record = f"an unknown {record.one} (not_found)"
    status = record.choice("status", f"state ({record.explained()})", tuple(_STATES))
    barred = f"{article(subject.one)} that is {'' if bars else 'not '}marked {mark(gate.column.name)} (not_eligible)"
    second_rule = (
        [f"{article(subject.one)} that is not marked {mark(second.column.name)} (not_approvable)"] if second else []
    )
    return (
        flow.draft(
            name=tools["submit"],
            pattern="create",
            template=sources.SUBMIT,
            params=[flow.subject_param(), holder.param(record.table)],
            what=f"Ask for {article(subject.one)} on behalf of one {holder.words}. The {record.one} becomes PENDING.",
            fields=[made, record.status("pending")],
            tables=[subject.name, *holder.tables],
            refusals=[
                f"an unknown {subject.one} (not_found)",
                *holder.refusals,
                barred,
                f"what the same {holder.words} has asked for already (already_requested)",
            ],
            said=["apply for", "file", "request"],
        ),
        flow.draft(
            name=tools["approve"],
            pattern="transition",
            template=sources.APPROVE,
            params=[which],
            tables=[subject.name],
            what=f"Grant a pending {record.one}. The {record.one} becomes APPROVED.",
            fields=[own, record.status("approved")],
            refusals=[no_record, flow.wrong_state(["pending"], "not_pending"), *second_rule],
            said=["accept", "allow", "sign off"],
        ),
        flow.transition(
            name=tools["reject"],
            what=f"Turn a pending {record.one} down.",
            doc=f"Turn a {record.one} down.",
            allowed=["pending"],
            target="rejected",
            code="not_pending",
            said=["refuse", "decline", "deny"],
        ),
        flow.draft(
            name=tools["appeal"],
            pattern="transition",
            template=sources.APPEAL,
            params=[which],
            what=f"Bring a rejected {record.one} up again, once. The {record.one} becomes PENDING.",
            fields=[
                own,
                record.status("pending"),
            ],
            refusals=[no_record, flow.wrong_state(["rejected"], "not_rejected"), "a second appeal (no_more_appeals)"],
            said=["contest", "try again", "reconsider"],
        ),
        flow.transition(
            name=tools["withdraw"],
            pattern="cancel",
            what=f"Take a {record.one} back, pending or approved.",
            doc=f"Take a {record.one} back.",
            allowed=["pending", "approved"],
            target="withdrawn",
            code="not_withdrawable",
            said=["cancel", "take back", "drop"],
        ),
        flow.show(own, flow.subject_out(), holder.out(record.table), appeals, record.status()),
        flow.draft(
            name=tools["count"],
            pattern="inspect",
            template=sources.COUNT,
            params=[status],
            writes=False,
            what=f"How many {record.table.replace('_', ' ')} are in one state.",
            said=["number of", "still waiting"],
            fields=[
                record.status(),
                Out(
                    name="count",
                    kind="integer",
                    words="how many",
                    minimum=0,
                    meaning=Meaning(kind="count", table=record.table),
                ),
            ],
        ),
    )


def _shared(flow: Flow, gate: Field, bars: bool, second: Field | None) -> Flow:
    subject = flow.subject
    eligible = (
        f'if {"" if bars else "not "}$subject["{gate.column.name}"]:\n'
        f'    raise Refused("not_eligible", "This {subject.one} is {"" if bars else "not "}marked '
        f'{mark(gate.column.name)}; choose another {subject.one}.")'
    )
    names = {"subject_needed": quoted(gate.column.name).replace('"', '\\"'), "eligible": eligible}
    if second is None:
        names["approvable"] = ""
    else:
        names |= {
            "fit_column": quoted(second.column.name).replace('"', '\\"'),
            "fit_name": second.column.name,
            "fit_rule": f"{article(subject.one)} that is marked {mark(second.column.name)}",
            "approvable": sources.APPROVABLE,
        }
    return flow.with_blocks(
        **names,
        must_be_pending=flow.state_check(["pending"], "not_pending"),
        must_be_rejected=flow.state_check(["rejected"], "not_rejected"),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    id_name: str,
    granted: list[Any],
    refused: list[Any],
    barred: list[Any],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    one, two = rng.sample(granted, 2)
    ana, bo = holder.examples(rng, 2)

    def ask(item: Any, who: Any) -> tuple[str, dict[str, Any]]:
        return tools["submit"], {key: item, holder.name: who}

    def of(tool: str, call: int = 0) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name)}

    def count(status: str) -> tuple[str, dict[str, Any]]:
        return tools["count"], {"status": status}

    add(tools["submit"], "asks for it", "typical", ask(one, ana))
    add(tools["submit"], "can be looked up", "effect", ask(two, bo), of("get"))
    add(tools["submit"], "lets another one ask too", "edge", ask(one, ana), ask(one, bo))
    add(
        tools["submit"],
        "may be asked again when it was withdrawn",
        "edge",
        ask(one, ana),
        of("withdraw"),
        ask(one, ana),
    )
    for item in rng.sample(barred, min(2, len(barred))):
        add(tools["submit"], "refuses what is not eligible", "refusal", ask(item, ana))
    add(tools["submit"], "refuses to be asked twice", "refusal", ask(one, ana), ask(one, ana))
    add(tools["submit"], f"refuses an unknown {subject.one}", "refusal", ask(unknown_key(subject), ana))
    for tool in ("approve", "reject", "withdraw"):
        scenarios.transition(tools[tool], tools["get"], id_name, [ask(one, ana)], [ask(two, bo)])
    for item in refused[:1]:
        add(tools["approve"], "refuses what may not be granted", "refusal", ask(item, ana), of("approve"))
    add(tools["reject"], "refuses what is granted", "refusal", ask(one, ana), of("approve"), of("reject"))
    add(tools["withdraw"], "takes a granted one back", "edge", ask(one, ana), of("approve"), of("withdraw"))
    scenarios.transition(
        tools["appeal"], tools["get"], id_name, [ask(one, ana), of("reject")], [ask(two, bo), of("reject")]
    )
    add(
        tools["appeal"],
        "refuses a second appeal",
        "refusal",
        ask(one, ana),
        of("reject"),
        of("appeal"),
        of("reject"),
        of("appeal"),
    )
    add(tools["get"], "shows what was asked", "typical", ask(one, ana), of("get"))
    add(tools["get"], "shows the second one made", "edge", ask(one, ana), ask(two, bo), of("get", 1))
    add(tools["get"], "shows an appeal", "edge", ask(one, ana), of("reject"), of("appeal"), of("get"))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "RQ0"}))
    add(tools["count"], "counts what waits", "typical", ask(one, ana), ask(two, bo), count("pending"))
    add(tools["count"], "counts nothing at first", "edge", count("approved"))
    add(tools["count"], "counts each once", "effect", ask(one, ana), ask(two, bo), of("reject", 1), count("rejected"))
    scenarios.invalid(tools["count"], "refuses a state it does not know", {"status": "lost"})


def _words(field: Field) -> set[str]:
    return set(ascii_words(field.column.name))


def _open_share(entity: Entity, gate: Field) -> bool:
    """Whether some rows are eligible and some are not."""
    values = [bool(value_of(row, gate)) for row in entity.rows]
    return 0.02 * len(values) < sum(values) < 0.98 * len(values) and min(sum(values), len(values) - sum(values)) >= 3
