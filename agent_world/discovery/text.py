"""Text to comparable stems: what search, relevance and taxonomy read."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache

from agent_world.discovery.words import singular

STOP_WORDS = frozenset(
    "a an and any are as at be been but by can could do does each either for from get had has have her his how i if in "
    "into is it its itself may me might more most must my no nor not of off on one only or other our out over own same "
    "shall she should so some such than that the their them then there these they this those through to too under up "
    "upon us via very was we were what when where which while who whom whose why will with within without would you "
    "your also use used uses using user users new all about across following see note example examples e g "
    "api apis service services resource resources request requests response responses operation operations action "
    "actions method methods call calls provides provide provided enable enables allow allows allowed lets let "
    "information data value values type types name names id ids list lists listing create creates created creating "
    "update updates updated updating delete deletes deleted deleting return returns returned returning given specify "
    "specified specifies contain contains containing include includes including included retrieve retrieves describe "
    "describes set sets add adds remove removes support supports supported based associated available access manage "
    "management reference guide documentation learn amazon aws google cloud console developer developers application "
    "applications app apps http https www com web json string number integer object array boolean true false null "
    "default field fields parameter parameters key keys page pages size max min token tokens first last next maximum "
    "minimum result results error errors current specific whether per two both many every as-is make makes made "
    "want wants know look see need needs says say thing things way ways one never always "
    "package python module library install pip import dataset datasets".split()
)
_COMPOUNDS = {
    ("time", "zone"): "timezone",
    ("zip", "code"): "zipcode",
    ("post", "code"): "zipcode",
    ("postal", "code"): "zipcode",
    ("play", "list"): "playlist",
    ("base", "ball"): "baseball",
    ("box", "office"): "boxoffice",
    ("song", "list"): "playlist",
}
_PARTS = {"".join(pair): pair for pair in _COMPOUNDS}
_SAME = {
    "postcode": "zipcode",
    "zip": "zipcode",
    "film": "movie",
    "song": "track",
    "tz": "timezone",
    "illness": "disease",
    "timezones": "timezone",
    "aeroplane": "plane",
    "aircraft": "plane",
}
_WORD = re.compile(r"[^\W\d_]{2,}")
_ENDINGS = (
    ("ization", "iz"),
    ("isation", "iz"),
    ("ational", "at"),
    ("ation", "at"),
    ("ments", ""),
    ("ment", ""),
    ("nesses", ""),
    ("ness", ""),
    ("ingly", ""),
    ("ings", ""),
    ("ing", ""),
    ("edly", ""),
    ("ed", ""),
    ("ical", "ic"),
    ("ally", "al"),
    ("ly", ""),
    ("ers", "er"),
    ("ises", "iz"),
    ("izes", "iz"),
    ("ise", "iz"),
    ("ize", "iz"),
    ("ences", "ens"),
    ("ence", "ens"),
    ("enses", "ens"),
    ("ense", "ens"),
    ("ies", "y"),
)


def plain_text(markup: str) -> str:
    """The text of HTML or Markdown: tags, entities, fences and link targets gone."""
    text = re.sub(r"(?s)<(script|style).*?</\1>|<!--.*?-->", " ", markup)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return re.sub(r"\s+", " ", re.sub(r"\]\([^)]*\)|https?://\S+", " ", text)).strip()


def split_case(text: str) -> str:
    """Identifiers opened up: `DescribeInstanceTypes` and `instance_types` become words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", text)


def words_of(text: str) -> list[str]:
    """Lower-case words without stop words, identifiers opened up."""
    folded = unicodedata.normalize("NFKD", split_case(text)).encode("ascii", "ignore").decode().lower()
    return [word for word in _WORD.findall(folded) if word not in STOP_WORDS]


def stems(text: str) -> list[str]:
    """The stems of `words_of`, in order; a pair such as "time zone" also gives the word it is spelled as elsewhere."""
    words = words_of(text)
    found = []
    for position, word in enumerate(words):
        found.append(stem(word))
        compound = _COMPOUNDS.get((words[position - 1], word)) if position else None
        if compound:
            found.append(stem(compound))
        found.extend(map(stem, _PARTS.get(word, ())))
    return found


@cache
def stem(word: str) -> str:
    """One form for the inflections and spellings of a word: airlines and airline, licence and license."""
    word = singular(word)
    word = _SAME.get(word, word)
    if word.endswith("sis") and len(word) > 5:  # diagnosis, whose plural loses its e below
        word = word[:-2]
    for ending, kept in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(kept) >= 4:
            word = word.removesuffix(ending) + kept
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word.rstrip("e") if len(word) > 4 else word
