"""Plain English for a task: what to do and what to tell, at three levels of rewriting, without tool or identifier.

Level 0 states the steps in their order, level 1 asks directly, level 2 gives the goal and leaves the workflow to be
inferred. Variants of one pattern are chosen by seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from agent_world.tasks.phrases import Act, Ask, Fact, Meet, Thing, capital, listed, tell

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
