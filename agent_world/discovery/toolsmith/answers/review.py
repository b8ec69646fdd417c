"""Requests that are decided once, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json


class ReviewLedger(Ledger):
    """`items` are all keys, `barred` those that may not be asked for, `fit` those that may be approved.

    `names` maps request, item and holder to field names.
    """

    def __init__(
        self,
        *,
        items: Collection[Json],
        barred: Collection[Json],
        fit: Collection[Json],
        holders: Collection[Json] | None,
        names: dict[str, str],
    ) -> None:
        super().__init__()
        self.items, self.barred, self.fit, self.holders, self.names = items, barred, fit, holders, names

    def submit(self, item: Json, holder: Json) -> dict[str, Json]:
        """Ask for an item."""
        if item not in self.items:
            raise Refusal("not_found")
        if self.holders is not None and holder not in self.holders:
            raise Refusal("not_found")
        if item in self.barred:
            raise Refusal("not_eligible")
        same = [r for r in self.records.values() if r["item"] == item and r["holder"] == holder]
        if any(r["status"] in {"pending", "approved"} for r in same):
            raise Refusal("already_requested")
        made = self.mint("RQ")
        self.records[made] = {"item": item, "holder": holder, "appeals": 0, "status": "pending"}
        return {self.names["request"]: made, "status": "pending"}

    def approve(self, request: str) -> dict[str, Json]:
        """Grant a request."""
        found = need(self.records.get(request))
        need_status(found, "pending", code="not_pending")
        if found["item"] not in self.fit:
            raise Refusal("not_approvable")
        found["status"] = "approved"
        return {self.names["request"]: request, "status": "approved"}

    def appeal(self, request: str) -> dict[str, Json]:
        """Bring a rejected request up again."""
        found = need(self.records.get(request))
        need_status(found, "rejected", code="not_rejected")
        if found["appeals"] >= 1:
            raise Refusal("no_more_appeals")
        found.update(status="pending", appeals=found["appeals"] + 1)
        return {self.names["request"]: request, "status": "pending"}

    def show(self, request: str) -> dict[str, Json]:
        """One request."""
        found = need(self.records.get(request))
        return {
            self.names["request"]: request,
            self.names["item"]: found["item"],
            self.names["holder"]: found["holder"],
            "appeals": found["appeals"],
            "status": found["status"],
        }

    def count(self, status: str) -> dict[str, Json]:
        """How many requests are in a state."""
        return {"status": status, "count": sum(r["status"] == status for r in self.records.values())}
