"""What the solver makes of English, before any tool is called."""

import pytest

from agent_world.solver.index import toolbox_of
from agent_world.solver.lexicon import similarity, stem
from agent_world.solver.mentions import tokenise
from agent_world.solver.model import Branch, Compare, Extreme
from agent_world.solver.reading import flat, read
from tests.solver.desk import flight_desk


@pytest.fixture(scope="module")
def box():
    return toolbox_of(tuple(tool.public() for tool in flight_desk().tools))


def only(text, box, kind):
    return [one for clause in flat(read(text, box)) for one in clause.constraints if isinstance(one, kind)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('Who wrote "The Quiet Harbour"?', ["The Quiet Harbour"]),
        ("Does 'Salt and Stone' cost more than Winter Maps?", ["Salt and Stone", "Winter Maps"]),
        ("Find the flights of Delta Air Lines Inc. in May.", ["Delta Air Lines Inc.", "May"]),
        ("I'd like Nora Dahl's file, please.", ["Nora Dahl"]),
        ("Reserve a seat on F104 for Ada Lovelace.", ["F104", "Ada Lovelace"]),
        ('Who flies with "Ice Air Inc." and "Polar Co."?', ["Ice Air Inc.", "Polar Co."]),
        ('Have you heard of "Ice Air."', ["Ice Air"]),
    ],
)
def test_names_are_found_quoted_or_capitalised(text, names):
    assert [token.text for token in tokenise(text, frozenset({"reserv"})) if token.kind == "name"] == names


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two seats, 1,250 miles and -5 degrees", [2, 1250, -5]),
        ("twenty-one days and 3.5 hours", [21, 3.5]),
        ("on 5 March 2026 or 2026-04-01", ["2026-03-05", "2026-04-01"]),
        ("zip code 0123", []),
    ],
)
def test_numbers_and_dates_are_read(text, values):
    assert [token.value for token in tokenise(text) if token.kind in ("number", "date")] == values


@pytest.mark.parametrize(
    ("text", "operator", "value"),
    [
        ("How many flights cost more than 200 dollars?", "gt", 200),
        ("How many flights cost at least 200 dollars?", "ge", 200),
        ("How many flights cost 200 dollars or more?", "ge", 200),
        ("How many flights cost less than 200 dollars?", "lt", 200),
        ("How many flights cost no more than 200 dollars?", "le", 200),
        ("How many airlines were founded after 1987?", "gt", 1987),
        ("How many airlines were founded before 1987?", "lt", 1987),
        ("How many airlines were founded in 1987 or later?", "ge", 1987),
    ],
)
def test_comparisons_are_read(text, operator, value, box):
    (found,) = only(text, box, Compare)
    assert (found.operator, found.value) == (operator, value)


@pytest.mark.parametrize(
    ("text", "more", "count"),
    [
        ("Which flight has the most seats?", True, 1),
        ("Which flight has the fewest seats?", False, 1),
        ("Name the three highest airports.", True, 3),
        ("What is the lowest airport?", False, 1),
    ],
)
def test_superlatives_are_read(text, more, count, box):
    (found,) = only(text, box, Extreme)
    assert (found.more, found.count) == (more, count)


@pytest.mark.parametrize(
    "text",
    [
        "If F101 has more than two free seats, book it; otherwise book F102.",
        "Book F101 if it has more than two free seats, otherwise book F102.",
        "Does F101 have more than two free seats? If so, book it. If not, book F102.",
    ],
)
def test_a_condition_has_two_branches(text, box):
    (branch,) = [part for part in read(text, box) if isinstance(part, Branch)]
    assert branch.condition is not None
    assert "two free seats" in branch.condition.text
    assert branch.then[0].text.lower().startswith("book")
    assert [clause.text for clause in branch.otherwise] == ["book F102"]


def test_a_refusal_is_a_branch_without_a_condition(box):
    text = "Hold four seats on F101. If that is refused, take F106 instead."
    (branch,) = [part for part in read(text, box) if isinstance(part, Branch)]
    assert branch.condition is None


def test_unless_turns_a_condition_round(box):
    (branch,) = [
        part for part in read("Unless F101 costs more than 100 dollars, book it.", box) if isinstance(part, Branch)
    ]
    assert branch.negated


def test_names_in_a_row_belong_together(box):
    (clause,) = read("Put Ann Lee, Bo Rey and Cy Ito on F101", box)
    groups = {one.text: one.group for one in clause.mentions}
    assert groups["Ann Lee"] == groups["Bo Rey"] == groups["Cy Ito"] is not None
    assert groups["F101"] is None


def test_part_of_a_name_stands_for_the_whole(box):
    clauses = flat(read("Is Ada Finch older than Dev Rao? Where does Dev live?", box))
    assert [one.text for one in clauses[-1].mentions] == ["Dev Rao"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("books", "book"), ("cancelled", "cancel"), ("cities", "city"), ("reservation", "reserve"), ("wrote", "writing")],
)
def test_inflected_words_share_a_stem(one, other):
    assert stem(one) == stem(other)


def test_similarity_knows_form_and_meaning():
    assert similarity(stem("price"), stem("cost")) > similarity(stem("price"), stem("colour"))
    assert similarity(stem("publish"), stem("publication")) > 0.5
    assert similarity(stem("seat"), stem("passenger")) == 0.0


@pytest.mark.parametrize("second", ["my next choice is to", "otherwise"])
def test_a_second_choice_is_for_when_the_first_is_refused(box, second):
    text = f"My first choice is to hold a seat on F104 for Ann; {second} hold a seat on F105 for Ann."
    first, second = read(text, box)
    assert first.text.startswith("hold a seat on F104")
    assert isinstance(second, Branch)
    assert (second.condition, second.otherwise) == (None, ())
    assert second.then[0].text.startswith("hold a seat on F105")


def test_an_exception_may_say_what_to_do_then(box):
    (branch,) = read("Please cancel BK1, unless the price of flight F104 is over 90: then confirm BK1.", box)
    assert isinstance(branch, Branch)
    assert (branch.then[0].text, branch.otherwise[0].text) == ("Please cancel BK1", "confirm BK1")
    assert branch.negated


@pytest.mark.parametrize("text", ["less than 3.5e-06 grams", "less than 2e3 grams"])
def test_scientific_numbers_are_numbers(text, box):
    (compare,) = only(text, box, Compare)
    assert compare.value in (3.5e-06, 2000.0)
