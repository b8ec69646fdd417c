"""Subscriptions: somebody follows one item of each category; a change stays within the category."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.reads import value_of
from agent_world.discovery.toolsmith.answers.subscription import SubscriptionLedger
from agent_world.discovery.toolsmith.contract import Out, kind_of, page_param
from agent_world.discovery.toolsmith.reads.lookup import unknown_key
from agent_world.discovery.toolsmith.source import Query, column_of, links_of, quoted
from agent_world.discovery.toolsmith.view import Entity, Field, View
from agent_world.discovery.toolsmith.words import article, snake
from agent_world.discovery.toolsmith.workflows.base import (
    Fit,
    Overlay,
    ThemeWords,
    dividing_category,
    free_noun,
    said_verb,
    theme_score,
    words_of,
)
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record
from agent_world.discovery.toolsmith.workflows.holders import Holder, holder_of
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import subscription as sources
from agent_world.environments.model import Meaning

NAME = "subscription"
_NOUNS = (
    "subscription",
    "subscriber",
    "alert",
    "notification",
    "feed",
    "plan",
    "newsletter",
    "topic",
    "series",
    "channel",
    "update",
    "forecast",
    "index",
)
_VERBS = ("subscribe", "follow", "notify", "alert", "watch", "track", "unsubscribe", "monitor", "renew", "publish")
_FOLLOWED = {
    "series",
    "index",
    "zone",
    "service",
    "holiday",
    "language",
    "currency",
    "region",
    "country",
    "item",
    "area",
    "team",
    "element",
    "isotope",
    "subdivision",
    "park",
    "airport",
    "name",
    "emoji",
    "symbol",
    "indicator",
}
_STATES = {"active": "running", "paused": "stopped for now", "ended": "over"}


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Entities with a category that divides them into a few large parts."""
    found = []
    for entity in view.entities:
        if entity.key is None or len(entity.rows) < 20 or entity.is_dimension:
            continue
        kind = dividing_category(entity)
        if kind is None or not entity.label:
            continue
        score = 1.1 + 0.7 * bool(words_of(entity) & _FOLLOWED) + theme_score(theme, _NOUNS, _VERBS)
        found.append(
            Fit(
                score=score,
                subject=entity,
                parts={"kind": kind},
                why=f"one {entity.one} of each {kind.words} can be followed",
            )
        )
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, kind = fit.subject, fit.parts["kind"]
    record = Record(one=free_noun(view, "subscription", "alert"), prefix="SB", states=_STATES)
    holder = holder_of(view, subject, "subscriber")
    verb = said_verb(theme, "subscribe", "follow")
    key, id_name, item, kind_name = subject.key_name, record.id_name, snake(subject.one), snake(kind.name)
    tools = {
        "subscribe": f"{'subscribe_to' if verb == 'subscribe' else 'follow'}_{item}",
        "list": f"list_{record.table}_of_{snake(holder.words)}",
        **{name: f"{name}_{record.name}" for name in ("switch", "pause", "resume", "end", "get")},
    }
    kinds = {row[subject.key.name]: value_of(row, kind) for row in subject.rows}

    def ledger() -> SubscriptionLedger:
        kept = SubscriptionLedger(
            kinds=kinds,
            holders=holder.keys,
            names={"subscription": id_name, "item": key, "holder": holder.name, "kind": kind_name, "subject": item},
        )
        kept.operations = {
            tools["subscribe"]: lambda **a: kept.subscribe(a[key], a[holder.name]),
            tools["switch"]: lambda **a: kept.switch(a[id_name], a[key]),
            tools["pause"]: lambda **a: kept.transition(a[id_name], id_name, ["active"], "paused", "not_active"),
            tools["resume"]: lambda **a: kept.transition(a[id_name], id_name, ["paused"], "active", "not_paused"),
            tools["end"]: lambda **a: kept.transition(
                a[id_name], id_name, ["active", "paused"], "ended", "already_ended"
            ),
            tools["get"]: lambda **a: kept.show(a[id_name]),
            tools["list"]: lambda **a: kept.of_holder(a[holder.name], a.get("page", 1)),
        }
        return kept

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, holder, id_name, kinds, rng)
    flow = _shared(
        Flow(view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios),
        kind,
        kind_name,
    )
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *holder.tables),
        tables=(flow.table(),),
        drafts=_drafts(flow, tools, kind, kind_name, verb),
    )


