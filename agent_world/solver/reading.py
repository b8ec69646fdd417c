"""Reads an instruction: clauses, what they ask or order, their conditions, comparisons and superlatives."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agent_world.environments.model import Json
from agent_world.solver.index import Bag, Toolbox
from agent_world.solver.lexicon import Degree, lexicon, similarity, stem
from agent_world.solver.mentions import Token, tokenise

Operator = Literal["gt", "ge", "lt", "le", "eq", "between"]
Kind = Literal["ask", "do"]
Summary = Literal["count", "sum", "mean", "difference", "share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Something named: a name, a code, a date, a bare number, or a value that some parameter allows.

    Names in a row ("A, B and C") have the same `group`.
    """

    kind: Literal["name", "number", "date", "value"]
    text: str
    value: Json
    context: Bag
    at: int
    quoted: bool = False
    group: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A comparison with a number or date; for `between` the second one is `upper`."""

    operator: Operator
    value: Json
    upper: Json = None
    context: Bag = field(default_factory=dict)
    degrees: tuple[Degree, ...] = ()
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """A superlative: the `count` things that are most (or least) of something."""

    more: bool
    count: int
    context: Bag
    degrees: tuple[Degree, ...] = ()
    at: int = 0


Constraint = Mention | Compare | Extreme


def mark_of(constraint: Constraint) -> str:
    """A text that is equal for constraints that say the same."""
    if isinstance(constraint, Mention):
        return constraint.text
    if isinstance(constraint, Compare):
        return f"{constraint.operator} {constraint.value} {constraint.upper}"
    return f"{constraint.more} {constraint.count} {sorted(constraint.context)} {constraint.degrees}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A part of an instruction with one request.

    `content` are its words outside names; `head` are the words right after the question word; `comparative` is set
    when two things are compared with each other; `pairs` are mentions joined by and, or, than.
    """

    tokens: tuple[Token, ...]
    kind: Kind
    content: Bag
    head: Bag
    constraints: tuple[Constraint, ...]
    summaries: frozenset[Summary]
    comparative: Extreme | None
    each: bool
    refers: bool
    negated: bool
    position: int

    @property
    def mentions(self) -> tuple[Mention, ...]:
        return tuple(one for one in self.constraints if isinstance(one, Mention))

    @property
    def text(self) -> str:
        return " ".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """If `condition` holds do `then`, otherwise `otherwise`. Without a condition it turns on a refusal before it."""

    condition: Clause | None
    negated: bool
    then: tuple[Clause, ...]
    otherwise: tuple[Clause, ...]


Part = Clause | Branch

_WH = {"who", "whom", "whose", "which", "what", "when", "where", "why", "how", "whether"}
_ASKING = {"tell", "give", "say", "report", "state", "name", "list", "show", "find", "compute", "calculate", "determine",
           "work", "sum", "count", "compare", "look", "check", "see", "figure", "return", "provide", "answer", "let", "know"}
_AUXILIARY = {"is", "are", "was", "were", "does", "do", "did", "has", "have"}
_POLITE = {"please", "kindly", "can", "could", "would", "will", "you", "i", "we", "want", "need", "like", "to", "then", "and",
           "afterwards", "next", "finally", "also", "first", "now", "just", "after", "that", "d", "i'd", "let's", "go", "ahead",
           "but", "so", "finally", "lastly", "secondly", "thereafter", "subsequently", "immediately", "once", "done", "hi",
           "hello", "hey", "me", "us", "help", "would"}
_IF = {"if", "unless", "provided", "should", "when", "assuming", "whenever", "supposing"}
_ELSE = {"otherwise", "else", "failing"}
_FAILED = re.compile(
    r"\b(impossible|not possible|isn't possible|refus\w+|fail\w*|reject\w*|turned down|not work|doesn't work|won't|can't|cannot|"
    r"not allowed|isn't allowed|declin\w+|no longer possible|not go through|doesn't go through|didn't work|denied)\b")
_REFERRING = {"it", "its", "they", "them", "their", "those", "these", "that", "there", "he", "she", "his", "her", "him", "such",
              "this", "same", "one", "ones", "both", "theirs", "the"}
_SYMBOL = {"name": "@", "number": "#", "date": "#"}

