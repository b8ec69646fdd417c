"""Gold plus one write that nobody asked for: a state in which the gold answer must not pass (design.md 7)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import SQLITE_FILE, Call, Environment
from agent_world.environments.session import open_session
from agent_world.environments.state import EnvironmentState, State
from agent_world.rollouts.recent import Recent
from agent_world.rollouts.writes import write_calls
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

_TRIES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Meddled:
    """A final state with one change too many; `how` names the tool that made it, or ``row removed``."""

    final: EnvironmentState
    how: str


_READ_ONLY: Recent[Meddled | None] = Recent()


def meddle(
    task: Task, environment: Environment, gold_final: EnvironmentState, sandbox: Sandbox | None = None
) -> Meddled:
    """The end state of the gold plan and one more write.

    A writing tool makes it where one can be called with values that exist; else a row is taken out of the state. A
    read-only plan leaves the initial state, so all read-only tasks of an environment share one meddled state.
    """
    if task.writes:
        made = _by_tool(environment, task.plan, task.seed, sandbox)
    else:
        made = _READ_ONLY.get(environment, lambda: _by_tool(environment, (), 0, sandbox))
    return made or Meddled(final=_without_a_row(State(gold_final.files)), how="row removed")


def _by_tool(environment: Environment, plan: Sequence[Call], seed: int, sandbox: Sandbox | None) -> Meddled | None:
    with open_session(environment, seed, sandbox) as session:
        for call in plan:
            session.call(call.tool, call.arguments)
        with suppress(CorruptStateError):  # a tool that breaks the state made no change that one could judge
            before = session.digest()
            for call in write_calls(environment, seed, _TRIES):
                if session.call(call.tool, call.arguments).status == "ok" and session.digest() != before:
                    return Meddled(final=session.state(), how=call.tool)
    return None


def _without_a_row(state: State) -> State:
    with closing(state.connect()) as db:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        for (name,) in db.execute(names).fetchall():
            quoted = '"' + name.replace('"', '""') + '"'
            try:
                removed = db.execute(f"DELETE FROM {quoted} WHERE rowid = (SELECT min(rowid) FROM {quoted})").rowcount
            except sqlite3.DatabaseError:  # referred to by another row, or a table without rowid
                continue
            if removed:
                db.commit()
                return State({**state.files, SQLITE_FILE: db.serialize()})
    return State({**state.files, "documents/unasked.txt": b"unasked"})
