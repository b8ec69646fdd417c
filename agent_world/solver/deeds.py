"""Which writing tool an order means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_world.environments.model import Json
from agent_world.solver.fields import merge
from agent_world.solver.index import IndexedTool
from agent_world.solver.lexicon import lexicon, stem
from agent_world.solver.model import Clause, Constraint, Mention, is_strong
from agent_world.solver.plan import Plan, Planner

SURE = 0.62
"""How well a verb must fit before something is written because of it."""

_ALIAS = 0.9  # how telling a synonym from the description is


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """A writing call that was made: its result, or None and the message when it was refused."""

    tool: IndexedTool
    arguments: Mapping[str, Json]
    result: Mapping[str, Json] | None
    clause: Clause
    constraints: tuple[Constraint, ...]
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A writing tool for a clause, how sure it is, and the plan for its arguments."""

    tool: IndexedTool
    plan: Plan
    score: float
    verb: float
    noun: float


def orders(clause: Clause, planner: Planner, done: Sequence[Deed]) -> list[Order]:
    """The writing tools that `clause` may mean, the likeliest first."""
    box = planner.box
    spoken = _verbs(clause)
    tokens = [token.stem for token in clause.tokens if token.kind == "word"]
    wanting = bool(_WANTING.search(clause.text.lower()))
    found = []
    for tool in box.writing():
        verb = max(
            (
                weight
                * max(
                    box.closest(word, tool.verb),
                    0.75 * max((box.closest(word, {state: 1.0}) for state in tool.becomes), default=0.0),
                )
                for word, weight in spoken.items()
            ),
            default=0.0,
        )
        verb = max(verb, max((_ALIAS for alias in tool.aliases if _says(alias, tokens)), default=0.0))
        parameters = merge(*(one.words for one in tool.parameters))
        if wanting and box.touch(clause.content, tool.nouns) > 0.5:
            verb = max(verb, 0.8 * max(box.closest(word, tool.verb) for word in _MAKING))
        named = {word: 1.0 for word, weight in tool.nouns.items() if weight == 1.0}
        noun = box.touch(clause.content, merge(tool.nouns, {word: 0.8 * weight for word, weight in parameters.items()}))
        plan = planner.build(tool, clause.constraints)
        strong = [one for one in clause.constraints if isinstance(one, Mention)]
        placed = 1 - len([one for one in plan.left if one in strong]) / len(strong) if strong else 0.5
        made = {deed.tool.name for deed in done if deed.result is not None}
        unmade = [
            one
            for one in tool.required
            if planner.recall(tool, one) is None
            and any(link.tool.writes for link in box.links.get((tool.name, one.name), ()))
        ]
        again = 0.15 if tool.name in made and not strong else 0.0
        if clause.refers and any(token.low in ("it", "that", "them", "this") for token in clause.tokens):
            # "it" is what was made before: another one of it is rarely meant.
            known = [
                one
                for one in tool.required
                if any(link.tool.writes for link in box.links.get((tool.name, one.name), ()))
            ]
            again += 0.3 if tool.name in made and not known else -0.1 if known and not unmade else 0.0
        unplaced = len([one for one in plan.left if isinstance(one, Mention) and one.kind == "name"])
        score = (
            verb
            - 0.2 * unplaced
            - (0.3 if unmade and verb < 0.6 else 0.12 if unmade else 0.0)
            + 0.3 * noun
            + 0.25 * box.match(named, clause.content)
            + 0.35 * placed
            - 0.12 * len(plan.missing)
            - again
        )
        found.append(
            Order(
                tool=tool,
                plan=plan,
                score=score + planner.chance("deed", clause.position, tool.name),
                verb=verb,
                noun=noun,
            )
        )
    return sorted(found, key=lambda order: -order.score)


def likely_order(clause: Clause, planner: Planner) -> Order:
    """The likeliest order of a clause, whatever was done before."""
    return orders(clause, planner, ())[0]


def is_complete(order: Order, spare: bool) -> bool:
    """Whether everything named goes into the call and nothing it needs is missing: an order without a telling verb.

    Its words must speak of what the tool is about, unless another way follows (`spare`).
    """
    names = [one for one in order.plan.left if is_strong(one)]
    missing = [one for one in order.plan.missing if one.role != "number"]
    told = len(order.plan.query.given) + len(order.plan.query.fed)
    return not missing and not names and told >= 2 and (spare or order.noun > 0.5)


def _says(alias: frozenset[str], tokens: Sequence[str]) -> bool:
    """Whether all words of a synonym stand in a clause, a single one at its beginning."""
    return bool(alias) and alias <= set(
        tokens[:6] if len(alias) > 1 else [one for one in tokens if one not in lexicon().stop][:1]
    )


def _verbs(clause: Clause) -> dict[str, float]:
    """The words of a clause that may say what to do; the first one and verbs with a particle count most."""
    lexemes = lexicon()
    spoken: dict[str, float] = {}
    weight = 1.0
    words = {token.stem for token in clause.tokens}
    caused = clause.tokens[0].low in ("have", "get", "let")
    for at, token in enumerate(clause.tokens):
        if at and clause.tokens[at - 1].kind == "name" and token.kind == "word" and token.low.endswith(("ed", "s")):
            spoken.setdefault(token.stem, 0.9)  # "Ann borrowed ...", "Ann returns ..."
        if token.kind != "word" or token.low in _DETERMINERS:
            weight = min(weight, 0.55)
        elif token.low not in lexemes.stop or token.low in _GIVING:
            told = at > 0 and clause.tokens[at - 1].low in _SUBJECTS and token.low.endswith("ed") and not caused
            spoken.setdefault(token.stem, 0.4 if told else weight)
            weight = min(weight, 0.7)
    for word in clause.content:
        if word not in words:
            spoken[word] = 1.05
    return spoken


_WANTING = re.compile(
    r"^(?:\w+( \w+)?) ?(wants?|needs?|would like|would love|'d like|wish(es)?)\b|\bi (want|need|would like|'d like)"
)
_MAKING = tuple(map(stem, ("create", "make", "start", "open", "book", "reserve", "order", "register")))


_GIVING = frozenset(("give", "report", "get", "let"))
_DETERMINERS = frozenset("a an the this that these those my your his her its our their".split())
_SUBJECTS = frozenset("i he she they we you it".split())
