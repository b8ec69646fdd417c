"""Policies by name: scripted, a checkpoint of a lake or a directory, a model behind an endpoint (design.md 6)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_world.environments.model import Environment
from agent_world.identity import VersionId
from agent_world.rollouts.model import Policy
from agent_world.rollouts.policies import Gold, Null, Wrong
from agent_world.rollouts.randoms import RandomAgent
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.world import World

SCRIPTED = ("gold", "null", "random", "wrong")


@contextmanager
def open_policy(
    name: str,
    tasks: Sequence[Task],
    environments: Sequence[Environment],
    world: World,
    *,
    temperature: float = 1.0,
    api_key: str | None = None,
) -> Iterator[Policy]:
    """The policy that `name` means.

    ``gold``, ``null``, ``random`` and ``wrong`` are scripted; ``<endpoint URL>#<model>`` is served; anything else is a
    model directory or a checkpoint of the lake (a version or a unique start of one).

    Raises:
        BadInputError: ``URL#model`` lacks one of the two, or what is there is no model directory.
        NotFoundError: no checkpoint is called so.
    """
    if name in SCRIPTED:
        yield _scripted(name, tasks, environments)
    elif "://" in name or "#" in name:
        from agent_world.models.chat import ChatPolicy
        from agent_world.models.client import ChatClient, Endpoint

        with ChatClient(Endpoint.parse(name, api_key)) as client:
            yield ChatPolicy(client, temperature=temperature)
    else:
        from agent_world.models.local import LocalPolicy

        if Path(name).is_dir():
            yield LocalPolicy.load(name, version=name, temperature=temperature)
            return
        version = world.resolve("checkpoint", name)
        with laid_down(world, version) as folder:
            yield LocalPolicy.load(folder, version=version, temperature=temperature)


@contextmanager
def laid_down(world: World, checkpoint: VersionId) -> Iterator[Path]:
    """The files of a checkpoint in a folder, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
        lay_down(world.files(checkpoint), Path(folder))
        yield Path(folder)


def lay_down(files: Mapping[str, bytes], directory: Path) -> None:
    """Write the files of a checkpoint, given by path, below `directory`."""
    for path, content in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _scripted(name: str, tasks: Sequence[Task], environments: Sequence[Environment]) -> Policy:
    match name:
        case "gold":
            return Gold(tasks)
        case "null":
            return Null(tasks, environments, form="likely")
        case "wrong":
            return Wrong(tasks, environments)
    return RandomAgent(informed=True)
