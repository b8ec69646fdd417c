"""Issues about assets, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json


class TicketLedger(Ledger):
    """`urgent` says of each asset whether its issues start with a high priority.

    `names` maps ticket, asset and worker to field names.
    """

    def __init__(
        self, *, urgent: Mapping[Json, bool], workers: Collection[Json] | None, limit: int, names: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.urgent, self.workers, self.limit, self.names = urgent, workers, limit, names

    def report(self, asset: Json, problem: str) -> dict[str, Json]:
        """Open a ticket."""
        if asset not in self.urgent:
            raise Refusal("not_found")
        same = [t for t in self.records.values() if t["asset"] == asset and t["problem"] == problem]
        if any(t["status"] != "resolved" for t in same):
            raise Refusal("already_reported")
        made = self.mint("IS")
        priority = "high" if self.urgent[asset] else "normal"
        self.records[made] = {
            "asset": asset,
            "problem": problem,
            "priority": priority,
            "worker": None,
            "status": "open",
        }
        return {self.names["ticket"]: made, "status": "open", "priority": priority}

    def assign(self, ticket: str, worker: Json) -> dict[str, Json]:
        """Give a ticket to a worker."""
        found = need(self.records.get(ticket))
        need_status(found, "open", "reopened", code="not_open")
        if self.workers is not None and worker not in self.workers:
            raise Refusal("not_found")
        busy = sum(t["worker"] == worker and t["status"] == "assigned" for t in self.records.values())
        if busy >= self.limit:
            raise Refusal("too_busy")
        found.update(worker=worker, status="assigned")
        return {self.names["ticket"]: ticket, "status": "assigned", self.names["worker"]: worker}

    def escalate(self, ticket: str) -> dict[str, Json]:
        """Raise the priority of a ticket."""
        found = need(self.records.get(ticket))
        if found["status"] == "resolved":
            raise Refusal("resolved")
        if found["priority"] == "high":
            raise Refusal("already_high")
        found["priority"] = "high"
        return {self.names["ticket"]: ticket, "priority": "high"}

    def show(self, ticket: str) -> dict[str, Json]:
        """One ticket."""
        found = need(self.records.get(ticket))
        return {
            self.names["ticket"]: ticket,
            self.names["asset"]: found["asset"],
            "problem": found["problem"],
            "priority": found["priority"],
            self.names["worker"]: found["worker"],
            "status": found["status"],
        }

    def about(self, asset: Json, page: int = 1) -> dict[str, Json]:
        """One page of the tickets of an asset."""
        if asset not in self.urgent:
            raise Refusal("not_found")
        own = [
            {self.names["ticket"]: made, "problem": t["problem"], "status": t["status"]}
            for made, t in self.records.items()
            if t["asset"] == asset
        ]
        own.sort(key=lambda item: item["problem"])
        return {
            "items": own[(page - 1) * 5 : page * 5],
            "total": len(own),
            "page": page,
            "pages": max(1, -(-len(own) // 5)),
        }
