"""The runs of a lake: which one did not end, and with what settings the next one goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent_world.codec import decode, encode
from agent_world.errors import AgentWorldError
from agent_world.identity import canonical_json, derivation_hash, sha256
from agent_world.world import World
from assets.settings import PROFILES, Settings, settings_for
from dagster_project.cli.common import typed

CHOSEN = ("seed", "rounds", "environments", "threads")
"""The settings that have an option of their own; a profile stands for all others."""

Asked = Mapping[str, str | int]
"""The options that were given: `profile` and those of `CHOSEN`."""


class UnfinishedRunError(AgentWorldError):
    """The lake holds a run that did not end."""

    def __init__(self, lake: str, run: str) -> None:
        super().__init__(lake, run)
        self.lake, self.run = lake, run

    def __str__(self) -> str:
        resume = typed("run", "--resume", "--lake", self.lake)
        return f"{self.lake} holds the unfinished run {self.run}; go on with it: {resume}, or choose another --lake"


class OtherOptionsError(AgentWorldError):
    """Options that are not those of the run to go on with; `differences` name each with both values."""

    def __init__(self, lake: str, run: str, differences: Sequence[str]) -> None:
        super().__init__(lake, run, tuple(differences))
        self.lake, self.run, self.differences = lake, run, tuple(differences)

    def __str__(self) -> str:
        resume = typed("run", "--resume", "--lake", self.lake)
        return (
            f"the unfinished run {self.run} of {self.lake} has {', '.join(self.differences)};"
            f" go on with it: {resume}, or choose another --lake"
        )


class OtherLoopError(AgentWorldError):
    """A lake that was made with other settings; `differences` name each with both values."""

    def __init__(self, lake: str, run: str, differences: Sequence[str]) -> None:
        super().__init__(lake, run, tuple(differences))
        self.lake, self.run, self.differences = lake, run, tuple(differences)

    def __str__(self) -> str:
        return (
            f"{self.lake} holds the run {self.run} with {', '.join(self.differences)}; a lake holds one loop, of which"
            " only --rounds may change: choose another --lake"
        )


class Run(NamedTuple):
    """One run as the lake knows it."""

    name: str
    settings: Settings
    ended: bool


def last_run(world: World) -> Run | None:
    """The run that did not end, else the last one that was begun."""
    last = {row["run"]: row for row in world.read("runs", columns=["run", "status", "parameters"])}
    runs = sorted(last.values(), key=lambda row: row["status"] == "started")
    if not runs:
        return None
    row = runs[-1]
    return Run(row["run"], decode(Settings, row["parameters"]), row["status"] != "started")


def settings_to_run(world: World, asked: Asked, *, resume: bool) -> Settings:
    """What a run with these options does; resumed without options it has those of the last run.

    Raises:
        UnfinishedRunError: another run has to be resumed first.
        OtherOptionsError: the run to resume has other options.
        OtherLoopError: the lake holds a loop of other settings.
    """
    last = last_run(world)
    if last and not last.ended:
        if not resume:
            raise UnfinishedRunError(world.uri, last.name)
        differences = _differences(last.settings, asked)
        if differences:
            raise OtherOptionsError(world.uri, last.name, differences)
        return last.settings
    wanted = last.settings if last and resume and not asked else settings_of(asked)
    if last and dataclasses.replace(wanted, rounds=last.settings.rounds) != last.settings:
        given = {"profile": _profile(wanted), **wanted.parameters("seed", "environments", "threads")}
        raise OtherLoopError(world.uri, last.name, _differences(last.settings, given))
    return wanted


def settings_of(asked: Asked) -> Settings:
    """The settings that these options mean."""
    return settings_for(**{"profile": "default", **asked})


def mark(world: World, settings: Settings, status: str) -> None:
    """Record that the run of these settings has come to `status`; said again, it changes nothing."""
    parameters = encode(settings)
    name = sha256(canonical_json(parameters))[:12]
    derivation = derivation_hash("", {"run": name, "status": status}, [])
    with world.begin("run", name, derivation=derivation) as batch:
        if not batch.done:
            batch.record("runs", {"run": name, "status": status, "parameters": parameters})


def _differences(settings: Settings, asked: Asked) -> list[str]:
    has = {"profile": _profile(settings), **settings.parameters(*CHOSEN)}
    return [f"--{name} {has[name]}, not {value}" for name, value in asked.items() if value != has[name]]


def _profile(settings: Settings) -> str:
    """The profile that these settings are of, whatever is chosen apart."""
    chosen = settings.parameters(*CHOSEN)
    names = (name for name, profile in PROFILES.items() if dataclasses.replace(profile, **chosen) == settings)
    return next(names, "of older code")