_COMPARISONS: tuple[tuple[Operator, re.Pattern[str]], ...] = tuple(
    (operator, re.compile(pattern)) for operator, pattern in (
        ("between", r"\b(?:between|from) (?:\w+ )?(#)(?: \w+)? (?:and|to) (?:\w+ )?(#)"),
        ("ge", r"\b(?:at least|no less than|no fewer than|not less than|not fewer than|a minimum of|minimum of|since|starting"
               r" (?:at|from|in)|(?:in|from) (?=\S+ (?:or|and|on)\b)) ?(?:the year |year )?(#)"),
        ("le", r"\b(?:at most|no more than|not more than|up to|a maximum of|maximum of|no later than|within|not over|no higher"
               r" than|not above|until) (?:the year |year )?(#)"),
        ("ge", r"(#) (?:\w+ ){0,4}?(?:or|and) (?:more|above|over|higher|later|longer|greater|up|upwards|better|after|older"
               r"|heavier|onwards|bigger|larger)\b"),
        ("ge", r"(#) (?:onwards?|upwards?)\b"),
        ("le", r"(#) (?:\w+ ){0,2}?(?:or|and) (?:less|fewer|below|under|lower|earlier|shorter|before|cheaper|smaller)\b"),
        ("gt", r"\b(?:over|above|beyond|exceed\w*|after|past|in excess of|(?:more|greater|higher|larger|bigger|later|better|longer"
               r"|heavier|taller) than|upwards of) (?:the year |year )?(#)"),
        ("lt", r"\b(?:under|below|before|prior to|(?:less|fewer|lower|smaller|earlier|shorter|lighter) than)"
               r" (?:the year |year )?(#)"),
        ("gt", r"\b\w+er than (?:the year )?(#)"),
        ("eq", r"\b(?:exactly|precisely|equal to|equals?) (#)"),
    )
)
_SUMMARIES: tuple[tuple[Summary, re.Pattern[str]], ...] = tuple(
    (summary, re.compile(pattern)) for summary, pattern in (
        ("count", r"\b(how many|number of|count|how often|quantity of)\b"),
        ("sum", r"\b(totals?|sums?|altogether|combined|in all|added up|add up|added together|in sum|together|between them|overall)\b"),
        ("mean", r"\b(average|averages|mean|on average|typical|averaged)\b"),
        ("difference", r"\b(difference|how (?:much|many)(?: \w+){0,2} (?:more|less|fewer|longer|older|younger|higher|heavier)"
                       r"|by how (?:much|many)|gap|apart|how much \w+er|how many more|how many fewer)\b"),
        ("share", r"\b(percentage|percent|share|proportion|fraction|ratio)\b"),
    )
)


def read(text: str, box: Toolbox) -> tuple[Part, ...]:
    """The parts of an instruction in order."""
    doing = frozenset(word for tool in box.writing() for word, weight in tool.verb.items() if weight == 1.0)
    pieces: list[tuple[str, list[Token]]] = []
    for sentence in _sentences(_whole_names(tokenise(text, doing))):
        pieces += _pieces(sentence, doing)
    return tuple(_parts(pieces, box))


def read_phrase(text: str, box: Toolbox, known: Sequence[str] = ()) -> Clause:
    """A phrase, such as the description of an answer field, as one clause that asks; `known` are names that may occur."""
    lowered = text[:1].lower() + text[1:] if text[1:2].islower() else text
    tokens = [token for token in tokenise(lowered, known=known) if token.kind != "mark"]
    of = next((at for at, token in enumerate(tokens[:-1]) if token.low == "of"), 0)
    asked = range(of) if of and (tokens[of + 1].kind != "word" or tokens[of + 1].low in ("the", "that")) else range(0)
    return replace(_clause(tokens, box, 0, asked), kind="ask")


def flat(parts: Sequence[Part]) -> list[Clause]:
    """All clauses in the order of the text, conditions included."""
    clauses: list[Clause] = []
    for part in parts:
        if isinstance(part, Clause):
            clauses.append(part)
        else:
            clauses += [one for one in (part.condition, *part.then, *part.otherwise) if one is not None]
    return sorted(clauses, key=lambda clause: clause.position)


