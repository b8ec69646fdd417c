from __future__ import annotations

import os

import pytest

from agent_world.engine import Engine
from agent_world.errors import BadInputError


def square(number: int) -> int:
    if number == 3:
        raise BadInputError("item 3", "it is unlucky", "leave it out")
    if number == 4:
        raise ZeroDivisionError("four")
    return number * number


def process(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
def test_one_item_that_raises_does_not_stop_its_neighbours(workers):
    with Engine(workers) as engine:
        done = list(engine.map(square, [1, 2, 3, 4, 5]))
    assert [item.result for item in done] == [1, 4, None, None, 25]
    assert [item.item for item in done] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_says_what_happened_and_only_a_surprise_has_a_trace(workers):
    with Engine(workers) as engine:
        known, surprise = (item.failure for item in engine.map(square, [3, 4]))
    assert known is not None
    assert surprise is not None
    assert known.error == "item 3: it is unlucky; leave it out"
    assert known.trace == ""
    assert surprise.error == "ZeroDivisionError: four"
    assert "square" in surprise.trace


def test_work_runs_in_other_processes():
    with Engine(2) as engine:
        seen = {item.result for item in engine.map(process, list(range(8)))}
    assert os.getpid() not in seen


def test_one_worker_works_in_this_process():
    with Engine(1) as engine:
        assert {item.result for item in engine.map(process, [1, 2])} == {os.getpid()}
