"""What the taxonomy reads of a theme, and the sides from which its annotators look at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from agent_world.discovery.model import Theme, environment_key
from agent_world.discovery.text import stem, stems

Side = Literal["prose", "entities", "tools"]

_READ = 1_500  # characters of a description: what it is about stands first
_READ_OF_TOOL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A theme as the taxonomy sees it: what it says of itself, its entities and actions, what is said of its tools."""

    key: str
    title: str
    text: str
    nouns: tuple[str, ...]
    verbs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def topic_of(theme: Theme) -> Topic:
    """The topic of a theme, under its environment key."""
    return Topic(
        key=environment_key(theme),
        title=theme.title,
        text=theme.description,
        nouns=theme.nouns,
        verbs=theme.verbs,
        tools=tuple(f"{tool['name']} {tool.get('description', '')[:_READ_OF_TOOL]}" for tool in theme.tools),
    )


def stems_of(topic: Topic, side: Side) -> list[str]:
    """The stems that a topic shows from one side, behind its title, which everybody sees."""
    return [*stems(topic.title), *stems(topic.title), *_SHOWN[side](topic)]


def all_stems_of(topic: Topic) -> list[str]:
    """The stems that a topic shows from all sides."""
    return [*stems(topic.title), *(word for show in _SHOWN.values() for word in show(topic))]


def _prose(topic: Topic) -> list[str]:
    return stems(topic.text[:_READ])


def _entities(topic: Topic) -> list[str]:
    return [stem(word) for word in (*topic.nouns, *topic.verbs)]


def _tools(topic: Topic) -> list[str]:
    """Each tool counts a word once; requirement documents have no tools, then entities and actions stand for them."""
    return [word for tool in topic.tools for word in sorted(set(stems(tool)))] or _entities(topic)


_SHOWN: Mapping[Side, Callable[[Topic], list[str]]] = {"prose": _prose, "entities": _entities, "tools": _tools}