def _whole_names(tokens: list[Token]) -> list[Token]:
    """A part of a name that was given in full before stands for the whole name."""
    seen: list[Token] = []
    result = []
    for token in tokens:
        if token.kind == "name":
            whole = next((one for one in seen if f" {token.low} " in f" {one.low} "), None)
            token = replace(whole, start=token.start) if whole is not None else token
            seen.append(token)
        result.append(token)
    return result


def _sentences(tokens: Sequence[Token]) -> list[list[Token]]:
    sentences: list[list[Token]] = []
    current: list[Token] = []
    for at, token in enumerate(tokens):
        if token.kind == "mark" and token.text in ".?!;:" and not _runs_on(tokens, at):
            if token.text == "?" and current:
                current.append(token)
            if current:
                sentences.append(current)
            current = []
        else:
            current.append(token)
    return [*sentences, current] if current else sentences


def _runs_on(tokens: Sequence[Token], at: int) -> bool:
    """A full stop before a small letter ends an abbreviation, not a sentence."""
    return tokens[at].text == "." and at + 1 < len(tokens) and tokens[at + 1].text[:1].islower()


def _pieces(sentence: list[Token], doing: frozenset[str]) -> list[tuple[str, list[Token]]]:
    """Cuts a sentence where a new request begins; each piece with its role: plain, if, unless, else."""
    pieces: list[list[Token]] = [[]]
    for at, token in enumerate(sentence):
        if _starts(sentence, at, doing) and not _opening(pieces[-1]):
            pieces.append([])
        pieces[-1].append(token)
    result = []
    for piece in pieces:
        asked = any(token.text == "?" for token in piece)
        words = [token for token in piece if not (token.kind == "mark" and token.text in "?-–—()")]
        while len(words) > 1 and words[0].low in ("and", "but", "then", "so", "also", ",", "'", '"'):
            words = words[1:]
        while words and words[-1].low in ("and", "but", "then", "or", "so", ",", "finally", "afterwards", "'", '"'):
            words = words[:-1]
        if not words:
            continue
        lows = [token.low for token in words]
        role = "plain"
        if lows[0] in ("if", "assuming", "supposing", "provided") or lows[:2] == ["should", "that"] or (
            lows[:2] in (["in", "case"], ["only", "if"], ["as", "long"])) or (lows[0] == "should" and not asked):
            role = "else" if lows[:2] == ["if", "not"] else "so" if lows[:2] == ["if", "so"] else "if"
        elif lows[0] == "unless":
            role = "unless"
        elif lows[0] in _ELSE or lows[:2] == ["or", "else"]:
            role = "else"
        result.append((role, [*words, *([Token(text="?", kind="mark")] if asked else [])]))
    return result


def _opening(piece: Sequence[Token]) -> bool:
    """Words before a request that are none themselves: "Please", "On average,"."""
    words = [token for token in piece if token.kind != "mark"]
    if all(token.low in _POLITE for token in words):
        return True
    return len(words) <= 3 and words[0].low in ("on", "in", "for", "at", "all") and all(one.kind == "word" for one in words)


def _starts(sentence: list[Token], at: int, doing: frozenset[str]) -> bool:
    if not at or sentence[at].kind != "word":
        return False
    token, before = sentence[at], sentence[at - 1]
    low, previous = token.low, before.low
    following = sentence[at + 1].low if at + 1 < len(sentence) else ""
    if low in ("if", "unless", "otherwise", "whereas") or (low == "provided" and following in ("that", "it", "there")):
        return not (low == "if" and previous in ("only", "see", "even", "tell", "me", "know"))
    if low == "only" and following == "if":
        return True
    if low == "else" and previous in (",", "or"):
        return True
    if sentence[0].low in _IF and _undivided(sentence, at, doing):
        return True
    joined = before.kind == "mark" or previous in ("so", "and", "then", "but", "afterwards", "also", "or", "please", "finally", "next")
    if not joined:
        return False
    if low in ("and", "then", "but", "or"):
        return False
    if low in _WH or low == "by" and following == "how":
        return True
    if before.text == "," and low in ("should", "is", "are", "does", "do", "has", "can", "could"):
        return True
    if previous in ("and", ",", "but") and low in ("is", "does", "was", "are", "did"):
        return True
    verb = low in lexicon().verbs or any(similarity(token.stem, one) >= 0.8 for one in doing)
    if verb and (low.endswith(("ed", "ing")) and low not in ("need", "feed")):
        return False
    if verb and low in ("list", "state", "name", "rate", "order", "report", "place", "number", "count", "record", "title", "charge",
                        "note", "use", "change", "review", "plan", "rank", "score", "ship", "end", "return", "release", "start"):
        # Words that are nouns as often: a request when a determiner, a name or a pronoun follows.
        return following in ("the", "a", "an", "it", "them", "me", "us", "all", "its", "their", "him", "her", "this", "that", "how",
                             "what", "which", "both", "every", "each", "out", "up", "to") or (
            at + 1 < len(sentence) and sentence[at + 1].kind != "word" and sentence[at + 1].kind != "mark")
    return verb


