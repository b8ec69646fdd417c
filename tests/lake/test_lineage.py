"""Lineage answers name exact versions, agree with brute force, and say when they are truncated."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from agent_world.identity import artifact_id_of
from agent_world.lake import Lake, NotFoundError, open_lake
from agent_world.lake import lineage as lin
from agent_world.lake.openlineage import run_events


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[dict]]:
    """Tools in environments, tasks that call some of them, trajectories that call others; and those calls apart."""
    lake = open_lake(tmp_path_factory.mktemp("lineage") / "lake")
    source = Random(7)
    calls: list[dict] = []
    with lake.begin("themes", derivation="d") as batch:
        themes = [batch.create("theme", f"theme-{n}", {"title": f"{n}"}) for n in range(2)]
    for n, theme in enumerate(themes):
        with lake.begin("environments", f"{n}", derivation="d") as batch:
            parents = [(theme, "theme")]
            tools = [batch.create("tool", f"e{n}/t{k}", {"name": f"t{k}"}, parents=parents) for k in range(8)]
            parents += [(tool, "tool") for tool in tools]
            environment = batch.create("environment", f"env-{n}", {"title": f"{n}"}, parents=parents)
        with lake.begin("tasks", f"{n}", derivation="d") as batch:
            for k in range(6):
                used = source.sample(tools[:7], 2)  # tool 7 is called by nobody
                made = batch.create(
                    "task",
                    f"task-{n}-{k}",
                    {"instruction": f"{k}"},
                    parents=[(environment, "environment"), *((tool, lin.CALLS) for tool in used)],
                )
                calls.append({"version": made, "tools": used})
        with lake.begin("rollouts", f"{n}", derivation="d") as batch:
            for k, task in enumerate(calls[-6:]):
                used = source.sample(tools[:7], 1)
                parents = [(task["version"], "task"), (environment, "environment"), *((t, lin.CALLS) for t in used)]
                made = batch.create("trajectory", f"tr-{n}-{k}", {"seed": k}, parents=parents)
                calls.append({"version": made, "tools": used})
    return lake, calls


def brute_force(lake: Lake, start: str, *, up: bool) -> set[str]:
    edges = [(e["child"], e["parent"]) if up else (e["parent"], e["child"]) for e in lake.read("edges")]
    reached, waiting = set(), [start]
    while waiting:
        here = waiting.pop()
        for near, far in edges:
            if near == here and far not in reached:
                reached.add(far)
                waiting.append(far)
    return reached


def test_closures_agree_with_brute_force_for_every_version(world):
    lake, _ = world
    for row in lake.read("versions"):
        version = row["version_id"]
        for up, ask in ((True, lin.upstream), (False, lin.downstream)):
            answer = ask(lake, version)
            assert {hop.version_id for hop in answer.hops} == brute_force(lake, version, up=up)
            assert not answer.truncated and answer.as_of == lake.events_version()
            assert [hop.distance for hop in answer.hops] == sorted(hop.distance for hop in answer.hops)


def test_the_impact_of_a_tool_names_exactly_what_called_it(world):
    lake, calls = world
    for row in lake.read("tools"):
        tool = row["version_id"]
        answer = lin.impact(lake, tool)
        assert {link.child for link in answer.used_by} == {call["version"] for call in calls if tool in call["tools"]}
        assert [link.role for link in answer.held_by] == ["tool"]
        direct = {link.child for link in answer.used_by}
        made_from_them = {v for version in direct for v in brute_force(lake, version, up=False)}
        assert {hop.version_id for hop in answer.affected} == direct | made_from_them
    assert lin.impact(lake, lake.resolve("tool", "e0/t7")).affected == []


def test_an_answer_that_was_cut_says_so(world):
    lake, _ = world
    theme = lake.resolve("theme", "theme-0")
    whole = lin.downstream(lake, theme)
    for limit in (1, 5, len(whole.hops) - 1):
        answer = lin.downstream(lake, theme, limit=limit)
        assert answer.truncated and len(answer.hops) == limit
        assert {hop.version_id for hop in answer.hops} <= {hop.version_id for hop in whole.hops}
    assert not lin.downstream(lake, theme, limit=len(whole.hops)).truncated
    near = lin.downstream(lake, theme, depth=1)
    assert near.truncated and {hop.distance for hop in near.hops} == {1}
    assert not lin.upstream(lake, theme, depth=1).truncated


def test_a_path_is_a_shortest_chain_either_way(world):
    lake, _ = world
    theme, trajectory = lake.resolve("theme", "theme-1"), lake.resolve("trajectory", "tr-1-3")
    up = lin.path(lake, trajectory, theme)
    assert up.links is not None and not up.truncated
    assert [link.child for link in up.links] == [trajectory, *(link.parent for link in up.links[:-1])]
    assert up.links[-1].parent == theme and len(up.links) == 2
    assert lin.path(lake, theme, trajectory).links == up.links[::-1]
    assert lin.path(lake, theme, theme).links == []
    apart = lin.path(lake, lake.resolve("theme", "theme-0"), theme)
    assert apart.links is None and not apart.truncated
    given_up = lin.path(lake, trajectory, theme, limit=2)
    assert given_up.links is None and given_up.truncated
    with pytest.raises(NotFoundError, match="no version"):
        lin.path(lake, theme, "theme-9@0")


def test_a_step_of_a_path_tells_every_role(lake: Lake):
    with lake.begin("twice", derivation="d") as batch:
        theme = batch.create("theme", "t", {})
        child = batch.create("task", "twice", {}, parents=[(theme, "b"), (theme, "a")])
    assert lin.path(lake, child, theme).links == [(child, theme, "a, b")]


def test_every_list_that_was_cut_is_counted(lake: Lake):
    with lake.begin("x", derivation="0") as batch:
        themes = [batch.create("theme", f"t{n}", {"title": f"{n}"}) for n in range(6)]
        one = batch.create("database", "d", {"a": 1, "b": 1, "c": 1}, parents=[(t, "theme") for t in themes[:4]])
        two = batch.create("database", "d", {"a": 2, "b": 2, "c": 2}, parents=[(t, "theme") for t in themes[4:]])
        for n in range(3):
            batch.observe(one, {"retrieved_at": f"{n}"})
            batch.record("gate_verdicts", {"gate": f"{n}", "accepted": True, "subject": one})
    why = lin.why(lake, one, limit=2)
    assert why["left_out"] == {"parents": 2, "since": 1, "gates": 1} and why["truncated"]
    assert all(len(why[name]) == 2 for name in why["left_out"])
    diff = lin.diff(lake, one, two, limit=2)
    assert diff["left_out"] == {"payload": 1, "files": 0, "parents_only_first": 2, "parents_only_second": 0}
    assert list(diff["payload"]) == ["a", "b"] and diff["truncated"]
    then = lin.as_of(lake, themes[0], lake.events_version(), limit=0)
    assert then["left_out"] == {"parents": 0, "children": 1} and then["truncated"]
    assert not any(told["truncated"] for told in (lin.why(lake, one), lin.diff(lake, one, two)))


def test_why_tells_how_a_version_came_to_be_and_what_was_said_since(lake: Lake):
    with lake.begin("themes", derivation="d0") as batch:
        theme = batch.create("theme", "a", {"title": "a"})
    with lake.begin("tools", "p", derivation="d1", run_id="r1", code_version="c1") as batch:
        tool = batch.create("tool", "t", {"name": "t"}, parents=[(theme, "theme")])
    with lake.begin("gates", "p", derivation="d2", run_id="r2") as batch:
        batch.observe(tool, {"accepted": False, "accuracy": 0.5})
        verdict = {"gate": "tool", "accepted": False, "reason": "acc", "evidence": [1]}
        batch.record("gate_verdicts", verdict | {"subject": tool})
    told = lin.why(lake, tool)
    assert (told["stage"], told["partition"], told["derivation"]) == ("tools", "p", "d1")
    assert (told["run_id"], told["code_version"]) == ("r1", "c1")
    assert told["parents"] == [{"version_id": theme, "role": "theme"}]
    assert [(said["stage"], json.loads(said["payload"])) for said in told["since"]] == [
        ("gates", {"accepted": False, "accuracy": 0.5})
    ]
    assert told["gates"] == [verdict]


def test_diff_names_paths_files_parents_and_derivations(lake: Lake):
    made = []
    for number, payload in enumerate(({"a": {"b": [1, 2]}, "c": 1}, {"a": {"b": [1, 3]}, "d": 1})):
        with lake.begin("x", f"{number}", derivation="d") as batch:
            theme = batch.create("theme", f"t{number}", {})
            files = {"same": b"s", "other": f"{number}".encode()}
            made.append(batch.create("database", "d", payload, parents=[(theme, "theme")], files=files))
    told = lin.diff(lake, *made)
    assert told["payload"] == {"a.b[1]": [2, 3], "c": [1, None], "d": [None, 1]}
    assert list(told["files"]) == ["other"]
    assert [role for _, role in told["parents_only_first"]] == ["theme"] and not told["same_derivation"]
    assert lin.diff(lake, made[0], made[0])["payload"] == {}


def test_reproduce_gives_the_plan_and_carries_it_out(lake: Lake):
    with lake.begin("themes", derivation="d0", code_version="c") as batch:
        theme = batch.create("theme", "a", {"title": "a"})
        batch.create("theme", "unrelated", {"title": "u"})
    with lake.begin("databases", "a", derivation="d1", code_version="c") as batch:
        database = batch.create("database", "db", {"round": 0}, parents=[(theme, "theme")])
    plan = lin.reproduce(lake, database)
    assert [(s.stage, s.derivation, s.inputs, s.outputs) for s in plan.steps] == [
        ("themes", "d0", [], [theme]),
        ("databases", "d1", [theme], [database]),
    ]
    assert not plan.carried_out
    same = lin.reproduce(lake, database, lambda step: step.outputs)
    assert same.carried_out and same.differing == []

    def otherwise(step: lin.Step) -> list[str]:
        return [f"{artifact_id_of(version)}@{'0' * 32}" for version in step.outputs]

    other = lin.reproduce(lake, database, otherwise)
    assert other.differing == [theme, database]
    alarms = lake.sql("SELECT version_id FROM events WHERE event_type = 'diverged' ORDER BY commit_version").to_pylist()
    assert [row["version_id"] for row in alarms] == [theme, database]
    assert [row["state"] for row in lake.read("databases")] == ["created"]


def test_as_of_names_the_version_that_was_current_then(lake: Lake):
    made, points = [], []
    for number in range(3):
        with lake.begin("x", derivation=f"{number}") as batch:
            made.append(batch.create("theme", "a", {"title": f"{number}"}))
            child = batch.create("database", f"d{number}", {"round": number}, parents=[(made[-1], "theme")])
        points.append((lake.events_version(), child))
    for number, (at, child) in enumerate(points):
        told = lin.as_of(lake, made[0], at)
        assert (told["version_id"], told["rev"], told["children"]) == (made[number], number + 1, [[child, "theme"]])
    assert lin.as_of(lake, "a", points[1][0])["version_id"] == made[1]
    with pytest.raises(NotFoundError, match="no artifact 'b'"):
        lin.as_of(lake, "b", points[0][0])


def test_as_of_answers_for_the_kind_that_the_version_has(lake: Lake):
    """A theme, a database and an environment share one key, and were committed in this order; then all changed."""
    kinds = ("theme", "database", "environment")
    with lake.begin("before", derivation="0") as batch:
        batch.create("theme", "key-2", {"title": "its name begins alike"})
    points, made = [lake.events_version()], []
    for number in range(2):
        for kind in kinds:
            with lake.begin(kind, derivation=f"{number}") as batch:
                made.append(batch.create(kind, "key", {"title": kind, "number": number}))
        points.append(lake.events_version())
    before, then, now = points
    for number, kind in enumerate(kinds):
        old, new = made[number], made[number + 3]
        for at, current in ((then, old), (now, new)):
            for ref in (old, new, new[:-20]):
                told = lin.as_of(lake, ref, at)
                assert (told["version_id"], told["rev"]) == (current, 1 + (at == now))
                assert lake.kind_of(told["version_id"]) == kind
        with pytest.raises(NotFoundError, match=f"no {kind} 'key' at {before}"):
            lin.as_of(lake, old, before)
    with pytest.raises(NotFoundError, match="may mean any of these kinds: theme, database, environment") as error:
        lin.as_of(lake, "key", then)
    assert all(f"{version} ({kind})" in str(error.value) for version, kind in zip(made[:3], kinds, strict=True))


def test_the_graph_goes_on_as_the_lake_grows(lake: Lake):
    with lake.begin("x", derivation="0") as batch:
        last = batch.create("theme", "t0", {})
    assert lin.upstream(lake, last).hops == []
    for number in range(1, 5):
        with lake.begin("x", derivation=f"{number}") as batch:
            last = batch.create("theme", f"t{number}", {}, parents=[(last, "previous")])
        assert [hop.distance for hop in lin.upstream(lake, last).hops] == list(range(1, number + 1))


def test_a_subgraph_is_handed_over_as_networkx(world):
    lake, _ = world
    answer = lin.upstream(lake, lake.resolve("trajectory", "tr-0-0"))
    graph = lin.to_networkx(lake, answer)
    assert set(graph) == {answer.version_id, *(hop.version_id for hop in answer.hops)}
    assert {(c, p, d["role"]) for c, p, d in graph.edges(data=True)} == set(answer.links)
    assert graph.nodes[answer.version_id]["kind"] == "trajectory" and graph.graph["truncated"] is False


def test_lineage_is_right_in_a_lake_that_was_copied_without_anything_else(world, tmp_path: Path):
    from agent_world.lake import carry, snapshots

    lake, _ = world
    carry.export(lake, snapshots.create(lake), str(tmp_path / "copy"))
    copy = open_lake(tmp_path / "copy")
    for row in copy.read("tasks"):
        assert lin.upstream(copy, row["version_id"])[:3] == lin.upstream(lake, row["version_id"])[:3]


def test_openlineage_events_name_exact_versions(world):
    lake, _ = world
    events = list(run_events(lake, "lake"))
    assert len(events) == len({event["run"]["runId"] for event in events}) == 7
    outputs = {d["facets"]["version"]["datasetVersion"] for event in events for d in event["outputs"]}
    assert outputs == {row["version_id"] for row in lake.read("versions")}
    inputs = {d["facets"]["version"]["datasetVersion"] for event in events for d in event["inputs"]}
    assert inputs <= outputs
    assert json.loads(json.dumps(events)) == events
