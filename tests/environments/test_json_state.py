"""Environments whose state is one JSON object: what of it is state, how it is compared, how its class is loaded."""

import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.json_state import json_state, read_json_state, snapshot_of
from agent_world.environments.model import Environment, Table, Tool
from agent_world.environments.state import diff
from tests.environments.worlds import Classes

SETTER = """class Shelf:
    def __init__(self, state):
        self.state = state

    def apply(self, edits):
        for path, value in edits:
            holder = self.state
            for key in path[:-1]:
                holder = holder.setdefault(key, {})
                if not isinstance(holder, dict):
                    return "no object there"
            if value is None:
                holder.pop(path[-1], None)
            else:
                holder[path[-1]] = value
"""
START = {
    "users": {"u1": {"name": "Ann", "age": 3}, "u2": {"name": "Bo", "key": "own"}, "u3": 7},
    "loans": [{"id": 1, "of": "u1"}, {"id": 2, "of": "u2"}, {"id": 2, "of": "u2"}],
    "counter": 5,
    "empty": {},
    "note": "hello",
}


def over(source: str, document: object = START, *names: str, writes: bool = True) -> Environment:
    anything = {"type": "object"}
    tools = tuple(
        Tool(
            tool_id=name, name=name, description="", input_schema=anything, output_schema=anything, writes=writes,
            source=source, pattern="test", tables=(),
        )
        for name in names
    )  # fmt: skip
    base = Classes().environment()
    return replace(base, tools=tools, files={"state.json": json.dumps(document).encode()})


def state_of(document: object):
    return json_state({"state.json": json.dumps(document).encode()})


def code(observation) -> str:
    return observation.value["error"]["code"]


scalars = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from(["a", "é", ""]), st.floats(0, 1, width=16))
items = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
)
paths = st.one_of(
    st.tuples(st.sampled_from(["users", "loans", "counter", "empty", "new"])),
    st.tuples(st.sampled_from(["users", "empty", "new"]), st.sampled_from(["u1", "u2", "k"])),
    st.tuples(st.just("users"), st.sampled_from(["u1", "k"]), st.sampled_from(["name", "deep"])),
)
edits = st.lists(st.tuples(paths, st.none() | items), max_size=4)
SETTING = over(SETTER, START, "apply")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls=st.lists(edits, max_size=4))
def test_what_follows_the_log_agrees_with_reading_everything(calls):
    with SETTING.session(seed=1) as session:
        for call in calls:
            assert session.call("apply", {"edits": call}).status == "ok"
        state, quick = session.state(), session.diff()
    whole = json_state({path: bytes(bytearray(data)) for path, data in state.files.items()})
    assert state.digest == whole.digest
    assert quick == diff(json_state({**SETTING.files, "other": b""}), whole, ())
    if quick:
        assert state.digest != session.initial().digest
    assert (state.digest == session.initial().digest) == state.untouched


def test_rows_are_told_apart_by_the_key_they_stand_under_or_that_their_table_names():
    table = Table(name="loans", singular="", plural="", columns=(), primary_key=("id",), rows=3)
    after = {
        **START,
        "users": {"u1": {"name": "Ann", "age": 4}, "u2": {"name": "Bo", "key": "mine"}, "u4": {"name": "Cy"}},
        "loans": [{"id": 2, "of": "u2"}, {"id": 1, "of": "u3"}, {"id": 2, "of": "u2"}],
        "counter": 6,
        "empty": {"first": {"a": 1}},
    }
    found = diff(state_of(START), state_of(after), (table,)).tables
    assert set(found) == {"users", "loans", "counter", "empty"}
    changes = {change.key["key"]: (change.before, change.after) for change in found["users"].changed}
    assert changes == {
        "u1": ({"key": "u1", "name": "Ann", "age": 3}, {"key": "u1", "name": "Ann", "age": 4}),
        "u2": (
            {"key": "u2", "value": {"name": "Bo", "key": "own"}},
            {"key": "u2", "value": {"name": "Bo", "key": "mine"}},
        ),
    }
    assert found["users"].added == ({"key": "u4", "name": "Cy"},)
    assert found["users"].removed == ({"key": "u3", "value": 7},)
    assert [change.key for change in found["loans"].changed] == [{"id": 1}]
    assert not found["loans"].added and not found["loans"].removed
    assert [(change.before, change.after) for change in found["counter"].changed] == [({"value": 5}, {"value": 6})]
    assert found["empty"].added == ({"key": "first", "a": 1},)


def test_the_order_of_keys_is_no_state_and_the_order_of_a_list_is():
    backwards = {**dict(reversed(START.items())), "users": dict(reversed(START["users"].items()))}
    assert state_of(backwards).digest == state_of(START).digest
    source = "class A:\n    def __init__(self, state):\n        self.state = state\n"
    source += "    def t(self):\n        return [list(self.state), list(self.state['users'])]\n"
    seen = []
    for document in (START, backwards):
        with over(source, document, "t").session() as session:
            seen.append(session.call("t", {}))
    assert seen[0] == seen[1]
    turned = state_of({**START, "loans": START["loans"][::-1]})
    assert turned.digest != state_of(START).digest


@pytest.mark.parametrize("other", [5.0, "5", [5], {"a": 5}, None, True])
def test_a_digest_sees_every_change_of_a_value(other):
    assert state_of({"x": other}).digest != state_of({"x": 5}).digest
    assert state_of({"x": {"k": other}}).digest != state_of({"x": {"k": 5}}).digest
    assert state_of({"x": {"k": {"deep": other}}}).digest != state_of({"x": {"k": {"deep": 5}}}).digest


def test_a_state_survives_a_pickle():
    with SETTING.session() as session:
        session.call("apply", {"edits": [[["counter"], 9]]})
        state = session.state()
    assert pickle.loads(pickle.dumps(state)).digest == state.digest


