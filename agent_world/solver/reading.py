"""Reads an instruction: sentences are cut into clauses, and clauses put together to branches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from agent_world.solver.clause import AUXILIARIES, POLITE, QUESTION_WORDS, read_clause
from agent_world.solver.index import Toolbox
from agent_world.solver.lexicon import lexicon, similarity
from agent_world.solver.mentions import Token, tokenise
from agent_world.solver.model import Branch, Clause, Part

_IF = {"if", "unless", "provided", "should", "when", "assuming", "whenever", "supposing"}
_TRAILING = {"and", "but", "then", "or", "so", ",", "finally", "afterwards", "'", '"'}
_ELSE = {"otherwise", "else", "failing"}
_PRONOUNS = frozenset(("that that's this it it's they he she he's she's you we").split())
_WISH = re.compile(
    r"(?:please )?(?:try|attempt|aim) to (?=\w)"
    r"|(?:my|the|our) (?:\w+ )?(?:choice|preference|wish|plan|aim|fallback|alternative) (?:is|would be) to (?=\w)"
)
_SECOND_BEST = re.compile(
    r"(?:my|the|our) (?:(?:second|next|other) (?:choice|preference|wish|plan)|fallback|alternative) (?:is|would be) to"
)
_WOULD = frozenset(("could", "can", "would", "will"))
"""Words that make an order of a question: "Could you ...?"."""

_FAILED = re.compile(
    r"\b(impossible|(?:not|isn't|no longer) (?:possible|allowed)|refus\w+|fail\w*|reject\w*|turned down|declin\w+"
    r"|denied|won't|can't|cannot|(?:not|doesn't|didn't) (?:work|go through))\b"
)


def read(text: str, box: Toolbox) -> tuple[Part, ...]:
    """The parts of an instruction in order."""
    doing = box.doing
    pieces: list[tuple[str, list[Token]]] = []
    for sentence in _sentences(_whole_names(tokenise(text, doing, words=box.weights))):
        pieces += _pieces(sentence, doing)
    return tuple(_parts(pieces, box))


def read_phrase(text: str, box: Toolbox, known: Sequence[str] = ()) -> Clause:
    """A phrase, such as the description of an answer field, as a clause that asks; `known` names may occur."""
    lowered = text[:1].lower() + text[1:] if text[1:2].islower() else text
    tokens = [token for token in tokenise(lowered, known=known) if token.kind != "mark"]
    of = next((at for at, token in enumerate(tokens[:-1]) if token.low == "of"), 0)
    asked = range(of) if of and (tokens[of + 1].kind != "word" or tokens[of + 1].low in ("the", "that")) else range(0)
    return replace(read_clause(tokens, box, 0, asked), kind="ask")


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
        conditional = any(one.low in ("if", "unless") for one in current)
        if token.kind == "mark" and token.text in ".?!;:" and not _runs_on(tokens, at, conditional):
            if token.text == "?" and current:
                current.append(token)
            if current:
                sentences.append(current)
            current = []
        else:
            current.append(token)
    return [*sentences, current] if current else sentences


def _runs_on(tokens: Sequence[Token], at: int, conditional: bool) -> bool:
    """A full stop before a small letter ends an abbreviation; a colon after a condition is no end of it either."""
    following = tokens[at + 1].text if at + 1 < len(tokens) else ""
    return (tokens[at].text == "." and following[:1].islower()) or (tokens[at].text == ":" and conditional)


def _pieces(sentence: list[Token], doing: frozenset[str]) -> list[tuple[str, list[Token]]]:
    """Cuts a sentence where a new request begins; each piece with its role: plain, if, unless, else."""
    pieces: list[list[Token]] = [[]]
    for at, token in enumerate(sentence):
        if _starts(sentence, at, doing) and not _opening(pieces[-1]):
            pieces.append([])
        pieces[-1].append(token)
    result = []
    for piece in pieces:
        begun = next((token.low for token in piece if token.kind == "word" and token.low not in ("and", "but")), "")
        asked = any(token.text == "?" for token in piece) or (begun in AUXILIARIES and sentence[-1].text == "?")
        asked = asked and (sentence[0].low not in _WOULD or begun in QUESTION_WORDS)
        words = [token for token in piece if not (token.kind == "mark" and token.text in "?-\u2013\u2014()")]
        while len(words) > 1 and words[0].low in ("and", "but", "then", "so", "also", ",", "'", '"'):
            words = words[1:]
        while words and words[-1].low in _TRAILING and [one.low for one in words] != ["if", "so"]:
            words = words[:-1]
        if not words:
            continue
        words = _after_sequence(words)
        if not words:
            continue
        second = _SECOND_BEST.match(" ".join(token.low for token in words)) is not None
        words = _after_wish(words)
        lows = [token.low for token in words]
        role = "plain"
        if (
            lows[0] in ("if", "assuming", "supposing", "provided")
            or lows[:2] == ["should", "that"]
            or (lows[:2] in (["in", "case"], ["only", "if"], ["as", "long"]))
            or (lows[0] == "should" and not asked)
            or (lows[0] in ("where", "when") and not asked and _FAILED.search(" ".join(lows)))
        ):
            role = "else" if lows[:2] == ["if", "not"] else "so" if lows[:2] == ["if", "so"] else "if"
        elif lows[0] == "unless":
            role = "after unless" if result and result[-1][0] == "plain" else "unless"
        elif second:
            role = "second"
        elif result and result[-1][0] == "after unless":
            role = "then"
        elif lows[0] in _ELSE or lows[:2] == ["or", "else"]:
            role = "else"
        result.append((role, [*words, *([Token(text="?", kind="mark")] if asked else [])]))
    return result


def _after_sequence(words: list[Token]) -> list[Token]:
    """Without a "when that is settled" at the beginning, which says no more than the order of things."""
    lows = [token.low for token in words]
    if lows[0] not in ("when", "once", "after") or lows[1:2] == [] or lows[1] not in _PRONOUNS:
        return words
    verbs = lexicon().verbs
    end = next(
        (
            at
            for at, token in enumerate(words)
            if at > 1 and ((token.low in verbs and not token.low.endswith(("ed", "ing"))) or token.kind != "word")
        ),
        len(words),
    )
    if end < len(words) and words[end].kind not in ("word", "mark"):
        return words  # tells something of its own
    return words[end + 1 :] if end < len(words) and words[end].text == "," else words[end:]


def _after_wish(words: list[Token]) -> list[Token]:
    """Without "try to" or "my plan is to" at the beginning, which say no more than that it is wanted."""
    wish = _WISH.match(" ".join(token.low for token in words))
    return words[len(wish.group().split()) :] if wish is not None else words


def _opening(piece: Sequence[Token]) -> bool:
    """Words before a request that are none themselves: "Please", "On average,"."""
    words = [token for token in piece if token.kind != "mark"]
    if all(token.low in POLITE for token in words):
        return True
    return (
        len(words) <= 3
        and words[0].low in ("on", "in", "for", "at", "all")
        and all(one.kind == "word" for one in words)
    )


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
    joined = before.kind == "mark" or previous in tuple(
        ("so and then but afterwards also or please finally next").split()
    )
    if not joined:
        return False
    if low in ("and", "then", "but", "or"):
        return False
    if low in ("he", "she", "they", "we") and previous in ("then", "and", "but", "so", ";"):
        return True
    if low in QUESTION_WORDS or (low == "by" and following == "how"):
        return True
    if low in ("have", "get") and following in ("it", "them", "him", "her", "that"):
        return True
    if before.text == "," and low in ("should", "is", "are", "does", "do", "has", "can", "could"):
        return True
    if previous in ("and", ",", "but") and low in ("is", "does", "was", "are", "did"):
        return True
    verb = low in lexicon().verbs or any(similarity(token.stem, one) >= 0.8 for one in doing)
    if verb and (low.endswith(("ed", "ing")) and low not in ("need", "feed")):
        return False
    if verb and low in tuple(
        (
            "list state name rate order report place number count record title charge note use change review"
            " plan rank score ship end return release start"
        ).split()
    ):
        # Words that are nouns as often: a request when a determiner, a name or a pronoun follows.
        return following in tuple(
            ("the a an it them me us all its their him her this that how what which both every each out up to").split()
        ) or (at + 1 < len(sentence) and sentence[at + 1].kind != "word" and sentence[at + 1].kind != "mark")
    return verb


def _undivided(sentence: list[Token], at: int, doing: frozenset[str]) -> bool:
    """An order that follows a condition without a comma: "If A is older than B lend A to Ann"."""
    token, before = sentence[at], sentence[at - 1]
    if (
        any(one.text == "," for one in sentence[:at])
        or token.low not in lexicon().verbs
        or token.low.endswith(("ed", "ing"))
    ):
        return False
    if not any(similarity(token.stem, verb) >= 0.8 for verb in doing):
        return False
    following = sentence[at + 1] if at + 1 < len(sentence) else None
    free = before.kind in ("name", "number") or before.low not in lexicon().stop
    return (
        free
        and following is not None
        and (following.kind != "word" or following.low in ("the", "a", "an", "it", "them", "him", "her"))
    )


def _parts(pieces: list[tuple[str, list[Token]]], box: Toolbox) -> list[Part]:
    clauses = [(role, read_clause(tokens, box, position)) for position, (role, tokens) in enumerate(pieces)]
    parts: list[Part] = []
    at = 0
    while at < len(clauses):
        role, clause = clauses[at]
        if role == "second" and parts:
            parts.append(Branch(condition=None, negated=False, then=(clause,), otherwise=()))
            at += 1
            continue
        if role in ("plain", "then", "second"):
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
        if role == "after unless":
            # "A, unless C: then B": the request came before the condition, what follows is for when that holds.
            then = [parts.pop()] if parts and isinstance(parts[-1], Clause) else []
            if at < len(clauses) and clauses[at][0] == "then":
                otherwise, at = [clauses[at][1]], at + 1
        elif at < len(clauses) and clauses[at][0] == "plain" and _same_sentence(clauses[at - 1][1], clauses[at][1]):
            then, at = _run(clauses, at, [])
        elif parts and isinstance(parts[-1], Clause) and not refused:
            then = [parts.pop()]
        if at < len(clauses) and clauses[at][0] == "else":
            otherwise, at = _run(clauses, at + 1, [_trimmed(clauses[at][1], "else", box)])
        parts.append(
            Branch(
                condition=None if refused else clause,
                negated=role != "if",
                then=tuple(then),
                otherwise=tuple(otherwise),
            )
        )
    return parts


def _same_sentence(before: Clause, after: Clause) -> bool:
    return before.tokens[-1].start < after.tokens[0].start and before.tokens[-1].text != "?"


def _run(clauses: list[tuple[str, Clause]], at: int, taken: list[Clause]) -> tuple[list[Clause], int]:
    """Takes the orders that belong to a branch: what follows in the same breath and asks nothing."""
    taken = [clause for clause in taken if clause.tokens]
    while (
        at < len(clauses)
        and clauses[at][0] == "plain"
        and (not taken or (clauses[at][1].kind == "do" and taken[-1].kind == "do" and clauses[at][1].refers))
    ):
        taken.append(clauses[at][1])
        at += 1
    return taken, at


def _trimmed(clause: Clause, role: str, box: Toolbox) -> Clause:
    skip = 2 if role == "so" or clause.tokens[0].low in ("if", "or") else 1
    return read_clause(list(clause.tokens[skip:]), box, clause.position)


def _on_refusal(clause: Clause) -> bool:
    text = clause.text.lower()
    if _FAILED.search(text):
        return True
    return (
        clause.refers
        and not clause.mentions
        and bool(re.search(r"n't|\bnot\b|\bno\b", text))
        and bool(re.search(r"\b(that many|enough|available|possible|allowed|free|room|left)\b", text))
    )
