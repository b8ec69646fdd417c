"""Finds names, codes, dates and numbers in a text, and cuts the text into tokens."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from agent_world.environments.model import Json
from agent_world.solver.lexicon import fold, lexicon, similarity, stem

TokenKind = Literal["word", "name", "number", "date", "mark"]

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = {word: 20 + 10 * at for at, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())}
_SPOKEN = {
    **{word: at for at, word in enumerate(_UNITS)},
    **_TENS,
    "dozen": 12,
    "hundred": 100,
    "couple": 2,
    "single": 1,
    "twice": 2,
    "pair": 2,
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000, "k": 1000, "m": 1_000_000}
_MONTHS = {
    name: at
    for at, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
_MONTHS |= {name[:3]: at for name, at in _MONTHS.items()} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))

_QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|\u2018([^\u2019]+)\u2019(?!\w)|'([^']+(?:'\w[^']*)?)'(?!\w))"
)
_DATE = re.compile(
    rf"\b(?:(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})"
    rf"|(?:the )?(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})\b\.?,?(?: (?P<y1>\d{{4}}))?"
    rf"|(?P<m2>{_MONTH})\.? (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y2>\d{{4}}))?)",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"(?<![\w])[-\u2212]\d+(?:\.\d+)?(?![\w-])|\d{1,2}:\d{2}(?::\d{2})?|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w])"
    r"|\d+(?:\.\d+)?e[-+]?\d+(?![\w])|\d+\.\d+(?![\w])|\w+(?:[-_./&+]\w+)*(?:'\w+)?|[^\w\s]"
)
_ORDINAL = re.compile(r"\d{1,2}\. ([A-Z]\w*)")
_LEADING = frozenset(("against by for from of to vs and versus in at with").split())
_ABBREVIATED = frozenset(("inc corp co ltd jr sr st dr mt bros no dept intl gmbh mr mrs ms").split())
_CONNECTIVES = frozenset(
    ("of the de la le du des van von der den da di del and & for in y el los las dos bin al to on").split()
)


@dataclass(frozen=True, kw_only=True)
class Token:
    """One unit of a text: a word, a whole name, a number, a date, or a punctuation mark."""

    text: str
    kind: TokenKind
    value: Json = None
    quoted: bool = False
    start: int = 0

    @cached_property
    def low(self) -> str:
        """The text without case and accents."""
        return fold(self.text)

    @cached_property
    def stem(self) -> str:
        """The stem of a word; of other tokens the folded text."""
        return stem(self.low) if self.kind == "word" else self.low


def looks_like_code(text: str) -> bool:
    """Whether people would type `text` as a code: no spaces, and digits with letters or only capitals."""
    return bool(re.fullmatch(r"[\w.:/+-]+", text)) and (
        bool(re.search(r"\d", text)) or (text.isupper() and text.isalpha() and 2 <= len(text) <= 8)
    )


def tokenise(
    text: str, doing: frozenset[str] = frozenset(), known: Sequence[str] = (), words: Container[str] = ()
) -> list[Token]:
    """The tokens of `text`.

    `doing` are stems of verbs that tools are named by, so that an imperative is no name; `words` are stems that tools
    speak of, so that "Flight 12" at the beginning of a sentence is none either; `known` are names that were quoted
    before and are recognised without quotes.
    """
    text = re.sub(r"(?<=\w)\u2019(?=\w)", "'", text)
    spans = [(match.start(), match.end(), next(filter(None, match.groups()))) for match in _QUOTED.finditer(text)]
    for name in sorted({*known, *(inside for _, _, inside in spans)}, key=len, reverse=True):
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            if not any(match.start() < end and start < match.end() for start, end, _ in spans):
                spans.append((match.start(), match.end(), name))
    spans.sort()
    tokens: list[Token] = []
    at = 0
    for start, end, inside in spans:
        tokens += _plain(text, at, start, doing)
        # A comma inside the closing quote belongs to the sentence.
        told = text[start:end] != inside
        runs_on = inside.endswith(".") and re.match(r"[.;,?]|,? [a-z]", text[end : end + 3]) is not None
        name = (inside.rstrip(",.").strip() or inside) if told and not runs_on else inside
        tokens.append(Token(text=name, kind="name", quoted=told, start=start))
        if name != inside:
            tokens.append(Token(text=inside[-1], kind="mark", start=end))
        at = end
    return _named(tokens + _plain(text, at, len(text), doing), doing, words)


def _plain(text: str, start: int, end: int, doing: frozenset[str]) -> list[Token]:
    tokens: list[Token] = []
    at = start
    for match in _DATE.finditer(text, start, end):
        tokens += _words(text, at, match.start())
        tokens.append(_date(match))
        at = match.end()
    return tokens + _words(text, at, end)


def _date(match: re.Match) -> Token:
    if match["iso"]:
        value = match["iso"]
    else:
        day, month = match["d1"] or match["d2"], match["m1"] or match["m2"]
        year = match["y1"] or match["y2"] or "????"
        value = f"{year}-{_MONTHS[month.lower()]:02}-{int(day):02}"
    return Token(text=match.group(), kind="date", value=value, start=match.start())


def _words(text: str, start: int, end: int) -> list[Token]:
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text, start, end):
        word = match.group()
        if (
            word == "."
            and tokens
            and tokens[-1].text.endswith(".")
            and tokens[-1].start + len(tokens[-1].text) > match.start()
        ):
            continue
        word = re.sub(r"['\u2019]s?$", "", word) if re.search(r"['\u2019]s?$", word) and len(word) > 2 else word
        low = word.lower()
        number = _number(low)
        if number is not None and tokens and tokens[-1].kind == "number" and low in _SCALES and tokens[-1].start >= 0:
            tokens[-1] = Token(
                text=f"{tokens[-1].text} {word}",
                kind="number",
                value=tokens[-1].value * _SCALES[low],
                start=tokens[-1].start,
            )
        elif low in ("thousand", "million", "billion") and tokens and tokens[-1].kind == "number":
            tokens[-1] = Token(
                text=f"{tokens[-1].text} {word}",
                kind="number",
                value=tokens[-1].value * _SCALES[low],
                start=tokens[-1].start,
            )
        elif number is not None and tokens and tokens[-1].low in _LEADING and _leads_name(text, match.start()):
            tokens.append(Token(text=f"{word}.", kind="word", start=match.start()))
        elif number is not None:
            tokens.append(Token(text=word, kind="number", value=number, start=match.start()))
        elif re.fullmatch(r"[^\w\s]", word):
            tokens.append(Token(text=word, kind="mark", start=match.start()))
        else:
            # "d-block", "half-life": two words; codes and capitalised names stay whole.
            parts = word.split("-") if re.fullmatch(r"[a-z]+(-[a-z]+)+", word) else [word]
            tokens += [Token(text=part, kind="word", start=match.start()) for part in parts]
    return tokens


def _leads_name(text: str, at: int) -> bool:
    """Whether a number with a full stop begins a name ("1. FC") and does not end a sentence."""
    found = _ORDINAL.match(text, at)
    words = lexicon()
    return found is not None and found.group(1).lower() not in words.openings | words.verbs | words.stop


def _number(low: str) -> int | float | None:
    if low in _SPOKEN:
        return _SPOKEN[low]
    tens, _, unit = low.partition("-")
    if tens in _TENS and unit in _UNITS[1:10]:
        return _TENS[tens] + _UNITS.index(unit)
    bare = low.replace(",", "").replace("\u2212", "-")
    if re.fullmatch(r"-?\d+", bare):
        # "0123" is a code, not a number.
        return int(bare) if bare == "0" or not bare.startswith("0") else None
    if re.fullmatch(r"-?\d+\.\d+|-?\d+(?:\.\d+)?e[-+]?\d+", bare):
        return float(bare)
    return None


def _named(tokens: list[Token], doing: frozenset[str], words: Container[str]) -> list[Token]:
    """Joins runs of capitalised words into names."""
    result: list[Token] = []
    at = 0
    first = True
    while at < len(tokens):
        token = tokens[at]
        joined = at + 1 < len(tokens) and _proper(tokens[at + 1])
        if token.kind == "word" and _capital(token, first, doing, joined, words):
            end = at + 1
            while end < len(tokens):
                if _proper(tokens[end]) or (
                    tokens[end].kind == "number" and tokens[end].text.isdigit() and not _ends_run(tokens, end)
                ):
                    end += 1
                elif (
                    tokens[end].low in _CONNECTIVES
                    and end + 1 < len(tokens)
                    and _proper(tokens[end + 1])
                    and (tokens[end].low not in ("and", "for", "in", "to", "on"))
                ):
                    end += 2
                else:
                    break
            text = " ".join(one.text for one in tokens[at:end])
            if tokens[end - 1].low in _ABBREVIATED and end < len(tokens) and tokens[end].text == ".":
                text += "."
                end += 1
            result.append(Token(text=text, kind="name", start=token.start))
            at, first = end, False
            continue
        result.append(token)
        first = (token.kind == "mark" and token.text in ".?!:;") or (first and token.kind == "mark")
        at += 1
    return result


def _ends_run(tokens: list[Token], at: int) -> bool:
    """A number after a name that counts what follows ("Oslo 2 seats") is no part of the name."""
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    return (
        following is not None
        and following.kind == "word"
        and following.text[:1].islower()
        and (following.low not in lexicon().stop)
    )


def _proper(token: Token) -> bool:
    return (
        token.kind == "word"
        and (token.text[:1].isupper() or looks_like_code(token.text))
        and token.text != "I"
        and (not token.text.startswith(("I'", "I\u2019")))
    )


def _capital(token: Token, first: bool, doing: frozenset[str], joined: bool, words: Container[str]) -> bool:
    if not _proper(token) or token.low in ("ok", "hi", "hello", "hey", "dear"):
        return False
    if not first or looks_like_code(token.text):
        return True
    lexemes = lexicon()
    bare = token.low.partition("'")[0]
    if bare in lexemes.verbs or bare in lexemes.openings or bare in lexemes.stop or bare in lexemes.superlatives:
        return False
    if any(similarity(token.stem, verb) >= 0.8 for verb in doing) or token.low.endswith("ing"):
        return False
    if bare.endswith("s") and token.stem in words:
        return False  # "Flights A1 and A2": several of a kind
    return joined or (token.stem not in lexemes.sets and token.stem not in words)
