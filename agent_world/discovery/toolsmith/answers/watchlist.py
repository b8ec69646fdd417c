"""Ranked lists of items, in plain Python lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need
from agent_world.environments.model import Json


class WatchlistLedger(Ledger):
    """`kinds` gives the category of each item. `names` maps list, holder, item, label and kind to field names.

    Without a `kind` in `names` any item may go on any list.
    """

    def __init__(
        self,
        *,
        kinds: Mapping[Json, Json],
        labels: Mapping[Json, Json],
        holders: Collection[Json] | None,
        limit: int,
        names: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.kinds, self.labels, self.holders, self.limit, self.names = kinds, labels, holders, limit, names

    def create(self, holder: Json, kind: Json = None) -> dict[str, Json]:
        """Start an empty list."""
        if self.holders is not None and holder not in self.holders:
            raise Refusal("not_found")
        made = self.mint("LS")
        self.records[made] = {"holder": holder, "kind": kind, "items": []}
        return {self.names["list"]: made}

    def add(self, name: str, item: Json) -> dict[str, Json]:
        """Put an item at the end of a list."""
        found = need(self.records.get(name))
        if item not in self.kinds:
            raise Refusal("not_found")
        if "kind" in self.names and self.kinds[item] != found["kind"]:
            raise Refusal("wrong_" + self.names["kind"])
        if item in found["items"]:
            raise Refusal("already_listed")
        if len(found["items"]) >= self.limit:
            raise Refusal("list_full")
        found["items"].append(item)
        return {self.names["list"]: name, "rank": len(found["items"])}

    def move(self, name: str, item: Json, rank: int) -> dict[str, Json]:
        """Give an item another rank."""
        items = self._with(name, item)
        if rank > len(items):
            raise Refusal("no_such_rank")
        items.remove(item)
        items.insert(rank - 1, item)
        return {self.names["list"]: name, "rank": rank}

    def remove(self, name: str, item: Json) -> dict[str, Json]:
        """Take an item off a list."""
        items = self._with(name, item)
        items.remove(item)
        return {self.names["list"]: name, "size": len(items)}

    def show(self, name: str, page: int = 1) -> dict[str, Json]:
        """One page of a list."""
        found = need(self.records.get(name))
        items = [
            {"rank": place, self.names["item"]: item, self.names["label"]: self.labels[item]}
            for place, item in enumerate(found["items"], 1)
        ]
        return {
            "items": items[(page - 1) * 5 : page * 5],
            "total": len(items),
            "page": page,
            "pages": max(1, -(-len(items) // 5)),
        }

    def _with(self, name: str, item: Json) -> list[Json]:
        found = need(self.records.get(name))
        if item not in found["items"]:
            raise Refusal("not_listed")
        return found["items"]
