"""A workflow kept in plain dictionaries: the common part of the models that say what the writing tools must answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from agent_world.environments.model import Json


class Refusal(Exception):
    """The model says no; `code` is what the tool must say too."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Ledger:
    """Records of one workflow in memory. Each operation is called by the name of the tool it stands for."""

    def __init__(self) -> None:
        self.operations: dict[str, Callable[..., dict[str, Json]]] = {}
        self.minted: dict[str, str] = {}
        self.records: dict[str, dict[str, Json]] = {}

    def mint(self, prefix: str) -> str:
        """A new id; `minted` remembers its prefix."""
        made = f"{prefix}#{len(self.minted) + 1}"
        self.minted[made] = prefix
        return made

    def transition(
        self, record: str, id_name: str, allowed: Collection[str], target: str, code: str
    ) -> dict[str, Json]:
        """Move a record from one of the states `allowed` to `target`."""
        found = need(self.records.get(record))
        need_status(found, *allowed, code=code)
        found["status"] = target
        return {id_name: record, "status": target}

    def call(self, tool: str, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """What `tool` must give.

        Raises:
            Refusal: a rule says no.
        """
        return self.operations[tool](**arguments)


def need(found: Any, code: str = "not_found") -> Any:
    """`found`, unless it is None."""
    if found is None:
        raise Refusal(code)
    return found


def need_status(record: Mapping[str, Json], *allowed: str, code: str) -> None:
    """Refuse a record that is in another state."""
    if record["status"] not in allowed:
        raise Refusal(code)
