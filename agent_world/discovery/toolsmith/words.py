"""From the words of the data to names, phrases and everyday synonyms."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

_TAKEN = {
    "world",
    "page",
    "row",
    "rows",
    "items",
    "dict",
    "str",
    "int",
    "list",
    "float",
    "bool",
    "sum",
    "max",
    "min",
    "known",
    "mean",
}
"""Names that the written tools use themselves."""

EVERYDAY: dict[str, tuple[str, ...]] = {
    "price": ("cost", "how much it costs"),
    "cost": ("price", "how much it costs"),
    "total": ("sum", "amount"),
    "amount": ("sum", "how much"),
    "revenue": ("earnings", "takings"),
    "gross": ("earnings", "takings"),
    "budget": ("cost of making",),
    "sales": ("turnover", "sold"),
    "seats": ("places", "capacity"),
    "capacity": ("places", "size"),
    "duration": ("length", "how long"),
    "runtime": ("length", "how long"),
    "milliseconds": ("length", "how long"),
    "minutes": ("length", "how long"),
    "distance": ("how far", "length of the way"),
    "altitude": ("height", "elevation"),
    "elevation": ("height", "altitude"),
    "height": ("how tall", "tallness"),
    "weight": ("how heavy", "mass"),
    "mass": ("weight", "how heavy"),
    "population": ("inhabitants", "people living there"),
    "area": ("size", "surface"),
    "bytes": ("size", "file size"),
    "size": ("how big",),
    "memory": ("ram", "how much memory"),
    "speed": ("how fast",),
    "delay": ("lateness", "how late"),
    "year": ("when",),
    "date": ("when", "day"),
    "time": ("when", "hour"),
    "birth": ("born",),
    "death": ("died",),
    "city": ("town", "place"),
    "country": ("nation", "state"),
    "state": ("province", "region"),
    "region": ("part of the world", "area"),
    "continent": ("part of the world",),
    "currency": ("money",),
    "language": ("tongue",),
    "genre": ("kind", "style"),
    "category": ("kind", "type"),
    "type": ("kind", "sort"),
    "class": ("kind", "group"),
    "carrier": ("airline", "operator"),
    "manufacturer": ("maker", "built by"),
    "engine": ("motor",),
    "rating": ("score", "stars"),
    "score": ("rating", "points"),
    "votes": ("ballots", "how many voted"),
    "rank": ("place", "position"),
    "symbol": ("sign", "short name"),
    "abbreviation": ("short name",),
    "composer": ("writer", "written by"),
    "director": ("made by",),
    "artist": ("musician", "band"),
    "track": ("song", "piece"),
    "album": ("record", "disc"),
    "movie": ("film", "picture"),
    "film": ("movie", "picture"),
    "customer": ("client", "buyer"),
    "invoice": ("bill", "receipt"),
    "employee": ("member of staff", "worker"),
    "player": ("sportsman", "athlete"),
    "team": ("club", "squad"),
    "flight": ("plane trip", "connection"),
    "plane": ("aircraft", "machine"),
    "airline": ("carrier", "company"),
    "airport": ("airfield",),
    "diagnosis": ("disease", "illness"),
    "element": ("substance", "chemical"),
    "isotope": ("nuclide",),
    "licence": ("license", "terms of use"),
    "license": ("licence", "terms of use"),
    "holiday": ("day off", "public holiday"),
    "zone": ("area",),
    "instance": ("server", "machine"),
    "salary": ("pay", "wage"),
    "wins": ("victories", "games won"),
    "losses": ("defeats", "games lost"),
    "quantity": ("how many", "number"),
    "discount": ("reduction", "rebate"),
    "profit": ("gain", "margin"),
    "temperature": ("how warm", "heat"),
    "density": ("how dense",),
    "humidity": ("how damp",),
    "pressure": ("air pressure",),
    "abundance": ("how common",),
}
"""What people say instead of the words of the data. A general lexicon: no word of it chooses a table."""


def ascii_words(text: str) -> list[str]:
    """The words of `text` in lower-case ASCII letters and digits."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.findall(r"[a-z0-9]+", plain)


def snake(text: str, fallback: str = "value") -> str:
    """`text` as a Python identifier that shadows nothing the written tools use."""
    name = "_".join(ascii_words(text)) or fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def article(noun: str) -> str:
    """`noun` with the indefinite article that belongs before it."""
    vowel = re.match(r"(?i)([aeio]|u(?!ni|s[aeu]|s\b)|hour|honou?r|heir)", noun) and not re.match(r"(?i)eu|one\b", noun)
    return f"{'an' if vowel else 'a'} {noun}"


def listed(items: Iterable[str], last: str = "and") -> str:
    """Items as a person lists them: `a, b and c`."""
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def capital(text: str) -> str:
    """`text` with its first letter in upper case and the rest untouched."""
    return text[:1].upper() + text[1:]


def synonyms(*phrases: str, limit: int = 3) -> list[str]:
    """Up to `limit` everyday words for the words of `phrases`, none of which is already said."""
    said = {word for phrase in phrases for word in ascii_words(phrase)}
    found: dict[str, None] = {}
    for phrase in phrases:
        for word in ascii_words(phrase.replace("time zone", "zone")):
            singular = word[:-1] if word.endswith("s") and word not in EVERYDAY else word
            for other in EVERYDAY.get(word, EVERYDAY.get(singular, ())):
                if not set(ascii_words(other)) <= said:
                    found[other] = None
    return list(found)[:limit]


def mark(flag: str) -> str:
    """What a flag column marks its rows as: `is_deprecated` and `deprecated_id` both say deprecated."""
    words = [word for word in ascii_words(flag) if word not in {"is", "has", "id", "flag"}]
    return " ".join(words) or flag
