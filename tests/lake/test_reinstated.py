"""A version that was retired and may be used again has the state it had, and never pushes another out."""

from __future__ import annotations

import pytest

from agent_world.lake import Lake, NotFoundError
from agent_world.lake.replay import replay


def make(lake: Lake, title: str, time: int = 0):
    with lake.begin("make", f"{title}-{time}", derivation="d") as batch:
        return batch.create("theme", "t", {"title": title})


def say(lake: Lake, what: str, version, *more) -> None:
    with lake.begin("say", f"{lake.events_version()}", derivation="d") as batch:
        getattr(batch, what)(version, *more)


def states(lake: Lake) -> list[str]:
    assert all(row.same for row in replay(lake, verify=True))
    return [row["state"] for row in lake.read("themes")]


def test_the_current_version_is_current_again(lake: Lake):
    make(lake, "1")
    second = make(lake, "2")
    say(lake, "retire", second, "broken")
    assert states(lake) == ["superseded", "retired"]
    with pytest.raises(NotFoundError, match="is retired or superseded"):
        lake.resolve("theme", "t")
    say(lake, "reinstate", second, "created", "it was not")
    assert states(lake) == ["superseded", "created"] and lake.resolve("theme", "t") == second
    say(lake, "reinstate", second, "superseded", "said twice")
    assert states(lake) == ["superseded", "created"]


def test_one_that_another_has_replaced_since_stays_behind_it(lake: Lake):
    first = make(lake, "1")
    say(lake, "retire", first, "broken")
    second = make(lake, "2")
    say(lake, "reinstate", first, "created", "it was not")
    assert states(lake) == ["superseded", "created"] and lake.resolve("theme", "t") == second


def test_an_older_one_does_not_become_current_because_the_newer_is_retired(lake: Lake):
    first, second = make(lake, "1"), make(lake, "2")
    for version in (first, second):
        say(lake, "retire", version, "broken")
    say(lake, "reinstate", first, "superseded", "it was not")
    assert states(lake) == ["superseded", "retired"]
    make(lake, "1", time=1)  # its content again: now it may
    assert states(lake) == ["created", "retired"]
