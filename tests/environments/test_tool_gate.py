from dataclasses import replace

import pytest

from agent_world.environments.model import Call, Meaning, Tool, ToolTest
from agent_world.environments.session import Session
from agent_world.environments.tool_gate import check_environment, check_tools
from agent_world.sandbox import default_sandbox
from tests.toy import toy_environment

TOY = toy_environment()
BOOK = {"book_id": "B3", "title": "Winter Maps", "author": "Bo Lindqvist", "genre": "novel", "year": 2011, "copies": 1}
MEMBER = {"member_id": "M2", "name": "Tom Okafor"}


def case(tool, arguments, expect=None, *, refusal=None, before=(), name="a test"):
    scene = tuple(Call(tool=other, arguments=given) for other, given in before)
    call = Call(tool=tool, arguments=arguments)
    return ToolTest(name=name, tool=tool, kind="typical", call=call, expect=expect, refusal=refusal, before=scene)


def judged(tools, tests):
    return check_tools(TOY.database, TOY.files, tools, tests, default_sandbox())


def one(tool, *tests):
    (verdict,) = judged([tool], tests)
    return verdict


def tool(source, *, name="probe", properties=None, output=None, writes=False):
    properties = properties or {}
    closed = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Tool(
        tool_id=f"toy/{name}",
        name=name,
        description="",
        input_schema=closed,
        output_schema=output or {"type": "object"},
        writes=writes,
        source=source,
        pattern="get",
        tables=(),
        inputs={key: Meaning(kind="text") for key in properties},
    )


def test_a_tool_whose_tests_pass_is_kept_with_accuracy_one():
    verdict = one(
        TOY.tool("get_book"),
        case("get_book", {"book_id": "B3"}, BOOK),
        case("get_book", {"book_id": "?"}, refusal="not_found"),
    )
    assert verdict.accepted and verdict.accuracy == 1.0 and verdict.reasons == () and verdict.failed == ()


def test_more_than_half_keeps_a_tool_and_its_failing_case_is_shown():
    wrong = case("get_book", {"book_id": "B1"}, BOOK, name="mistakes one book for another")
    verdict = one(
        TOY.tool("get_book"),
        case("get_book", {"book_id": "B3"}, BOOK),
        case("get_book", {"book_id": "?"}, refusal="not_found"),
        wrong,
    )
    assert verdict.accepted and verdict.accuracy == pytest.approx(2 / 3)
    assert [(result.test.name, result.reason, result.seen["title"]) for result in verdict.failed] == [
        ("mistakes one book for another", "wrong_value", "The Quiet Harbour")
    ]


def test_exactly_half_is_rejected():
    verdict = one(
        TOY.tool("get_book"), case("get_book", {"book_id": "B3"}, BOOK), case("get_book", {"book_id": "B1"}, BOOK)
    )
    assert not verdict.accepted and verdict.accuracy == 0.5 and verdict.reasons == ("low_accuracy",)


def test_a_tool_without_tests_is_rejected():
    assert one(TOY.tool("get_book")).reasons == ("no_tests",)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def probe(world) -> dict:\n    return {\n", "does_not_compile"),
        ("x = (" + "(" * 300 + ")" * 300 + ")\ndef probe(world): return {}\n", "does_not_compile"),
        ("def other(world) -> dict:\n    return {}\n", "wrong_signature"),
        ("def probe(world, *, extra: str) -> dict:\n    return {}\n", "wrong_signature"),
        ("def probe() -> dict:\n    return {}\n", "wrong_signature"),
    ],
)
def test_a_source_that_cannot_be_called_is_rejected_and_its_neighbour_is_kept(source, reason):
    verdicts = judged(
        [tool(source), TOY.tool("get_book")], [case("probe", {}, {}), case("get_book", {"book_id": "B3"}, BOOK)]
    )
    assert [verdict.reasons for verdict in verdicts] == [(reason,), ()]
    assert verdicts[0].detail


def test_an_optional_argument_needs_a_default():
    source = "def probe(world, *, a: str) -> dict:\n    return {}\n"
    optional = replace(
        tool(source, properties={"a": {"type": "string"}}),
        input_schema={"type": "object", "properties": {"a": {"type": "string"}}},
    )
    verdict = one(optional, case("probe", {"a": "x"}, {}))
    assert verdict.reasons == ("wrong_signature",) and "default" in verdict.detail


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"type": "array"}, {"properties": 3, "type": "object"}])
def test_a_schema_that_is_none_is_rejected(schema):
    verdict = one(replace(TOY.tool("get_book"), output_schema=schema), case("get_book", {"book_id": "B3"}, BOOK))
    assert verdict.reasons == ("bad_schema",)