def _drafts(flow: Flow, tools: dict[str, str], kind: Field, kind_name: str, verb: str) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    item, made, own, which = flow.subject_param(), record.made(), record.own(), record.which()
    owner = kind.via.parent.name if kind.via else subject.name
    kind_out = Out(
        name=kind_name,
        kind=kind_of(kind.column),
        words=kind.words,
        meaning=Meaning(kind="filter", table=owner, column=kind.column.name),
    )
    no_record, unknown = f"an unknown {record.one} (not_found)", f"an unknown {subject.one} (not_found)"
    no_kind = [f"{article(subject.one)} without {kind.words} (no_{kind_name})"] if kind.nullable else []
    tables = [subject.name, *([kind.via.parent.name] if kind.via else [])]
    what = (
        f"Subscribe one {holder.words} to {article(subject.one)}"
        if verb == "subscribe"
        else (f"Let one {holder.words} follow {article(subject.one)}")
    )
    return (
        flow.draft(
            name=tools["subscribe"],
            pattern="create",
            template=sources.SUBSCRIBE,
            params=[item, holder.param(record.table)],
            what=f"{what}, only one of each {kind.words}. The {record.one} becomes ACTIVE.",
            fields=[made, record.status("active"), kind_out],
            tables=[*tables, *holder.tables],
            refusals=[
                unknown,
                *no_kind,
                *holder.refusals,
                f"a second one of the same {kind.words} (one_per_{kind_name})",
            ],
            said=["follow" if verb == "subscribe" else "subscribe", "sign up", "get news of"],
        ),
        flow.draft(
            name=tools["switch"],
            pattern="change",
            template=sources.SWITCH,
            params=[which, item],
            tables=tables,
            what=f"Let an active {record.one} follow another {subject.one} of the same {kind.words}.",
            fields=[own, flow.subject_out()],
            said=["change to", "swap"],
            refusals=[
                no_record,
                flow.wrong_state(["active"], "not_active"),
                unknown,
                *no_kind,
                f"the same {subject.one} again (same_{snake(subject.one)})",
                f"{article(subject.one)} of another {kind.words} (other_{kind_name})",
            ],
        ),
        flow.transition(
            name=tools["pause"],
            what=f"Stop an active {record.one} for now.",
            doc="Stop it for now.",
            allowed=["active"],
            target="paused",
            code="not_active",
            said=["hold", "suspend"],
        ),
        flow.transition(
            name=tools["resume"],
            what=f"Go on with a paused {record.one}.",
            doc="Go on with a paused one.",
            allowed=["paused"],
            target="active",
            code="not_paused",
            said=["continue", "restart"],
        ),
        flow.transition(
            name=tools["end"],
            pattern="cancel",
            what=f"End {article(record.one)}, active or paused, for good.",
            doc="End it for good.",
            allowed=["active", "paused"],
            target="ended",
            code="already_ended",
            said=["cancel", "unsubscribe", "stop"],
        ),
        flow.show(own, flow.subject_out(), holder.out(record.table), record.status()),
        flow.draft(
            name=tools["list"],
            pattern="children",
            template=sources.OF_HOLDER,
            params=[holder.param(record.table), page_param()],
            writes=False,
            what=f"List what one {holder.words} follows or followed, in order of {subject.key_words}.",
            fields=[own, flow.subject_out(), record.status()],
            listing=record.table,
            said=["what they follow"],
        ),
    )


