"""Assignments: two entities that share a category are tied together, up to a load limit."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.assignment import AssignmentLedger
from agent_world.discovery.toolsmith.contract import Out
from agent_world.discovery.toolsmith.reads.lookup import unknown_key
from agent_world.discovery.toolsmith.source import quoted
from agent_world.discovery.toolsmith.view import Entity, View
from agent_world.discovery.toolsmith.words import article, snake
from agent_world.discovery.toolsmith.workflows.base import Fit, Overlay, ThemeWords, free_noun, theme_score, words_of
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record, variable
from agent_world.discovery.toolsmith.workflows.holders import HOLDERS, WORKERS, Holder
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import assignment as sources
from agent_world.environments.model import Column, Meaning

NAME = "assignment"
_NOUNS = ("assignment", "crew", "staff", "roster", "shift", "allocation", "team", "employee", "duty", "representative")
_VERBS = ("assign", "allocate", "transfer", "dispatch", "roster", "delegate", "staff", "match", "route")
_STATES = {"assigned": "in place", "suspended": "stopped for now", "released": "over"}
_LIMIT = 3


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Pairs of entities that share a category: by a common parent, or by a column of the same name and values."""
    found = []
    for worker in view.entities:
        for post in view.entities:
            shared = _shared_kind(worker, post)
            if shared is None:
                continue
            people = bool(words_of(worker) & {*WORKERS, *HOLDERS, "player", "driver", "pilot", "person"})
            asked = theme_score(theme, _NOUNS, _VERBS)
            if not people and asked < 1:
                continue
            score = 1.3 + 0.9 * people + 0.3 * bool(post.label) + asked
            why = f"{worker.many} and {post.many} share {shared[2]}"
            found.append(Fit(score=score, subject=post, parts={"worker": worker, "shared": shared}, why=why))
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, worker = fit.subject, fit.parts["worker"]
    worker_kind, post_kind, kind_words = fit.parts["shared"]
    record = Record(one=free_noun(view, "assignment", "allocation"), prefix="AS", states=_STATES)
    holder = Holder(name=worker.key_name, words=worker.one, entity=worker)
    key, id_name, kind = subject.key_name, record.id_name, snake(kind_words)
    tools = {
        "assign": f"assign_{snake(worker.one)}_to_{snake(subject.one)}",
        "load": f"check_{snake(subject.one)}_load",
        **{name: f"{name}_{record.name}" for name in ("transfer", "suspend", "resume", "release", "get")},
    }
    workers = {row[worker.key.name]: row[worker_kind.name] for row in worker.rows}
    posts = {row[subject.key.name]: row[post_kind.name] for row in subject.rows}

    def ledger() -> AssignmentLedger:
        kept = AssignmentLedger(
            workers=workers,
            posts=posts,
            limit=_LIMIT,
            names={
                "assignment": id_name,
                "worker": holder.name,
                "post": key,
                "kind": kind,
                "subject": snake(subject.one),
            },
        )
        kept.operations = {
            tools["assign"]: lambda **a: kept.assign(a[holder.name], a[key]),
            tools["transfer"]: lambda **a: kept.transfer(a[id_name], a[key]),
            tools["suspend"]: lambda **a: kept.transition(
                a[id_name], id_name, ["assigned"], "suspended", "not_assigned"
            ),
            tools["resume"]: lambda **a: kept.transition(
                a[id_name], id_name, ["suspended"], "assigned", "not_suspended"
            ),
            tools["release"]: lambda **a: kept.transition(
                a[id_name], id_name, ["assigned", "suspended"], "released", "already_released"
            ),
            tools["get"]: lambda **a: kept.show(a[id_name]),
            tools["load"]: lambda **a: kept.load(a[key]),
        }
        return kept

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, holder, id_name, workers, posts, rng)
    flow = Flow(
        view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios
    ).with_blocks(
        kind=kind,
        kind_words=kind_words,
        post_kind=_inline(post_kind.name),
        post_kind_name=post_kind.name,
        worker_kind=_inline(worker_kind.name),
        worker_kind_name=worker_kind.name,
        worker_table=_inline(worker.name),
        worker_column=_inline(worker.key.name),
        worker_var=variable(worker),
        a_worker=article(worker.one),
        holder_title=worker.one.capitalize(),
        limit=str(_LIMIT),
        pair=sources.PAIR,
        room=sources.ROOM,
    )
    flow = flow.with_blocks(must_be_assigned=flow.state_check(["assigned"], "not_assigned"))
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *holder.tables),
        tables=(flow.table(),),
        drafts=_drafts(flow, tools, kind, kind_words),
    )


