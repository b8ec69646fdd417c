"""What every runtime over every state format must do alike."""

import json
from contextlib import ExitStack
from dataclasses import replace

import pytest

from agent_world import world
from agent_world.environments import session as sessions
from agent_world.environments.errors import CorruptStateError, UnusableEnvironmentError
from agent_world.environments.formats import format_of
from agent_world.environments.session import open_session
from agent_world.environments.state import normalised
from agent_world.rollouts.episode import Episode
from agent_world.rollouts.loop import EpisodeSpec, replay, roll_out
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import Knowing
from agent_world.sandbox.bwrap import BwrapSandbox
from agent_world.tasks.model import Criterion
from tests.environments.worlds import FORMATS, THINGS, Format
from tests.rollouts.cases import PROGRAM, READING
from tests.toy_lake import save_toy

PUT = ("put", {"key": "vase", "n": 3, "colour": "green"})


@pytest.fixture(params=FORMATS, ids=lambda each: each.state_format)
def form(request) -> Format:
    return request.param


def code(observation) -> str:
    return observation.value["error"]["code"]


def play(environment, *calls, seed=5, sandbox=None):
    with open_session(environment, seed, sandbox) as session:
        return [session.call(*call) for call in calls], session.digest()


def only(form: Format, body: str, **more):
    """What a tool of this body gives."""
    with form.environment({"tried": body}, **more).session(seed=7) as session:
        return session.call("tried", {})


# Calls and state


def test_tools_read_and_write_and_what_changed_is_told_by_table_and_key(form):
    with form.environment().session() as session:
        assert session.call("get", {"key": "lamp"}).value == THINGS["lamp"]
        assert not session.diff()
        session.call(*PUT)
        session.call("put", {"key": "lamp", "n": 5, "colour": "red"})
        session.call("drop", {"key": "rug"})
        assert session.call("get", {"key": "vase"}).value == {"n": 3, "colour": "green"}
        difference = session.diff()
        normal = normalised(difference, session.environment.database)
    change = difference.tables["things"]
    assert change.added == ({"key": "vase", "n": 3, "colour": "green"},)
    assert change.removed == ({"key": "rug", **THINGS["rug"]},)
    assert [one.key for one in change.changed] == [{"key": "lamp"}]
    assert normal == {
        "things": {
            "added": [{"key": "$1", "n": 3, "colour": "green"}],
            "removed": [{"key": "rug", **THINGS["rug"]}],
            "changed": [{"key": {"key": "lamp"}, "before": {"n": 2}, "after": {"n": 5}}],
        }
    }


def test_the_final_state_is_a_snapshot_that_a_session_can_start_from(form):
    with form.environment().session() as session:
        session.call(*PUT)
        files, digest = dict(session.state().files), session.digest()
    with replace(form.environment(), files=files).session() as later:
        assert later.digest() == digest
        assert later.call("get", {"key": "vase"}).value == {"n": 3, "colour": "green"}


def test_a_digest_knows_the_state_and_not_how_it_came_about(form):
    one, other = ("put", {"key": "a", "n": 1, "colour": "x"}), ("put", {"key": "b", "n": 2, "colour": "y"})
    environment = form.environment()
    there = play(environment, one, other)[1]
    assert play(environment, other, one)[1] == there
    assert play(environment, one, other, ("drop", {"key": "b"}), other)[1] == there
    assert play(environment, one)[1] != there
    back = play(environment, one, ("drop", {"key": "a"}))[1]
    assert back == play(environment)[1] == format_of(environment).initial(environment.files).digest
    backwards = replace(environment, files=form.files(dict(reversed(THINGS.items()))))
    assert play(backwards)[1] == back


def test_a_number_and_its_text_are_different_states(form):
    environment = form.environment({"tried": 'write("lamp", {"n": "2", "colour": 2.5})\nreturn {}'})
    digests = {play(environment)[1], play(environment, ("tried", {}))[1]}
    digests.add(play(environment, ("put", {"key": "lamp", "n": 2, "colour": "2.5"}))[1])
    assert len(digests) == 3 if form.state_format == "json" else len(digests) >= 2