def _undivided(sentence: list[Token], at: int, doing: frozenset[str]) -> bool:
    """An order that follows a condition without a comma: "If A is older than B lend A to Ann"."""
    token, before = sentence[at], sentence[at - 1]
    if any(one.text == "," for one in sentence[:at]) or token.low not in lexicon().verbs or token.low.endswith(("ed", "ing")):
        return False
    if not any(similarity(token.stem, verb) >= 0.8 for verb in doing):
        return False
    following = sentence[at + 1] if at + 1 < len(sentence) else None
    free = before.kind in ("name", "number") or before.low not in lexicon().stop
    return free and following is not None and (following.kind != "word" or following.low in ("the", "a", "an", "it", "them", "him", "her"))


def _parts(pieces: list[tuple[str, list[Token]]], box: Toolbox) -> list[Part]:
    clauses = [(role, _clause(tokens, box, position)) for position, (role, tokens) in enumerate(pieces)]
    parts: list[Part] = []
    at = 0
    while at < len(clauses):
        role, clause = clauses[at]
        if role in ("plain",):
            parts.append(clause)
            at += 1
            continue
        at += 1
        if role in ("else", "so"):
            # "otherwise X" after a plain request: X when what came before was refused; "if so" after a check.
            then, at = _run(clauses, at, [_trimmed(clause, role, box)])
            otherwise: list[Clause] = []
            if role == "so" and at < len(clauses) and clauses[at][0] == "else":
                otherwise, at = _run(clauses, at + 1, [_trimmed(clauses[at][1], "else", box)])
            earlier = parts.pop() if role == "so" and parts and isinstance(parts[-1], Clause) else None
            if role == "else" and parts and isinstance(parts[-1], Branch) and not parts[-1].otherwise:
                parts[-1] = replace(parts[-1], otherwise=tuple(then))
            else:
                parts.append(Branch(condition=earlier, negated=False, then=tuple(then), otherwise=tuple(otherwise)))
            continue
        refused = _on_refusal(clause)
        then, otherwise = [], []
        if at < len(clauses) and clauses[at][0] == "plain" and _same_sentence(clauses[at - 1][1], clauses[at][1]):
            then, at = _run(clauses, at, [])
        elif parts and isinstance(parts[-1], Clause) and not refused:
            then = [parts.pop()]
        if at < len(clauses) and clauses[at][0] == "else":
            otherwise, at = _run(clauses, at + 1, [_trimmed(clauses[at][1], "else", box)])
        parts.append(Branch(condition=None if refused else clause, negated=role == "unless", then=tuple(then),
                            otherwise=tuple(otherwise)))
    return parts


def _same_sentence(before: Clause, after: Clause) -> bool:
    return before.tokens[-1].start < after.tokens[0].start and before.tokens[-1].text != "?"


def _run(clauses: list[tuple[str, Clause]], at: int, taken: list[Clause]) -> tuple[list[Clause], int]:
    """Takes the orders that belong to a branch: what follows in the same breath and asks nothing."""
    taken = [clause for clause in taken if clause.tokens]
    while at < len(clauses) and clauses[at][0] == "plain" and (not taken or (
            clauses[at][1].kind == "do" and taken[-1].kind == "do" and clauses[at][1].refers)):
        taken.append(clauses[at][1])
        at += 1
    return taken, at


