from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_world.arena.diagnosis import Attempt, diagnose, wilson
from agent_world.arena.model import Guideline
from agent_world.arena.sampling import sample_environments
from agent_world.arena.scoring import score
from agent_world.arena.targeting import exercises, targeted_keys
from tests.arena.test_labels import MEMBER, READ, SEARCH, WRITE, WRONG_BOOK, episode
from tests.toy import toy_environment

GOOD = episode(WRITE.plan, {"status": "out"}, status="pass", failed=())
WRONG = episode([SEARCH, MEMBER, WRONG_BOOK], {"status": "out"})
BROKEN = episode([SEARCH], status="infra_error")


def diagnosis_of(**trajectories):
    """The diagnosis of environments given as name = [trajectory, ...]."""
    attempts = [
        Attempt(trajectory=trajectory, task=WRITE, environment=name)
        for name, made in trajectories.items()
        for trajectory in made
    ]
    return diagnose(
        attempts,
        round=1,
        policy_version="p@0",
        environments=dict.fromkeys(trajectories, toy_environment()),
        categories=dict.fromkeys(trajectories, "culture"),
        training_shapes=dict.fromkeys(trajectories, 20),
    )


def test_a_healthy_policy_has_no_weak_environment():
    diagnosis = diagnosis_of(a=[GOOD] * 20, b=[GOOD] * 20)
    assert diagnosis.weak == ()
    assert diagnosis.guidelines == ()


def test_only_the_starved_environment_is_weak_and_its_guideline_names_the_tool():
    diagnosis = diagnosis_of(a=[GOOD] * 20, b=[WRONG] * 12 + [GOOD] * 8)
    assert [weakness.environment for weakness in diagnosis.weak] == ["b"]
    (guideline,) = diagnosis.guidelines
    assert guideline.ability == "wrong_argument"
    assert guideline.tools == ("lend_book",)
    assert ("find_member", "lend_book") in guideline.edges
    assert guideline.writes is True


def test_weak_environments_are_ranked_by_how_surely_they_fail():
    diagnosis = diagnosis_of(a=[WRONG] * 10 + [GOOD] * 10, b=[WRONG] * 20)
    assert [weakness.environment for weakness in diagnosis.weak] == ["b", "a"]
    assert targeted_keys(diagnosis) == ["r01|b", "r01|a"]


def test_harness_errors_are_counted_but_are_nobodys_weakness():
    diagnosis = diagnosis_of(a=[BROKEN] * 20)
    assert diagnosis.weak == ()
    assert diagnosis.errors["a"] == {"infra": 20}


def test_little_variety_in_training_asks_for_a_richer_database():
    few = diagnose(
        [Attempt(trajectory=WRONG, task=WRITE, environment="a")] * 20,
        round=1,
        policy_version="p@0",
        environments={"a": toy_environment()},
        categories={"a": "culture"},
        training_shapes={"a": 1},
    )
    assert few.guidelines[0].enrich


def test_the_score_sees_a_wrong_label_and_a_missed_environment():
    diagnosis = diagnosis_of(a=[WRONG] * 20, b=[GOOD] * 20)
    perfect = score(diagnosis, {"a": "wrong_argument"})
    assert (perfect.environment_precision, perfect.label_recall) == (1.0, 1.0)
    flawed = score(diagnosis, {"a": "loop", "b": "wrong_tool"})
    assert (flawed.environment_precision, flawed.environment_recall) == (1.0, 0.5)
    assert (flawed.label_precision, flawed.label_recall) == (0.0, 0.0)


def test_a_task_serves_a_guideline_by_tool_edge_or_pattern_and_within_its_bounds():
    patterns = {tool.name: tool.pattern for tool in toy_environment().tools}
    assert exercises(WRITE, Guideline(environment="a", tools=("lend_book",)), patterns)
    assert exercises(WRITE, Guideline(environment="a", edges=(("find_member", "lend_book"),)), patterns)
    assert exercises(WRITE, Guideline(environment="a", patterns=("create",)), patterns)
    assert exercises(READ, Guideline(environment="a"), patterns)
    assert not exercises(READ, Guideline(environment="a", tools=("lend_book",)), patterns)
    assert not exercises(READ, Guideline(environment="a", tools=("get_book",), writes=True), patterns)


@given(passes=st.integers(0, 50), more=st.integers(0, 50))
@example(passes=0, more=47)  # whose lower end was 7e-18
def test_the_interval_holds_the_rate(passes, more):
    samples = passes + more
    low, high = wilson(passes, samples)
    assert 0 <= low <= high <= 1
    if samples:
        assert low <= passes / samples <= high


@pytest.mark.parametrize("per_category", [1, 2, 5])
def test_the_draw_is_stratified_and_repeatable(per_category):
    categories = {f"e{i}": f"c{i % 3}" for i in range(11)}
    drawn = sample_environments(categories, per_category=per_category, seed=7, round=1)
    counts = [sum(categories[key] == category for key in drawn) for category in ("c0", "c1", "c2")]
    assert counts == [min(per_category, 4), min(per_category, 4), min(per_category, 3)]
    assert drawn == sample_environments(categories, per_category=per_category, seed=7, round=1)


def test_another_round_draws_others():
    categories = {f"e{i}": "c" for i in range(40)}
    draws = {tuple(sample_environments(categories, per_category=5, seed=7, round=round)) for round in range(6)}
    assert len(draws) > 1
