"""The report of a lake: what was built, what each gate dropped, how the policy fared, round by round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_world.codec import decode
from agent_world.discovery.taxonomy import Taxonomy
from agent_world.discovery.taxonomy import figure as themes_figure
from agent_world.identity import VersionId
from agent_world.reporting import figures, plots, rounds
from agent_world.reporting.ladder import failures, ladder, ladder_by_environment, ladders
from agent_world.reporting.page import Page

if TYPE_CHECKING:
    from agent_world.world import World


def write_report(world: World) -> str:
    """The whole report as one self-contained HTML page."""
    page = Page("Agent-World", f"Lake {world.uri}, events version {world.events_version()}")
    _policies(page, world)
    _arena(page, world)
    _ladder(page, world)
    _environments(page, world)
    _tasks(page, world)
    _further(page, world)
    return page.html()


def _policies(page: Page, world: World) -> None:
    page.section("Policies")
    page.prose(
        "Pass rates on the held-out set, which no training ever sees. Intervals are 95 %, by bootstrap over tasks, "
        "exact where all tasks agree; sampled rates are the mean of several attempts at temperature 1."
    )
    page.table(figures.rounds_table(world))
    series = figures.rates_by_point(world)
    if series:
        page.figure(plots.pass_rates(series), "Pass rate on the held-out set at each checkpoint")
    page.table(figures.differences_table(world), "Paired differences of the sampled pass rate, task by task")
    page.table(rounds.gains_table(world), "What each part of a round's training added to the sampled pass rate")
    page.table(rounds.trainings_table(world), "What each checkpoint was trained on")
    grpo = figures.curves(world, figures.GRPO_CURVES)
    if grpo:
        page.figure(plots.curves(grpo), "GRPO: mean reward, entropy of the policy, distance from where it started")


def _arena(page: Page, world: World) -> None:
    page.section("Arena and diagnosis")
    for row in world.read("diagnoses"):
        page.prose(f"Round {row['round']}: {row['summary']}")
    page.table(figures.weak_table(world), "The ranked weak set of each round, and what its targeted tasks practise")
    page.table(figures.errors_table(world), "Share of episodes that failed in each way, by category")
    shares = figures.errors_by_category(world)
    if any(shares.values()):
        page.figure(plots.stacked(shares, "share of episodes"), "How the episodes of each category failed")
    page.table(rounds.rounds_by_set_table(world), "Sampled pass rates of each round on its weak environments apart")
    page.prose(
        "How right the diagnosis is: policies that play gold but for one planted fault, in a third of their "
        "environments and there in three episodes of four, are diagnosed by the same code as a round's."
    )
    page.table(figures.diagnosis_scores_table(world), "The diagnosis of policies with planted faults")


def _ladder(page: Page, world: World) -> None:
    page.section("Validity ladder")
    rewarded, practised = ladders(world)
    if not rewarded and not practised:
        page.prose("No gate has run yet.", note=True)
        return
    page.prose(
        "Of the gates of a task, rubric to solver, each judges what the one before accepted. Tasks that are only "
        "demonstrated stand apart: they never earn a reward, so the random and the solver gate are not asked of them."
    )
    named = {
        "tasks that can earn rewards, with all that they rest on": rewarded,
        "tasks that are only demonstrated": practised,
    }
    for name, verdicts in named.items():
        rows = ladder(verdicts)
        if rows:
            page.figure(plots.ladder(rows), f"Candidates and what was kept, gate by gate: {name}")
            page.table(rows)
            page.table(ladder_by_environment(verdicts), "Accepted of candidates, by environment, author and round")
    page.table(failures(world.read("gate_verdicts")), "Real rejections of each gate")
    page.table(figures.flawed_tools_table(world), "Kept tools that fail some of their tests: every case that fails")


def _environments(page: Page, world: World) -> None:
    page.section("Environments")
    rows = figures.environments_table(world)
    page.table(rows)
    trained = sum(bool(row["training tasks"]) for row in rows)
    page.prose(f"{trained} of {len(rows)} environments are in training.")
    for row in world.read("taxonomy", where={"state": "created"}, columns=["version_id"]):
        taxonomy = decode(Taxonomy, world.payload(VersionId(row["version_id"])))
        page.figure(themes_figure(taxonomy), "All themes by first-level category, each bar split into its clusters")
    page.table(figures.richness_table(world), "Richness of each database version")
    quarantine = world.read("quarantine")
    page.table(
        [{k: row[k] for k in ("stage", "item", "reason", "detail")} for row in quarantine[:20]],
        f"Set aside with their raw bytes: {len(quarantine)} items",
    )


def _tasks(page: Page, world: World) -> None:
    page.section("Tasks")
    calls = figures.calls_by_kind(world)
    if any(calls.values()):
        page.figure(plots.histogram(calls, "gold calls"), "Accepted tasks by the calls they need")
    page.table(figures.solver_table(world), "What reached the solver, and in how many of five runs it was right")
    page.table(figures.hard_examples(world), "Tasks of tier hard: sound, but the solver cannot do them")


def _further(page: Page, world: World) -> None:
    page.section("Look further")
    lake = f" --lake {world.uri}"
    page.code(
        "\n".join(
            f"agent-world {command}{lake}"
            for command in (
                "status", "audit", "task list", "env list", "snapshot create", "replay --verify",
                'sql "SELECT gate, accepted, count(*) FROM gate_verdicts GROUP BY ALL"', "ui",
            )
        )
    )  # fmt: skip
