"""Names to words and back: splitting, singular and plural, expansion of abbreviations, phrases a person would say."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

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
    "name first": "given name",
    "name last": "family name",
    "name given": "full given name",
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
_IRREGULAR = {"people": "person", "children": "child", "indices": "index", "matrices": "matrix", "sizes": "size"}
_PLURALS = {one: many for many, one in _IRREGULAR.items()}
_UNINFLECTED = {
    "weather",
    "series",
    "species",
    "news",
    "crs",
    "status",
    "basis",
    "gas",
    "lens",
    "analysis",
    "metadata",
    "media",
}
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
}


@cache
def _is_word(token: str) -> bool:
    import wordninja

    return wordninja.split(token) == [token]


@cache
def singular(noun: str) -> str:
    """The singular of a plural noun; any other word as it is."""
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun in _UNINFLECTED or len(noun) < 4 or noun.endswith(("ss", "us", "is")):
        return noun
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    for ending, kept in (("sses", 2), ("shes", 2), ("ches", 2), ("xes", 2), ("zes", 2)):
        if noun.endswith(ending):
            return noun[:-kept]
    return noun[:-1] if noun.endswith("s") else noun


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
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun[:-2] + "es" if noun.endswith("sis") else noun + "es"
    return noun + "s"


@cache
def name_words(name: str) -> tuple[str, ...]:
    """The lower-case words of an identifier: `sched_dep_time`, `playerID`, `Weight in lbs`, `parkkey` are split."""
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", folded)
    words: list[str] = []
    for token in re.findall(r"[A-Za-z]+|\d+", spaced.partition(",")[0]):
        words.extend(_split(token.lower()))
    return tuple(words)


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
    return parts if len(parts) <= 3 and all(len(part) >= 3 or part == "id" for part in parts) else [token]


@cache
def expanded(name: str) -> tuple[str, ...]:
    """The words of an identifier, abbreviations written out."""
    words: list[str] = []
    for word in name_words(name):
        words.extend(_ABBREVIATIONS.get(word, word).split())
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
