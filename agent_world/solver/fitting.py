"""How well words mean a field or a parameter of a tool, and values in the types that parameters take."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from agent_world.environments.model import Json
from agent_world.solver.fields import Bag, Field, Parameter, bag_of
from agent_world.solver.index import Toolbox
from agent_world.solver.lexicon import similarity, stem
from agent_world.solver.places import as_number
from agent_world.solver.terms import Words

FITS = 0.6
"""How well words must fit a field or parameter to mean it."""

KEYS = frozenset(map(stem, ("id", "identifier", "code", "key", "number")))
"""Words that ask for what machines know a thing by."""

_BOUNDING = frozenset(
    map(
        stem,
        "min max minimum maximum least most from to until since before after lowest highest earliest latest".split(),
    )
)


@lru_cache(maxsize=32768)
def likeness(box: Toolbox, words: Words, one: Field | Parameter) -> float:
    """How well words mean a field or a parameter, from 0 to 1."""
    spoken = bag_of(" ".join(words))
    bounding = _BOUNDING if isinstance(one, Parameter) else frozenset()
    names = {word: weight for word, weight in one.names.items() if word not in bounding or word in spoken}
    if not names:
        return box.match(spoken, one.words)  # "earliest": what it bounds stands in the description
    told = {word: weight for word, weight in one.words.items() if weight == 1.0 or isinstance(one, Field)}
    fit = max(_alike(box, spoken, names), 0.95 * _alike(box, spoken, told))
    if isinstance(one, Field) and one.key and not KEYS & spoken.keys():
        fit *= 0.8  # people rarely ask for what only machines know a thing by
    return fit if box.closest(_head(words), one.words) > 0.5 else 0.7 * fit


def typed(value: Json, parameter: Parameter) -> Json:
    """A value in the type of a parameter."""
    if parameter.numeric:
        number = as_number(value) if isinstance(value, str) else value
        return (
            int(number)
            if isinstance(number, float) and number.is_integer() and "integer" in parameter.types
            else number
        )
    return str(value) if not isinstance(value, str) and "string" in parameter.types else value


def _alike(box: Toolbox, spoken: Bag, told: Bag) -> float:
    """How much two bags of words mean the same: the harmonic mean of what each covers of the other."""
    one, other = _covered(box, spoken, told), _covered(box, told, spoken)
    return 2 * one * other / (one + other) if one and other else 0.0


def _covered(box: Toolbox, words: Iterable[str], others: Iterable[str]) -> float:
    """The share of what `words` tell that `others` tell as well."""
    total = covered = 0.0
    for word in words:
        telling = box.weight(word)
        total += telling
        covered += telling * max((near for other in others if (near := similarity(word, other)) > 0.3), default=0.0)
    return covered / total if total else 0.0


def _head(words: Words) -> str:
    """The stem of the word that says what a fact is: `status` of `booking status`, `size` of `size in bytes`."""
    end = next((at for at, word in enumerate(words) if at and word in ("of", "in", "per")), len(words))
    return stem(next((word for word in reversed(words[:end]) if not word.isdigit()), words[-1]))