def test_a_refusal_and_a_fault_leave_no_trace(form):
    halves = {
        "refusing": 'write("lamp", {"n": 9, "colour": "x"})\nremove("rug")\nraise Refused("no", "No.")',
        "failing": 'write("new", {"n": 9, "colour": "x"})\nreturn {}["key"]',
        "unspeakable": 'write("new", {"n": 9, "colour": "x"})\nreturn {"it": object()}',
    }
    environment = form.environment(halves)
    with environment.session() as session:
        seen = [session.call(name, {}) for name in halves]
        assert [one.status for one in seen] == ["refused", "error", "error"]
        assert [code(one) for one in seen] == ["no", "KeyError", "NoJsonForm"]
        assert not session.diff()
        assert session.call("get", {"key": "lamp"}).value == THINGS["lamp"]
        assert session.call("get", {"key": "new"}).status == "refused"
        session.call(*PUT)
        assert session.digest() == play(environment, PUT)[1]


def test_a_read_only_tool_that_writes_is_an_error_and_undone(form):
    with form.environment({"tried": 'remove("rug")\nreturn {}'}, writes=False).session() as session:
        assert code(session.call("tried", {})) == "PermissionError"
        assert not session.diff()
        assert session.call("get", {"key": "rug"}).status == "ok"


def test_a_tool_that_cannot_be_loaded_says_why_each_time(form):
    environment = form.environment()
    broken = tuple(replace(tool, source=f"{tool.source}\n1 +\n") for tool in environment.tools)
    with replace(environment, tools=broken).session() as session:
        assert [code(session.call("get", {"key": "lamp"})) for _ in range(2)] == ["SyntaxError"] * 2


def test_an_environment_of_another_runtime_or_format_is_refused(form):
    for other in ({"runtime": "cobol"}, {"state_format": "cards"}, {"runtime": "x", "state_format": "y"}):
        with pytest.raises(UnusableEnvironmentError, match="unknown here; known: python-function over sqlite"):
            replace(form.environment(), **other).session()


def test_a_snapshot_that_is_none_is_refused(form):
    for files in ({name: b"hello" * 100 for name in form.files({})}, {"state.json": b"[]", "data.sqlite": b"[]"}):
        with pytest.raises(CorruptStateError), replace(form.environment(), files=files).session() as session:
            session.call("get", {"key": "lamp"})
            session.digest()


