"""The root of every error the project raises on purpose.

An error holds facts in its constructor and makes its sentence in ``__str__``, so that it survives pickling
across process pools. The sentence says what was wrong, where, and what to do; the CLI prints it as one line.
"""

from __future__ import annotations


class AgentWorldError(Exception):
    """Something a user can understand and act on."""


class BadInputError(AgentWorldError):
    """An input that cannot be used: `where` is a file, row, tool or line; `cure` is what to do."""

    def __init__(self, where: str, why: str, cure: str) -> None:
        super().__init__(where, why, cure)
        self.where, self.why, self.cure = where, why, cure

    def __str__(self) -> str:
        return f"{self.where}: {self.why}; {self.cure}"
