"""Parses English noun phrases into terms: sets with relative clauses, superlatives, counts, and facts of facts."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from agent_world.environments.model import Json
from agent_world.solver.function_words import (
    AFTER_NOUN,
    AFTERWARDS,
    AMONG,
    ARTICLES,
    BE,
    BOUNDS,
    ENDS,
    FIRST_BY_NAME,
    JOINED,
    MEANS,
    MORE,
    MOST,
    PAPERS,
    POINTING,
    POSSESSIVE,
    PRONOUNS,
)
from agent_world.solver.kinds import Kinds
from agent_world.solver.lexicon import lexicon, stem
from agent_world.solver.mentions import Token
from agent_world.solver.model import Operator
from agent_world.solver.terms import (
    Attribute,
    Back,
    Best,
    Condition,
    Count,
    Figure,
    Group,
    Made,
    Named,
    Several,
    Term,
    Which,
    Words,
)

_LONGEST = 7  # words that a fact is called by


class Parsed(NamedTuple):
    """A term and the token after it."""

    term: Term
    end: int


class Bound(NamedTuple):
    """What something is compared with, and the token after it."""

    operator: Operator | str
    value: Json | Term
    upper: Json
    end: int


@dataclass(frozen=True, slots=True)
class Grammar:
    """Parses the tokens of a text (punctuation included) with the nouns of an environment."""

    kinds: Kinds
    tokens: Sequence[Token]

    def phrase(self, at: int) -> Parsed | None:
        """The noun phrase that begins at a token; None when none does or it is of no known form."""
        start, at = at, self._after_articles(at)
        if at >= len(self.tokens):
            return None
        token = self.tokens[at]
        if self._says(at, "number", "of"):
            return self._counted(at + 2) or self._fact(at, 2)
        if self._says(at, "how", "many"):
            return self._counted(at + 2)
        if token.low in ("which", "what") and token.kind == "word":
            return self._asked(at + 1)
        if token.low in POSSESSIVE:
            words, end = self._words(at + 1)
            return Parsed(Attribute(words=words, of=Back()), end) if words else None
        if token.low == "new" and start < at:
            return self._made(at + 1)
        if (
            token.low in POINTING
            or (token.low in PRONOUNS and (start == at or self.tokens[at - 1].low == "of"))
            or token.low in ("one", "ones")
        ):
            return self._back(at)
        if token.kind == "name":
            return self._row_of_names(None, at)
        if token.kind != "word":
            return None
        fact = self._fact(at) if self.tokens[start].low not in ("a", "an") else None  # a fact is "the", not "a"
        return self._figure(at) or self._graded(at) or self._thing(at, definite=at > start) or fact

    def opens(self, at: int) -> bool:
        """Whether a noun phrase may begin at a token of a running text."""
        token = self.tokens[at]
        if token.kind != "word":
            return token.kind == "name"
        led = (
            token.low in (ARTICLES - {"of"}) | POSSESSIVE | POINTING | PRONOUNS
            or token.low in MOST
            or token.low in MEANS
        )
        counted = self._says(at, "number", "of") or self._says(at, "how", "many")
        before = self.tokens[at - 1] if at else None
        if not led and not counted and (before is None or before.low in JOINED) and token.low in lexicon().verbs:
            return False  # "claim it": what is done
        if not led and before is not None and before.kind == "word" and not _leads(before.low):
            return False  # "the longest route": what stands before belongs to it
        return led or counted or self.kinds.spoken(self.tokens, at) is not None

    def lists_facts(self, at: int) -> bool:
        """Whether several facts are told of in a row: `the price and the weight of`."""
        words, end = self._words(self._after_articles(at))
        return bool(words) and end < len(self.tokens) and self.tokens[end].low in ("and", ",")

    def fact_words(self, at: int) -> Words:
        """The words for a fact that stand alone; empty when more follows them."""
        words, end = self._words(self._after_articles(at))
        return words if self._ended(end) else ()

    def statement(self, at: int) -> tuple[Term, Condition, int] | None:
        """A thing or a fact with what is said of it: `its rating is above 4`, `flight 12 is not marked delayed`."""
        subject = self.phrase(at)
        if subject is None or subject.end >= len(self.tokens) or self.tokens[subject.end].low not in BE:
            return None
        at = subject.end + 1
        negated = self.tokens[at].low == "not" if at < len(self.tokens) else False
        at += negated
        if self._says(at, "marked"):
            words, end = self._words(at + 1)
            return subject.term, Condition(words=words, operator="marked", negated=negated), end
        bound = self._bound(at)
        if bound is None:
            return None
        said = Condition(words=(), operator=bound.operator, value=bound.value, upper=bound.upper, negated=negated)
        return subject.term, said, bound.end

    def selection(self, at: int) -> Parsed | None:
        """What a question singles out: `of these airports has the highest elevation`, `song is the oldest`."""
        start, of = at, self._says(at, "one") + 0
        at += of
        if self._says(at, "of"):
            found = self.phrase(at + 1)
        else:
            spoken = self.kinds.spoken(self.tokens, at)
            found = Parsed(Group(noun=spoken[0], plural=False), spoken[1]) if spoken else None
        if found is None or start > found.end:
            return None
        at = found.end
        if at >= len(self.tokens) or self.tokens[at].low not in ("has", "have", "had"):
            return None
        at += 1 + self._says(at + 1, "the")
        ranked = self._ranked(at)
        return self._narrowed(found.term, *ranked) if ranked is not None else None

    def _after_articles(self, at: int) -> int:
        while at < len(self.tokens) and self.tokens[at].low in ARTICLES and self.tokens[at].kind == "word":
            at += 1
        return at

    def _says(self, at: int, *words: str) -> bool:
        return at + len(words) <= len(self.tokens) and all(
            self.tokens[at + step].kind == "word" and self.tokens[at + step].low == word
            for step, word in enumerate(words)
        )

    def _words(self, at: int, ends: Container[str] = ENDS) -> tuple[Words, int]:
        """The words for a fact, up to what ends them."""
        words: list[str] = []
        while at < len(self.tokens) and len(words) < _LONGEST:
            token = self.tokens[at]
            if token.kind not in ("word", "number") or (token.kind == "number" and not token.text.isdigit()):
                break
            if token.kind == "word" and token.low in ARTICLES - {"all", "only", "any", "some", "of", "both"}:
                break
            if token.kind == "word" and token.low in ends and not (words and self._runs_on(at)):
                break
            words.append(token.low)
            at += 1
        return tuple(words), at

    def _runs_on(self, at: int) -> bool:
        """Whether a joint stands inside the words for a fact: `size in bytes of`."""
        following = self.tokens[at + 1 : at + 5]
        if self.tokens[at].low not in ("in", "per") or not following or following[0].kind != "word":
            return False
        if following[0].low in ARTICLES | POINTING:
            return False
        end = next((one for one in following if one.kind != "word" or one.low in ENDS), None)
        return end is None or end.low in ("of", "is", "are", "and") or end.kind == "mark"

    def _back(self, at: int) -> Parsed | None:
        token = self.tokens[at]
        spoken = self.kinds.spoken(self.tokens, at + 1) if at + 1 < len(self.tokens) else None
        plural = token.low in ("those", "these", "them", "they", "ones", "both")
        noun, end = spoken if spoken is not None and token.low in POINTING else (None, at + 1)
        if spoken is None and token.low in ("that", "this") and end < len(self.tokens):
            if self._words(end)[0]:
                return None  # a fact that was spoken of, or something that was made
        return self._modified(Back(noun=noun, plural=plural), end)

    def _made(self, at: int) -> Parsed | None:
        words, end = self._words(at)
        return Parsed(Made(noun=tuple(map(stem, words))), end) if words else None

    def _row_of_names(self, noun, at: int) -> Parsed | None:
        """A name or number, or several in a row."""
        first = self.tokens[at]
        parts: list[Named] = []
        while at < len(self.tokens) and self.tokens[at].kind == first.kind:
            token = self.tokens[at]
            parts.append(Named(noun=noun, text=token.text, value=token.text if token.kind == "name" else token.value))
            end = at + 1
            at = end
            while at < len(self.tokens) and self.tokens[at].low in (",", "and", "or", "&"):
                at += 1
            if at == end:
                break
        if not parts:
            return None
        if len(parts) == 1:
            return self._placed(parts[0], end)
        return Parsed(Several(parts=tuple(parts)), end)

    def _placed(self, term: Named, at: int) -> Parsed:
        """A named thing with what it is a part of, for nouns that mean nothing alone."""
        joint = self._says(at, "of", "the") or self._says(at, "in", "the") or self._says(at, "on", "the")
        if term.noun is None or not joint or at + 2 >= len(self.tokens) or self.tokens[at + 2].low not in PAPERS:
            return Parsed(term, at)
        end = at + 2
        words: list[str] = []
        while end < len(self.tokens) and self.tokens[end].kind != "mark" and self.tokens[end].low not in ("and", "to"):
            words.append(self.tokens[end].low)
            end += 1
        return Parsed(replace(term, within=tuple(words)), end)

    def _counted(self, at: int) -> Parsed | None:
        found = self._thing(self._after_articles(at), definite=False) or self.phrase(at)
        if found is None:
            return None
        term, end = found
        if isinstance(term, Group) and not term.conditions and term.of is None:
            if self._says(end, "those", "are") or self._says(end, "there") or self._says(end, "it"):
                return Parsed(Count(of=Back(noun=term.noun, plural=True)), end + 2)
        if isinstance(term, Group | Back | Several):
            return Parsed(Count(of=term), end)
        return None

    def _asked(self, at: int) -> Parsed | None:
        """What follows a question word: `which flight it is`, `how the song is called`."""
        spoken = self.kinds.spoken(self.tokens, at) if at < len(self.tokens) else None
        if spoken is None:
            return None
        noun, end = spoken
        if end < len(self.tokens) and self.tokens[end].low in ("it", "that", "they", "those", "was", "is", ")", "."):
            return Parsed(Which(of=Back(noun=noun)), len(self.tokens))
        return Parsed(Which(of=Back(noun=noun)), end) if end == len(self.tokens) else None

    def _figure(self, at: int) -> Parsed | None:
        """`highest price of the cars`, `mean distance of flights`, `most reviews among them`."""
        low = self.tokens[at].low
        summary = MEANS.get(low) or ({True: "highest", False: "lowest"}[MOST[low]] if low in MOST else None)
        if summary is None:
            return None
        words, end = self._words(at + 1)
        if not words:
            return None
        for joint in AMONG:
            if not self._says(end, *joint):
                continue
            if self._says(end + len(joint), "all", "that") or self._says(end + len(joint), "all", "which"):
                return Parsed(Figure(summary=summary, words=words, of=Back(plural=True, whole=True)), len(self.tokens))
            if self._says(end + len(joint), "all") and self._ended(end + len(joint) + 1):
                whole = Back(plural=True, whole=True)
                return Parsed(Figure(summary=summary, words=words, of=whole), end + len(joint) + 1)
            inner = self.phrase(end + len(joint))
            if inner is not None and isinstance(inner.term, Group | Back | Several):
                several = not isinstance(inner.term, Group) or inner.term.plural
                return Parsed(Figure(summary=summary, words=words, of=inner.term), inner.end) if several else None
        return None

    def _graded(self, at: int) -> Parsed | None:
        """`longer song`, `the oldest of them`: an adjective that says what counts, and what it is about."""
        adjective, compared = graded(self.tokens[at].low)
        if not adjective:
            return None
        spoken = self.kinds.spoken(self.tokens, at + 1) if at + 1 < len(self.tokens) else None
        if spoken is not None:
            return self._narrowed(Group(noun=spoken[0], plural=False), (), True, compared, spoken[1], adjective)
        following = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        if following is None or following.kind != "word" or (following.low in ENDS and following.low != "of"):
            return None
        words, end = self._words(at + 1)
        whole = self._ended(end) and len(words) == 1
        return self._narrowed(Back(plural=True), (), True, compared, end, adjective) if whole else None

    def _together(self, words: Words, at: int) -> Parsed | None:
        """`the three together`, `the two values`: what was named, and what is added up or averaged of it."""
        start = self._after_articles(at)
        if start == at or start >= len(self.tokens) or self.tokens[start].kind != "number":
            return None
        named = Back(plural=True, whole=True)
        if words and words[-1] in MEANS and start + 1 < len(self.tokens):
            more, end = self._words(start + 1)
            return Parsed(Figure(summary=MEANS[words[-1]], words=more, of=named), end) if more else None
        low = self.tokens[start + 1].low if start + 1 < len(self.tokens) else ""
        if words and low in ("together", "combined", "altogether"):
            return Parsed(Figure(summary="sum", words=words, of=named), start + 2)
        return None

    def _difference(self, at: int) -> Parsed | None:
        """`difference in minutes`: of what was compared."""
        if not self._says(at, "difference"):
            return None
        words, end = self._words(at + 2) if self._says(at, "difference", "in") else ((), len(self.tokens))
        return Parsed(Figure(summary="difference", words=words, of=Back(plural=True, whole=True)), end)

    def _ended(self, at: int) -> bool:
        return at >= len(self.tokens) or self.tokens[at].kind == "mark"

    def _thing(self, at: int, *, definite: bool) -> Parsed | None:
        """A noun with what follows it: names, relative clauses, superlatives."""
        spoken = self.kinds.spoken(self.tokens, at) if at < len(self.tokens) else None
        if spoken is None:
            return None
        noun, end = spoken
        if end < len(self.tokens) and self.tokens[end].kind in ("name", "number", "date"):
            named = self._row_of_names(noun, end)
            if named is not None:
                return named
        if self._says(end, "of") and definite and self._opens(end + 1):
            return None  # a fact of something that happens to be called like a kind
        if end < len(self.tokens) and self.tokens[end].kind == "word" and self.tokens[end].low not in AFTER_NOUN:
            return None  # the beginning of the words for a fact: `order total`
        plural = self.tokens[end - 1].kind != "word" or self.tokens[end - 1].low.endswith("s") or not definite
        return self._modified(Group(noun=noun, plural=plural), end)

    def _opens(self, at: int) -> bool:
        """Whether one definite thing begins at a token."""
        found = self.phrase(at)
        return found is not None and not (isinstance(found.term, Group) and found.term.plural)

    def _fact(self, at: int, counted: int = 0) -> Parsed | None:
        """`elevation of the airport`, also with `number of` (`counted` words) before it; `name (which airport)`."""
        apart = self._difference(at)
        if apart is not None:
            return apart
        words, end = self._words(at + counted)
        words = (*(token.low for token in self.tokens[at : at + counted]), *words) if words else ()
        for after in AFTERWARDS:
            if words and self._says(end, *after):
                return Parsed(Attribute(words=words, of=Made()), end + len(after))
        while words and self._says(end, "of"):
            together = self._together(words, end + 1)
            if together is not None:
                return together
            inner = self.phrase(end + 1)
            following = self.tokens[end + 1] if end + 1 < len(self.tokens) else None
            bare = following is not None and following.kind == "word" and following.low not in ARTICLES | POINTING
            more, after = self._words(end + 1)
            if bare and more and self._says(after, "of"):
                words, end = (*words, "of", *more), after
                continue
            return Parsed(Attribute(words=words, of=inner.term), inner.end) if inner is not None else None
        if words and len(words) < 4 and end < len(self.tokens) and self.tokens[end].kind == "name":
            return self._row_of_names(tuple(map(stem, words)), end)
        if len(words) > 1 and words[-1].isdigit() and not words[-2].isdigit():
            return Parsed(Named(noun=tuple(map(stem, words[:-1])), text=words[-1], value=int(words[-1])), end)
        if words and end < len(self.tokens) and self.tokens[end].low == "(" and self._says(end + 1, "which"):
            inner = self._asked(end + 2)
            return Parsed(Attribute(words=words, of=inner.term.of), len(self.tokens)) if inner else None
        return None

    def _modified(self, term: Group | Back, at: int) -> Parsed | None:
        """What follows a noun and narrows what it stands for."""
        conditions: list[Condition] = []
        while at < len(self.tokens):
            token = self.tokens[at]
            ranked = None
            if token.low == "whose":
                found = self._whose(at + 1)
                if found is None:
                    return None
                conditions += found[0]
                at = found[1]
                continue
            if self._says(at, "with", "the", "same") or self._says(at, "with", "same"):
                start = at + (3 if self._says(at, "with", "the") else 2)
                alike, at = self._alike(start)
                if not alike:
                    return None
                conditions += alike
                continue
            if token.low == "marked" or self._says(at, "not", "marked"):
                words, end = self._words(at + 1 + (token.low == "not"))
                if not words:
                    return None
                conditions.append(Condition(words=words, operator="marked", negated=token.low == "not"))
                at = end
                continue
            if token.low == "with":
                ranked = self._ranked(at + 1 + self._says(at + 1, "the"))
            elif token.low in ("that", "which", "who") and (end := self._first_by_name(at + 1)) is not None:
                ranked = (), True, False, end
            elif token.low in ("that", "which", "you") and isinstance(term, Group) and self._done_with(at):
                return Parsed(Back(noun=term.noun), len(self.tokens))
            if ranked is None:
                break
            kept = replace(term, conditions=tuple(conditions)) if isinstance(term, Group) else term
            return self._narrowed(kept, *ranked)
        if not conditions:
            return Parsed(term, at)
        if isinstance(term, Back):
            return Parsed(Group(noun=term.noun or (), conditions=tuple(conditions), of=term), at)
        return Parsed(replace(term, conditions=tuple(conditions)), at)

    def _done_with(self, at: int) -> bool:
        """Whether a clause tells what was done to a thing: `that was lent`, `you picked`."""
        at += 1 + (self.tokens[at + 1].low in BE if at + 1 < len(self.tokens) else 0)
        return at < len(self.tokens) and self.tokens[at].low.endswith(("ed", "nt", "en")) and self._ended(at + 1)

    def _alike(self, at: int) -> tuple[list[Condition], int]:
        """`genre as the song "A" and the same year as the song "B"`."""
        conditions: list[Condition] = []
        while True:
            words, end = self._words(at)
            other = self.phrase(end + 1) if words and self._says(end, "as") else None
            if other is None:
                return conditions, at
            conditions.append(Condition(words=words, operator="like", value=other.term))
            at = other.end
            again = next((len(one) for one in (("and", "the", "same"), ("and", "same")) if self._says(at, *one)), None)
            if again is None:
                return conditions, at
            at += again

    def _whose(self, at: int) -> tuple[list[Condition], int] | None:
        """`price is at least 3 and genre is "Drama"`."""
        conditions: list[Condition] = []
        while True:
            words, end = self._words(at)
            while words and self._says(end, "of"):
                more, after = self._words(end + 1)
                if not more:
                    break
                words, end = (*words, "of", *more), after
            if not words or end >= len(self.tokens) or self.tokens[end].low not in BE:
                return (conditions, at - 1) if conditions else None
            negated = self._says(end + 1, "not")
            bound = self._bound(end + 1 + negated)
            if bound is None:
                return None
            operator, value, upper, at = bound
            conditions.append(Condition(words=words, operator=operator, value=value, upper=upper, negated=negated))
            if not self._says(at, "and"):
                return conditions, at
            at += 1

    def _bound(self, at: int) -> Bound | None:
        """What a fact is compared with."""
        if at >= len(self.tokens):
            return None
        if self.tokens[at].low in ("from", "between") and at + 3 < len(self.tokens):
            low, high = self.tokens[at + 1], self.tokens[at + 3]
            if {low.kind, high.kind} <= {"number", "date"}:
                return Bound("between", low.value, high.value, at + 4)
        for words, operator in BOUNDS:
            end = at + len(words)
            if self._says(at, *words) and end < len(self.tokens) and self.tokens[end].kind in ("number", "date"):
                return Bound(operator, self.tokens[end].value, None, end + 1)
        token = self.tokens[at]
        if token.kind in ("number", "date"):
            return Bound("eq" if token.kind == "number" else "same", token.value, None, at + 1)
        if token.kind == "name":
            return Bound("same", token.text, None, at + 1)
        inner = self.phrase(at)
        if inner is not None and not isinstance(inner.term, Several):
            return Bound("same", inner.term, None, inner.end)
        return None

    def _ranked(self, at: int) -> tuple[Words, bool, bool, int] | None:
        """`highest price`, `fewer pages`: the words, whether more counts, whether it compares, and the end."""
        low = self.tokens[at].low if at < len(self.tokens) and self.tokens[at].kind == "word" else ""
        more = MOST.get(low, MORE.get(low))
        compared = low in MORE
        if more is None:
            lexemes = lexicon()
            adjective = lexemes.superlatives.get(low) or lexemes.comparatives.get(low, "")
            degrees = lexemes.degrees.get(adjective, ())
            if not degrees:
                return None
            more, compared = degrees[0].more, low in lexemes.comparatives
        words, end = self._words(at + 1)
        return (words, more, compared, end) if words else None

    def _narrowed(self, term: Term, words: Words, more: bool, compared: bool, end: int, adjective: str = "") -> Parsed:
        """The one that stands out, among those that a following `among` names."""
        for joint in AMONG[:5]:
            inner = self.phrase(end + len(joint)) if self._says(end, *joint) else None
            if inner is not None and isinstance(inner.term, Group | Back | Several):
                term, end = inner.term, inner.end
                break
        return Parsed(Best(of=term, words=words, more=more, compared=compared, adjective=adjective), end)

    def _first_by_name(self, at: int) -> int | None:
        """The end of a clause such as `is first by name`."""
        lows = [token.low for token in self.tokens[at : at + 6]]
        place = next((step for step, low in enumerate(lows) if low in FIRST_BY_NAME), None)
        return at + place + 1 if place is not None and "first" in lows[: place + 2] else None


def graded(low: str) -> tuple[str, bool]:
    """The adjective of a comparative or superlative that says itself what it measures; whether it compares."""
    lexemes = lexicon()
    if low in MOST or low in MORE:
        return "", False
    adjective = lexemes.comparatives.get(low) or lexemes.superlatives.get(low) or ""
    return (adjective, low in lexemes.comparatives) if lexemes.degrees.get(adjective) else ("", False)


def _leads(low: str) -> bool:
    """Whether a noun phrase may begin behind a word, which is no adjective then."""
    lexemes = lexicon()
    return low in ENDS | ARTICLES or low in lexemes.stop or low in lexemes.verbs or low in lexemes.before
