"""The builds of discovery as functions of one item, ready to be mapped over worker processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from agent_world.discovery.model import Judgement, Mined, Rejected, Theme
from agent_world.environments.model import Database
from agent_world.home import cache_folder
from agent_world.identity import VersionId

if TYPE_CHECKING:
    from agent_world.discovery.corpus import Corpus
    from agent_world.discovery.toolsmith import ToolProposal
    from agent_world.environments.tool_gate import EnvironmentVerdict, ToolVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A theme in its exact version."""

    version: VersionId
    theme: Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A database in its exact version, with its bytes and its seed, on its way to the next build."""

    version: VersionId
    database: Database
    files: Mapping[str, bytes]
    seed: Seed


class Enriched(NamedTuple):
    """One complexification round that counts: the richer database and its bytes, with the word of its gate."""

    database: Database
    files: Mapping[str, bytes]
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """What the toolsmith proposed for one database, and what the gates said of each tool and of the whole."""

    proposal: ToolProposal
    verdicts: tuple[ToolVerdict, ...]
    environment: EnvironmentVerdict


class Enlarged(NamedTuple):
    """A database that was enriched after its environment was built, and the tools over it, all of them made again."""

    enriched: Enriched
    toolbox: Toolbox


@cache
def corpus() -> Corpus:
    """The corpus of the installed data packages; built once a machine, opened once a process."""
    from agent_world.discovery.corpus import build_corpus

    return build_corpus(cache_folder())


def prepare() -> None:
    """Build the corpus and what search says of every theme, so that the first run starts at once."""
    from agent_world.discovery.themes.selection import collect_themes

    collect_themes(0, 1, corpus=corpus())


def mine_theme(seed: Seed) -> Mined | Rejected:
    """Search, judge, structure: a database for the theme, or why there is none."""
    from agent_world.discovery.mining import mine

    return mine(seed.theme, corpus(), theme_version=seed.version)


def enrich(snapshot: Snapshot, *, rounds: int) -> list[Enriched | Judgement]:
    """Up to `rounds` complexification rounds, each a richer version; the first that its gate refuses ends them."""
    made: list[Enriched | Judgement] = []
    for number in range(1, rounds + 1):
        made.append(next_round(snapshot, number))
        if isinstance(made[-1], Judgement):
            break
        snapshot = replace(snapshot, database=made[-1].database, files=made[-1].files)
    return made


def enrich_more(snapshot: Snapshot, *, number: int, seed: int) -> Enlarged | Judgement:
    """One more complexification round after all others, with the tools over it; or why it does not count."""
    enriched = next_round(snapshot, number)
    if isinstance(enriched, Judgement):
        return enriched
    return Enlarged(
        enriched=enriched,
        toolbox=make_tools(replace(snapshot, database=enriched.database, files=enriched.files), seed=seed),
    )


def next_round(snapshot: Snapshot, number: int) -> Enriched | Judgement:
    """The database after complexification round `number`, or why the round does not count."""
    from agent_world.discovery.complexify import complexify
    from agent_world.discovery.gates import check_round

    try:
        richer = complexify(snapshot.database, snapshot.files, snapshot.seed.theme, corpus(), number)
    except sqlite3.IntegrityError as error:
        return Judgement(reasons=("failed_insert",), evidence={"why": str(error)})
    if richer is None:
        return Judgement(reasons=("nothing_new",))
    database, files = richer
    judgement = check_round(snapshot.database, database, files)
    if not judgement.accepted:
        return judgement
    return Enriched(database, files, judgement)


def make_tools(snapshot: Snapshot, *, seed: int, least_rounds: int = 0) -> Toolbox:
    """Propose tools with their tests, and run the gates of tools and of the environment in the sandbox.

    The environment must use what at least `least_rounds` complexification rounds added.
    """
    from agent_world.discovery.toolsmith import propose_tools
    from agent_world.environments.tool_gate import check_environment, check_tools
    from agent_world.sandbox import default_sandbox

    sandbox = default_sandbox()
    made = propose_tools(snapshot.database, snapshot.files, snapshot.seed.theme, seed)
    verdicts = check_tools(made.database, made.files, made.tools, made.tests, sandbox)
    environment = check_environment(made.database, made.files, verdicts, sandbox, least_rounds=least_rounds)
    return Toolbox(proposal=made, verdicts=tuple(verdicts), environment=environment)
