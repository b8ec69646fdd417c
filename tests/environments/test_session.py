import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import Environment, Tool
from agent_world.environments.session import Session, open_session
from agent_world.environments.state import logical_digest
from agent_world.sandbox.bwrap import BwrapSandbox
from tests.toy import toy_environment

TOY = toy_environment()


def tool(name: str, source: str, *, writes: bool = True) -> Tool:
    anything = {"type": "object"}
    return Tool(
        tool_id=name, name=name, description="", input_schema=anything, output_schema=anything, writes=writes,
        source=source, pattern="test", tables=(),
    )  # fmt: skip


def environment(*sources: str, writes: bool = True) -> Environment:
    """The toy world with tools of these sources, called t0, t1, ..., beside its own."""
    tools = [tool(f"t{i}", source.replace("def t(", f"def t{i}("), writes=writes) for i, source in enumerate(sources)]
    return replace(TOY, tools=(*TOY.tools, *tools))


@pytest.fixture
def session() -> Iterator[Session]:
    with TOY.session(seed=7) as live:
        yield live


def code(observation) -> str:
    return observation.value["error"]["code"]


def test_a_result_comes_back(session):
    seen = session.call("search_books", {"title": "WINTER"})
    assert (seen.status, seen.value) == ("ok", {"items": [{"book_id": "B3", "title": "Winter Maps"}], "total": 1})


def test_accents_wildcards_and_case_are_no_obstacle(session):
    assert session.call("find_member", {"name": "iris NOVÁK"}).status == "ok"
    assert session.call("search_books", {"title": "0% rain_"}).value["total"] == 1
    assert session.call("search_books", {"title": "_"}).value["total"] == 1


def test_a_rule_that_says_no_is_a_refusal(session):
    seen = session.call("get_book", {"book_id": "ZZ"})
    assert (seen.status, code(seen)) == ("refused", "not_found")


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "words"),
    [
        ("no_such_tool", {}, "unknown_tool", "no_such_tool"),
        ("get_book", {}, "invalid_arguments", "'book_id' is a required property"),
        ("get_book", {"book_id": 3}, "invalid_arguments", "book_id: 3 is not of type 'string'"),
        ("get_book", {"book_id": "\ud800"}, "invalid_arguments", "no JSON form"),
        ("get_book", {"book_id": float("nan")}, "invalid_arguments", "no JSON form"),
        ("get_book", {"book_id": {1}}, "invalid_arguments", "no JSON form"),
        ("get_book", {"book_id": "B1", "x": 1}, "invalid_arguments", "'x' was unexpected"),
        ("count_books_by_genre", {"genre": "crime"}, "invalid_arguments", "genre: 'crime' is not one of"),
    ],
)
def test_what_the_schema_forbids_never_reaches_a_tool(session, name, arguments, expected, words):
    seen = session.call(name, arguments)
    assert (seen.status, code(seen)) == ("invalid", expected)
    assert words in seen.value["error"]["message"]


def test_a_tool_that_raises_is_an_observation_and_the_session_goes_on():
    with environment("def t(world):\n    return {}['key']\n").session() as live:
        seen = live.call("t0", {})
        assert (seen.status, code(seen)) == ("error", "KeyError")
        assert live.call("find_member", {"name": "Lea Brandt"}).status == "ok"


@pytest.mark.parametrize(
    ("body", "expected"), [("threading.Thread(target=print).start()", "RuntimeError"), ("os.fork()", "PermissionError")]
)
def test_the_default_back_end_lets_no_tool_start_a_thread_or_a_process(body, expected):
    bad = environment(f"import os, threading\n\n\ndef t(world):\n    {body}\n")
    with BwrapSandbox() as box, open_session(bad, 0, box) as live:
        assert code(live.call("t0", {})) == expected


def test_a_forged_reply_wins_nothing_that_is_judged():
    forged = json.dumps({"n": 1, "ok": {"loan_id": "LN1"}}) + "\n"
    forging = f"import os\n\n\ndef t(world):\n    os.write(3, {forged.encode()!r})\n    return {{}}\n"
    with environment(forging).session() as live:
        live.call("t0", {})
        assert not live.diff()
        assert live.digest() == logical_digest(TOY.files)
        assert code(live.call("t0", {})) == "protocol_error", "one reply too many ends the session"


