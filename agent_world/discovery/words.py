"""Names to words and back: splitting, singular and plural, expansion of abbreviations, phrases a person would say."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import inflect

_ABBREVIATIONS = {
    "abbr": "abbreviation",
    "acct": "account",
    "addr": "address",
    "alt": "altitude",
    "amt": "amount",
    "arr": "arrival",
    "auth": "authority",
    "avg": "average",
    "cat": "category",
    "cd": "code",
    "cnt": "count",
    "coord": "coordinate",
    "crs": "reference system",
    "ctry": "country",
    "curr": "currency",
    "dep": "departure",
    "desc": "description",
    "dest": "destination",
    "dewp": "dew point",
    "diag": "diagnosis",
    "dist": "distance",
    "dob": "birth date",
    "dst": "daylight saving",
    "freq": "frequency",
    "humid": "humidity",
    "ident": "identifier",
    "lang": "language",
    "lat": "latitude",
    "len": "length",
    "lon": "longitude",
    "lng": "longitude",
    "long": "longitude",
    "max": "maximum",
    "mfr": "manufacturer",
    "min": "minimum",
    "mgr": "manager",
    "msg": "message",
    "nbr": "number",
    "num": "number",
    "org": "organisation",
    "orig": "original",
    "pct": "percent",
    "pos": "position",
    "precip": "precipitation",
    "prev": "previous",
    "prod": "product",
    "pub": "publisher",
    "qty": "quantity",
    "rec": "record",
    "ref": "reference",
    "reg": "region",
    "sched": "scheduled",
    "seq": "sequence",
    "spec": "specification",
    "std": "standard",
    "subd": "subdivision",
    "tailnum": "tail number",
    "temp": "temperature",
    "tz": "time zone",
    "tzone": "time zone",
    "txt": "text",
    "vis": "visibility",
    "visib": "visibility",
    "vol": "volume",
    "wgt": "weight",
    "wt": "weight",
    "yr": "year",
    "lg": "league",
    "franch": "franchise",
    "elev": "elevation",
    "dir": "direction",
    "pk": "id",
    "src": "source",
}
_SAID = {
    "first name": "given name",
    "last name": "family name",
    "given name": "full given name",
    "postal code": "post code",
    "zip code": "post code",
    "birth date": "date of birth",
    "time zone": "zone",
    "unit price": "price of a unit",
    "full name": "full name",
}
_QUALIFIERS = {
    "first",
    "last",
    "total",
    "maximum",
    "minimum",
    "average",
    "number",
    "is",
    "has",
    "new",
    "old",
    "main",
    "official",
    "common",
    "full",
    "short",
    "given",
    "current",
    "previous",
    "original",
    "alpha",
    "scheduled",
    "real",
    "net",
    "gross",
    "mean",
}
_IRREGULAR = {
    "people": "person",
    "children": "child",
    "indices": "index",
    "matrices": "matrix",
    "vertices": "vertex",
    "axes": "axis",
    "criteria": "criterion",
    "radii": "radius",
}
_PLURALS = {one: many for many, one in _IRREGULAR.items()}
_UNINFLECTED = frozenset("weather series species news metadata media data equipment information staff aircraft".split())
_ONE_IN_S = frozenset("gas lens status basis analysis bias crs gis sms aws dns always".split())
_TAKE_ES = ("potato", "tomato", "hero", "echo", "veto", "torpedo", "volcano", "cargo", "mosquito")
_NO_NOUN = frozenset(
    "full now raw all total other new old main current previous latest with of by to for from in on at".split()
)
_UNITS = re.compile(r"(?<![A-Z])([KMGT]iB|[KMG]Hz|[KMG]bps|kWh?|[vV]C[pP][uU]s?|IPv[46])(?![a-z])")
_SUFFIXES = {"able", "ible", "ness", "less", "ship", "hood", "wise", "ment", "ful", "ing", "ish", "ism", "ist"}
_TAILS = ("name", "date", "id", "code", "number", "type", "line", "key", "time", "track")
_WHOLE = {
    "airline",
    "airlines",
    "baseline",
    "candidate",
    "deadline",
    "headline",
    "monkey",
    "online",
    "outline",
    "invoice",
    "prototype",
    "surname",
    "timeline",
    "turkey",
    "update",
    "username",
    "pipeline",
    "guideline",
    "javascript",
    "mysql",
    "postgresql",
}


@cache
def _is_word(token: str) -> bool:
    import wordninja

    return wordninja.split(token) == [token]


def _is_known(word: str) -> bool:
    return word in _word_costs()


@cache
def _word_costs() -> Mapping[str, float]:
    """How rare each English word is, on a logarithmic scale."""
    import wordninja

    return wordninja.DEFAULT_LANGUAGE_MODEL._wordcost


@cache
def singular(noun: str) -> str:
    """The singular of a plural noun; any other word as it is, above all one that only ends like a plural."""
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun in _UNINFLECTED or noun in _ONE_IN_S or len(noun) < 4 or not noun.endswith("s") or noun.endswith("ss"):
        return noun
    one = _inflector().singular_noun(noun)
    return one if one and _is_likely(one, noun) else noun


@cache
def plural(noun: str) -> str:
    """The plural of a singular noun, of a phrase its last word."""
    head, _, last = noun.rpartition(" ")
    if not last.isalpha() or last in _UNINFLECTED or singular(last) != last:
        return noun
    return f"{head} {_plural_word(last)}".strip()


def _plural_word(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        return noun[:-1] + "ies"
    if noun.endswith(("s", "x", "z", "ch", "sh", *_TAKE_ES)):
        return noun[:-2] + "es" if noun.endswith("sis") else noun + "es"
    return noun + "s"


@cache
def _inflector() -> inflect.engine:
    import inflect

    return inflect.engine()


def _is_likely(one: str, noun: str) -> bool:
    """Whether `one` is a word where `noun` is: "basi" of "basis" and "physic" of "physics" hardly are.

    Of what is no word at all, such as an acronym, the s is taken, unless it belongs to an ending of its own.
    """
    cost = _word_costs()
    if noun not in cost:
        return one in cost or not noun.endswith(("us", "is"))
    return cost.get(one, math.inf) <= cost[noun] + 1.5


@cache
def noun_of(name: str) -> tuple[str, str]:
    """What a table of this name holds, one and many of it, as people say it.

    A name that is no English noun, such as an acronym or the number of a standard, gets one: "omdb entry".
    """
    words = expanded(name) or ("table",)
    if not any(word.isalpha() for word in words):
        words = ("table", *words)
    end = next(place for place in range(len(words), 0, -1) if not words[place - 1].isdigit())
    head, last, number = words[: end - 1], words[end - 1], words[end:]
    one = singular(last)
    named = one not in _NO_NOUN and _is_known(one) and (not number or len(last) > 3)
    if named:
        return " ".join((*head, one, *number)), " ".join((*head, last if last != one else plural(one), *number))
    return " ".join((*words, "entry")), " ".join((*words, "entries"))


@cache
def name_words(name: str) -> tuple[str, ...]:
    """The lower-case words of an identifier: `sched_dep_time`, `playerID`, `Weight in lbs`, `parkkey` are split."""
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    units = _UNITS.sub(lambda unit: f" {unit[0].lower()} ", folded)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", units)
    words: list[str] = []
    for token in re.findall(r"[A-Za-z]+\d*|\d+", spaced.partition(",")[0]):
        letters = token.rstrip("0123456789").lower()
        number = token[len(letters) :]
        if number and letters and _is_one_name(letters, number):
            words.append(letters + number)
        else:
            words.extend([*(_split(letters) if letters else ()), *([number] if number else ())])
    return tuple(words)


def _is_one_name(letters: str, number: str) -> bool:
    """Whether letters and a number are one name, as in "ec2", "ipv4" or "mp3", and no word with a counter behind it."""
    return len(letters) <= 3 and len(number) == 1 and letters not in _ABBREVIATIONS


def _split(token: str) -> list[str]:
    """Parts of a token that was written without a separator, when every part is a word of its own."""
    if len(token) < 6 or token in _ABBREVIATIONS or token in _WHOLE:
        return [token]
    for tail in _TAILS:
        head = token.removesuffix(tail)
        if head != token and len(head) >= 4 and (head in _WHOLE or _is_word(head)):
            return [*_split(head), tail]
    if _is_word(token) or _is_word(singular(token)):
        return [token]
    import wordninja

    parts = wordninja.split(token)
    whole = all(len(part) >= 3 or part == "id" for part in parts) and parts[-1] not in _SUFFIXES
    return parts if len(parts) <= 3 and whole else [token]


@cache
def expanded(name: str) -> tuple[str, ...]:
    """The words of an identifier, abbreviations written out."""
    words: list[str] = []
    for word in name_words(name):
        words.extend(_ABBREVIATIONS.get(word, word).split())
    if len(words) == 2 and words[0] == "name" and words[1] in _QUALIFIERS:  # "nameFull" is a full name
        words.reverse()
    return tuple(word for position, word in enumerate(words) if position == 0 or words[position - 1] != word)


def snake(words: tuple[str, ...]) -> str:
    """A column or table name made of words; never empty, never starting with a digit."""
    name = "_".join(words) or "value"
    return name if name[0].isalpha() else f"n_{name}"


def phrase(words: tuple[str, ...]) -> str:
    """How a person says a column: "delay of departure" for departure delay, so that no identifier is quoted."""
    text = " ".join(words)
    if text in _SAID:
        return _SAID[text]
    if len(words) < 2:
        return text
    if words[0] in {"is", "has"}:
        return " ".join(words[1:])
    if words[-1] in {"id", "code"}:
        return f"{words[-1]} of the {' '.join(words[:-1])}"
    if words[0] in _QUALIFIERS and len(words) == 2:
        return (
            f"{words[0]} value of {words[1]}"
            if words[0] in {"maximum", "minimum", "average", "mean"}
            else (f"{words[0]} {words[1]}")
        )
    return f"{words[-1]} of {' '.join(words[:-1])}"
