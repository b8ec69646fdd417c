"""Subscriptions, one a category and subscriber, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json


class SubscriptionLedger(Ledger):
    """`kinds` gives the category of each item. `names` maps subscription, item, holder and kind to field names."""

    def __init__(
        self, *, kinds: Mapping[Json, Json], holders: Collection[Json] | None, names: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.kinds, self.holders, self.names = kinds, holders, names

    def subscribe(self, item: Json, holder: Json) -> dict[str, Json]:
        """Follow an item."""
        kind = self._kind(item)
        if self.holders is not None and holder not in self.holders:
            raise Refusal("not_found")
        if any(
            s["holder"] == holder and s["status"] != "ended" and self.kinds[s["item"]] == kind
            for s in self.records.values()
        ):
            raise Refusal("one_per_" + self.names["kind"])
        made = self.mint("SB")
        self.records[made] = {"item": item, "holder": holder, "status": "active"}
        return {self.names["subscription"]: made, "status": "active", self.names["kind"]: kind}

    def switch(self, subscription: str, item: Json) -> dict[str, Json]:
        """Follow another item of the same kind."""
        found = need(self.records.get(subscription))
        need_status(found, "active", code="not_active")
        kind = self._kind(item)
        if found["item"] == item:
            raise Refusal("same_" + self.names["subject"])
        if self.kinds[found["item"]] != kind:
            raise Refusal("other_" + self.names["kind"])
        found["item"] = item
        return {self.names["subscription"]: subscription, self.names["item"]: item}

    def show(self, subscription: str) -> dict[str, Json]:
        """One subscription."""
        found = need(self.records.get(subscription))
        return {
            self.names["subscription"]: subscription,
            self.names["item"]: found["item"],
            self.names["holder"]: found["holder"],
            "status": found["status"],
        }

    def of_holder(self, holder: Json, page: int = 1) -> dict[str, Json]:
        """One page of what somebody follows."""
        own = [
            {self.names["subscription"]: made, self.names["item"]: s["item"], "status": s["status"]}
            for made, s in self.records.items()
            if s["holder"] == holder
        ]
        own.sort(key=lambda item: item[self.names["item"]])
        return {
            "items": own[(page - 1) * 5 : page * 5],
            "total": len(own),
            "page": page,
            "pages": max(1, -(-len(own) // 5)),
        }

    def _kind(self, item: Json) -> Json:
        if item not in self.kinds:
            raise Refusal("not_found")
        return need(self.kinds[item], "no_" + self.names["kind"])
