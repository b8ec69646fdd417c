"""Plain English for a task: what to do and what to tell, at three levels of rewriting, without tool or identifier.

Level 0 states the steps in their order, level 1 asks directly, level 2 gives the goal and leaves the workflow to be
inferred. Variants of one pattern are chosen by seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_world.environments.model import Tool
from agent_world.tasks.phrases import Fact, Thing, bare, capital, listed, number, plain, quote, tell
from agent_world.tasks.saying import Given
from agent_world.tasks.values import is_person

_ARTICLE = r"\b(?:an?|one|another|the|some)\s+(?:[a-z]+\s+)?"
_MAKING = {"create", "add", "open", "make", "file", "start", "register", "submit", "record", "place", "enter", "new"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meet:
    """A row that the plan looks up."""

    thing: Thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A change that the user wants: a verb phrase in the imperative, and the row it makes or changes."""

    phrase: str
    about: Thing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Facts to report."""

    facts: tuple[Fact, ...]


Beat = Meet | Act | Ask

_TELL = ("Tell me", "Give me", "Report", "State", "Find out", "I need", "Let me know", "Please give", "Note down")
_WANT = (
    "I would like to know",
    "I am looking for",
    "What I want to know is",
    "Could you tell me",
    "For my notes I need",
)
_FIRST = ("Look up", "Find", "First find", "Start with")
_NEXT = ("Then look up", "Next find", "After that find", "Then find")
_AFTER = ("Then tell me", "Afterwards report", "When that is done, give me", "Finally tell me", "Then report")
_PLEASE = ("Please", "I want you to", "Could you", "I need you to")


def instruction(beats: Sequence[Beat], level: int, rng: random.Random) -> str:
    """The text of a task whose plan goes through `beats` in order."""
    sentences = _in_steps(beats, rng) if level == 0 else _direct(beats, rng) if level == 1 else _goal(beats, rng)
    text = " ".join(sentence if sentence.endswith(("?", ".")) else f"{sentence}." for sentence in sentences)
    return _shortened(text, [thing for beat in beats for thing in _things(beat)])


def act(tool: Tool, given: Mapping[str, Given], known: Thing | None = None) -> Act:
    """What a writing call does, said from the first sentence of its description with its arguments put in.

    `known` is the row made or changed just before, which is then only pointed at.
    """
    phrase = re.split(r"(?<=[a-z)])[.;:]\s", tool.description + " ")[0].rstrip(". ")
    phrase = re.sub(r",\s.*$| at (its|their) .*$", "", phrase)
    phrase = re.sub(r"\s*\([^)]*\)", "", phrase)
    rest: list[str] = []
    said: set[str] = set()
    about = None
    for parameter, item in given.items():
        meaning = item.meaning
        if meaning.kind in ("key", "label") and item.thing is not None:
            about = item.thing if about is None else about
            shown = item.thing.back() if item.thing == known or item.thing.made else item.thing.say()
            amount = next((number(other.value) for other in given.values() if other.meaning.kind == "quantity"), None)
            phrase, placed = _put(phrase, [item.thing.noun, _noun(parameter)], shown, amount)
            if placed and amount and f"{amount} of {shown}" in phrase:
                said.add(amount)
            if not placed and item.thing.made:
                phrase = f"{tool.name.split('_')[0]} {shown}"
            elif not placed:
                rest.append(f"for {shown}")
        elif meaning.kind == "quantity" and number(item.value) in said:
            continue
        elif meaning.kind in ("quantity", "threshold") or isinstance(item.value, int | float):
            phrase, placed = _put_number(phrase, _noun(parameter), number(item.value))
            if not placed:
                rest.append(f"with {_noun(parameter)} {number(item.value)}")
        elif meaning.kind == "filter":
            words = plain(_noun(parameter))
            phrase, placed = _put(phrase, [words, _inverted(words)], f"{words} {quote(item.value)}")
            if not placed:
                rest.append(f"with {words} {quote(item.value)}")
        else:
            phrase, placed = _put(phrase, [_noun(parameter)], quote(item.value))
            if not placed:
                rest.append(
                    f"in the name of {quote(item.value)}"
                    if is_person(tool, parameter)
                    else f"with {_noun(parameter)} {quote(item.value)}"
                )
    return Act(phrase=" ".join([phrase[:1].lower() + phrase[1:], *rest]), about=about)


def _put(phrase: str, nouns: Sequence[str], shown: str, amount: str | None = None) -> tuple[str, bool]:
    """`phrase` with the first indefinite mention of one of `nouns` replaced; its plural stands for `amount` of them."""
    for noun in nouns:
        changed, count = re.subn(rf"{_ARTICLE}{re.escape(noun)}\b", lambda _: shown, phrase, count=1)
        if count:
            return changed, True
        if amount is not None:
            changed, count = re.subn(rf"\b{re.escape(noun)}s\b", lambda _: f"{amount} of {shown}", phrase, count=1)
            if count:
                return changed, True
    return phrase, False


def _put_number(phrase: str, unit: str, value: str) -> tuple[str, bool]:
    changed, count = re.subn(rf"\bhow many {re.escape(unit)} (.+?) is for\b", rf"\1 to {value} {unit}", phrase, count=1)
    if count:
        return changed, True
    changed, count = re.subn(rf"(?<!the )(?:some )?\b{re.escape(unit)}\b", f"{value} {unit}", phrase, count=1)
    return changed, bool(count)


def _inverted(words: str) -> str:
    """`time zone` as descriptions may put it: `zone of time`."""
    first, _, last = words.rpartition(" ")
    return f"{last} of {first}" if first else words


def _noun(parameter: str) -> str:
    return bare(parameter.replace("_", " "))


def _in_steps(beats: Sequence[Beat], rng: random.Random) -> list[str]:
    """The steps in order, a sentence each; what was just mentioned is only pointed at."""
    sentences: list[str] = []
    last: Thing | None = None
    for beat in _merged(beats):
        opening = not sentences
        match beat:
            case [*things]:
                lead = rng.choice(_FIRST if opening else _NEXT)
                sentences.append(f"{lead} {listed(_stepwise(thing, last) for thing in things)}")
                last = things[-1] if len(things) == 1 else None
            case Act():
                sentences.append(capital(beat.phrase) if opening or rng.random() < 0.5 else f"Then {beat.phrase}")
                last = beat.about
            case Ask():
                lead = rng.choice(_TELL)
                sentences.append(f"{lead} {tell(beat.facts, known=last)}")
                last = last if all(fact.about == last for fact in beat.facts) else None
    return sentences


def _stepwise(thing: Thing, last: Thing | None) -> str:
    if thing.relation is not None and thing.relation[1] == last:
        return f"its {thing.relation[0]}"
    return thing.say(typed=True)


def _merged(beats: Sequence[Beat]) -> list[list[Thing] | Act | Ask]:
    merged: list[list[Thing] | Act | Ask] = []
    for beat in beats:
        if isinstance(beat, Meet):
            if merged and isinstance(merged[-1], list) and beat.thing.relation is None:
                merged[-1].append(beat.thing)
            else:
                merged.append([beat.thing])
        else:
            merged.append(beat)
    return merged


def _direct(beats: Sequence[Beat], rng: random.Random) -> list[str]:
    """What to do in one sentence, what to tell in another."""
    acts = [beat for beat in beats if isinstance(beat, Act)]
    facts = _facts(beats)
    sentences = []
    if acts:
        sentences.append(capital(_then(acts)))
    if facts:
        last = acts[-1].about if len(acts) == 1 else None
        lead = rng.choice(_AFTER if acts else _TELL)
        if not acts and len({fact.about for fact in facts}) == 1 and rng.random() < 0.5:
            sentences.append(_question(facts))
        else:
            sentences.append(f"{lead} {tell(facts, known=last if last and last.made else None)}")
    return sentences


def _goal(beats: Sequence[Beat], rng: random.Random) -> list[str]:
    """The goal alone: what shall be known comes first, what has to be done for it after."""
    acts = [beat for beat in beats if isinstance(beat, Act)]
    facts = _facts(beats)
    if not acts:
        lead = rng.choice(_WANT)
        return [f"{lead} {tell(facts)}{'?' if lead.startswith('Could') else '.'}"]
    wish = f"{rng.choice(_PLEASE)} {_then(acts)}"
    wish = f"{wish}?" if wish.startswith("Could") else wish
    if not facts:
        return [wish]
    return [
        wish,
        f"{rng.choice(('I also want to know', 'At the end I need', 'My question afterwards is'))} {tell(facts)}",
    ]


def _then(acts: Sequence[Act]) -> str:
    return ", then ".join(beat.phrase for beat in acts)


def _facts(beats: Sequence[Beat]) -> list[Fact]:
    return [fact for beat in beats if isinstance(beat, Ask) for fact in beat.facts]


def _question(facts: Sequence[Fact]) -> str:
    verb = "is" if len(facts) == 1 else "are"
    return f"What {verb} {tell(facts)}?"


def _things(beat: Beat) -> list[Thing]:
    if isinstance(beat, Meet):
        return [beat.thing]
    if isinstance(beat, Act):
        return [beat.about] if beat.about is not None else []
    return [fact.about for fact in beat.facts if isinstance(fact.about, Thing)]


def _shortened(text: str, things: Sequence[Thing]) -> str:
    """`text` with a long description of a row replaced by `that ...` from its second mention on."""
    described = {thing.say(): thing for thing in things if thing.name is None and thing.code is None and not thing.made}
    for long, thing in described.items():
        alone = all(other.noun != thing.noun for other in described.values() if other != thing)
        if alone and text.count(long) > 1:
            head, _, rest = text.partition(long)
            text = f"{head}{long}{rest.replace(long, thing.back())}"
    return text
