"""Orders: lines of items at the prices of the data, summed up, locked once placed."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_world.discovery.toolsmith.answers.order import OrderLedger
from agent_world.discovery.toolsmith.contract import Kind, Out, in_unit, kind_of, page_param
from agent_world.discovery.toolsmith.reads.lookup import key_param, unknown_key
from agent_world.discovery.toolsmith.source import quoted
from agent_world.discovery.toolsmith.view import Entity, View, own_field
from agent_world.discovery.toolsmith.words import article, ascii_words, snake
from agent_world.discovery.toolsmith.workflows.base import Fit, Overlay, ThemeWords, free_noun, said_verb, theme_score
from agent_world.discovery.toolsmith.workflows.flow import Flow, Record, subject_column
from agent_world.discovery.toolsmith.workflows.holders import Holder, column, holder_of, reference
from agent_world.discovery.toolsmith.workflows.scenarios import Made, Scenarios
from agent_world.discovery.toolsmith.workflows.sources import order as sources
from agent_world.environments.model import Column, Meaning

NAME = "order"
_NOUNS = (
    "order",
    "purchase",
    "cart",
    "basket",
    "product",
    "price",
    "item",
    "customer",
    "invoice",
    "store",
    "shop",
    "sale",
)
_VERBS = ("order", "buy", "purchase", "sell", "pay", "checkout", "ship", "price", "invoice", "bill")
_PRICES = ("price", "fare", "fee", "cost", "rate")
_STATES = {"open": "lines can still change", "placed": "final", "cancelled": "called off"}


def fits(view: View, theme: ThemeWords) -> list[Fit]:
    """Entities whose rows have a price."""
    found = []
    for entity in view.entities:
        price = _price(entity) if entity.key and len(entity.rows) >= 10 else None
        if price is not None:
            score = 2.5 + 0.5 * bool(entity.label) + theme_score(theme, _NOUNS, _VERBS)
            found.append(
                Fit(
                    score=score,
                    subject=entity,
                    parts={"price": price},
                    why=f"{price.words} of each {entity.one} makes the total",
                )
            )
    return found


def write(view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
    """The overlay for `fit`."""
    subject, price = fit.subject, fit.parts["price"]
    verb = said_verb(theme, "order", "purchase")
    record = Record(
        one=free_noun(view, *(("order", "purchase") if verb == "order" else ("purchase", "order"))),
        prefix="OR",
        states=_STATES,
    )
    holder = holder_of(view, subject, "customer")
    lines, key, id_name = f"{record.name}_lines", subject.key_name, record.id_name
    item = snake(subject.one)
    tools = {
        "open": f"open_{record.name}",
        "add": f"add_{item}_to_{record.name}",
        "place": f"place_{record.name}",
        "remove": f"remove_{item}_from_{record.name}",
        "cancel": f"cancel_{record.name}",
        "get": f"get_{record.name}",
        "lines": f"list_{record.name}_lines",
    }
    prices = {row[subject.key.name]: row[price.name] for row in subject.rows}
    label = own_field(subject, subject.label) if subject.label else None

    def ledger() -> OrderLedger:
        kept = OrderLedger(
            prices=prices,
            buyers=holder.keys,
            labels={row[subject.key.name]: row[subject.label.name] for row in subject.rows} if label else {},
            names={"order": id_name, "record": record.name, "buyer": holder.name, "item": key}
            | ({"label": label.name} if label else {}),
        )
        kept.operations = {
            tools["open"]: lambda **a: kept.open(a[holder.name]),
            tools["add"]: lambda **a: kept.add(a[id_name], a[key], a["quantity"]),
            tools["remove"]: lambda **a: kept.remove(a[id_name], a[key]),
            tools["place"]: lambda **a: kept.place(a[id_name]),
            tools["cancel"]: lambda **a: kept.transition(
                a[id_name], id_name, ["open", "placed"], "cancelled", "already_cancelled"
            ),
            tools["get"]: lambda **a: kept.show(a[id_name]),
            tools["lines"]: lambda **a: kept.lines(a[id_name], a.get("page", 1)),
        }
        return kept

    scenarios = Scenarios(ledger)
    _stories(scenarios, tools, subject, holder, id_name, prices, rng)
    flow = Flow(view=view, workflow=NAME, subject=subject, record=record, holder=holder, scenarios=scenarios)
    flow = flow.with_blocks(
        lines=lines,
        subject_title=subject.one.capitalize(),
        label_sql=_label_sql(subject),
        subject_needed=f"{quoted(price.name)} AS price".replace('"', '\\"'),
        must_be_open=flow.state_check(["open"], "not_open"),
        total=sources.TOTAL,
        open_only=sources.OPEN_ONLY,
    )
    tables = (
        flow.own_table(
            record.table,
            record.one,
            [
                column(id_name, "text", "identifier", f"id of the {record.one}"),
                holder.column(),
                column("status", "text", "category", "status"),
            ],
            [id_name],
            holder.key(),
        ),
        flow.own_table(
            lines,
            f"{record.one} line",
            [
                column(id_name, "text", "reference", f"id of the {record.one}"),
                subject_column(subject),
                column("quantity", "integer", "measure", "quantity"),
                column("price", "real", "money", "price"),
            ],
            [id_name, key],
            [reference(key, subject)],
        ),
    )
    return Overlay(
        workflow=NAME, entities=(subject.name, *holder.tables), tables=tables, drafts=_drafts(flow, tools, price, lines)
    )


def _drafts(flow: Flow, tools: dict[str, str], price: Column, lines: str) -> tuple:
    subject, record, holder = flow.subject, flow.record, flow.holder
    item, which, own = key_param(subject), record.which(), record.own()
    total = Out(
        name="total",
        kind="number",
        words=f"total of the {record.one}",
        minimum=0,
        meaning=Meaning(kind="aggregate", table=lines, column="price"),
    )
    unit_price = Out(
        name="price",
        kind=kind_of(price),
        words=in_unit(price),
        meaning=Meaning(kind="value", table=subject.name, column=price.name),
    )
    quantity = Out(
        name="quantity",
        kind="integer",
        words="quantity on the line",
        minimum=1,
        meaning=Meaning(kind="value", table=lines, column="quantity"),
    )
    how_many = record.quantity("quantity", f"how many more of this {subject.one}", 100)
    no_record = f"an unknown {record.one} (not_found)"
    not_open = flow.wrong_state(["open"], "not_open")
    unknown = f"an unknown {subject.one} (not_found)"
    label = [_label_out(subject)] if subject.label else []
    return (
        flow.draft(
            name=tools["open"],
            pattern="create",
            template=sources.OPEN,
            params=[holder.param(record.table)],
            what=f"Start an empty {record.one} for {article(holder.words)}. The {record.one} becomes OPEN.",
            fields=[record.made(), record.status("open")],
            tables=holder.tables,
            refusals=holder.refusals,
            said=["new basket", "begin to buy"],
        ),
        flow.draft(
            name=tools["add"],
            pattern="change",
            template=sources.ADD,
            params=[which, item, how_many],
            tables=[lines, subject.name],
            what=f"Put {subject.many} into an open {record.one} at their {price.words}; "
            "a quantity that is there already grows.",
            fields=[own, quantity, unit_price, total],
            refusals=[no_record, not_open, unknown, f"{article(subject.one)} without a price (not_for_sale)"],
            said=["buy", "take", "put in"],
        ),
        flow.draft(
            name=tools["remove"],
            pattern="change",
            template=sources.REMOVE,
            params=[which, item],
            tables=[lines],
            what=f"Take {article(subject.one)} out of an open {record.one}, its whole quantity.",
            fields=[own, total],
            refusals=[no_record, not_open, f"{article(subject.one)} that is not in it (not_in_{record.name})"],
            said=["take out", "delete"],
        ),
        flow.draft(
            name=tools["place"],
            pattern="transition",
            template=sources.PLACE,
            params=[which],
            tables=[lines],
            what=f"Place an open {record.one}: nothing in it can change any more. The {record.one} becomes PLACED.",
            fields=[own, record.status("placed"), total],
            refusals=[no_record, not_open, f"{article(record.one)} without lines (empty_{record.name})"],
            said=["submit", "check out", "finish buying"],
        ),
        flow.transition(
            name=tools["cancel"],
            pattern="cancel",
            what=f"Call off {article(record.one)}, open or placed.",
            doc=f"Call off {article(record.one)}.",
            allowed=["open", "placed"],
            target="cancelled",
            code="already_cancelled",
            said=["cancel", "drop"],
        ),
        flow.draft(
            name=tools["get"],
            pattern="inspect",
            template=sources.GET,
            params=[which],
            tables=[lines],
            writes=False,
            what=f"Show one {record.one} and what it comes to.",
            refusals=[no_record],
            said=["how much", "bill"],
            fields=[own, holder.out(record.table), record.status(), total],
        ),
        flow.draft(
            name=tools["lines"],
            pattern="children",
            template=sources.LINES,
            params=[which, page_param()],
            writes=False,
            tables=[lines, subject.name],
            listing=lines,
            what=f"List what is in one {record.one}.",
            refusals=[no_record],
            said=["content", "basket"],
            fields=[flow.subject_out(), quantity, unit_price, *label],
        ),
    )


def _stories(
    scenarios: Scenarios,
    tools: dict[str, str],
    subject: Entity,
    holder: Holder,
    id_name: str,
    prices: dict[Any, Any],
    rng: Random,
) -> None:
    key, add, record = subject.key_name, scenarios.add, tools["get"].removeprefix("get_")
    priced = [item for item, price in prices.items() if price is not None]
    one, two = rng.sample(priced, 2)
    dear = max(priced, key=lambda item: (prices[item], str(item)))
    ana, bo = holder.examples(rng, 2)

    def start(who: Any) -> tuple[str, dict[str, Any]]:
        return tools["open"], {holder.name: who}

    def put(item: Any, quantity: int, call: int = 0) -> tuple[str, dict[str, Any]]:
        return tools["add"], {id_name: Made(call, id_name), key: item, "quantity": quantity}

    def of(tool: str, call: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return tools[tool], {id_name: Made(call, id_name), **more}

    add(tools["open"], "starts one", "typical", start(ana))
    add(tools["open"], "starts with nothing in it", "effect", start(bo), of("get"))
    add(tools["open"], "gives each a new id", "edge", start(ana), start(ana))
    if holder.entity:
        add(tools["open"], "refuses a stranger", "refusal", (tools["open"], {holder.name: unknown_key(holder.entity)}))
    scenarios.invalid(tools["open"], "needs somebody", {})
    add(tools["add"], "adds a line", "typical", start(ana), put(one, 2))
    add(tools["add"], "sums up two lines", "effect", start(ana), put(one, 1), put(two, 3))
    add(tools["add"], "adds to a line that is there", "edge", start(ana), put(one, 2), put(one, 3))
    add(tools["add"], "takes the largest quantity", "edge", start(bo), put(dear, 100))
    add(tools["add"], "keeps two apart", "effect", start(ana), start(bo), put(one, 1, 0), put(two, 2, 1), of("get", 0))
    add(tools["add"], f"refuses an unknown {subject.one}", "refusal", start(ana), put(unknown_key(subject), 1))
    add(tools["add"], "refuses what is placed", "refusal", start(ana), put(one, 1), of("place"), put(two, 1))
    for item in [item for item, price in prices.items() if price is None][:1]:
        add(tools["add"], "refuses what has no price", "refusal", start(ana), put(item, 1))
    add(
        tools["remove"], "takes a line out", "typical", start(ana), put(one, 2), put(two, 1), of("remove", **{key: one})
    )
    add(tools["remove"], "comes down to nothing", "edge", start(ana), put(one, 2), of("remove", **{key: one}))
    add(
        tools["remove"],
        "leaves the other line",
        "effect",
        start(ana),
        put(one, 2),
        put(two, 1),
        of("remove", **{key: one}),
        of("lines"),
    )
    add(tools["remove"], "refuses what is not in it", "refusal", start(ana), put(one, 1), of("remove", **{key: two}))
    add(
        tools["remove"],
        "refuses what is placed",
        "refusal",
        start(ana),
        put(one, 1),
        of("place"),
        of("remove", **{key: one}),
    )
    add(tools["place"], "closes it", "typical", start(ana), put(one, 2), of("place"))
    add(tools["place"], "is kept", "effect", start(ana), put(two, 1), of("place"), of("get"))
    add(tools["place"], "sums up many lines", "edge", start(bo), *[put(item, 2) for item in priced[:6]], of("place"))
    add(tools["place"], "refuses an empty one", "refusal", start(ana), of("place"))
    add(tools["place"], "is refused twice", "refusal", start(ana), put(one, 1), of("place"), of("place"))
    scenarios.transition(tools["cancel"], tools["get"], id_name, [start(ana), put(one, 1)], [start(bo), put(two, 2)])
    add(tools["cancel"], "calls off a placed one", "edge", start(ana), put(one, 1), of("place"), of("cancel"))
    add(tools["get"], "shows what it comes to", "typical", start(ana), put(one, 2), of("get"))
    add(tools["get"], "shows an empty one", "edge", start(ana), of("get"))
    add(tools["get"], "shows the second one made", "edge", start(ana), start(bo), put(two, 1, 1), of("get", 1))
    add(tools["get"], "refuses an unknown id", "refusal", (tools["get"], {id_name: "OR0"}))
    add(tools["lines"], "lists two lines", "typical", start(ana), put(one, 2), put(two, 1), of("lines"))
    add(tools["lines"], "is empty at first", "edge", start(ana), of("lines"))
    add(
        tools["lines"],
        "goes on to the second page",
        "edge",
        start(ana),
        *[put(item, 1) for item in priced[:6]],
        of("lines", page=2),
    )
    add(tools["lines"], "refuses an unknown id", "refusal", (tools["lines"], {id_name: f"{record}-0"}))


def _price(entity: Entity) -> Column | None:
    """What one row costs."""
    for word in _PRICES:
        for money in entity.with_roles("money", "measure"):
            known = entity.values(money)
            if word in ascii_words(money.name) and money.type != "text" and len(known) >= 0.3 * len(entity.rows):
                if min(known) >= 0 and max(known) > 0:
                    return money
    return None


def _label_sql(subject: Entity) -> str:
    return f", {quoted(subject.name)}.{quoted(subject.label.name)}" if subject.label else ""


def _label_out(subject: Entity) -> Out:
    field = own_field(subject, subject.label)
    kind: Kind = kind_of(field.column)
    return Out(name=field.name, kind=kind, words=field.words, meaning=field.meaning, nullable=field.column.nullable)