def _trimmed(clause: Clause, role: str, box: Toolbox) -> Clause:
    skip = 2 if role == "so" or clause.tokens[0].low in ("if", "or") else 1
    return _clause(list(clause.tokens[skip:]), box, clause.position)


def _on_refusal(clause: Clause) -> bool:
    text = clause.text.lower()
    if _FAILED.search(text):
        return True
    return clause.refers and not clause.mentions and bool(re.search(r"n't|\bnot\b|\bno\b", text)) and bool(
        re.search(r"\b(that many|enough|available|possible|allowed|free|room|left)\b", text))


def _clause(tokens: list[Token], box: Toolbox, position: int, asked_for: Sequence[int] = ()) -> Clause:
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
    summaries = frozenset(summary for summary, pattern in _SUMMARIES if pattern.search(text))
    head = _head_span(kept)
    compared = {at + step for at, token in enumerate(kept) if token.low in ("more", "fewer", "less") for step in (1, 2)}
    constraints += _mentions(kept, used, box, {*head, *compared, *asked_for})
    lexemes = lexicon()
    content: dict[str, float] = {}
    for at, token in enumerate(kept):
        if token.kind == "word" and token.low not in lexemes.stop and at not in used:
            content.setdefault(token.stem, 1.0)
    for spoken, meant in lexemes.phrases.items():
        if _within(spoken, kept):
            content.update({word: 1.0 for word in meant})
    lows = {token.low for token in kept}
    return Clause(
        tokens=kept, kind=_kind(kept, asked), content=content, head={kept[at].stem: 1.0 for at in head}, summaries=summaries,
        constraints=tuple(sorted(constraints, key=lambda one: one.at)), comparative=_comparative(kept, used),
        each=bool(lows & {"each", "every", "all"}), refers=bool(lows & _REFERRING),
        negated=bool(re.search(r"\b(not|no|n't|never|none)\b|n't\b", text)), position=position,
    )


def _within(spoken: Sequence[str], tokens: Sequence[Token]) -> bool:
    at = -1
    for wanted in spoken:
        found = next((place for place in range(at + 1, len(tokens)) if tokens[place].stem == wanted
                      and (at < 0 or place - at <= 5)), None)
        if found is None:
            return False
        at = found
    return True


def _kind(tokens: Sequence[Token], asked: bool) -> Kind:
    lows = [token.low for token in tokens]
    at = 0
    while at < len(lows) - 1 and lows[at] in _POLITE and lows[at] not in _WH:
        at += 1
    first = lows[at] if lows else ""
    if first in _WH or (asked and lows and lows[0] in _AUXILIARY) or any(low in _WH for low in lows[:3]):
        return "ask"
    if first in ("give", "hand") and _handed(tokens):
        return "do"
    if first in _ASKING and not (first in ("list", "add", "state", "return") and "me" not in lows and len(lows) < 2):
        return "ask"
    return "ask" if asked and lows and lows[0] not in ("can", "could", "would", "will", "please") else "do"


def _handed(tokens: Sequence[Token]) -> bool:
    """Whether something is to be given to somebody else than the speaker."""
    return any(token.low == "to" and (tokens[at + 1].kind == "name" or tokens[at + 1].low in ("him", "her", "them"))
               for at, token in enumerate(tokens[:-1])) or any(
        token.low in ("him", "her", "them") for token in tokens[1:2]) or (len(tokens) > 1 and tokens[1].kind == "name")


def _head_span(tokens: Sequence[Token]) -> range:
    """Where the words stand that a question word asks about: "which support rep ...", "how many seats ...", "how high ..."."""
    for at, token in enumerate(tokens):
        if token.low not in ("which", "what", "whose", "many", "much", "how"):
            continue
        first = at + 1
        while first < len(tokens) and tokens[first].low in ("is", "are", "was", "were", "the", "a", "an", "of", "s", "many", "much"):
            first += 1
        last = first
        while last < len(tokens) and last - first < 3 and tokens[last].kind == "word" and tokens[last].low not in lexicon().stop:
            last += 1
        if last > first:
            return range(first, last)
    return range(0)


