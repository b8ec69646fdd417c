"""Ranked lists that somebody keeps: no item twice, ranks without gaps, items of one category where the data has one."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.reads import value_of
from agent_world.discovery.toolsmith.answers.watchlist import WatchlistLedger
from agent_world.discovery.toolsmith.contract import Out, Param, kind_of, page_param
from agent_world.discovery.toolsmith.fields import enum_values
from agent_world.discovery.toolsmith.reads.lookup import unknown_key
from agent_world.discovery.toolsmith.source import Query, column_of, links_of, quoted
from agent_world.discovery.toolsmith.view import Entity, Field, View, own_field
from agent_world.discovery.toolsmith.words import article, snake
from agent_world.discovery.toolsmith.workflows.base import (
    Fit,
    Overlay,
    ThemeWords,
    dividing_category,
    free_noun,
    theme_score,
    words_of,
)
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record, subject_column
from agent_world.discovery.toolsmith.workflows.holders import Holder, column, holder_of, reference
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import watchlist as sources
from agent_world.environments.model import Column, Meaning

NAME = "watchlist"
_NOUNS = (
    "list",
    "watchlist",
    "favourite",
    "favorite",
    "playlist",
    "collection",
    "shortlist",
    "itinerary",
    "plan",
    "ranking",
    "bookmark",
    "portfolio",
    "selection",
)
_VERBS = (
    "rank",
    "collect",
    "shortlist",
    "favour",
    "save",
    "bookmark",
    "compare",
    "plan",
    "curate",
    "explore",
    "discover",
)
_CALLED = (
    ({"movie", "film", "show", "series"}, ("watchlist", "viewing list")),
    ({"track", "song", "recording"}, ("playlist", "setlist")),
    ({"album", "artist", "product"}, ("wish list", "shortlist")),
    ({"book", "title", "author"}, ("reading list", "booklist")),
    (
        {"country", "city", "airport", "port", "station", "park", "place", "zone", "region", "subdivision"},
        ("itinerary", "travel list"),
    ),
    ({"player", "athlete", "person"}, ("lineup", "squad list")),
    ({"license", "licence", "code", "diagnosis", "standard"}, ("checklist", "review list")),
)
_LIKED = set().union(*(words for words, _ in _CALLED))
_LIMIT = 10


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Every entity with names; a category that lists can be kept to makes it better.

    People list what they can name: without a label an entity is for databases that have none at all.
    """
    found = []
    labelled = [entity for entity in view.entities if entity.label and not entity.is_dimension]
    for entity in labelled or view.entities:
        if entity.key is None or _display(entity) is None or len(entity.rows) < 12 or entity.is_dimension:
            continue
        kind = dividing_category(entity)
        liked = bool(words_of(entity) & _LIKED)
        score = (
            0.4 + 0.5 * bool(entity.label) + 0.7 * bool(kind) + 0.7 * liked + 0.7 * theme_score(theme, _NOUNS, _VERBS)
        )
        why = f"{entity.many} have names" + (f" and a {kind.words} that a list can be kept to" if kind else "")
        found.append(Fit(score=score, subject=entity, parts={"kind": kind}, why=why))
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, kind = fit.subject, fit.parts["kind"]
    record = Record(one=_noun(view, subject), prefix="LS", states={})
    holder = holder_of(view, subject, "owner")
    key, id_name, item = subject.key_name, record.id_name, snake(subject.one)
    label = own_field(subject, _display(subject))
    kind_name = snake(kind.name) if kind else ""
    tools = {
        "create": f"create_{record.name}",
        "add": f"add_{item}_to_{record.name}",
        "move": f"move_{item}_in_{record.name}",
        "remove": f"remove_{item}_from_{record.name}",
        "show": f"show_{record.name}",
    }
    kinds = {row[subject.key.name]: value_of(row, kind) if kind else None for row in subject.rows}

    def ledger() -> WatchlistLedger:
        kept = WatchlistLedger(
            kinds=kinds,
            labels={row[subject.key.name]: row[label.column.name] for row in subject.rows},
            limit=_LIMIT,
            holders=holder.keys,
            names={"list": id_name, "item": key, "label": label.name} | ({"kind": kind_name} if kind else {}),
        )
        kept.operations = {
            tools["create"]: lambda **a: kept.create(a[holder.name], a.get(kind_name)),
            tools["add"]: lambda **a: kept.add(a[id_name], a[key]),
            tools["move"]: lambda **a: kept.move(a[id_name], a[key], a["rank"]),
            tools["remove"]: lambda **a: kept.remove(a[id_name], a[key]),
            tools["show"]: lambda **a: kept.show(a[id_name], a.get("page", 1)),
        }
        return kept

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, holder, id_name, kind_name, kinds, rng)
    entries = f"{record.name}_entries"
    flow = _shared(
        Flow(view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios),
        kind,
        kind_name,
        label,
        entries,
    )
    own = [column(id_name, "text", "identifier", f"id of the {record.one}"), holder.column()]
    if kind:
        own.append(column(kind_name, kind.column.type, kind.column.role, kind.words))
    tables = (
        flow.own_table(record.table, record.one, own, [id_name], holder.key()),
        flow.own_table(
            entries,
            f"{record.one} entry",
            [
                column(id_name, "text", "reference", f"id of the {record.one}"),
                subject_column(subject),
                column("rank", "integer", "measure", "rank"),
            ],
            [id_name, key],
            [reference(key, subject)],
        ),
    )
    return Overlay(
        workflow=NAME,
        entities=(subject.name, *holder.tables),
        tables=tables,
        drafts=_drafts(flow, tools, kind, kind_name, label, entries),
    )


