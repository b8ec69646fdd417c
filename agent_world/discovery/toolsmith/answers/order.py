"""Orders with lines and totals, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json


class OrderLedger(Ledger):
    """`prices` gives the price of each item (None: not for sale).

    `names` maps order, record, buyer, item and label to the words of the tools.
    """

    def __init__(
        self,
        *,
        prices: Mapping[Json, float | None],
        labels: Mapping[Json, Json],
        buyers: Collection[Json] | None,
        names: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.prices, self.labels, self.buyers, self.names = prices, labels, buyers, names

    def open(self, buyer: Json) -> dict[str, Json]:
        """Start an empty order."""
        if self.buyers is not None and buyer not in self.buyers:
            raise Refusal("not_found")
        made = self.mint("OR")
        self.records[made] = {"buyer": buyer, "lines": {}, "status": "open"}
        return {self.names["order"]: made, "status": "open"}

    def add(self, order: str, item: Json, quantity: int) -> dict[str, Json]:
        """Put a quantity of an item into an order."""
        found = self._open(order)
        if item not in self.prices:
            raise Refusal("not_found")
        price = need(self.prices[item], "not_for_sale")
        found["lines"][item] = found["lines"].get(item, 0) + quantity
        return {
            self.names["order"]: order,
            "quantity": found["lines"][item],
            "price": price,
            "total": self._total(found),
        }

    def remove(self, order: str, item: Json) -> dict[str, Json]:
        """Take an item out of an order."""
        found = self._open(order)
        if item not in found["lines"]:
            raise Refusal("not_in_" + self.names["record"])
        del found["lines"][item]
        return {self.names["order"]: order, "total": self._total(found)}

    def place(self, order: str) -> dict[str, Json]:
        """Close an order."""
        found = self._open(order)
        if not found["lines"]:
            raise Refusal("empty_" + self.names["record"])
        found["status"] = "placed"
        return {self.names["order"]: order, "status": "placed", "total": self._total(found)}

    def show(self, order: str) -> dict[str, Json]:
        """One order with its total."""
        found = need(self.records.get(order))
        return {
            self.names["order"]: order,
            self.names["buyer"]: found["buyer"],
            "status": found["status"],
            "total": self._total(found),
        }

    def lines(self, order: str, page: int = 1) -> dict[str, Json]:
        """One page of the lines of an order."""
        found = need(self.records.get(order))
        items = []
        for item in sorted(found["lines"]):
            shown = {self.names["item"]: item, "quantity": found["lines"][item], "price": self.prices[item]}
            items.append(shown | ({self.names["label"]: self.labels[item]} if "label" in self.names else {}))
        return {
            "items": items[(page - 1) * 5 : page * 5],
            "total": len(items),
            "page": page,
            "pages": max(1, -(-len(items) // 5)),
        }

    def _open(self, order: str) -> dict[str, Json]:
        found = need(self.records.get(order))
        need_status(found, "open", code="not_open")
        return found

    def _total(self, order: Mapping[str, Json]) -> float:
        return round(sum(self.prices[item] * quantity for item, quantity in order["lines"].items()), 2)
