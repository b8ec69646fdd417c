"""Reads one clause: names and numbers with the words around them, comparisons, superlatives, and what is asked."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import replace

from agent_world.solver.index import Toolbox
from agent_world.solver.lexicon import Degree, is_common, lexicon, stem
from agent_world.solver.mentions import Token
from agent_world.solver.model import Clause, Compare, Constraint, Extreme, Kind, Mention
from agent_world.solver.patterns import COMPARISONS, SUMMARIES

QUESTION_WORDS = frozenset({"who", "whom", "whose", "which", "what", "when", "where", "why", "how", "whether"})
"""Words that begin a question, also inside a sentence."""

_ASKING = frozenset(
    (
        "tell give say report state name list show find compute calculate determine work sum count"
        " compare look check see figure return provide answer let know"
    ).split()
)
AUXILIARIES = {"is", "are", "was", "were", "does", "do", "did", "has", "have"}
"""Verbs that begin a yes-or-no question."""

POLITE = frozenset(
    (
        "please kindly can could would will you i we want need like to then and afterwards next finally"
        " also first now just after that d i'd let's go ahead but so lastly secondly thereafter"
        " subsequently immediately once done hi hello hey me us help rather try"
    ).split()
)
"""Words before a request that are none themselves."""

_REFERRING = frozenset(
    ("it its they them their those these that there he she his her him such this same one ones both theirs the").split()
)
_JOINING = {",", "and", "or", "&", "followed", "then"}
_ENGLISH_ENDINGS = (
    "ing",
    "ed",
    "ly",
    "tion",
    "ment",
    "ness",
    "ity",
    "able",
    "ible",
    "ful",
    "less",
    "ous",
    "ive",
    "ance",
    "ence",
    "est",
    "er",
    "al",
    "ent",
    "ant",
    "ic",
    "ure",
    "age",
    "ary",
    "ory",
    "ship",
    "ism",
    "ist",
    "ize",
    "ise",
)
_NUMBERING = frozenset(("number", "no", "nr", "id", "#"))
_SYMBOL = {"name": "@", "number": "#", "date": "#"}


def read_clause(tokens: list[Token], box: Toolbox, position: int, asked_for: Sequence[int] = ()) -> Clause:
    """Reads one clause; what stands at `asked_for` is what it asks for and says nothing about the names beside it."""
    kept = tuple(token for token in tokens if token.text != "?")
    asked = len(kept) < len(tokens)
    symbols = [_SYMBOL.get(token.kind, token.low) for token in kept]
    starts, text = [], ""
    for symbol in symbols:
        starts.append(len(text))
        text += symbol + " "
    where = {start: at for at, start in enumerate(starts)}
    used: set[int] = set()
    constraints: list[Constraint] = [*_compares(kept, text, where, used), *_extremes(kept, used)]
    summaries = frozenset(summary for summary, pattern in SUMMARIES if pattern.search(text))
    head = _head_span(kept)
    compared = {at + step for at, token in enumerate(kept) if token.low in ("more", "fewer", "less") for step in (1, 2)}
    constraints += _mentions(kept, used, box, {*head, *compared, *asked_for})
    lexemes = lexicon()
    content: dict[str, float] = {}
    for at, token in enumerate(kept):
        attribute = token.kind == "name" and token.text.isupper() and token.low in box.parts
        if (token.kind == "word" or attribute) and token.low not in lexemes.stop and at not in used:
            content.setdefault(stem(token.low), 1.0)
    for spoken, meant in lexemes.phrases.items():
        if _within(spoken, kept):
            content.update({word: 1.0 for word in meant})
    lows = {token.low for token in kept}
    return Clause(
        tokens=kept,
        kind=_kind(kept, asked),
        content=content,
        head={kept[at].stem: 1.0 for at in head},
        summaries=summaries,
        constraints=tuple(sorted(constraints, key=lambda one: one.at)),
        comparative=_comparative(kept, used),
        each=bool(lows & {"each", "every", "all"}),
        refers=bool(lows & _REFERRING),
        negated=bool(re.search(r"\b(not|no|n't|never|none)\b|n't\b", text)),
        position=position,
    )


def _within(spoken: Sequence[str], tokens: Sequence[Token]) -> bool:
    at = -1
    for wanted in spoken:
        found = next(
            (
                place
                for place in range(at + 1, len(tokens))
                if tokens[place].stem == wanted and (at < 0 or place - at <= 5)
            ),
            None,
        )
        if found is None:
            return False
        at = found
    return True


def _kind(tokens: Sequence[Token], asked: bool) -> Kind:
    lows = [token.low for token in tokens]
    at = 0
    while at < len(lows) - 1 and lows[at] in POLITE and lows[at] not in QUESTION_WORDS:
        at += 1
    first = lows[at] if lows else ""
    if (
        first in QUESTION_WORDS
        or (asked and lows and lows[0] in AUXILIARIES)
        or any(low in QUESTION_WORDS for low in lows[:3])
    ):
        return "ask"
    if first in ("give", "hand") and _handed(tokens):
        return "do"
    if first in _ASKING and not (first in ("list", "add", "state", "return") and "me" not in lows and len(lows) < 2):
        return "ask"
    return "ask" if asked and lows and lows[0] not in ("can", "could", "would", "will", "please") else "do"


def _handed(tokens: Sequence[Token]) -> bool:
    """Whether something is to be given to somebody else than the speaker."""
    return (
        any(
            token.low == "to" and (tokens[at + 1].kind == "name" or tokens[at + 1].low in ("him", "her", "them"))
            for at, token in enumerate(tokens[:-1])
        )
        or any(token.low in ("him", "her", "them") for token in tokens[1:2])
        or (len(tokens) > 1 and tokens[1].kind == "name")
    )


def _head_span(tokens: Sequence[Token]) -> range:
    """Where the words stand that a question word asks about: "which support rep", "how many seats", "how high"."""
    for at, token in enumerate(tokens):
        if token.low not in ("which", "what", "whose", "many", "much", "how"):
            continue
        first = at + 1
        while first < len(tokens) and tokens[first].low in tuple(("is are was were the a an of s many much").split()):
            first += 1
        last = first
        while (
            last < len(tokens)
            and last - first < 3
            and tokens[last].kind == "word"
            and tokens[last].low not in lexicon().stop
        ):
            last += 1
        if last > first:
            return range(first, last)
    return range(0)


def _compares(tokens: Sequence[Token], text: str, where: dict[int, int], used: set[int]) -> list[Compare]:
    found = []
    for operator, pattern in COMPARISONS:
        for match in pattern.finditer(text):
            at = where[match.start(1)]
            if at in used or (operator == "eq" and "in" in match.group().split() and not _is_year(tokens, at)):
                continue
            upper = tokens[where[match.start(2)]].value if operator == "between" else None
            first = where.get(match.start(), at)
            span = range(first, at + 1) if match.start() < match.start(1) else range(at, at + 1)
            last = max(where[start] for start in where if start < match.end())
            adjective = next(
                (
                    lexicon().comparatives[token.low]
                    for token in tokens[first : last + 1]
                    if token.low in lexicon().comparatives
                ),
                None,
            )
            degrees = lexicon().degrees.get(adjective, ()) if adjective else ()
            used.update(span)
            used.update(range(at, last + 1))
            found.append(
                Compare(
                    operator=operator,
                    value=tokens[at].value,
                    upper=upper,
                    degrees=degrees,
                    at=at,
                    context=_around(tokens, first, at, apart=False),
                )
            )
    return found


def _is_year(tokens: Sequence[Token], at: int) -> bool:
    """Whether a number says when, and counts nothing."""
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    value = tokens[at].value
    alone = following is None or following.kind != "word" or following.low in lexicon().stop
    return isinstance(value, int) and 1500 <= value <= 2100 and alone


def _extremes(tokens: Sequence[Token], used: set[int]) -> list[Extreme]:
    words = lexicon()
    found = []
    for at, token in enumerate(tokens):
        low = token.low
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        before = tokens[at - 1] if at else None
        degrees: tuple[Degree, ...] = ()
        more, end = True, at
        if token.kind != "word" or at in used:
            continue
        if low in ("most", "least", "fewest") and not (before is not None and before.low == "at"):
            more = low == "most"
            if following is not None and following.low in words.degrees:
                degrees, end = words.degrees[following.low], at + 1
        elif low in ("maximum", "minimum", "top", "bottom", "max", "min") and not (
            following is not None and following.low == "of"
        ):
            more = low in ("maximum", "top", "max")
        elif low in words.superlatives:
            adjective = words.superlatives[low]
            degrees = words.degrees.get(adjective, ())
            more = low not in ("lowest", "smallest", "least", "shortest")
        elif low.endswith("most") and low[:-4] in words.degrees:
            degrees = words.degrees[low[:-4]]
        elif low.endswith("est") and len(low) > 5 and stem(low) not in words.sets and low[:-3] in words.degrees:
            degrees = words.degrees[low[:-3]]
        else:
            continue
        if low in ("most", "least", "fewest") and following is not None and following.low == "of":
            continue
        count = 1
        for near in (before, following):
            if near is not None and near.kind == "number" and isinstance(near.value, int) and 1 < near.value <= 20:
                count = near.value
                used.add(at - 1 if near is before else at + 1)
        used.update(range(at, end + 1))
        inverted = low == "least" and bool(degrees)
        if inverted:
            degrees = tuple(Degree(more=not degree.more, of=degree.of) for degree in degrees)
        found.append(
            Extreme(
                more=more,
                count=count,
                degrees=degrees,
                at=at,
                context=_around(tokens, at, end, ahead=3, behind=0, apart=False),
            )
        )
    return found


def _comparative(tokens: Sequence[Token], used: set[int]) -> Extreme | None:
    """What two things are compared by, when no number follows."""
    words = lexicon()
    for at, token in enumerate(tokens):
        following = tokens[at + 1 : at + 3]
        if at in used or (
            any(one.low == "than" for one in following) and any(one.kind == "number" for one in tokens[at + 1 : at + 4])
        ):
            continue
        if token.low in ("more", "fewer", "less", "higher", "lower", "greater", "larger", "smaller") or (
            token.low in words.comparatives
        ):
            adjective = words.comparatives.get(token.low)
            degrees = words.degrees.get(adjective, ()) if adjective else ()
            if token.low in ("further", "farther") and following and following[0].low in words.degrees:
                degrees = words.degrees[following[0].low]
            if token.low in ("more", "less") and following and following[0].low in words.degrees:
                degrees = words.degrees[following[0].low]
                if token.low == "less":
                    degrees = tuple(Degree(more=not degree.more, of=degree.of) for degree in degrees)
            return Extreme(
                more=token.low not in ("fewer", "less", "lower", "smaller", "shorter"),
                count=1,
                degrees=degrees,
                at=at,
                context=_around(tokens, at, at, ahead=2, behind=2, apart=False),
            )
    return None


def _mentions(tokens: Sequence[Token], used: set[int], box: Toolbox, head: set[int]) -> list[Mention]:
    found = []
    for at, end, value in box.spoken_values(tokens):
        if not any(place in used for place in range(at, end)):
            found.append(
                Mention(kind="value", text=str(value), value=value, at=at, context=_around(tokens, at, end - 1))
            )
            used.update(range(at, end))
    # "Reserve three of them": the verb says nothing about what the number counts.
    first = next((at for at, token in enumerate(tokens) if token.low not in POLITE), 0)
    verb = {first} if tokens and tokens[first].low in lexicon().verbs else set()
    for at, token in enumerate(tokens):
        if at in used:
            continue
        if token.kind == "name" and not token.quoted and token.low in box.parts and token.text.isupper():
            continue  # "approved by the OSI", where a field is called so
        if token.kind == "name" and not token.quoted and token.text.partition(" ")[0] in box.titles:
            continue  # "the page About Us", which the tool is for anyway
        if token.kind == "word" and at not in head and _is_unknown(token, box):
            found.append(
                Mention(
                    kind="name", text=token.text, value=token.text, at=at, context=_around(tokens, at, at, without=head)
                )
            )
        if token.kind in ("name", "date") or (token.kind == "number" and not _pronoun_one(tokens, at)):
            found.append(
                Mention(
                    kind="name" if token.kind == "name" else token.kind,
                    text=token.text,
                    at=at,
                    quoted=token.quoted,
                    numbered=token.kind == "number" and _is_numbered(tokens, at),
                    value=token.text if token.kind == "name" else token.value,
                    context=_around(tokens, at, at, without=head | verb if token.kind == "number" else head),
                )
            )
    return _grouped(sorted(found, key=lambda one: one.at), tokens)


def _is_numbered(tokens: Sequence[Token], at: int) -> bool:
    """Whether a number tells which one is meant: "match 89", "number 12", and not how many."""
    token = tokens[at]
    before = tokens[at - 1] if at else None
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if not token.text.isdigit() or before is None or before.kind != "word":
        return False
    if before.low in _NUMBERING:
        return True
    counts = following is not None and following.kind == "word" and following.low not in lexicon().stop
    named = before.low not in lexicon().stop | lexicon().verbs | lexicon().before.keys()
    return named and not counts and at > 1


def _is_unknown(token: Token, box: Toolbox) -> bool:
    """Whether a word in small letters may be a name: neither common English nor a word of the tools."""
    words = lexicon()
    if not token.low.isalpha() or len(token.low) < 4 or token.low.endswith(_ENGLISH_ENDINGS):
        return False
    listed = token.stem in words.sets or token.low in words.stop | words.verbs | words.openings | POLITE
    graded = token.low in words.degrees or token.low in words.comparatives or token.low in words.superlatives
    return not listed and not graded and not is_common(token.low) and not box.explains(token)


def _grouped(found: list[Mention], tokens: Sequence[Token]) -> list[Mention]:
    """Marks names that stand in a row."""
    result: list[Mention] = []
    for one in found:
        before = result[-1] if result else None
        numbered = before is not None and before.numbered and one.numbered
        if before is not None and before.kind == one.kind and (one.kind in ("name", "value") or numbered):
            between = [token.low for token in tokens[before.at + 1 : one.at]]
            if numbered and between[-1:] == [tokens[before.at - 1].low]:
                between = between[:-1]  # "room 3 and room 4"
            led = before.at > 0 and tokens[before.at - 1].low in lexicon().before
            if set(between) & _JOINING and set(between) <= _JOINING | {"of", "by"} and not ("then" in between and led):
                group = before.group if before.group is not None else before.at
                result[-1] = replace(before, group=group)
                one = replace(one, group=group, context=before.context)
        result.append(one)
    return result


def _pronoun_one(tokens: Sequence[Token], at: int) -> bool:
    """Whether "one" stands for a thing and is no number."""
    if tokens[at].low != "one":
        return False
    following = tokens[at + 1].low if at + 1 < len(tokens) else ""
    before = tokens[at - 1].low if at else ""
    return (
        following in ("of", "is", "was", "has", "have", "had", "with", "that", "which", "does", "are", "who", "instead")
        or before
        in tuple(
            (
                "which that this the each every last first second third other another additional no extra any"
                " older newer cheaper and or"
            ).split()
        )
        or tokens[at - 1].low in lexicon().superlatives
    )


def _around(
    tokens: Sequence[Token],
    first: int,
    last: int,
    *,
    behind: int = 3,
    ahead: int = 3,
    without: Container[int] = (),
    apart: bool = True,
) -> dict[str, float]:
    """The content words near a span, the nearer the heavier, and what a preposition before it tells.

    Words at `without` are left out: what a question asks for says nothing about the name beside it.
    """
    stop, before = lexicon().stop, lexicon().before
    bag: dict[str, float] = {}
    weight, crossed = 1.0, False
    for at in range(first - 1, max(-1, first - 2 - behind), -1):
        token = tokens[at]
        if token.kind != "word":
            break
        if token.low in before and at >= first - 2:
            bag.update({word: 0.45 for word in before[token.low] if word not in bag})
            crossed = True
        elif token.low in ("of", "with", "than"):
            crossed = True
        if (
            token.low not in stop
            and at not in without
            and not (at == first - 1 and token.low in ("number", "no", "nr"))
        ):
            # "albums by Ann": what stands before the preposition is not what Ann is, unless it says how they relate.
            share = 0.4 if apart and crossed and not token.low.endswith(("ed", "en", "ing")) else 1.0
            bag[token.stem] = max(weight * share, bag.get(token.stem, 0.0))
            weight *= 0.75
    weight = 0.7
    for at in range(last + 1, min(len(tokens), last + 1 + ahead)):
        token = tokens[at]
        if token.kind != "word":
            break
        if token.low not in stop:
            bag[token.stem] = max(weight, bag.get(token.stem, 0.0))
            weight *= 0.7
    return bag
