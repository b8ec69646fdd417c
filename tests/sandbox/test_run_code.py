import pytest

from agent_world.environments.state import State
from agent_world.rollouts.verifier import verify
from agent_world.sandbox import BACKENDS, Limits, Sandbox
from agent_world.sandbox.bwrap import BwrapSandbox
from tests.rollouts.cases import PROGRAM
from tests.toy import toy_files


def run(box: Sandbox, body: str, arguments: object = None, **options: object):
    return box.run_code({"m.py": body}, "m:run", arguments, **options)


def test_code_gets_its_arguments_and_its_result_comes_back(box):
    result = run(box, "def run(a, b=2):\n    return {'sum': a + b}\n", {"a": 40})
    assert (result.status, result.value, result.error) == ("ok", {"sum": 42}, None)


@pytest.mark.parametrize(
    ("arguments", "seen"), [(None, []), ([1, 2], [[1, 2]]), ("x", ["x"]), ({"a": 1}, [{"a": 1}]), ({}, [])]
)
def test_arguments_are_keywords_or_the_one_argument(box, arguments, seen):
    assert run(box, "def run(*a, **k):\n    return [*a, *([k] if k else [])]\n", arguments).value == seen


def test_files_lie_in_the_working_folder_and_modules_are_imported_from_it(box):
    files = {
        "lib/helper.py": "def read(path):\n    return open(path).read()\n",
        "main.py": "import lib.helper\n\n\ndef run():\n    return lib.helper.read('data/t.txt')\n",
        "data/t.txt": "Zoë".encode(),
    }
    assert box.run_code(files, "main:run").value == "Zoë"


def test_what_code_prints_is_kept_apart_from_its_result(box):
    result = run(
        box, "import sys\n\n\ndef run():\n    print('{\"n\": 1}')\n    print('e', file=sys.stderr)\n    return 7\n"
    )
    assert (result.value, result.stdout) == (7, '{"n": 1}\ne\n')


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ("def run():\n    return 1 / 0\n", "error", "ZeroDivisionError: division by zero"),
        ("def run(:\n", "error", "SyntaxError"),
        ("def walk():\n    pass\n", "error", "AttributeError"),
        ("def run():\n    return {1, 2}\n", "error", "TypeError"),
        ("def run():\n    return float('nan')\n", "error", "ValueError"),
        ("def run():\n    raise SystemExit(3)\n", "error", "SystemExit: 3"),
        ("def run():\n    raise KeyboardInterrupt\n", "error", "KeyboardInterrupt"),
        ("def run():\n    return run()\n", "error", "RecursionError"),
        ("def run():\n    return bytearray(1 << 30)\n", "oom", "MemoryError"),
        ("import os\n\n\ndef run():\n    os._exit(0)\n", "crash", "ended"),
        ("import ctypes\n\n\ndef run():\n    ctypes.string_at(0)\n", "crash", "ended"),
        ("def run():\n    return 'x' * (5 << 20)\n", "output_too_big", "bytes"),
        ('import os\n\n\ndef run():\n    os.write(3, b\'{"n": 7, "ok": 1}\\n\')\n', "protocol_error", "not the one"),
        (
            'import os, time\n\n\ndef run():\n    os.write(3, b\'{"n": 1, "error": 5}\\n\')\n    time.sleep(600)\n',
            "protocol_error",
            "neither a result nor an error",
        ),
        ('import os\n\n\ndef run():\n    os.write(3, b\'{"n": true, "ok": 1}\\n\')\n', "protocol_error", "not the one"),
        ('import os\n\n\ndef run():\n    os.write(3, b\'{"n": 1, "ok": NaN}\\n\')\n', "protocol_error", "not_finite"),
        ("import os\n\n\ndef run():\n    os.close(3)\n", "crash", "ended"),
    ],
)
def test_every_end_has_its_name(box, body, status, error):
    result = run(box, body)
    assert result.status == status
    assert error in (result.error or "")
    assert result.value is None


def test_an_endless_loop_is_stopped_and_only_it(box):
    assert run(box, "def run():\n    while True:\n        pass\n", timeout_s=0.3).status == "timeout"
    assert run(box, "def run():\n    return 1\n").value == 1


def test_a_reply_that_comes_in_drops_has_one_deadline_for_all_of_them(box):
    drops = "import os, time\n\n\ndef run():\n    while True:\n        os.write(3, b'[')\n        time.sleep(0.01)\n"
    result = run(box, drops, timeout_s=0.5)
    assert (result.status, result.error) == ("timeout", "no reply in time")


def test_two_runs_see_the_same_time_and_the_same_chance(box):
    body = """
import datetime, os, random, secrets, time, uuid


def run():
    return [
        time.time(), time.strftime("%c"), str(datetime.datetime.now()), str(datetime.date.today()),
        str(datetime.datetime.now(datetime.timezone.utc)), str(datetime.datetime.utcnow()),
        random.random(), secrets.token_hex(4), str(uuid.uuid4()), os.urandom(4).hex(), list({"b", "a", "c", "é"}),
        isinstance(datetime.datetime.now(), datetime.date),
    ]
"""
    first, second = run(box, body, seed=5), run(box, body, seed=5)
    assert first.status == "ok", first.error
    assert first.value == second.value
    assert run(box, body, seed=6).value[6:10] != first.value[6:10]
    with BwrapSandbox() as other:
        assert run(other, body, seed=5).value == first.value


def test_nothing_of_the_caller_is_in_the_environment(box):
    assert run(box, "import os\n\n\ndef run():\n    return dict(os.environ)\n").value == {}


def test_limits_are_the_sandboxes_own(backend):
    with BACKENDS[backend](Limits(work_bytes=1 << 20)) as small:
        written = run(small, "def run():\n    open('f', 'wb').write(b'x' * (2 << 20))\n")
    assert "No space left" in (written.error or "")


def test_source_is_compiled_and_not_run(box):
    quiet = box.compiled("raise SystemExit\n")
    assert (quiet.status, box.compiled("raise SystemExit\n") is quiet) == ("ok", True)
    assert box.compiled("def").error.startswith("SyntaxError")


def test_a_verifier_says_the_same_in_every_back_end(box):
    state = State(toy_files())
    wrong = {**PROGRAM.answer, "copies": 9}
    right, failing = verify(PROGRAM, [PROGRAM.answer, wrong], state, state, {}, box)
    assert (right.failed, right.error, failing.failed) == ((), None, ("copies",))
    (broken,) = verify(PROGRAM, [{}], state, state, {}, box)
    assert broken.error == "KeyError: 'titles'"