def test_an_environment_survives_the_lake(form, tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    made = form.environment()
    with lake.begin("environments", derivation="d") as batch:
        version, _ = save_toy(batch, made)
    kept = lake.environment(version)
    assert (kept.runtime, kept.state_format) == (form.runtime, form.state_format)
    assert play(kept, PUT)[1] == play(made, PUT)[1]


# Values


VALUES = [
    ("datetime.date(2026, 1, 5)", "2026-01-05"),
    ("datetime.datetime(2026, 1, 5, 9, 30)", "2026-01-05T09:30:00"),
    ("datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)", "2026-01-05T00:00:00+00:00"),
    ("datetime.time(9, 30)", "09:30:00"),
    ("decimal.Decimal('0.10')", "0.10"),
    ("decimal.Decimal(10) ** 30 + decimal.Decimal('0.1')", "1.000000000000000000000000000E+30"),
    ("uuid.UUID(int=5)", "00000000-0000-0000-0000-000000000005"),
    ("b'\\x00\\xffa'", "AP9h"),
    ("bytearray(b'ab')", "YWI="),
    ("10 ** 40 + 1", 10**40 + 1),
    ("-(10 ** 900)", -(10**900)),
    ("{3, 1, 20, 2.5}", [1, 2.5, 3, 20]),
    ("{'b', 'é', 'a', None, 2, (1, 'x')}", [2, "a", "b", "é", [1, "x"], None]),
    ("frozenset({datetime.date(2026, 1, 2), datetime.date(2026, 1, 1)})", ["2026-01-01", "2026-01-02"]),
    ("(1, (2, [3]))", [1, [2, [3]]]),
    ("Point(1, 2)", {"x": 1, "y": 2}),
    ("Book('Maps', {'b', 'a'})", {"title": "Maps", "tags": ["a", "b"]}),
    ("Colour.RED", "red"),
    ("Level.HIGH", 3),
    ("{1: 'a', None: 'b', True and 'c': 'd', datetime.date(2026, 1, 1): 'e', Colour.RED: 'f'}",
     {"1": "a", "null": "b", "c": "d", "2026-01-01": "e", "red": "f"}),
    ("collections.OrderedDict(a=collections.Counter('aab'))", {"a": {"a": 2, "b": 1}}),
    ("row('SELECT 1 AS one, NULL AS none')", {"one": 1, "none": None}),
    ("Text('abc')", "abc"),
    ("-0.0", -0.0),
]  # fmt: skip

_TYPES = """import collections, dataclasses, datetime, decimal, enum, math, sqlite3, uuid
Point = collections.namedtuple("Point", "x y")
Book = dataclasses.make_dataclass("Book", ["title", "tags"])
Colour = enum.Enum("Colour", {"RED": "red"})
Level = enum.IntEnum("Level", {"HIGH": 3})
Text = type("Text", (str,), {"__str__": lambda self: "forged"})
def row(sql):
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    return db.execute(sql).fetchone()
def endless(kind):
    value = []
    value.append({"a": value} if kind is dict else value)
    return value
def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value
"""


@pytest.mark.parametrize(("expression", "expected"), VALUES, ids=[expression for expression, _ in VALUES])
def test_a_value_has_one_json_form(form, expression, expected):
    seen = only(form, f"{_TYPES}\nreturn {{'it': {expression}}}")
    assert seen.status == "ok", seen
    assert json.dumps(seen.value["it"]) == json.dumps(expected)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("{'a': [1, {'b': object()}]}", "a[1].b is a object, which has no JSON form"),
        ("{'a': 1j}", "a is a complex"),
        ("{'a': float('nan')}", "a is the float nan"),
        ("{'a': [float('-inf')]}", "a[0] is the float -inf"),
        ("{'a': decimal.Decimal('NaN')}", "a is the Decimal NaN"),
        ("{'a': endless(dict)}", "a[0].a is a list that contains itself"),
        ("{'a': deep(200)}", "nested more than 100 deep"),
        ("{'a': {1: 'x', '1': 'y'}}", "a.1 stands for two keys of one object"),
        ("{'a': {(1, 2): 'x'}}", "a has a key of type tuple that is no text"),
        ("{'a': {'\\ud800': 'x'}}", "a has a key of type str that is no text"),
        ("{'a': 10 ** 5000}", "a is an int of"),
        ("{'a': '\\ud800'}", "a is a str with a lone surrogate"),
        ("{'a': row('SELECT 1 AS x, 2 AS x')}", "a.x stands for two keys"),
        ("{'a': (n for n in ())}", "a is a generator"),
        ("{'a': Point}", "a is a type"),
        ("{'a': datetime.timedelta(1)}", "a is a timedelta"),
    ],
)
def test_a_value_without_a_json_form_is_an_error_that_names_it(form, expression, words):
    environment = form.environment({"tried": f"{_TYPES}\nreturn {expression}"})
    with environment.session() as session:
        seen = session.call("tried", {})
        assert (seen.status, code(seen)) == ("error", "NoJsonForm")
        assert words in seen.value["error"]["message"]
        assert session.call("get", {"key": "lamp"}).status == "ok", "the session goes on"


def test_a_result_is_an_object(form):
    """Tools with a schema of ours must give one; what a foreign class returns is put into one."""
    listed, nothing = only(form, "return [1, 2]"), only(form, "return None")
    if form.runtime == "python-class":
        assert (listed.value, nothing.value) == ({"result": [1, 2]}, {"result": None})
    else:
        assert code(listed) == code(nothing) == "TypeError"
        assert "returned list, not an object" in listed.value["error"]["message"]


# Hostile tools