def _drafts(flow: Flow, tools: dict[str, str], kind: Field | None, kind_name: str, label: Field, entries: str) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    item, which, own = flow.subject_param(), record.which(), record.own()
    ranked = Meaning(kind="value", table=entries, column="rank")
    rank_out = Out(name="rank", kind="integer", words="rank from 1", minimum=1, meaning=ranked)
    rank = Param(
        name="rank",
        kind="integer",
        words="new rank, 1 is the top",
        minimum=1,
        maximum=_LIMIT,
        meaning=Meaning(kind="quantity", table=entries, column="rank"),
    )
    size = Out(
        name="size",
        kind="integer",
        words=f"how many {subject.many} are left on it",
        minimum=0,
        meaning=Meaning(kind="count", table=entries),
    )
    no_list, not_listed = (
        f"an unknown {record.one} (not_found)",
        f"{article(subject.one)} that is not on it (not_listed)",
    )
    params = [holder.param(record.table)]
    of_kind = ""
    if kind:
        of_kind = f" of one {kind.words}"
        table = kind.via.parent.name if kind.via else subject.name
        params.append(
            Param(
                name=kind_name,
                kind=kind_of(kind.column),
                words=f"{kind.words} that the {record.one} is kept to",
                enum=enum_values(subject, kind),
                meaning=Meaning(kind="filter", table=table, column=kind.column.name),
            )
        )
    tables = [entries, subject.name, *([kind.via.parent.name] if kind and kind.via else [])]
    wrong = [f"{article(subject.one)} of another {kind.words} (wrong_{kind_name})"] if kind else []
    return (
        flow.draft(
            name=tools["create"],
            pattern="create",
            template=sources.CREATE,
            params=params,
            fields=[record.made()],
            what=f"Start an empty {record.one} for {subject.many}{of_kind}.",
            tables=holder.tables,
            refusals=holder.refusals,
            said=["new list", "begin a list"],
        ),
        flow.draft(
            name=tools["add"],
            pattern="change",
            template=sources.ADD,
            params=[which, item],
            tables=tables,
            what=f"Put {article(subject.one)} at the end of {article(record.one)}; at most {_LIMIT} fit.",
            fields=[own, rank_out],
            said=["put on", "append"],
            refusals=[
                no_list,
                f"an unknown {subject.one} (not_found)",
                *wrong,
                f"{article(subject.one)} that is on it already (already_listed)",
                "an eleventh one (list_full)",
            ],
        ),
        flow.draft(
            name=tools["move"],
            pattern="change",
            template=sources.MOVE,
            params=[which, item, rank],
            tables=[entries],
            what=f"Give {article(subject.one)} another rank on {article(record.one)}; the others close up.",
            fields=[own, rank_out],
            refusals=[no_list, not_listed, "a rank beyond the last one (no_such_rank)"],
            said=["move up", "move down", "put first"],
        ),
        flow.draft(
            name=tools["remove"],
            pattern="change",
            template=sources.REMOVE,
            params=[which, item],
            tables=[entries],
            what=f"Take {article(subject.one)} off {article(record.one)}; the ranks behind it close up.",
            fields=[own, size],
            refusals=[no_list, not_listed],
            said=["take off", "delete", "drop"],
        ),
        flow.draft(
            name=tools["show"],
            pattern="children",
            template=sources.SHOW,
            params=[which, page_param()],
            writes=False,
            tables=[entries, subject.name],
            listing=entries,
            what=f"Show what is on {article(record.one)}, by rank.",
            refusals=[no_list],
            said=["what is on it", "order of the list"],
            fields=[
                rank_out,
                flow.subject_out(),
                Out(
                    name=label.name,
                    kind=kind_of(label.column),
                    words=label.words,
                    meaning=label.meaning,
                    nullable=label.column.nullable,
                ),
            ],
        ),
    )