def _drafts(flow: Flow, tools: dict[str, str], kind: str, kind_words: str) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    post, made, own, which = flow.subject_param(), record.made(), record.own(), record.which()
    no_record, unknown = f"an unknown {record.one} (not_found)", f"an unknown {subject.one} (not_found)"
    mismatch = [
        f"two that are not of the same {kind_words} (other_{kind})",
        f"{article(subject.one)} that has {_LIMIT} already (full)",
    ]
    counted = Meaning(kind="count", table=record.table)
    tables = [subject.name, *holder.tables]
    return (
        flow.draft(
            name=tools["assign"],
            pattern="create",
            template=sources.ASSIGN,
            params=[holder.param(record.table), post],
            tables=tables,
            what=f"Assign {article(holder.words)} to {article(subject.one)} of the same {kind_words}. "
            f"The {record.one} becomes ASSIGNED.",
            fields=[made, record.status("assigned")],
            refusals=[
                unknown,
                *holder.refusals,
                f"{article(holder.words)} who is assigned already (already_assigned)",
                *mismatch,
            ],
            said=["put in charge", "allocate", "match"],
        ),
        flow.draft(
            name=tools["transfer"],
            pattern="change",
            template=sources.TRANSFER,
            params=[which, post],
            tables=tables,
            what=f"Move an assigned {holder.words} to another {subject.one} of the same {kind_words}.",
            fields=[own, flow.subject_out()],
            said=["move", "reassign"],
            refusals=[
                no_record,
                flow.wrong_state(["assigned"], "not_assigned"),
                unknown,
                f"the same {subject.one} again (same_{snake(subject.one)})",
                *mismatch,
            ],
        ),
        flow.transition(
            name=tools["suspend"],
            what=f"Stop an {record.one} for now.",
            doc="Stop it for now.",
            allowed=["assigned"],
            target="suspended",
            code="not_assigned",
            said=["pause", "hold"],
        ),
        flow.transition(
            name=tools["resume"],
            what=f"Go on with a suspended {record.one}.",
            doc="Go on with it.",
            allowed=["suspended"],
            target="assigned",
            code="not_suspended",
            said=["continue", "put back"],
        ),
        flow.transition(
            name=tools["release"],
            pattern="cancel",
            what=f"End an {record.one} for good.",
            doc="End it for good.",
            allowed=["assigned", "suspended"],
            target="released",
            code="already_released",
            said=["free", "remove", "unassign"],
        ),
        flow.show(own, flow.subject_out(), holder.out(record.table), record.status()),
        flow.draft(
            name=tools["load"],
            pattern="inspect",
            template=sources.LOAD,
            params=[post],
            tables=[subject.name],
            writes=False,
            what=f"How many {holder.entity.many} are assigned to one {subject.one}, and how many more may be.",
            refusals=[unknown],
            said=["workload", "room left"],
            fields=[
                flow.subject_out(),
                Out(name="taken", kind="integer", words="number assigned", minimum=0, meaning=counted),
                Out(name="free", kind="integer", words="number that may still be", minimum=0, meaning=counted),
            ],
        ),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    id_name: str,
    workers: dict[Any, Any],
    posts: dict[Any, Any],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    members, places = Counter(workers.values()), Counter(posts.values())
    kinds = [kind for kind in members if kind is not None and members[kind] >= 4 and places[kind] >= 2]
    kind = max(kinds, key=lambda k: (min(members[k], places[k]), str(k)))
    ana, bo, cy, di = rng.sample([worker for worker, own in workers.items() if own == kind], 4)
    one, two = rng.sample([post for post, own in posts.items() if own == kind], 2)
    foreign = next(post for post, own in posts.items() if own is not None and own != kind)

    def assign(worker: Any, post: Any) -> tuple[str, dict[str, Any]]:
        return tools["assign"], {holder.name: worker, key: post}

    def of(tool: str, call: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    def load(post: Any) -> tuple[str, dict[str, Any]]:
        return tools["load"], {key: post}

    full = [assign(worker, one) for worker in (ana, bo, cy)]
    add(tools["assign"], "ties the two", "typical", assign(ana, one))
    add(tools["assign"], "can be looked up", "effect", assign(bo, two), of("get"))
    add(tools["assign"], "fills the last place", "edge", *full)
    add(tools["assign"], "counts each one apart", "effect", *full, assign(di, two))
    add(tools["assign"], "takes one that was released", "edge", assign(ana, one), of("release"), assign(ana, two))
    add(tools["assign"], "refuses a fourth", "refusal", *full, assign(di, one))
    add(tools["assign"], "refuses who is assigned already", "refusal", assign(ana, one), assign(ana, two))
    add(tools["assign"], "refuses another category", "refusal", assign(ana, foreign))
    add(tools["assign"], "refuses the unknown", "refusal", assign(ana, unknown_key(subject)))
    add(tools["transfer"], "moves to another", "typical", assign(ana, one), of("transfer", **{key: two}))
    add(
        tools["transfer"],
        "frees the place it leaves",
        "effect",
        assign(ana, one),
        of("transfer", **{key: two}),
        load(one),
    )
    add(
        tools["transfer"],
        "moves the second one made",
        "edge",
        assign(ana, one),
        assign(bo, one),
        of("transfer", 1, **{key: two}),
    )
    add(tools["transfer"], "leaves others out", "edge", *full[:2], assign(cy, two), of("transfer", 2, **{key: one}))
    add(tools["transfer"], "refuses the same", "refusal", assign(ana, one), of("transfer", **{key: one}))
    add(tools["transfer"], "refuses a full one", "refusal", *full, assign(di, two), of("transfer", 3, **{key: one}))
    add(tools["transfer"], "refuses another category", "refusal", assign(ana, one), of("transfer", **{key: foreign}))
    scenarios.transition(tools["suspend"], tools["get"], id_name, [assign(ana, one)], [assign(bo, two)])
    scenarios.transition(
        tools["resume"], tools["get"], id_name, [assign(ana, one), of("suspend")], [assign(bo, two), of("suspend")]
    )
    scenarios.transition(tools["release"], tools["get"], id_name, [assign(ana, one)], [assign(bo, two)])
    add(tools["release"], "ends a suspended one", "edge", assign(ana, one), of("suspend"), of("release"))
    add(tools["get"], "shows who is where", "typical", assign(ana, one), of("get"))
    add(tools["get"], "shows the second one made", "edge", assign(ana, one), assign(bo, two), of("get", 1))
    add(tools["get"], "shows a released one", "edge", assign(ana, one), of("release"), of("get"))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "AS0"}))
    add(tools["load"], "counts nobody at first", "typical", load(one))
    add(tools["load"], "counts who is there", "effect", assign(ana, one), assign(bo, one), load(one))
    add(tools["load"], "leaves others out", "effect", assign(ana, one), assign(bo, two), load(two))
    add(tools["load"], "comes down to zero", "edge", *full, load(one))
    add(tools["load"], "refuses the unknown", "refusal", load(unknown_key(subject)))


