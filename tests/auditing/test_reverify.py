"""What a broken tool or verifier touched is found, told old and new, retired, and brought back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_world import world as worlds
from agent_world.auditing.correction import read_correction
from agent_world.auditing.reverify import Reverified, retire, reverify, undo
from agent_world.engine import Engine
from agent_world.errors import BadInputError
from agent_world.lake import NotFoundError
from agent_world.lake.digest import table_digest
from agent_world.lake.replay import replay
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import Scripted
from agent_world.world import World, save_task, save_trajectory
from dagster_project.cli import cli
from lake_schemas import TABLES
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, V_CODE, WRITING
from tests.toy_lake import save_toy

LENIENT = V_CODE.replace('if answer["titles"] != gold["titles"]:', "if False:")
TWICE_THE_COPIES = ENVIRONMENT.tool("get_book").source.replace("b.copies", "2 * b.copies AS copies")


class Answering(Scripted):
    """Plays the plan of its task and gives an answer of its own."""

    name = "answering"

    def __init__(self, task, answer):
        super().__init__()
        self._task, self._answer = task, answer

    def play(self, turn):
        for call in self._task.plan:
            yield Step(kind="tool", tool=call.tool, arguments=call.arguments)
        yield Step(kind="answer", answer=self._answer)


class Tried:
    """A lake of one environment: tasks, episodes, what was trained and measured on them."""

    def __init__(self, folder: Path, environment, *tasks) -> None:
        self.lake: World = worlds.open(folder / "lake", create=True)
        with self.lake.begin("environments", derivation="d") as batch:
            self.environment, tools = save_toy(batch, environment)
            self.tools = {tool.name: version for tool, version in zip(environment.tools, tools, strict=True)}
        self.pinned = replace(environment, version=self.environment)
        self.tasks = [replace(task, environments=(self.environment,)) for task in tasks]
        with self.lake.begin("tasks", derivation="d") as batch:
            self.versions = [save_task(batch, task) for task in self.tasks]
            for version in self.versions:
                batch.observe(version, {"accepted": True, "tier": "train"})
            payload = {"name": "training", "purpose": "training", "round": 0, "tasks": self.versions}
            parents = [(version, "task") for version in self.versions]
            self.task_set = batch.create("task_set", "training", payload, parents=parents)

    def play(self, number: int, answer, *, purpose: str, sample: int = 0, policy: str = "p@1"):
        """One episode of a task, kept as a stage would."""
        task, version = self.tasks[number], self.versions[number]
        spec = EpisodeSpec(task=task, environment=self.pinned, task_version=version, sample=sample, seed=sample)
        [played] = roll_out([spec], Answering(task, answer))
        played = replace(played, policy_version=policy, trajectory_id=f"{purpose}-{number}-{sample}")
        with self.lake.begin("play", f"{purpose}-{number}-{sample}", derivation="d") as batch:
            made = save_trajectory(batch, played, purpose=purpose, round=1)
            if purpose == "arena":
                row = {"trajectory": made, "task": version, "status": played.outcome.status}
                batch.record("rewards", row | {"reward": played.outcome.reward, "failed": []})
            if purpose == "evaluation":
                row = {"point": "pi0", "mode": "sampled", "task_set": "held", "task": version, "sample": sample}
                batch.record("evaluations", row | {"policy_version": policy, "status": played.outcome.status})
        return made

    def train(self, name: str, *episodes, base=None):
        with self.lake.begin("train", name, derivation="d") as batch:
            parents = [(episode, "demonstration") for episode in episodes] + ([(base, "base")] if base else [])
            return batch.create("checkpoint", name, {"name": name, "digest": name}, parents=parents)

    def tables(self) -> dict[str, str]:
        """What readers see of every artifact."""
        return {
            name: table_digest(spec, self.lake.table(name), volatile=True)
            for name, spec in TABLES.items()
            if spec.shape in ("artifact", "fact")
        }

    def states(self) -> dict[str, str]:
        kinds = ("tools", "environments", "tasks", "trajectories", "task_sets", "checkpoints")
        return {row["version_id"]: row["state"] for kind in kinds for row in self.lake.read(kind)}

    def ask(self, part: str, file: Path | None = None, **options) -> Reverified:
        with Engine(1) as engine:
            return reverify(self.lake, read_correction(self.lake, part, file), engine=engine, **options)


def told(found: Reverified, what: str) -> list[tuple[str, str, str]]:
    return [(change.subject, change.old, change.new) for change in found.changes if change.what == what]


@pytest.fixture
def lenient(tmp_path: Path) -> Tried:
    """A verifier that does not look at the titles, and what a wrong answer earned, taught and measured by it."""
    tried = Tried(tmp_path, ENVIRONMENT, replace(PROGRAM, verifier=LENIENT), READING)
    right, wrong = PROGRAM.answer, PROGRAM.answer | {"titles": ["Salt and Stone"]}
    tried.right = tried.play(0, right, purpose="arena")
    tried.wrong = tried.play(0, wrong, purpose="arena", sample=1)
    tried.again = tried.play(0, wrong, purpose="arena", sample=2)
    tried.shown = tried.play(0, wrong, purpose="evaluation", sample=3)
    tried.other = tried.play(1, READING.answer, purpose="arena")
    tried.taught = tried.train("taught", tried.right, tried.wrong)
    tried.next = tried.train("next", base=tried.taught)
    tried.apart = tried.train("apart", tried.right)
    return tried


@pytest.fixture(scope="module")
def untried(tmp_path_factory: pytest.TempPathFactory) -> World:
    return Tried(tmp_path_factory.mktemp("untried"), ENVIRONMENT, PROGRAM, READING).lake


def test_a_verifier_that_was_too_lenient_is_told_retired_and_taken_back(lenient: Tried, tmp_path: Path):
    lake, (program, _) = lenient.lake, lenient.versions
    assert {row["status"] for row in lake.read("trajectories")} == {"pass"}
    file = tmp_path / "v_code.py"
    file.write_text(V_CODE)
    before, version = lenient.tables(), lake.events_version()
    found = lenient.ask(program, file)
    assert lake.events_version() == version and lenient.tables() == before
    assert (found.of, len(found.replayed), dict(found.unclear)) == (4, 4, {})
    changed = [lenient.wrong, lenient.again, lenient.shown]
    assert told(found, "trajectory") == [(each, "pass", "fail (titles)") for each in changed]
    assert told(found, "reward") == [(lenient.wrong, "1", "0"), (lenient.again, "1", "0")]
    assert told(found, "round") == [("arena, round 1", "1.0000 of 4", "0.5000 of 4")]
    [(point, old, new)] = told(found, "evaluation")
    assert (point, old) == ("pi0 sampled", "1.0000") and new.startswith("0.0000; 1 of 1 samples rest on it, 1 played")
    assert told(found, "checkpoint") == [(lenient.taught, "learnt from 2 episodes", "1 of them change")]
    assert told(found, "task") == []
    assert [going.version for going in found.goes] == [program, *changed, lenient.task_set, lenient.taught]
    assert found.resting == {"checkpoint": 2, "trajectory": 1}

    batch = retire(lake, found)
    gone = {version for version, state in lenient.states().items() if state == "retired"}
    assert gone == {going.version for going in found.goes}
    [said] = lake.read("events", where={"event_type": "retired", "version_id": lenient.wrong})
    assert said["payload"]["evidence"] == {
        "part": program, "correction": found.correction.digest, "state": "created", "old": "pass", "new": "fail",
        "steps": [],
    }  # fmt: skip
    assert lake.blob(found.correction.digest) == V_CODE.encode()
    assert all(row.same for row in replay(lake, verify=True))
    assert lenient.ask(program, file).goes == ()  # nothing of what stands rests on it

    undone = undo(lake, batch[:8])
    assert set(undone.reinstated) == gone and undone.kept == [] and lenient.tables() == before
    assert all(row.same for row in replay(lake, verify=True))
    with pytest.raises(BadInputError, match="nothing of it is retired any more"):
        undo(lake, batch)
    again = retire(lake, lenient.ask(program, file))
    assert again != batch and {v for v, state in lenient.states().items() if state == "retired"} == gone


def test_with_the_part_as_it_is_nothing_changes_and_everything_that_used_it_goes(lenient: Tried, tmp_path: Path):
    file = tmp_path / "same.py"
    file.write_text(LENIENT)
    same = lenient.ask(lenient.versions[0], file)
    assert (told(same, "trajectory"), len(same.replayed)) == ([], 4)
    # The gates, other than the stored episodes, see through it: a wrong answer passes.
    assert told(same, "task") == [(lenient.versions[0], "stands", "wrong_answer: wrong_answer_passes")]
    blind = lenient.ask(lenient.versions[0])
    assert told(blind, "trajectory") == []
    assert {going.version for going in blind.goes} == {
        lenient.versions[0], lenient.right, lenient.wrong, lenient.again, lenient.shown, lenient.task_set,
        lenient.taught, lenient.apart,
    }  # fmt: skip


def test_what_another_batch_retired_too_stays_retired(lenient: Tried, tmp_path: Path):
    first = retire(lenient.lake, lenient.ask(lenient.versions[0]))
    with lenient.lake.begin("other", derivation="d") as batch:
        batch.retire(lenient.taught, "for another reason")
    undone = undo(lenient.lake, first)
    assert undone.kept == [lenient.taught] and lenient.taught not in undone.reinstated
    assert [v for v, state in lenient.states().items() if state == "retired"] == [lenient.taught]


def test_a_broken_tool_takes_along_what_it_misled(tmp_path: Path):
    wrong_tools = tuple(
        replace(tool, source=TWICE_THE_COPIES) if tool.name == "get_book" else tool for tool in ENVIRONMENT.tools
    )
    reading = replace(
        READING, answer=READING.answer | {"copies": 2},
        rubric=tuple(replace(c, expected=2) if c.name == "copies" else c for c in READING.rubric),
    )  # fmt: skip
    tried = Tried(tmp_path, replace(ENVIRONMENT, tools=wrong_tools), reading, WRITING, PROGRAM)
    misled = tried.play(0, reading.answer, purpose="arena")
    denied = tried.play(0, READING.answer, purpose="solver", sample=1)
    unhurt = tried.play(1, WRITING.answer, purpose="arena")
    counted = tried.play(2, PROGRAM.answer, purpose="solver")
    taught = tried.train("taught", misled, unhurt)
    assert {row["version_id"]: row["status"] for row in tried.lake.read("trajectories")} == {
        misled: "pass", denied: "fail", unhurt: "pass", counted: "pass",
    }  # fmt: skip
    file = tmp_path / "get_book.py"
    file.write_text(ENVIRONMENT.tool("get_book").source)
    found = tried.ask("toy/get_book", file)
    used = {link.child for link in found.impact.used_by}
    assert unhurt not in used and {misled, denied, counted, tried.versions[0], tried.versions[2]} <= used
    assert (found.of, dict(found.unclear)) == (3, {})
    # The reading task was made with the wrong copies: what it calls right is wrong. The program's own check is not.
    [(task, stands, against)] = told(found, "task")
    assert (task, stands) == (tried.versions[0], "stands") and against == "gold: other_answer"
    assert told(found, "trajectory") == [
        (misled, "pass", "pass; steps 1"), (denied, "fail (copies)", "fail (copies); steps 1"),
        (counted, "pass", "pass; steps 0, 1"),
    ]  # fmt: skip
    assert [(going.kind, going.version) for going in found.goes] == [
        ("tool", tried.tools["get_book"]), ("environment", tried.environment), ("task", tried.versions[0]),
        ("trajectory", misled), ("trajectory", denied), ("trajectory", counted), ("task_set", tried.task_set),
        ("checkpoint", taught),
    ]  # fmt: skip
    few = tried.ask("toy/get_book", file, trajectories=1)
    assert (few.of, len(few.replayed)) == (3, 1)


def test_an_episode_that_does_not_replay_is_not_judged_anew(lenient: Tried, tmp_path: Path):
    stored = lenient.lake.trajectory(lenient.wrong)
    with lenient.lake.begin("planted", derivation="d") as batch:
        planted = replace(stored, trajectory_id="planted", final_digest="0" * 64)
        version = save_trajectory(batch, planted, purpose="solver", round=0)
    file = tmp_path / "v_code.py"
    file.write_text("def verify(answer, gold, initial, final):\n    raise ValueError('oh')\n")
    found = lenient.ask(lenient.versions[0], file)
    assert found.unclear.pop(version) == "it does not replay to what is recorded"
    assert len(found.unclear) == 4 and all("ValueError: oh" in why for why in found.unclear.values())
    assert told(found, "trajectory") == []


def test_the_command_looks_only_until_it_is_told_to_retire(lenient: Tried, tmp_path: Path):
    file = tmp_path / "v_code.py"
    file.write_text(V_CODE)

    def run(*arguments: str):
        return CliRunner().invoke(cli, ["reverify", *arguments, "--lake", lenient.lake.uri])

    part = lenient.versions[0]
    looked = run(part, "--with", str(file), "--workers", "1")
    assert looked.exit_code == 0 and "Nothing was changed" in looked.stderr and "fail (titles)" in looked.stdout
    assert "4 played again, 3 change" in looked.stderr and "retired" not in lenient.states().values()
    some = run(part, "--with", str(file), "--workers", "1", "--keep", "checkpoint", "--keep", "task_set", "--retire")
    assert some.exit_code == 0 and "retired" not in {lenient.states()[v] for v in (lenient.taught, lenient.task_set)}
    assert run("--undo", some.stderr.split("--undo ")[1].split()[0]).exit_code == 0
    done = run(part, "--with", str(file), "--workers", "1", "--retire", "--format", "json")
    assert f"--lake {lenient.lake.uri}" in done.stderr  # what takes it back, as it must be typed
    facts = json.loads(done.stdout)
    assert [going["kind"] for going in facts["goes"]].count("trajectory") == 3 and not facts["truncated"]
    assert f"--undo {facts['batch'][:12]}" in done.stderr
    assert run("--undo", facts["batch"][:12]).exit_code == 0
    assert "retired" not in lenient.states().values()


@pytest.mark.parametrize(
    ("part", "name", "text", "why"),
    [
        ("toy-program", "v.py", "def verify(:\n", r"v.py, line 1: it is not Python: "),
        ("toy-program", "v.py", "x = 1\n", r"v.py: it defines no function 'verify'; write"),
        ("toy/get_book", "t.py", "def other(): pass\n", r"t.py: it defines no function 'get_book'"),
        ("toy-read", "v.py", "def verify(): pass\n", r"toy-read is a graph task and has no verifier"),
        ("toy-read", "t.json", '{"instruction": "x"}', r"t.json: it names instruction of a task; give a JSON object"),
        ("toy-read", "t.json", "[1", r"t.json: it is not JSON: "),
        ("toy-read", "t.json", '{"rubric": [{"name": "x", "kind": "y"}]}', r"t.json, rubric.0.kind: Input should be"),
        ("toy-library", "t.py", "", r"it is a environment|may mean any"),
        ("toy-read", "none.json", None, r"none.json: No such file"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(untried: World, tmp_path: Path, part, name, text, why):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises((BadInputError, NotFoundError), match=why) as refused:
        read_correction(untried, part, file)
    assert "\n" not in str(refused.value)


def test_only_a_batch_that_retired_can_be_taken_back(untried: World):
    with pytest.raises(NotFoundError, match="no single batch of `agent-world reverify --retire`"):
        undo(untried, untried.read("batches")[0]["batch"])
