"""Patterns of comparisons and of sums, over clauses in which ``#`` stands for a number or a date."""

from __future__ import annotations

import re

from agent_world.solver.model import Operator, Summary

_MORE = "more|greater|higher|larger|bigger|later|better|longer|heavier|taller"
_LESS = "less|fewer|lower|smaller|earlier|shorter|lighter"
_YEAR = "(?:the year |year )?"

COMPARISONS: tuple[tuple[Operator, re.Pattern[str]], ...] = tuple(
    (operator, re.compile(pattern))
    for operator, pattern in (
        ("between", r"\b(?:between|from) (?:\w+ )?(#)(?: \w+)? (?:and|to) (?:\w+ )?(#)"),
        ("ge", rf"\b(?:at least|no (?:less|fewer) than|not (?:less|fewer) than|(?:a )?minimum of|since) {_YEAR}(#)"),
        ("ge", rf"\b(?:starting (?:at|from|in)|(?:in|from) (?=\S+ (?:or|and|on)\b)) ?{_YEAR}(#)"),
        ("le", rf"\b(?:at most|no more than|not more than|up to|(?:a )?maximum of|no later than|within) {_YEAR}(#)"),
        ("le", rf"\b(?:not over|no higher than|not above|until) {_YEAR}(#)"),
        ("ge", rf"(#) (?:\w+ ){{0,4}}?(?:or|and) (?:{_MORE}|above|over|up|upwards|after|older|onwards)\b"),
        ("ge", r"(#) (?:onwards?|upwards?)\b"),
        ("le", rf"(#) (?:\w+ ){{0,2}}?(?:or|and) (?:{_LESS}|below|under|before|cheaper)\b"),
        ("gt", rf"\b(?:over|above|beyond|exceed\w*|after|past|in excess of|upwards of|(?:{_MORE}) than) {_YEAR}(#)"),
        ("lt", rf"\b(?:under|below|before|prior to|(?:{_LESS}) than) {_YEAR}(#)"),
        ("gt", r"\b\w+er than (?:the year )?(#)"),
        ("eq", rf"\bin {_YEAR}(#)"),
        ("eq", r"\b(?:exactly|precisely|equal to|equals?) (#)"),
    )
)
"""Comparisons in the order in which they are looked for; the groups are the numbers."""

SUMMARIES: tuple[tuple[Summary, re.Pattern[str]], ...] = tuple(
    (summary, re.compile(pattern))
    for summary, pattern in (
        ("count", r"\b(how many|number of|count|how often|quantity of)\b"),
        (
            "sum",
            r"\b(totals?|sums?|altogether|combined|in all|add(ed)? up|added together|together|between them|overall)\b",
        ),
        ("mean", r"\b(averages?|mean|typical|averaged)\b"),
        ("difference", rf"\b(difference|how (?:much|many)(?: \w+){{0,2}} (?:{_MORE}|{_LESS}|older|younger))\b"),
        ("difference", r"\b(by how (?:much|many)|gap|apart|how much \w+er)\b"),
        ("share", r"\b(percentage|percent|share|proportion|fraction|ratio)\b"),
    )
)
"""What shows that a number is counted, added up or the like."""