def _shared(flow: Flow, kind: Field | None, kind_name: str, label: Field, entries: str) -> Flow:
    subject, holder = flow.subject, flow.holder
    signature, values = [f"{holder.name}: {holder.names['holder_hint']}"], [holder.name]
    shown: list[tuple[str, str]] = [("1", "known")]
    links = links_of([kind] if kind else [])
    check = ""
    if kind:
        hint = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind_of(kind.column)]
        signature.append(f"{kind_name}: {hint}")
        values.append(kind_name)
        shown = [(column_of(kind, links), kind_name)]
        check = (
            f'if $subject["{kind_name}"] != $record["{kind_name}"]:\n'
            f'    raise Refused("wrong_{kind_name}", f"This $record_words is for {kind.words} '
            f"{{$record['{kind_name}']}}; choose another $subject_words.\")"
        )
    prefix = f"{quoted(subject.name)}." if links else ""
    query = Query(entity=subject, shown=shown, links=links, where=[f"{prefix}{quoted(subject.key.name)} = ?"])
    return flow.with_blocks(
        entries=entries,
        kind_needed=kind_name or "1",
        known_list=sources.KNOWN_LIST,
        kind_check=check,
        rank_of=sources.RANK_OF.replace("$subject_title", subject.one.capitalize()),
        subject_title=subject.one.capitalize(),
        subject_sql=query.text(),
        limit=str(_LIMIT),
        signature=", ".join(signature),
        values=", ".join(values),
        marks=", ".join("?" * (len(values) + 1)),
        label_column=quoted(label.column.name),
        a_holder=article(holder.words),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    id_name: str,
    kind_name: str,
    kinds: dict[Any, Any],
    rng: Random,
) -> None:
    key, add = subject.key_name, scenarios.add
    values = [value for value in kinds.values() if value is not None]
    kind = max(sorted(set(values)), key=values.count) if kind_name else None
    same = [item for item, own in kinds.items() if own == kind]
    one, two, three = rng.sample(same, 3)
    ana, bo = holder.examples(rng, 2)

    def create(who: Any) -> tuple[str, dict[str, Any]]:
        return tools["create"], {holder.name: who} | ({kind_name: kind} if kind_name else {})

    def put(item: Any, call: int = 0) -> tuple[str, dict[str, Any]]:
        return tools["add"], {id_name: Made(call, id_name), key: item}

    def of(tool: str, call: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    def move(item: Any, rank: int) -> tuple[str, dict[str, Any]]:
        return of("move", **{key: item, "rank": rank})

    three_on = [create(ana), put(one), put(two), put(three)]
    add(tools["create"], "starts one", "typical", create(ana))
    add(tools["create"], "starts with nothing on it", "effect", create(bo), of("show"))
    add(tools["create"], "gives each a new id", "edge", create(ana), create(ana))
    scenarios.invalid(tools["create"], "needs somebody", {})
    if holder.entity:
        add(
            tools["create"],
            "refuses a stranger",
            "refusal",
            (tools["create"], {**create(ana)[1], holder.name: unknown_key(holder.entity)}),
        )
    add(tools["add"], "puts one on", "typical", create(ana), put(one))
    add(tools["add"], "goes to the end", "typical", create(ana), put(one), put(two))
    add(tools["add"], "is on it then", "effect", create(ana), put(two), of("show"))
    add(tools["add"], "keeps lists apart", "edge", create(ana), create(bo), put(one, 0), put(two, 1))
    if len(same) > _LIMIT:
        add(tools["add"], "fills the last place", "edge", create(ana), *[put(item) for item in same[:_LIMIT]])
        add(tools["add"], "refuses one more", "refusal", create(ana), *[put(item) for item in same[: _LIMIT + 1]])
    add(tools["add"], "refuses it twice", "refusal", create(ana), put(one), put(one))
    add(tools["add"], f"refuses an unknown {subject.one}", "refusal", create(ana), put(unknown_key(subject)))
    for item in [item for item, own in kinds.items() if own != kind][:1]:
        add(tools["add"], f"refuses another {kind_name}", "refusal", create(ana), put(item))
    add(tools["move"], "moves up to the top", "typical", *three_on, move(three, 1))
    add(tools["move"], "moves down to the end", "edge", *three_on, move(one, 3))
    add(tools["move"], "closes up behind it", "effect", *three_on, move(one, 3), of("show"))
    add(tools["move"], "makes room before it", "effect", *three_on, move(three, 2), of("show"))
    add(tools["move"], "refuses a rank beyond the last", "refusal", *three_on, move(one, 4))
    add(tools["move"], "refuses what is not on it", "refusal", create(ana), put(one), move(two, 1))
    add(tools["remove"], "takes one off", "typical", *three_on, of("remove", **{key: two}))
    add(tools["remove"], "closes up behind it", "effect", *three_on, of("remove", **{key: one}), of("show"))
    add(
        tools["remove"],
        "leaves other lists alone",
        "effect",
        *[create(ana), create(bo), put(one, 0), put(one, 1), put(two, 1)],
        of("remove", 0, **{key: one}),
        of("show", 1),
    )
    add(tools["remove"], "takes the last one off", "edge", create(ana), put(one), of("remove", **{key: one}))
    add(tools["remove"], "refuses what is not on it", "refusal", create(ana), put(one), of("remove", **{key: two}))
    add(tools["show"], "shows them by rank", "typical", *three_on, of("show"))
    add(tools["show"], "is empty at first", "edge", create(ana), of("show"))
    if len(same) > 6:
        add(
            tools["show"],
            "goes on to the second page",
            "edge",
            create(ana),
            *[put(item) for item in same[:6]],
            of("show", page=2),
        )
    add(tools["show"], "refuses an unknown id", "refusal", (tools["show"], {id_name: "LS0"}))


def _display(entity: Entity) -> Column | None:
    """What a row is shown by: its label, else something short that tells rows apart a little."""
    known = entity.with_roles("code", "category", "year", "date", "measure", "money")
    return entity.label or next((column for column in known if column.name not in entity.wide), None)


def _noun(view: View, subject: Entity) -> str:
    for words, nouns in _CALLED:
        if words & words_of(subject):
            return free_noun(view, *nouns)
    return free_noun(view, "shortlist", "watchlist")