HOSTILE = {
    "prints": ("print('{\"n\": 1, \"ok\": 1}')\nimport sys\nsys.stderr.write('x' * 100000)\nreturn {}", None),
    "exits": ("raise SystemExit(3)", "SystemExit"),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "ends its process": ("os._exit(0)", "crash"),
    "kills its process": ("os.kill(os.getpid(), 9)\nimport ctypes\nctypes.string_at(0)", None),
    "loops": ("while True: pass", "timeout"),
    "recurses": ("def f(): return f()\nf()", "RecursionError"),
    "recurses in its result": ("def f(n): return [f(n + 1)]\nreturn f(0)", "RecursionError"),
    "leaks a thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()", None),
    "leaks a process": ("if os.fork() == 0:\n    while True: pass\nreturn {}", None),
    "leaves a timer": (
        "import signal\ndef late(*_):\n    os._exit(5)\nsignal.signal(signal.SIGALRM, late)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.001)\nreturn {}",
        None,
    ),
    "takes all memory": ("return {'x': len(bytearray(1 << 40))}", "MemoryError"),
    "returns too much": ("return {'x': 'y' * (5 << 20)}", "ValueError"),
    "fills its folder": ("with open('f', 'wb') as f:\n    f.write(bytes(80 << 20))\nreturn {}", "OSError"),
    "fills its state": ("write('big', {'n': 1, 'colour': 'x' * (70 << 20)})\nreturn {}", None),
    "changes builtins": ("import builtins\nbuiltins.len = builtins.isinstance = None\nreturn {}", None),
    "breaks json": ("import json\njson.dumps = json.loads = None\nreturn {}", None),
    "writes over its snapshot": ("os.pwrite(4, b'x' * 4096, 0)\nreturn {}", "PermissionError"),
    "closes everything": ("os.closerange(0, 100)\nreturn {}", "crash"),
    "raises what cannot be said": (
        "class Bad(BaseException):\n    def __str__(self): raise SystemExit\nraise Bad",
        "Bad",
    ),
    "answers twice": ('os.write(3, b\'{"n": 1, "ok": {}}\\n\')\nreturn {}', None),
    "answers without end": ("while True: os.write(3, b'x' * 65536)", "output_too_big"),
}


@pytest.mark.parametrize("deed", HOSTILE)
def test_a_hostile_tool_hurts_only_its_own_session(form, monkeypatch, deed):
    monkeypatch.setattr(sessions, "CALL_TIMEOUT_S", 3.0)
    body, expected = HOSTILE[deed]
    environment = form.environment({"tried": body})
    with environment.session() as session, environment.session() as neighbour:
        untouched = session.digest()
        assert neighbour.call("get", {"key": "lamp"}).status == "ok"
        seen = session.call("tried", {})
        if expected is not None:
            assert (seen.status, code(seen)) == ("error", expected)
        after = session.call("get", {"key": "lamp"})
        assert after.status in ("ok", "error")
        assert session.digest() == untouched, "what became of the session, its state is as it was"
        assert neighbour.call(*PUT).status == "ok"
    with environment.session() as later:
        assert later.digest() == untouched
        assert later.call("get", {"key": "lamp"}).value == THINGS["lamp"]


@pytest.mark.parametrize("nonsense", [b"nonsense" * 1000, b"[[1]]\n", b'[[["things"], 1, 2]]\n', b"[\n", b"5\n"])
def test_a_log_of_nonsense_is_a_corrupt_state_of_that_session_alone(form, nonsense):
    environment = form.environment({"tried": f"os.pwrite({form.log_descriptor}, {nonsense + b'{'!r}, 0)\nreturn {{}}"})
    with environment.session() as session, environment.session() as neighbour:
        session.call("tried", {})
        if form.state_format == "json" and b"\n" not in nonsense:
            assert not session.diff(), "half a line is of a call that never came to its end"
        else:
            with pytest.raises(CorruptStateError):
                session.digest()
        neighbour.call(*PUT)
        assert neighbour.digest() == play(environment, PUT)[1]


def test_a_session_that_died_says_so_for_every_later_call_and_its_state_stays_readable(form):
    with form.environment({"tried": "os._exit(1)"}).session() as session:
        session.call(*PUT)
        session.call("tried", {})
        assert code(session.call("get", {"key": "lamp"})) == "crash"
        assert len(session.diff().tables["things"].added) == 1


