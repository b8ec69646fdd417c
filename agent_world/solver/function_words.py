"""Function words of English by what they do in a phrase; words that mean something are in the lexicon."""

from __future__ import annotations

from agent_world.solver.model import Operator

ARTICLES = frozenset("the a an only all each every any some both of".split())
POSSESSIVE = frozenset("its their his her".split())
POINTING = frozenset("that this those these said".split())
PRONOUNS = frozenset("it they them those these one ones he she him both".split())
BE = frozenset("is are was were be being".split())
MOST = {
    **dict.fromkeys(("highest", "most", "largest", "greatest", "maximum", "biggest", "top", "max"), True),
    **dict.fromkeys(("lowest", "least", "smallest", "fewest", "minimum", "min"), False),
}
MORE = {
    **dict.fromkeys(("higher", "more", "larger", "greater", "bigger"), True),
    **dict.fromkeys(("lower", "less", "smaller", "fewer"), False),
}
MEANS = {**dict.fromkeys(("mean", "average"), "mean"), **dict.fromkeys(("total", "sum"), "sum")}
AMONG = (("out", "of"), ("among",), ("amongst",), ("of",), ("from",), ("across",), ("in",), ("for",))
ENDS = frozenset(
    "of among amongst whose with is are was were and or as than at among from that which who into onto to on by for in"
    " has have had does do if unless then but between across named after afterwards now".split()
)
"""Words that end the words of a fact, in which an `in` or a `for` may stand inside."""

AFTER_NOUN = (
    ENDS
    | POINTING
    | PRONOUNS
    | {"marked", "not", "there", "it", "please", "respectively", "instead", "also", "can", "will"}
)

BOUNDS: tuple[tuple[tuple[str, ...], Operator], ...] = (
    (("at", "least"), "ge"),
    (("no", "less", "than"), "ge"),
    (("no", "fewer", "than"), "ge"),
    (("not", "less", "than"), "ge"),
    (("at", "most"), "le"),
    (("no", "more", "than"), "le"),
    (("not", "more", "than"), "le"),
    (("up", "to"), "le"),
    (("more", "than"), "gt"),
    (("higher", "than"), "gt"),
    (("greater", "than"), "gt"),
    (("larger", "than"), "gt"),
    (("later", "than"), "gt"),
    (("over",), "gt"),
    (("above",), "gt"),
    (("after",), "gt"),
    (("less", "than"), "lt"),
    (("fewer", "than"), "lt"),
    (("lower", "than"), "lt"),
    (("smaller", "than"), "lt"),
    (("earlier", "than"), "lt"),
    (("below",), "lt"),
    (("under",), "lt"),
    (("before",), "lt"),
    (("exactly",), "eq"),
)
AFTERWARDS = (("after", "that"), ("after", "it"), ("afterwards",), ("now",), ("then",))
JOINED = frozenset(", and then or".split())
FIRST_BY_NAME = ("alphabet", "alphabetically", "alphabetical")
PAPERS = frozenset("page sheet document list file table".split())