def test_a_result_that_breaks_the_output_schema_rejects_a_tool_that_passes_otherwise():
    source = 'def probe(world, *, a: str) -> dict:\n    return {"a": a if a != "x" else 1}\n'
    strict = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    probe = tool(source, properties={"a": {"type": "string"}}, output=strict)
    verdict = one(
        probe, *[case("probe", {"a": letter}, {"a": letter}) for letter in "abc"], case("probe", {"a": "x"}, {"a": 1})
    )
    assert verdict.accuracy == 0.75 and verdict.reasons == ("broken_output",)


def test_what_one_call_leaves_in_a_module_shows_in_the_second_run():
    source = 'seen = []\n\n\ndef probe(world, *, a: str) -> dict:\n    seen.append(a)\n    return {"n": len(seen)}\n'
    probe = tool(source, properties={"a": {"type": "string"}})
    verdict = one(probe, *[case("probe", {"a": letter}, {"n": place}) for place, letter in enumerate("abcd", 1)])
    assert "unstable" in verdict.reasons and {result.reason for result in verdict.results} == {"unstable"}


def test_a_tool_that_uses_addresses_is_unstable():
    source = "def probe(world) -> dict:\n    return {'at': [id(bytes(size)) for size in range(8, 140, 16)]}\n"
    verdict = one(tool(source), case("probe", {}, {"at": []}))
    assert "unstable" in verdict.reasons


def test_the_second_tool_of_a_name_is_shadowed():
    first = TOY.tool("get_book")
    verdicts = judged([first, replace(first, tool_id="toy/again")], [case("get_book", {"book_id": "B3"}, BOOK)])
    assert [verdict.reasons for verdict in verdicts] == [(), ("shadowed",)]


def test_a_read_only_tool_that_writes_fails():
    source = 'def probe(world) -> dict:\n    world.db.execute("INSERT INTO members VALUES (1, 2)")\n    return {}\n'
    verdict = one(tool(source), case("probe", {}, {}))
    assert verdict.reasons == ("low_accuracy",) and verdict.results[0].reason == "error"


def test_a_tool_that_raises_or_never_ends_hurts_no_other_test():
    loop = tool("def probe(world) -> dict:\n    raise ValueError('no')\n")
    verdicts = judged(
        [loop, TOY.tool("find_member")], [case("probe", {}, {}), case("find_member", {"name": "tom okafor"}, MEMBER)]
    )
    assert [verdict.accepted for verdict in verdicts] == [False, True]
    assert verdicts[0].results[0].reason == "error"


def test_a_tool_that_breaks_its_state_is_refused_whatever_else_it_does_well():
    source = """import os


def probe(world, *, bad) -> dict:
    if bad:
        os.pwrite(5, b"nonsense" * 100, 0)
    return {}
"""
    breaking = tool(source, properties={"bad": {"type": "boolean"}}, writes=True)
    calls = [case("probe", {"bad": bad}, {}) for bad in (False, False, True)]
    verdict = one(breaking, *calls)
    assert verdict.reasons == ("corrupt_state",)
    assert [result.reason for result in verdict.results] == [None, None, "corrupt_state"]
    assert one(breaking, *calls[:2]).accepted


def test_minted_ids_are_told_by_prefix_and_by_reference():
    lend = ("lend_book", {"book_id": "B1", "member_id": "M1"})
    back = case(
        "return_book",
        {"loan_id": {"$ref": "before[0].loan_id"}},
        {"loan_id": {"$ref": "before[0].loan_id"}, "status": "returned"},
        before=[lend],
    )
    made = case("lend_book", lend[1], {"loan_id": {"$minted": "LN"}, "status": "out"}, before=[lend])
    other = case("lend_book", lend[1], {"loan_id": {"$minted": "XX"}, "status": "out"})
    verdicts = {v.tool.name: v for v in judged([TOY.tool("lend_book"), TOY.tool("return_book")], [back, made, other])}
    assert verdicts["return_book"].accuracy == 1.0
    assert [result.passed for result in verdicts["lend_book"].results] == [True, False]


def test_an_id_that_was_made_before_is_not_a_minted_one():
    write = 'world.db.execute("INSERT OR REPLACE INTO members VALUES (1, 2)")'
    source = f'def probe(world) -> dict:\n    {write}\n    return {{"id": "M9"}}\n'
    again = case("probe", {}, {"id": {"$minted": "M"}}, before=[("probe", {})])
    verdict = one(tool(source, writes=True), case("probe", {}, {"id": {"$minted": "M"}}), again)
    assert [result.passed for result in verdict.results] == [True, False]


