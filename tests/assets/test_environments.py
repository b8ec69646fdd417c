"""Which environments are accepted, and what the lake says of one that is not."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg

from agent_world import world
from agent_world.discovery.builds import Seed, Snapshot, Toolbox
from agent_world.discovery.toolsmith.proposal import ToolProposal
from agent_world.environments.tool_gate import EnvironmentVerdict, ToolVerdict
from agent_world.world import save_database
from assets.environments import accept
from assets.settings import Settings
from assets.tools import save_tools
from tests.toy import toy_environment
from tests.toy_lake import THEME

TOY = toy_environment()
ROUNDS = {"poor": 1, "rich": 2}
"""Environment to how many of its complexification rounds count."""


def test_an_environment_with_too_few_rounds_is_left_out_with_the_reason_and_its_neighbour_goes_on(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    for key, rounds in ROUNDS.items():
        with lake.begin("tools", key, derivation="d0") as batch:
            theme = batch.create("theme", f"{key}-theme", {**THEME, "theme_id": f"{key}-theme"})
            database = replace(TOY.database, database_id=key, theme=theme)
            source = save_database(batch, database, TOY.files, [(theme, "theme")])
            seed = Seed(version=theme, theme=None)
            snapshot = Snapshot(version=source, database=database, files=TOY.files, seed=seed)
            save_tools(snapshot, toolbox(database, rounds), batch)
        accept(dg.build_asset_context(), lake, Settings(), key, round=0)
    assert [environment.environment_id for environment in lake.environments()] == ["rich"]
    (refused,) = lake.read("gate_verdicts", where={"gate": "environment", "accepted": False})
    assert (refused["environment"], refused["reason"]) == ("poor", "too_few_rounds")
    assert refused["evidence"]["rounds"] == 1


def toolbox(database, rounds):
    """The tools of the toy world over `database`, refused where fewer than two rounds count."""
    accepted = rounds >= 2
    return Toolbox(
        proposal=ToolProposal(database=database, files=TOY.files, tools=TOY.tools, tests=()),
        verdicts=tuple(
            ToolVerdict(tool=replace(tool, tool_id=f"{database.database_id}/{tool.name}"), accepted=True, accuracy=1.0)
            for tool in TOY.tools
        ),
        environment=EnvironmentVerdict(
            accepted=accepted, reasons=() if accepted else ("too_few_rounds",), digest=database.digest,
            tools=len(TOY.tools), tests=1, rounds=rounds,
        ),
    )  # fmt: skip
