from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_world import world
from agent_world.arena.diagnosis import Attempt, diagnose, wilson
from agent_world.arena.model import Diagnosis
from agent_world.arena.sampling import sample_environments
from agent_world.arena.scoring import score
from agent_world.codec import decode, encode
from agent_world.reporting.figures import errors_by_category, errors_table
from agent_world.reporting.report import write_report
from tests.arena.test_labels import MEMBER, SEARCH, WRITE, WRONG_BOOK, episode
from tests.toy import toy_environment

GOOD = episode(WRITE.plan, {"status": "out"}, status="pass", failed=())
WRONG = episode([SEARCH, MEMBER, WRONG_BOOK], {"status": "out"})
SHORT = episode([SEARCH], {"status": "out"})
BROKEN = episode([SEARCH], status="infra_error")
VARIED = [(f"tool_{number}",) for number in range(20)]


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
        training_shapes=dict.fromkeys(trajectories, VARIED),
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


def test_harness_errors_are_counted_but_are_nobodys_weakness():
    diagnosis = diagnosis_of(a=[BROKEN] * 20)
    assert diagnosis.weak == ()
    environment, category = diagnosis.errors
    assert (environment.by, environment.name, environment.samples) == ("environment", "a", 0)
    assert [(rate.label, rate.count, rate.samples) for rate in environment.rates] == [("infra", 20, 20)]
    assert (category.by, category.name, category.rates) == ("category", "culture", environment.rates)


def test_the_ways_to_fail_have_rates_with_intervals_by_environment_and_by_category():
    diagnosis = diagnosis_of(a=[GOOD] * 10 + [WRONG] * 6 + [SHORT] * 4 + [BROKEN] * 5, b=[WRONG] * 20)
    distributions = {(error.by, error.name): error for error in diagnosis.errors}
    assert list(distributions) == [("environment", "a"), ("environment", "b"), ("category", "culture")]
    own = distributions["environment", "a"]
    assert own.samples == 20
    assert [(rate.label, rate.count, rate.samples, rate.rate) for rate in own.rates] == [
        ("wrong_argument", 6, 20, 0.3), ("infra", 5, 25, 0.2), ("early_stop", 4, 20, 0.2)
    ]  # fmt: skip
    assert all((rate.low, rate.high) == wilson(rate.count, rate.samples) for rate in own.rates)
    first = distributions["category", "culture"].rates[0]
    assert (first.label, first.count, first.samples) == ("wrong_argument", 26, 40)
    assert first.low < 26 / 40 < first.high
    assert decode(Diagnosis, encode(diagnosis)) == diagnosis


def test_the_report_shows_how_each_category_failed(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    diagnosis = diagnosis_of(a=[GOOD] * 10 + [WRONG] * 6 + [SHORT] * 4 + [BROKEN] * 5)
    with lake.begin("diagnosis", derivation="d0") as batch:
        batch.create("diagnosis", "diagnosis-r01", encode(diagnosis))
    assert errors_table(lake) == [
        {
            "round": 1, "category": "culture", "episodes": 20, "wrong_argument": "0.30 [0.15, 0.52]",
            "infra": "0.20 [0.09, 0.39]", "early_stop": "0.20 [0.08, 0.42]",
        }
    ]  # fmt: skip
    assert errors_by_category(lake) == {"r01 culture": {"wrong_argument": 0.3, "early_stop": 0.2}}
    page = write_report(lake)
    assert "How the episodes of each category failed" in page
    assert all(text in page for text in ("0.30 [0.15, 0.52]", "early_stop"))


@pytest.mark.parametrize(
    ("shapes", "enrich"),
    [
        (VARIED, False),
        (VARIED + VARIED[:3], False),  # 3 of 253 pairs
        (VARIED + VARIED[:8], False),  # 8 of 378
        (VARIED + VARIED[:1] * 4, True),  # 10 of 276: one plan takes a fifth of the tasks
        (VARIED * 5, True),  # 200 of 4,950: many tasks, and every plan five times
        (VARIED[:1], True),
    ],
)
def test_plans_that_repeat_in_training_ask_for_a_richer_database(shapes, enrich):
    found = diagnose(
        [Attempt(trajectory=WRONG, task=WRITE, environment="a")] * 20,
        round=1,
        policy_version="p@0",
        environments={"a": toy_environment()},
        categories={"a": "culture"},
        training_shapes={"a": shapes},
    )
    assert found.guidelines[0].enrich == enrich
    assert ("Enrich the database first" in found.guidelines[0].text) == enrich


def test_the_score_sees_a_wrong_label_and_a_missed_environment():
    diagnosis = diagnosis_of(a=[WRONG] * 20, b=[GOOD] * 20)
    perfect = score(diagnosis, {"a": "wrong_argument"})
    assert (perfect.environment_precision, perfect.label_recall) == (1.0, 1.0)
    flawed = score(diagnosis, {"a": "loop", "b": "wrong_tool"})
    assert (flawed.environment_precision, flawed.environment_recall) == (1.0, 0.5)
    assert (flawed.label_precision, flawed.label_recall) == (0.0, 0.0)


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