def _shared(flow: Flow, kind: Field, kind_name: str) -> Flow:
    subject = flow.subject
    links = links_of([kind])
    prefix = f"{quoted(subject.name)}." if links else ""
    query = Query(
        entity=subject,
        shown=[(column_of(kind, links), kind_name)],
        links=links,
        where=[f"{prefix}{quoted(subject.key.name)} = ?"],
    )
    return flow.with_blocks(
        kind=kind_name,
        kind_of=f"{kind_name}_of",
        kind_words=kind.words,
        subject_title=subject.one.capitalize(),
        kind_hint={"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind_of(kind.column)],
        kind_sql=query.text(),
        kind_function=sources.KIND_OF,
        must_be_active=flow.state_check(["active"], "not_active"),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    id_name: str,
    kinds: dict[Any, Any],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    values = [kind for kind in kinds.values() if kind is not None]
    large = sorted(set(values), key=lambda kind: (-values.count(kind), str(kind)))
    one, two = rng.sample([item for item, kind in kinds.items() if kind == large[0]], 2)
    other = rng.choice([item for item, kind in kinds.items() if kind == large[1]])
    ana, bo = holder.examples(rng, 2)

    def subscribe(item: Any, who: Any) -> tuple[str, dict[str, Any]]:
        return tools["subscribe"], {key: item, holder.name: who}

    def of(tool: str, call: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    def listing(who: Any) -> tuple[str, dict[str, Any]]:
        return tools["list"], {holder.name: who}

    add(tools["subscribe"], "starts one", "typical", subscribe(one, ana))
    add(tools["subscribe"], "can be looked up", "effect", subscribe(other, bo), of("get"))
    add(tools["subscribe"], "takes one of each kind", "edge", subscribe(one, ana), subscribe(other, ana))
    add(
        tools["subscribe"], "takes a new one after the end", "edge", subscribe(one, ana), of("end"), subscribe(two, ana)
    )
    add(tools["subscribe"], "refuses a second of a kind", "refusal", subscribe(one, ana), subscribe(two, ana))
    add(tools["subscribe"], "counts a paused one", "refusal", subscribe(one, ana), of("pause"), subscribe(two, ana))
    add(tools["subscribe"], f"refuses an unknown {subject.one}", "refusal", subscribe(unknown_key(subject), ana))
    for item in [item for item, kind in kinds.items() if kind is None][:1]:
        add(tools["subscribe"], "refuses what has no kind", "refusal", subscribe(item, ana))
    add(tools["switch"], "follows another of the kind", "typical", subscribe(one, ana), of("switch", **{key: two}))
    add(tools["switch"], "is kept", "effect", subscribe(one, bo), of("switch", **{key: two}), of("get"))
    add(
        tools["switch"],
        "switches the second one made",
        "edge",
        subscribe(one, ana),
        subscribe(one, bo),
        of("switch", 1, **{key: two}),
    )
    add(tools["switch"], "refuses another kind", "refusal", subscribe(one, ana), of("switch", **{key: other}))
    add(tools["switch"], "refuses the same", "refusal", subscribe(one, ana), of("switch", **{key: one}))
    add(
        tools["switch"], "refuses a paused one", "refusal", subscribe(one, ana), of("pause"), of("switch", **{key: two})
    )
    scenarios.transition(tools["pause"], tools["get"], id_name, [subscribe(one, ana)], [subscribe(other, bo)])
    scenarios.transition(
        tools["resume"], tools["get"], id_name, [subscribe(one, ana), of("pause")], [subscribe(other, bo), of("pause")]
    )
    add(tools["resume"], "refuses an active one", "refusal", subscribe(one, ana), of("resume"))
    scenarios.transition(tools["end"], tools["get"], id_name, [subscribe(one, ana)], [subscribe(other, bo)])
    add(tools["end"], "ends a paused one", "edge", subscribe(one, ana), of("pause"), of("end"))
    add(tools["get"], "shows what is followed", "typical", subscribe(one, ana), of("get"))
    add(tools["get"], "shows the second one made", "edge", subscribe(one, ana), subscribe(other, bo), of("get", 1))
    add(tools["get"], "shows an ended one", "edge", subscribe(one, ana), of("end"), of("get"))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "SB0"}))
    add(tools["list"], "lists two", "typical", subscribe(one, ana), subscribe(other, ana), listing(ana))
    add(tools["list"], "is empty at first", "edge", listing(ana))
    add(tools["list"], "leaves others out", "effect", subscribe(one, ana), subscribe(other, bo), listing(bo))
    scenarios.invalid(tools["list"], "refuses page 0", {holder.name: ana, "page": 0})