def _shared_kind(worker: Entity, post: Entity) -> tuple[Column, Column, str] | None:
    """The columns in which both keep the same category, and how it is said."""
    if worker.name == post.name or worker.key is None or post.key is None or worker.key_name == post.key_name:
        return None
    if worker.is_dimension or post.is_dimension or not worker.label:
        return None
    if any(link.parent.name == post.name for link in worker.links) or any(
        link.parent.name == worker.name for link in post.links
    ):
        return None
    pairs = [
        (mine.column, theirs.column, mine.parent.one)
        for mine in worker.links
        for theirs in post.links
        if (mine.parent.name, mine.key.parent_column) == (theirs.parent.name, theirs.key.parent_column)
    ]
    pairs += [
        (mine, theirs, mine.words)
        for mine in worker.with_roles("category")
        for theirs in post.with_roles("category")
        if mine.words == theirs.words and mine.type == theirs.type == "text"
    ]
    for mine, theirs, words in pairs:
        members, places = Counter(worker.values(mine)), Counter(post.values(theirs))
        shared = [kind for kind in members if members[kind] >= 4 and places[kind] >= 2]
        if len(shared) >= 2:
            return mine, theirs, words
    return None


def _inline(identifier: str) -> str:
    return quoted(identifier).replace('"', '\\"')