@pytest.mark.parametrize(
    "log",
    [b"{}\n", b"[[]]\n", b'[[["a"],1,2]]\n', b'[["a",1]]\n', b"[[[1],2]]\n", b'[[["a","b","c"],1]]\n', b"[[[]]]\n"],
)
def test_a_log_that_is_none_is_named_so(log):
    with pytest.raises(CorruptStateError, match="log of the state"):
        read_json_state(snapshot_of({}), log)


def test_the_last_edit_of_an_entry_counts_and_half_a_line_is_none():
    log = b'[[["a"],1],[["b","c"],2]]\n[[["a"],3],[["b","c"]]]\n[[["a"],4]'
    assert json.loads(read_json_state(snapshot_of({}), log).files["state.json"]) == {"a": 3}


def test_a_class_may_hold_its_state_in_the_object_it_is_made_with_or_under_another_object_or_in_a_property():
    given = (
        "class A:\n    def __init__(self, world):\n        self.w = world\n    def t(self):\n        self.w['n'] += 1\n"
    )
    rebound = "class A:\n    def __init__(self, state):\n        self.state = dict(state)\n"
    rebound += "    def t(self):\n        self.state = {**self.state, 'n': self.state['n'] + 1}\n"
    told = "class A:\n    def __init__(self, state):\n        self.n = state['n']\n"
    told += "    @property\n    def state(self):\n        return {'n': self.n}\n    def t(self):\n        self.n += 1\n"
    for source in (given, rebound, told):
        with over(source, {"n": 1}, "t").session() as session:
            assert [session.call("t", {}).value for _ in range(2)] == [{"result": None}] * 2
            assert json.loads(session.state().files["state.json"]) == {"n": 3}


def test_a_tool_that_only_turns_the_order_of_keys_has_written_nothing():
    source = """import time

class A:
    def __init__(self, state):
        self.state = state

    def turn(self, value=None):
        if value is not None:
            self.state["users"]["u1"]["name"] = value
        self.state["users"] = {k: turned(v) for k, v in reversed(self.state["users"].items())}
        self.state["loans"] = [turned(loan) for loan in self.state["loans"]]
        for key in sorted(self.state):
            self.state[key] = self.state.pop(key)
        return [list(self.state["users"]), list(self.state["users"]["u1"]), time.time()]


def turned(value):
    return dict(reversed(value.items())) if isinstance(value, dict) else value
"""
    reading = over(source, START, "turn", writes=False)
    with reading.session() as session, over(source, START, "turn").session() as writing:
        seen = [session.call("turn", {}) for _ in range(2)]
        assert [one.status for one in seen] == ["ok", "ok"], seen
        users, fields, now = seen[0].value["result"]
        assert seen[1].value["result"] == [users[::-1], fields[::-1], now], (
            "the class keeps its order, the clock stands"
        )
        assert session.state().untouched
        writing.call("turn", {})
        assert writing.state().untouched
        assert code(session.call("turn", {"value": "Eve"})) == "PermissionError"
        assert session.state().untouched


def test_after_a_fault_the_class_is_made_anew_from_what_was_kept():
    source = "class A:\n    def __init__(self, state):\n        self.state, self.seen = state, []\n"
    source += "    def t(self, bad=False):\n        self.seen.append(1)\n        self.state['n'] += 1\n"
    source += (
        "        if bad:\n            raise ValueError\n        return {'n': self.state['n'], 'seen': len(self.seen)}\n"
    )
    with over(source, {"n": 0}, "t").session() as session:
        assert session.call("t", {}).value == {"n": 1, "seen": 1}
        assert session.call("t", {}).value == {"n": 2, "seen": 2}
        assert session.call("t", {"bad": True}).status == "error"
        assert session.call("t", {}).value == {"n": 3, "seen": 1}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import datetime; self.state['users']['u9'] = {'on': datetime.time(9)}", "state.users.u9.on is a time"),
        ("self.state['users']['u9'] = (1, 2)", "state.users.u9 is a tuple"),
        ("self.state['users'][5] = 1", "state.users has a key of type int"),
        ("self.state[5] = 1", "state has a key of type int"),
        ("self.state['x'] = float('nan')", "state.x is the float nan"),
        ("self.state['x'] = self.state", "contains itself"),
        ("self.state['x'] = '\\ud800'", "state.x is a str with a lone surrogate"),
        ("self.state = [1]", "the state is list, not an object"),
    ],
)  # fmt: skip
def test_a_state_that_is_no_json_is_an_error_that_names_the_place_and_undone(statement, words):
    source = (
        f"class A:\n    def __init__(self, state):\n        self.state = state\n    def t(self):\n        {statement}\n"
    )
    with over(source, START, "t").session() as session:
        seen = session.call("t", {})
        assert seen.status == "error"
        assert words in seen.value["error"]["message"]
        assert session.state().untouched


def test_tools_of_one_class_share_one_source():
    environment = over(SETTER, START, "apply", "more")
    other = replace(environment.tools[1], source=SETTER + "    def more(self):\n        return {}\n")
    with replace(environment, tools=(environment.tools[0], other)).session() as session:
        assert session.call("apply", {"edits": []}).status == "ok"
        assert "one source" in session.call("more", {}).value["error"]["message"]
    with over("class A:\n    pass\n", {}, "t").session() as session:
        assert code(session.call("t", {})) == "AttributeError"


def test_an_environment_without_files_is_an_empty_object():
    with replace(SETTING, files={}).session() as session:
        assert session.call("apply", {"edits": [[["a", "b"], 1]]}).status == "ok"
        assert json.loads(session.state().files["state.json"]) == {"a": {"b": 1}}
