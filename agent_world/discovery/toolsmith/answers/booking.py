"""Bookings against a capacity, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json


class BookingLedger(Ledger):
    """`places` gives the capacity of each event (None: unknown), `idle` the events that do not take place.

    `names` maps the roles record, event, holder, unit and subject to what the written tools call them.
    """

    def __init__(
        self,
        *,
        places: Mapping[Json, int | None],
        idle: Collection[Json],
        holders: Collection[Json] | None,
        names: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.places, self.idle, self.holders, self.names = places, idle, holders, names

    def left(self, event: Json) -> int:
        """How many units of an event are free."""
        if event not in self.places:
            raise Refusal("not_found")
        if event in self.idle:
            raise Refusal("not_running")
        capacity = need(self.places[event], "capacity_unknown")
        return capacity - sum(
            b["units"] for b in self.records.values() if b["event"] == event and b["status"] != "cancelled"
        )

    def book(self, event: Json, holder: Json, units: int) -> dict[str, Json]:
        """Hold units of an event."""
        left = self.left(event)
        if self.holders is not None and holder not in self.holders:
            raise Refusal("not_found")
        same = [b for b in self.records.values() if b["event"] == event and b["holder"] == holder]
        if any(b["status"] != "cancelled" for b in same):
            raise Refusal("already_booked")
        self._enough(units, left)
        made = self.mint("BK")
        self.records[made] = {"event": event, "holder": holder, "units": units, "status": "held"}
        return {self.names["record"]: made, "status": "held", f"{self.names['unit']}_left": left - units}

    def resize(self, booking: str, units: int) -> dict[str, Json]:
        """Hold another number of units."""
        found = need(self.records.get(booking))
        need_status(found, "held", code="not_held")
        left = self.left(found["event"]) + found["units"]
        self._enough(units, left)
        found["units"] = units
        unit = self.names["unit"]
        return {self.names["record"]: booking, unit: units, f"{unit}_left": left - units}

    def move(self, booking: str, event: Json) -> dict[str, Json]:
        """Hold the same units of another event."""
        found = need(self.records.get(booking))
        need_status(found, "held", code="not_held")
        if found["event"] == event:
            raise Refusal("same_" + self.names["subject"])
        left = self.left(event)
        self._enough(found["units"], left)
        found["event"] = event
        return {
            self.names["record"]: booking,
            self.names["event"]: event,
            f"{self.names['unit']}_left": left - found["units"],
        }

    def show(self, booking: str) -> dict[str, Json]:
        """One booking."""
        found = need(self.records.get(booking))
        return {
            self.names["record"]: booking,
            self.names["event"]: found["event"],
            self.names["holder"]: found["holder"],
            self.names["unit"]: found["units"],
            "status": found["status"],
        }

    def check(self, event: Json) -> dict[str, Json]:
        """How full an event is."""
        left = self.left(event)
        capacity = self.places[event]
        return {self.names["event"]: event, "capacity": capacity, "taken": capacity - left, "left": left}

    def _enough(self, units: int, left: int) -> None:
        if units > left:
            raise Refusal("not_enough_" + self.names["unit"])