def test_a_refused_call_leaves_no_trace_and_takes_no_id():
    half = "from toolkit import Refused\n\n\ndef t(world):\n    world.new_id('LN')\n"
    half += "    world.db.execute('DELETE FROM books')\n    world.write_document('x.md', 'x')\n"
    half += "    raise Refused('no', 'No.')\n"
    lend = {"book_id": "B1", "member_id": "M1"}
    with environment(half).session(seed=4) as live, TOY.session(seed=4) as plain:
        assert live.call("t0", {}).status == "refused"
        assert not live.diff()
        assert live.call("lend_book", lend) == plain.call("lend_book", lend)
        assert live.digest() == plain.digest()


def test_a_read_only_tool_that_writes_is_an_error_and_undone():
    writer = (
        "def t(world):\n    world.db.execute('DELETE FROM loans WHERE 1')\n    world.db.execute(SQL)\n    return {}\n"
    )
    deleting = writer.replace("SQL", '"DELETE FROM members"')
    documenting = "def t(world):\n    world.write_document('x.md', 'x')\n    return {}\n"
    building = "def t(world):\n    world.db.execute('CREATE TABLE x (y)')\n    return {}\n"
    with environment(deleting, documenting, building, writes=False).session() as live:
        for name in ("t0", "t1", "t2"):
            seen = live.call(name, {})
            assert (seen.status, code(seen)) == ("error", "PermissionError")
        assert not live.diff()


def test_a_tool_that_ends_its_own_transaction_is_an_error():
    with environment(
        "def t(world):\n    world.db.execute('COMMIT')\n    return {}\n",
        "def t(world):\n    world.db.execute('COMMIT')\n    world.db.execute('BEGIN')\n    return {}\n",
    ).session() as live:
        assert code(live.call("t1", {})) == "OperationalError"
        assert code(live.call("t0", {})) == "OperationalError"
        assert live.call("lend_book", {"book_id": "B1", "member_id": "M1"}).status == "ok"


def test_the_same_seed_and_calls_give_the_same_world_in_any_sandbox():
    calls = [
        ("lend_book", {"book_id": "B5", "member_id": "M1"}),
        ("lend_book", {"book_id": "B2", "member_id": "M1"}),
        ("lend_book", {"book_id": "B3", "member_id": "M2"}),
        ("search_books", {"title": "e"}),
    ]

    def play(seed: int, sandbox=None) -> tuple:
        with open_session(TOY, seed, sandbox) as live:
            return [live.call(*call) for call in calls], live.digest()

    first = play(5)
    assert play(5) == first
    with BwrapSandbox() as other:
        assert play(5, other) == first
    assert play(6)[0] != first[0]


def test_minted_ids_do_not_repeat():
    minting = "def t(world):\n    return {'ids': [world.new_id('BK') for _ in range(9500)]}\n"
    with environment(minting).session(seed=3) as live:
        first, second = live.call("t0", {}).value["ids"], live.call("t0", {}).value["ids"]
    assert len({*first, *second}) == 19_000
    assert first[0][:2] == "BK" and len(first[0]) == 6


def test_the_clock_moves_a_minute_with_each_committed_change_and_never_by_reading():
    ask = "def t(world):\n    row = world.db.execute(\"SELECT datetime('now')\").fetchone()\n"
    ask += "    return {'now': world.now(), 'today': world.today(), 'sql': row[0]}\n"
    with environment(ask).session() as live:
        start = live.call("t0", {}).value
        assert start == {"now": "2026-01-05T09:00:00", "today": "2026-01-05", "sql": "2026-01-05 09:00:00"}
        live.call("find_member", {"name": "Lea Brandt"})
        live.call("lend_book", {"book_id": "B2", "member_id": "M1"})
        assert live.call("t0", {}).value == start
        live.call("lend_book", {"book_id": "B1", "member_id": "M1"})
        assert live.call("t0", {}).value["now"] == "2026-01-05T09:01:00"


def test_chance_in_sql_follows_the_seed():
    ask = "def t(world):\n    return dict(world.db.execute('SELECT random() r, hex(randomblob(4)) b').fetchone())\n"

    def drawn(seed: int) -> dict:
        with environment(ask).session(seed=seed) as live:
            return live.call("t0", {}).value

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA journal_mode=DELETE",
        "PRAGMA locking_mode=NORMAL",
        "PRAGMA writable_schema=ON",
        "VACUUM",
        "ATTACH '/guest/database' AS again",
    ],
)
def test_no_statement_reaches_the_shared_snapshot(statement):
    source = "def t(world):\n    world.db.execute('ROLLBACK')\n"
    source += "    world.db.execute(\"DELETE FROM books WHERE book_id='B1'\")\n"
    source += f'    world.db.execute("{statement}").fetchall()\n    return {{}}\n'
    bad = environment(source)
    with bad.session() as live:
        live.call("t0", {})
        assert live.diff().tables["books"].removed[0]["book_id"] == "B1"
    with bad.session() as after:
        assert after.call("get_book", {"book_id": "B1"}).status == "ok"
        assert after.digest() == logical_digest(TOY.files)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os.pwrite(5, b'nonsense' * 1000, 0)", "no header"),
        ("os.write(7, b'[1, 2]\\n')", "a line that is none"),
        ('os.write(7, b\'[0, {"../x": "y"}]\\n\')', "no plain path"),
        ("os.write(7, b'{\\n')", "the log of documents"),
        ("os.ftruncate(5, 64 << 20); os.pwrite(5, b'x', 0)", "no header"),
    ],
)
def test_a_log_of_nonsense_is_a_corrupt_state_and_not_a_crash(body, said):
    with environment(f"import os\n\n\ndef t(world):\n    {body}\n    return {{}}\n").session() as live:
        live.call("t0", {})
        with pytest.raises(CorruptStateError, match=said):
            live.digest()