def _compares(tokens: Sequence[Token], text: str, where: dict[int, int], used: set[int]) -> list[Compare]:
    found = []
    for operator, pattern in _COMPARISONS:
        for match in pattern.finditer(text):
            at = where[match.start(1)]
            if at in used:
                continue
            upper = tokens[where[match.start(2)]].value if operator == "between" else None
            first = where.get(match.start(), at)
            span = range(first, at + 1) if match.start() < match.start(1) else range(at, at + 1)
            last = max(where[start] for start in where if start < match.end())
            adjective = next((lexicon().comparatives[token.low] for token in tokens[first : last + 1]
                              if token.low in lexicon().comparatives), None)
            degrees = lexicon().degrees.get(adjective, ()) if adjective else ()
            used.update(span)
            used.update(range(at, last + 1))
            found.append(Compare(
                operator=operator, value=tokens[at].value, upper=upper, degrees=degrees, at=at,
                context=_around(tokens, first, at, apart=False),
            ))
    return found


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
            following is not None and following.low == "of"):
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
        found.append(Extreme(more=more, count=count, degrees=degrees, at=at, context=_around(tokens, at, end, ahead=3, behind=0, apart=False)))
    return found


def _comparative(tokens: Sequence[Token], used: set[int]) -> Extreme | None:
    """What two things are compared by, when no number follows."""
    words = lexicon()
    for at, token in enumerate(tokens):
        following = tokens[at + 1 : at + 3]
        if at in used or any(one.low == "than" for one in following) and any(one.kind == "number" for one in tokens[at + 1 : at + 4]):
            continue
        if token.low in ("more", "fewer", "less", "higher", "lower", "greater", "larger", "smaller") or (
            token.low in words.comparatives):
            adjective = words.comparatives.get(token.low)
            degrees = words.degrees.get(adjective, ()) if adjective else ()
            if token.low in ("further", "farther") and following and following[0].low in words.degrees:
                degrees = words.degrees[following[0].low]
            if token.low in ("more", "less") and following and following[0].low in words.degrees:
                degrees = words.degrees[following[0].low]
                if token.low == "less":
                    degrees = tuple(Degree(more=not degree.more, of=degree.of) for degree in degrees)
            return Extreme(more=token.low not in ("fewer", "less", "lower", "smaller", "shorter"), count=1, degrees=degrees, at=at,
                           context=_around(tokens, at, at, ahead=2, behind=2, apart=False))
    return None


def _mentions(tokens: Sequence[Token], used: set[int], box: Toolbox, head: set[int]) -> list[Mention]:
    found = []
    for at, end, value in box.spoken_values(tokens):
        if not any(place in used for place in range(at, end)):
            found.append(Mention(kind="value", text=str(value), value=value, at=at, context=_around(tokens, at, end - 1)))
            used.update(range(at, end))
    for at, token in enumerate(tokens):
        if at in used:
            continue
        if token.kind in ("name", "date") or (token.kind == "number" and not _pronoun_one(tokens, at)):
            found.append(Mention(
                kind="name" if token.kind == "name" else token.kind, text=token.text, at=at, quoted=token.quoted,
                value=token.text if token.kind == "name" else token.value, context=_around(tokens, at, at, without=head),
            ))
    return _grouped(sorted(found, key=lambda one: one.at), tokens)


_JOINING = {",", "and", "or", "&", "followed", "then"}


def _grouped(found: list[Mention], tokens: Sequence[Token]) -> list[Mention]:
    """Marks names that stand in a row."""
    result: list[Mention] = []
    for one in found:
        before = result[-1] if result else None
        if before is not None and before.kind == one.kind and one.kind in ("name", "value"):
            between = [token.low for token in tokens[before.at + 1 : one.at]]
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
    return following in ("of", "is", "was", "has", "have", "had", "with", "that", "which", "does", "are", "who", "instead") or before in (
        "which", "that", "this", "the", "each", "every", "last", "first", "second", "third", "other", "another", "additional", "no",
        "extra", "any", "older", "newer", "cheaper", "and", "or") or tokens[at - 1].low in lexicon().superlatives


def _around(tokens: Sequence[Token], first: int, last: int, *, behind: int = 3, ahead: int = 3,
            without: Container[int] = (), apart: bool = True) -> dict[str, float]:
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
        if token.low not in stop and at not in without and not (at == first - 1 and token.low in ("number", "no", "nr")):
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