def test_a_stopped_session_changes_nothing_more_and_can_still_be_read(form):
    session = form.environment().session()
    session.call(*PUT)
    session.stop()
    assert session.call(*PUT).status == "error"
    assert len(session.diff().tables["things"].added) == 1
    session.close()
    session.close()


def test_sessions_share_no_module_and_nothing_that_a_tool_can_change(form):
    body = "import builtins\nSEEN.append(1)\nbuiltins.sorted = None\nremove('lamp')\nreturn {'seen': sum(SEEN)}"
    environment = form.environment({"tried": body})
    with environment.session() as first, environment.session() as second:
        assert [first.call("tried", {}).value, first.call("tried", {}).value] == [{"seen": 1}, {"seen": 2}]
        assert second.call("tried", {}).value == {"seen": 1}
        with environment.session() as third:
            assert third.call("get", {"key": "lamp"}).status == "ok"


def test_many_sessions_live_side_by_side(form):
    environment = form.environment()
    with ExitStack() as stack:
        live = [stack.enter_context(environment.session(seed=seed)) for seed in range(32)]
        for number, one in enumerate(live):
            if number % 2:
                assert one.call(*PUT).status == "ok"
        assert [bool(one.diff()) for one in live] == [bool(number % 2) for number in range(32)]


# Determinism


_PINNED = """import calendar, datetime, email.utils, locale, random, secrets, tempfile, time, uuid
now = [
    time.time(), time.time_ns(), time.ctime(), time.strftime("%c %Z %A"), time.localtime()[:], time.asctime(),
    time.monotonic(), time.perf_counter_ns(), time.process_time(), time.clock_gettime(time.CLOCK_MONOTONIC),
    time.clock_gettime(time.CLOCK_REALTIME), str(datetime.datetime.now()), str(datetime.datetime.now().astimezone()),
    str(datetime.date.today()), email.utils.formatdate(), datetime.datetime.utcnow().isoformat(),
]
chance = [
    random.random(), random.Random().random(), secrets.token_hex(8), str(uuid.uuid4()), str(uuid.uuid1()),
    os.urandom(8).hex(), os.getrandom(8).hex(), next(tempfile._get_candidate_names()), random.SystemRandom().random(),
]
random.seed()
chance += [random.random(), random.sample(range(1000), 5)]
place = [
    time.tzname, time.timezone, time.daylight, locale.getlocale(), locale.localeconv()["decimal_point"],
    locale.setlocale(locale.LC_ALL, "C"), calendar.day_name[0], sorted(["é", "z", "a"], key=locale.strxfrm),
    f"{1234.5:n}", sorted(os.environ), os.getpid(), os.getcwd(), os.listdir("."),
]
order = [list({"b", "a", "c", "é", "longer"}), hash("text"), list({b"x", b"y", ("t", 1)}), hash(2.5)]
return {"now": now, "chance": chance, "place": place, "order": order}"""


def test_time_chance_place_and_hash_order_are_pinned(form):
    environment = form.environment({"tried": _PINNED})

    def seen(seed, sandbox=None):
        with open_session(environment, seed, sandbox) as session:
            return [session.call("tried", {}), session.call(*PUT), session.call("tried", {})]

    first = seen(5)
    assert [one.status for one in first] == ["ok"] * 3, first
    assert seen(5) == first, "twice in a row"
    with BwrapSandbox() as other:
        assert seen(5, other) == first, "in another interpreter"
    other_seed = seen(6)
    for part in ("now", "place", "order"):
        assert other_seed[0].value[part] == first[0].value[part]
    assert not set(map(str, other_seed[0].value["chance"])) & set(map(str, first[0].value["chance"]))
    assert first[0].value["place"][:2] == [["UTC", "UTC"], 0]