def test_documents_that_cannot_be_kept_are_an_error_and_nothing_of_the_call_is_kept():
    writing = "def t(world, *, text, times):\n    world.db.execute('DELETE FROM loans')\n"
    writing += "    world.db.execute('DELETE FROM members')\n    world.write_document('small.md', 'x')\n"
    writing += "    world.write_document('big.md', text * times)\n    return {}\n"
    with environment(writing).session() as live:
        assert live.call("t0", {"text": "x", "times": 70 << 20}).status == "error"
        assert code(live.call("t0", {"text": 5, "times": 1})) == "TypeError"
        assert not live.diff()
        assert live.call("t0", {"text": "x", "times": 3}).status == "ok"
        assert {path: change.after for path, change in live.diff().documents.items()} == {
            "big.md": "xxx",
            "small.md": "x",
        }


DYING = """import os, sys

def t(world, *, at, records=True):
    if records:
        world.db.execute("DELETE FROM loans")
    world.write_document("new.md", "x" * 9000)
    world.write_document("rules.yaml", "none")
    left = at

    def count(frame, event, argument):
        nonlocal left
        if not left:
            os._exit(1)
        left -= 1

    sys.setprofile(count)
    return {}
"""


@pytest.mark.parametrize("records", [True, False], ids=["records and documents", "documents alone"])
def test_wherever_a_session_is_killed_its_last_call_is_there_whole_or_not_at_all(records):
    dying, seen = environment(DYING), []
    for at in range(500):
        with dying.session() as live:
            earlier = live.call("lend_book", {"book_id": "B1", "member_id": "M1"})
            answer = live.call("t0", {"at": at, "records": records})
            made, found = live.diff(), earlier.value["loan_id"]
        lent = [row["loan_id"] for row in made.tables["loans"].added] if "loans" in made.tables else []
        whole = set(made.documents) == {"new.md", "rules.yaml"} and (not records or lent != [found])
        none = not made.documents and lent == [found]
        assert whole != none, f"killed {at} steps after the tool: {lent}, {sorted(made.documents)}"
        seen.append(whole)
        if answer.status == "ok":
            break
    assert answer.status == "ok", "the last one was not killed"
    assert seen == sorted(seen) and not all(seen), "from nothing to everything"


def test_documents_are_read_written_and_part_of_the_state():
    touch = "def t(world, *, path, text=None):\n    if text is not None:\n        world.write_document(path, text)\n"
    touch += "    return {'all': world.documents(), 'text': world.read_document(path)}\n"
    with environment(touch).session() as live:
        assert live.call("t0", {"path": "rules.yaml"}).value["text"].startswith("loan_days: 21")
        assert live.call("t0", {"path": "none.md"}).status == "refused"
        assert code(live.call("t0", {"path": "../x", "text": ""})) == "ValueError"
        before = live.digest()
        seen = live.call("t0", {"path": "notes/new.md", "text": "Zoë\n"})
        assert seen.value == {"all": ["notes/new.md", "rules.yaml"], "text": "Zoë\n"}
        assert live.state().files["documents/notes/new.md"] == "Zoë\n".encode()
        assert live.digest() != before
        assert live.diff().documents["notes/new.md"].before is None
        live.call("t0", {"path": "rules.yaml", "text": "loan_days: 21\nmax_open_loans: 2\n"})
        assert "rules.yaml" not in live.diff().documents


def test_an_environment_without_records_is_an_empty_database():
    bare = replace(environment("def t(world):\n    world.db.execute('CREATE TABLE x (y)')\n    return {}\n"), files={})
    with bare.session() as live:
        start = live.digest()
        assert live.call("t0", {}).status == "ok"
        assert live.digest() != start
