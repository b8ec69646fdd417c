"""Names by reference: each thing that an episode has read is one character, which a small policy copies whole.

A model of a million parameters learns which thing to pass on within minutes, and to spell one it never saw hardly at
all. So the first time it reads a name, a code, a date or a number, that value gets the next free mark of a private
alphabet; whenever the same value comes again, in the instruction, an observation or an argument, it is the same mark.
Text and numbers have an alphabet each, since no tool takes one for the other. Names are read as the mark alone, numbers
and dates with their digits behind it, since they are also compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_world.environments.model import Json

COUNT = 256
"""How many texts, and how many numbers, an episode can refer to; what is read after that is spelt."""

TEXTS = "".join(chr(0xE000 + number) for number in range(COUNT))
NUMBERS = "".join(chr(0xE000 + COUNT + number) for number in range(COUNT))
MARKS = TEXTS + NUMBERS
"""From Unicode's private use area."""

_WORDS = re.compile(r"[a-z][a-z _-]{0,30}|")
"""What may be a state or a category: these decide what is done, so they are read as words when they are known ones."""

_COMPARED = re.compile(r"[-+]?\d[\d.,:/-]*(?:[T ]\d\d:\d\d[\d.:Z+-]*)?", re.ASCII)

_QUOTED = r"\"(?P<straight>[^\"]+)\"|\u201c(?P<curly>[^\u201d]+)\u201d"
_NUMBER = r"(?P<number>(?<![^\s(])-?\d{1,15}(?:\.\d{1,15})?(?=[.,;:?!)]*(?:\s|$)))"
_CODE = r"(?P<code>(?<![^\s(])(?!\()(?=[^\s\"]*[A-Z\d])(?=[^\s\"]*(?:\d|[A-Z][A-Z]|\w[/_.]\w))[^\s\"]*[^\s\".,;:?!)'])"
_NAME = r"(?P<name>(?<=[a-z,;:] )[A-Z][\w'&-]*\w(?: (?:(?:of|the|and|de|la|von|van|&) )?[A-Z][\w'&-]*\w)*)"
_MENTION = re.compile("|".join((_QUOTED, _NUMBER, _CODE, _NAME)))


class References:
    """The marks that one episode has given, in the order of reading.

    `known` tells whether lower-case text is made of words that the policy knows.
    """

    def __init__(self, known: Callable[[str], bool]) -> None:
        self._known = known
        self._given = {TEXTS: 0, NUMBERS: 0}
        self._marks: dict[tuple[type, Json], str] = {}
        self._values: dict[str, Json] = {}

    @property
    def texts(self) -> int:
        """How many texts have a mark."""
        return self._given[TEXTS]

    @property
    def numbers(self) -> int:
        """How many numbers have a mark."""
        return self._given[NUMBERS]

    def read(self, value: Json) -> str | None:
        """How a scalar is shown: its mark, and behind it what may be compared; None when it is spelt like any text."""
        if not self._referable(value):
            return None
        key = (type(value), value)
        if key not in self._marks:
            alphabet = TEXTS if isinstance(value, str) else NUMBERS
            if self._given[alphabet] == COUNT:
                return None
            mark = alphabet[self._given[alphabet]]
            self._given[alphabet] += 1
            self._marks[key], self._values[mark] = mark, value
        text = str(value)
        return self._marks[key] + (text if not isinstance(value, str) or _COMPARED.fullmatch(text) else "")

    def write(self, value: Json) -> str | None:
        """The mark of a scalar that was read before, else None."""
        return self._marks.get((type(value), value)) if self._referable(value) else None

    def meant(self, mark: str) -> Json:
        """The value of a mark.

        Raises:
            KeyError: nothing that was read has it.
        """
        return self._values[mark]

    def read_text(self, text: str) -> str:
        """Running text with a mark for each mention of a thing; a mark that the text itself holds is dropped."""
        return _MENTION.sub(self._mention, re.sub(f"[{MARKS[0]}-{MARKS[-1]}]", "", text))

    def _mention(self, found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        value: Json = found.group(kind)
        if kind == "number":
            value = float(value) if "." in value else int(value)
        return self.read(value) or found.group()

    def _referable(self, value: Json) -> bool:
        """Whether a scalar can have a mark."""
        if isinstance(value, str):
            return not (_WORDS.fullmatch(value) and self._known(value))
        return isinstance(value, (int, float)) and not isinstance(value, bool)