def test_a_scene_that_does_not_come_off_fails_the_test():
    bad = case("return_book", {"loan_id": "LN1"}, refusal="not_found", before=[("no_such_tool", {})])
    assert one(TOY.tool("return_book"), bad).results[0].reason == "scene_failed"


def test_a_refused_call_may_set_the_scene():
    lend = ("lend_book", {"book_id": "B3", "member_id": "M1"})
    full = case("lend_book", lend[1], refusal="no_copies", before=[lend, lend])
    assert one(TOY.tool("lend_book"), full).accuracy == 1.0


@pytest.mark.parametrize(
    ("expect", "passes"),
    [
        ({"n": 1}, True),
        ({"n": 1.0000001}, True),
        ({"n": True}, False),
        ({"n": 1.1}, False),
        ({"n": "1"}, False),
        ({}, False),
        ({"n": 1, "m": None}, False),
    ],
)
def test_values_are_equal_as_json_with_a_little_room_for_floats(expect, passes):
    verdict = one(tool('def probe(world) -> dict:\n    return {"n": 1}\n'), case("probe", {}, expect))
    assert verdict.results[0].passed is passes


def test_a_refusal_is_judged_by_its_code():
    wrong = case("get_book", {"book_id": "?"}, refusal="no_copies")
    invalid = case("get_book", {}, refusal="invalid_arguments")
    none = case("get_book", {"book_id": "B3"}, refusal="not_found")
    verdict = one(TOY.tool("get_book"), wrong, invalid, none)
    assert [result.reason for result in verdict.results] == ["wrong_refusal", None, "not_refused"]


def test_an_environment_needs_a_tool_and_a_passing_test():
    kept = judged([TOY.tool("get_book")], [case("get_book", {"book_id": "B3"}, BOOK)])
    dropped = judged([TOY.tool("get_book")], [case("get_book", {"book_id": "B3"}, {})])
    good = check_environment(TOY.database, TOY.files, kept, default_sandbox())
    assert good.accepted and good.tools == 1 and good.tests == 1 and good.digest is not None
    assert check_environment(TOY.database, TOY.files, dropped, default_sandbox()).reasons == ("no_tool", "no_test")


def test_an_environment_whose_two_resets_differ_is_rejected(monkeypatch):
    kept = judged([TOY.tool("get_book")], [case("get_book", {"book_id": "B3"}, BOOK)])
    digests = iter(["one", "another"])
    monkeypatch.setattr(Session, "digest", lambda session: next(digests))
    assert check_environment(TOY.database, TOY.files, kept, default_sandbox()).reasons == ("unstable_reset",)


def brought(**rounds):
    """The toy database as if complexification rounds had added some of its tables and its document."""
    tables = tuple(replace(table, added_in=rounds.get(table.name, 0)) for table in TOY.database.tables)
    documents = tuple(replace(document, added_in=rounds.get("document", 0)) for document in TOY.database.documents)
    return replace(TOY.database, tables=tables, documents=documents)


@pytest.mark.parametrize(
    ("database", "rounds"),
    [
        (brought(), 0),
        (brought(books=1), 1),
        (brought(books=1, authors=1), 1),
        (brought(books=1, members=2), 1),
        (brought(books=1, loans=2), 1),
        (brought(books=1, authors=2), 2),
        (brought(books=1, document=2), 2),
    ],
    ids=["none", "one", "two things of one", "a table not used", "a table of a workflow", "two tables", "a document"],
)
def test_a_round_counts_only_if_a_kept_tool_uses_what_it_added(database, rounds):
    (document,) = TOY.database.documents
    reader = replace(TOY.tool("get_book"), tables=("books", "authors", "loans"), documents=(document.path,))
    kept = judged([reader], [case("get_book", {"book_id": "B3"}, BOOK)])
    found = check_environment(database, TOY.files, kept, default_sandbox(), least_rounds=2)
    assert (found.rounds, found.accepted) == (rounds, rounds == 2)
    assert found.reasons == (() if found.accepted else ("too_few_rounds",))
    assert check_environment(database, TOY.files, kept, default_sandbox()).accepted


def test_what_a_refused_tool_would_use_counts_nothing():
    dropped = judged([TOY.tool("get_book")], [case("get_book", {"book_id": "B3"}, {})])
    assert check_environment(brought(books=1, authors=2), TOY.files, dropped, default_sandbox()).rounds == 0
