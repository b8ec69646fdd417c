"""The solver and the author of instructions share no wording: what one writes, the other must read as any English."""

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import agent_world.solver
import agent_world.tasks

AUTHOR = Path(agent_world.tasks.__file__).parent
SOLVER = Path(agent_world.solver.__file__).parent
FILES = sorted(path for path in SOLVER.iterdir() if path.suffix in (".py", ".txt"))
MODULES = [path for path in FILES if path.suffix == ".py"]

FRAGMENT = 4
"""So many words in a row are wording; fewer are English: `the name of`, `and what is`."""

_CODE = re.compile(r"[\n\\\[\]=_]")
_LOOKAROUND = re.compile(r"\(\?<?[=!](?:[^()]|\([^()]*\))*\)")
_WILDCARD = re.compile(r"\[\^?[^\]]*\]|\\[wWdDsS]|(?<!\\)\.")


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower().replace("'", ""))


def literals(path: Path) -> Iterator[str]:
    """The text between the placeholders of every string of a module, docstrings aside."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def templates() -> list[str]:
    """What instructions are made of: every literal of the author that is no code and no pattern."""
    return [text for path in sorted(AUTHOR.rglob("*.py")) for text in literals(path) if not _CODE.search(text)]


def fragments(texts: Iterable[str]) -> set[tuple[str, ...]]:
    """Every run of so many words in one of the texts."""
    said = map(words, texts)
    return {tuple(run[at : at + FRAGMENT]) for run in said for at in range(len(run) - FRAGMENT + 1)}


def texts(path: Path) -> list[str]:
    """Everything in a file of the solver that is not an instruction to the machine: strings, docstrings, comments."""
    source = path.read_text("utf-8")
    if path.suffix == ".txt":
        return source.splitlines()
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    strings = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [*comments, *strings]


def patterns(path: Path) -> set[str]:
    """The patterns of a module: those that it holds compiled, and its literals, of which some are compiled in place."""
    module = importlib.import_module(f"agent_world.solver.{path.stem}")

    def held(value: object) -> Iterator[str]:
        if isinstance(value, re.Pattern):
            yield value.pattern
        elif isinstance(value, tuple):
            for item in value:
                yield from held(item)

    return {*literals(path), *(found for value in vars(module).values() for found in held(value))}


def said_by(pattern: str, texts: Iterable[str]) -> list[str]:
    """Runs of so many words in a text that the words of the pattern itself match, its wildcards taken out."""
    around = _LOOKAROUND.findall(pattern)
    plain = [_WILDCARD.sub(r"\\x00", part) for part in _LOOKAROUND.split(pattern)]
    try:
        bare = re.compile("".join(part + look for part, look in zip(plain, [*around, ""], strict=True)), re.IGNORECASE)
    except re.error:
        return []  # no pattern, or a piece of one that its module holds as a whole
    spoken = [" ".join(words(text)) + " and" for text in texts]
    return [match[0] for text in spoken for match in bare.finditer(text) if len(words(match[0])) >= FRAGMENT]


@pytest.fixture(scope="module")
def wording() -> list[str]:
    return templates()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_text_of_the_solver_repeats_a_fragment_of_a_template(path, wording):
    assert fragments(texts(path)) & fragments(wording) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_pattern_of_the_solver_spells_a_fragment_of_a_template(path, wording):
    found = {said for pattern in patterns(path) for said in said_by(pattern, wording)}
    assert found == set()


def test_the_templates_are_found(wording):
    found = fragments(wording)
    for text in ("What I want to know is", "For my notes I need", "comes first in the alphabet", "in the name of"):
        assert fragments([text]) <= found, text
    assert len(found) > 150


def test_planted_wording_is_found(tmp_path, wording):
    planted = tmp_path / "planted.py"
    for source in (
        '"""Reads what follows `for my notes I need`."""',
        "LEAD = 1  # as in: What I want to know is",
        'LEADS = ("when that is done, give me",)',
    ):
        planted.write_text(source)
        assert fragments(texts(planted)) & fragments(wording), source
    data = tmp_path / "planted.txt"
    data.write_text("# nothing\nat the end I need = want\n")
    assert fragments(texts(data)) & fragments(wording)


@pytest.mark.parametrize(
    ("pattern", "spells"),
    [
        (r"\b(?:for|in) (?:my|our) notes (?:I|we) need\b", True),
        (r"\bwhat i (?:want|wish) to know is (?=\w)", True),
        (r"\b(?:\w+ ){3}need", False),
        (r"\blooking for\b", False),
    ],
)
def test_a_pattern_spells_what_its_own_words_match(pattern, spells, wording):
    assert bool(said_by(pattern, wording)) == spells
