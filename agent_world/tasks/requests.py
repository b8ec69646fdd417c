"""What a writing call does, as a request: the first sentence of its description with its arguments put in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent_world.environments.model import Tool
from agent_world.tasks.phrases import Act, Thing, bare, number, plain, quote
from agent_world.tasks.saying import Given
from agent_world.tasks.values import is_person

_NO_ADJECTIVE = r"(?!(?:of|for|to|on|in|at|by|off|from|with|an?|one|another|the)\b)"
_ARTICLE = rf"\b(?:an?|one|another|the|some)\s+(?:{_NO_ADJECTIVE}[a-z]+\s+){{0,3}}?"
_END_OF_SENTENCE = re.compile(r"(?<=[a-z0-9)])[.;:]\s")
_ASIDES = (r",\s.*$", r"\s*\([^)]*\)", r" at (its|their) .*$", r" for \d+ days$")
_SOMEBODY = re.compile(r"\b(somebody|someone|anybody)\b")


def act(tool: Tool, given: Mapping[str, Given], known: Thing | None = None) -> Act:
    """The request that `tool` be called with arguments `given`.

    `known` is the row made or changed just before, which is then only pointed at.
    """
    if tool.pattern == "document_update" and len(given) == 3:
        return Act(phrase=_correction(tool, given))
    request = _Request(tool)
    amount = next((name for name, item in given.items() if item.meaning.kind == "quantity"), None)
    if amount is not None and re.search(rf"\b{re.escape(_noun(amount))}\b", request.phrase):
        request.put_amount(_noun(amount), number(given[amount].value))
        amount = None
    for parameter, item in given.items():
        if item.meaning.kind in ("key", "label") and item.thing is not None:
            pointed = item.thing == known or item.thing.made
            shown = item.thing.back() if pointed else item.thing.say()
            spent = request.put_row(
                item.thing, _noun(parameter), shown, number(given[amount].value) if amount else None
            )
            amount = None if spent else amount
        elif item.meaning.kind != "quantity":
            request.put_value(parameter, item)
    if amount is not None:
        request.rest.append(f"with {_noun(amount)} {number(given[amount].value)}")
    return Act(phrase=" ".join([request.phrase, *request.rest]), about=request.about)


class _Request:
    """A request under construction: `rest` is what found no place in the sentence."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        sentence = _END_OF_SENTENCE.split(f"{tool.description} ")[0].rstrip(". ")
        for aside in _ASIDES:
            sentence = re.sub(aside, "", sentence)
        self.phrase = sentence[:1].lower() + sentence[1:]
        self.rest: list[str] = []
        self.about: Thing | None = None

    def put_row(self, thing: Thing, noun: str, shown: str, amount: str | None) -> bool:
        """Put a row where the sentence speaks of one of its kind; whether `amount` of it was said with it."""
        self.about = self.about or thing
        if self._put([thing.noun, noun], shown):
            return False
        if amount is not None and self._replace(rf"\b{re.escape(thing.noun)}(?:s|es)?\b", f"{amount} of {shown}"):
            return True
        if thing.made:
            self.phrase = _verb(self.tool.name, thing.noun, shown)
        elif not self._replace(_SOMEBODY.pattern, shown):
            self.rest.append(f"for {shown}")
        return False

    def put_amount(self, unit: str, value: str) -> None:
        """Put a number where the sentence speaks of its unit: `change that booking to 3 seats`, `book 3 seats`."""
        name = re.escape(unit)
        if self._replace(rf"\bhow many {name} (.+?) is for\b", rf"\1 to {value} {unit}", expand=True):
            return
        if not self._replace(rf"\b(?:an?|one|another) {name}\b", f"{unit} {value}"):
            self._replace(rf"(?<!the )(?:some )?\b{name}\b", f"{value} {unit}")

    def put_value(self, parameter: str, item: Given) -> None:
        """Put a text, a name or a value where the sentence asks for it, else at its end."""
        words = plain(_noun(parameter))
        if item.meaning.kind == "filter":
            if not self._put([words, _inverted(words)], f"{words} {quote(item.value)}"):
                self.rest.append(f"with {words} {quote(item.value)}")
            return
        if self._put([words], quote(item.value)):
            return
        if is_person(self.tool, parameter):
            if not self._replace(_SOMEBODY.pattern, quote(item.value)):
                self.rest.append(f"{'to' if self.tool.pattern == 'change' else 'in the name of'} {quote(item.value)}")
        else:
            self.rest.append(f"with {words} {quote(item.value)}")

    def _put(self, nouns: Sequence[str], shown: str) -> bool:
        return any(self._replace(rf"{_ARTICLE}{re.escape(noun)}\b", shown) for noun in nouns)

    def _replace(self, pattern: str, shown: str, *, expand: bool = False) -> bool:
        self.phrase, count = re.subn(pattern, shown if expand else lambda _: shown, self.phrase, count=1)
        return bool(count)


def _verb(name: str, noun: str, shown: str) -> str:
    """The name of a tool as a request about what was made: `report that loan lost` for ``report_loan_lost``."""
    spoken = name.replace("_", " ")
    said = re.sub(rf"\b{re.escape(noun)}\b", lambda _: shown, spoken, count=1)
    return said if said != spoken else f"{spoken.split()[0]} {shown}"


def _correction(tool: Tool, given: Mapping[str, Given]) -> str:
    """The request to set one field of one entry of a document."""
    place = re.search(r"\bin (the .+?)$", _END_OF_SENTENCE.split(f"{tool.description} ")[0].rstrip(". "))
    said = {name: str(item.value) for name, item in given.items()}
    field, value = said.pop("field"), said.pop("value")
    (entry,) = said.values()
    where = f" in {place[1]}" if place else ""
    return f"correct the {field.replace('_', ' ')} of the entry {quote(entry)}{where} to {quote(value)}"


def _inverted(words: str) -> str:
    """`time zone` as descriptions may put it: `zone of time`."""
    first, _, last = words.rpartition(" ")
    return f"{last} of {first}" if first else words


def _noun(parameter: str) -> str:
    return bare(parameter.replace("_", " "))