def test_the_clock_moves_a_minute_with_each_change_and_never_by_reading(form):
    with form.environment({"tried": "import time\nreturn {'now': time.time()}"}, writes=False).session() as session:
        start = session.call("tried", {}).value["now"]
        session.call("get", {"key": "lamp"})
        session.call("get", {"key": "nothing"})
        session.call("drop", {"key": "nothing"})
        assert session.call("tried", {}).value["now"] == start
        session.call(*PUT)
        assert session.call("tried", {}).value["now"] == start + 60


def test_a_loop_that_waits_for_a_stopwatch_comes_to_an_end(form):
    body = "import time\nstart = time.monotonic()\nwhile time.monotonic() - start < 0.01: pass\nreturn {}"
    assert only(form, body).status == "ok"


def test_sessions_side_by_side_see_what_each_alone_would(form):
    calls = [PUT, ("tried", {}), ("drop", {"key": "lamp"}), ("tried", {}), ("get", {"key": "lamp"})]
    body = "import random, uuid\nwrite('n' + uuid.uuid4().hex, {'n': random.randrange(10**6), 'colour': ''})\nreturn {}"
    environment = form.environment({"tried": body})
    alone = {seed: play(environment, *calls, seed=seed) for seed in (1, 2, 3)}
    with ExitStack() as stack:
        live = {seed: stack.enter_context(environment.session(seed=seed)) for seed in alone}
        seen = {seed: [] for seed in alone}
        for call in calls:
            for seed, session in live.items():
                seen[seed].append(session.call(*call))
        assert {seed: (seen[seed], live[seed].digest()) for seed in live} == alone
    assert len({digest for _, digest in alone.values()}) == 3


# Episodes


def test_a_task_is_judged_by_the_state_whatever_its_format(form):
    environment = form.environment()
    change = {
        "things": {"added": [{"key": "$1", "n": 3, "colour": "green"}], "removed": [], "changed": []},
    }
    task = replace(
        READING,
        environments=(environment.version,),
        answer_schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        answer={},
        rubric=(Criterion(name="state", kind="state_equals", expected=change),),
    )

    def outcome(*calls):
        with Episode(task, environment, seed=1) as episode:
            for call in calls:
                episode.call(*call)
            return episode.answer({}).status

    assert outcome(PUT) == "pass"
    assert outcome() == outcome(PUT, ("drop", {"key": "rug"})) == "fail"


def test_an_episode_in_which_a_tool_broke_the_state_fails_whatever_the_format(form):
    environment = form.environment({"tried": f"os.pwrite({form.log_descriptor}, b'[[1]]\\n' * 20, 0)\nreturn {{}}"})
    task = replace(READING, environments=(environment.version,))
    with Episode(task, environment, seed=1) as episode:
        assert episode.call("tried", {}).status == "ok"
        assert episode.reply("Are you there?").status == "ok"
        outcome = episode.answer(READING.answer)
    assert (outcome.status, outcome.failed) == ("fail", ("corrupt_state",)), outcome
    [trajectory] = roll_out([EpisodeSpec(task=task, environment=environment)], _Trying([task]))
    assert trajectory.outcome == outcome
    assert replay(trajectory, task, environment).holds


class _Trying(Knowing):
    name = "trying"

    def play(self, turn):
        yield Step(kind="tool", tool="tried")
        yield Step(kind="answer", answer=self.task_of(turn).answer)


def test_a_verifier_sees_both_states_whatever_their_format(form):
    environment = form.environment()
    reads = {
        "sqlite+files": 'dict(state.db.execute("SELECT key, n FROM things").fetchall())',
        "json": '{key: thing["n"] for key, thing in state.value["things"].items()}',
    }
    verifier = f"""
def things(state):
    return {reads[form.state_format]}


def verify(answer, gold, initial, final):
    return [] if things(final) == {{**things(initial), "vase": 3}} else ["things"]
"""
    task = replace(
        PROGRAM,
        environments=(environment.version,),
        answer_schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        answer={},
        rubric=(),
        verifier=verifier,
    )
    for calls, expected in (([PUT], "pass"), ([], "fail")):
        with Episode(task, environment, seed=1) as episode:
            for call in calls:
                episode.call(*call)
            outcome = episode.answer({})
        assert outcome.status == expected, outcome
