"""Loans of unique items, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json

START = date(2026, 1, 5)
"""The day on which every session starts."""


class LoanLedger(Ledger):
    """`days` gives the length of a loan of each item. `names` maps loan, item and borrower to field names."""

    def __init__(
        self,
        *,
        days: Mapping[Json, int],
        borrowers: Collection[Json] | None,
        limit: int,
        renewals: int,
        names: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.days, self.borrowers, self.limit, self.renewals, self.names = days, borrowers, limit, renewals, names

    def lend(self, item: Json, borrower: Json) -> dict[str, Json]:
        """Hand an item out."""
        if item not in self.days:
            raise Refusal("not_found")
        if self.borrowers is not None and borrower not in self.borrowers:
            raise Refusal("not_found")
        if any(loan["item"] == item and loan["status"] != "returned" for loan in self.records.values()):
            raise Refusal("not_available")
        if (
            sum(loan["borrower"] == borrower and loan["status"] == "out" for loan in self.records.values())
            >= self.limit
        ):
            raise Refusal("too_many_loans")
        made = self.mint("LN")
        due = START + timedelta(days=self.days[item])
        self.records[made] = {"item": item, "borrower": borrower, "due": due, "renewals": 0, "status": "out"}
        return {self.names["loan"]: made, "status": "out", "due": due.isoformat()}

    def renew(self, loan: str) -> dict[str, Json]:
        """Put off the day it is due."""
        found = need(self.records.get(loan))
        need_status(found, "out", code="not_out")
        if found["renewals"] >= self.renewals:
            raise Refusal("no_more_renewals")
        found["due"] += timedelta(days=self.days[found["item"]])
        found["renewals"] += 1
        return {self.names["loan"]: loan, "due": found["due"].isoformat(), "renewals": found["renewals"]}

    def hand_over(self, loan: str, borrower: Json) -> dict[str, Json]:
        """Pass it on to another borrower."""
        found = need(self.records.get(loan))
        need_status(found, "out", code="not_out")
        if self.borrowers is not None and borrower not in self.borrowers:
            raise Refusal("not_found")
        if found["borrower"] == borrower:
            raise Refusal("same_borrower")
        if (
            sum(other["borrower"] == borrower and other["status"] == "out" for other in self.records.values())
            >= self.limit
        ):
            raise Refusal("too_many_loans")
        found["borrower"] = borrower
        return {self.names["loan"]: loan, self.names["borrower"]: borrower}

    def show(self, loan: str) -> dict[str, Json]:
        """One loan."""
        found = need(self.records.get(loan))
        return {
            self.names["loan"]: loan,
            self.names["item"]: found["item"],
            self.names["borrower"]: found["borrower"],
            "due": found["due"].isoformat(),
            "renewals": found["renewals"],
            "status": found["status"],
        }
