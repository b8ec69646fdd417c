"""A part turned out broken: what rested on it, which rewards change with the right part, and what must go.

Looking changes nothing. `retire` says it in one batch of events, `undo` takes that batch back with another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agent_world.arena.evaluation import pass_rate
from agent_world.auditing.correction import Correction
from agent_world.auditing.rescoring import Rescored, Rescoring, Work, rescore
from agent_world.engine import Engine
from agent_world.errors import BadInputError
from agent_world.identity import Digest, VersionId, canonical_json, rng, sha256
from agent_world.lake.errors import NotFoundError
from agent_world.lake.lineage import HOLDS, Impact, impact

if TYPE_CHECKING:
    from agent_world.world import World

STAGE, UNDONE = "reverify", "reinstate"
"""Stages of the batches that `retire` and `undo` write; their partition is the part."""

LEARNT_FROM = ("demonstration", "rollout")
"""Roles of the episodes that a checkpoint was trained on."""

_ALL = 1 << 62
_SHORTEST_REF = 6

State = Literal["created", "superseded"]


class Change(NamedTuple):
    """One thing that is otherwise with the right part, as it stands and as it would."""

    what: str
    subject: str
    old: str
    new: str


class Going(NamedTuple):
    """A version that must go: the part itself, what changed, and what lists or learnt from what changed."""

    version: VersionId
    kind: str
    state: State
    why: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverified:
    """What came of it.

    `replayed` are the stored episodes that were played again, `of` how many rested on the part; `unclear` those of
    which nothing can be said, with the reason. `resting` counts by kind what was made from what must go and may stay:
    it is as good as it was measured to be, but would not have come about.
    """

    correction: Correction
    impact: Impact
    replayed: tuple[Rescored, ...]
    of: int
    changes: tuple[Change, ...]
    goes: tuple[Going, ...]
    unclear: Mapping[VersionId, str]
    resting: Mapping[str, int]


class Undone(NamedTuple):
    """What a batch had retired and is reinstated; `kept` was retired by another batch as well."""

    batch: Digest
    reinstated: list[VersionId]
    kept: list[VersionId]


def reverify(
    world: World, correction: Correction, *, engine: Engine, trajectories: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, count: None,
) -> Reverified:  # fmt: skip
    """Play again everything stored that used the part, and compare.

    Args:
        world: the lake.
        correction: the part, and the right one. Without one everything that used the part must go.
        engine: the workers.
        trajectories: only so many of the stored episodes, drawn by a fixed seed.
        on_progress: told how many of the tasks are done.
    """
    rest = _Rest(world, correction.part)
    chosen = _drawn(rest.trajectories, trajectories)
    works = _works(rest, chosen)
    found: list[Rescoring] = []
    unclear: dict[VersionId, str] = {}
    for number, done in enumerate(engine.map(partial(rescore, world.uri, correction), works), 1):
        if done.result:
            found.append(done.result)
        if done.failure:
            unclear |= dict.fromkeys(done.item.trajectories or (done.item.task,), done.failure.error)
        on_progress(number, len(works))
    episodes = [episode for each in found for episode in each.episodes]
    unclear |= {episode.trajectory: episode.why for episode in episodes if episode.new is None}
    goes = list(_going(world, correction, rest, found))
    return Reverified(
        correction=correction, impact=rest.impact, replayed=tuple(episodes), of=len(rest.trajectories),
        changes=tuple(_changes(world, rest, found)), goes=tuple(goes), unclear=unclear,
        resting=_resting(world, goes),
    )  # fmt: skip


def retire(world: World, found: Reverified, *, run_id: str | None = None) -> Digest:
    """Retire what must go, in one batch; gives its id, by which `undo` takes it back."""
    correction = found.correction
    with world.begin(STAGE, correction.part, derivation=_turn(world, correction), run_id=run_id) as batch:
        if correction.data is not None:
            batch.blob(correction.data)
        part = {"part": correction.part, "correction": correction.digest}
        for going in found.goes:
            batch.retire(going.version, going.why, {**part, "state": going.state, **going.evidence})
    return batch.id


def undo(world: World, ref: str, *, run_id: str | None = None) -> Undone:
    """Reinstate what the batch `ref` (an id or a unique start of one) retired, in the states they had.

    Raises:
        NotFoundError: no batch of `retire`, or more than one, is called so.
        BadInputError: nothing of it is retired any more.
    """
    known = [row["batch"] for row in world.read("batches", where={"stage": STAGE}, columns=["batch"])]
    matches = [batch for batch in known if len(ref) >= _SHORTEST_REF and batch.startswith(ref)]
    if len(matches) != 1:
        why = f"no single batch of `agent-world reverify --retire` has an id that begins with {ref!r}"
        raise NotFoundError("batch", ref, [batch[:12] for batch in matches or known][-3:], why)
    batch_id = matches[0]
    where = {"event_type": ["retired", "reinstated"]}
    said = world.read("events", where=where, columns=["batch", "event_type", "version_id", "payload", "partition"])
    last = {row["version_id"]: row for row in said}
    own = [row for row in said if row["batch"] == batch_id]
    open_ = [row for row in own if last[row["version_id"]]["event_type"] == "retired"]
    back = [row for row in open_ if last[row["version_id"]]["batch"] == batch_id]
    if not back:
        raise BadInputError(f"batch {batch_id[:12]}", "nothing of it is retired any more", "there is nothing to undo")
    derivation = sha256(canonical_json([batch_id, len(said)]))
    with world.begin(UNDONE, own[0]["partition"], derivation=derivation, run_id=run_id) as batch:
        for row in back:
            state = row["payload"]["evidence"]["state"]
            batch.reinstate(VersionId(row["version_id"]), state, f"batch {batch_id} was taken back")
    kept = {row["version_id"] for row in open_} - {row["version_id"] for row in back}
    return Undone(batch.id, [VersionId(row["version_id"]) for row in back], sorted(kept))


class _Rest:
    """What rests on a part: the tasks and stored episodes that used it, but for those that are retired."""

    def __init__(self, world: World, part: VersionId) -> None:
        self.world, self.part = world, part
        self.impact = impact(world, part, limit=_ALL)
        users = {link.child for link in self.impact.used_by} | {part}
        rows = _standing(world, "trajectories", "task", "purpose", "round", "policy_version", "sample")
        of_task = world.kind_of(part) == "task"
        mine = [row for row in rows if (row["task"] == part if of_task else row["version_id"] in users)]
        self.rows: dict[str, dict[str, Any]] = {row["version_id"]: row for row in mine}
        self.trajectories = [VersionId(row["version_id"]) for row in mine]
        kept = _standing(world, "tasks", "accepted", "tier")
        self.tasks = {r["version_id"]: r for r in kept if r["version_id"] in users and (r["accepted"] or r["tier"])}

    def links(self, parents: set[str], *roles: str) -> Iterator[tuple[str, str]]:
        """(child, parent) of every edge of these roles whose parent is one of these."""
        graph = self.world.graph
        for parent in sorted(parents):
            yield from ((link.child, parent) for link in graph.neighbours(parent, up=False) if link.role in roles)


def _works(rest: _Rest, chosen: Sequence[VersionId]) -> list[Work]:
    by_task: dict[str, list[VersionId]] = defaultdict(list)
    for version in chosen:
        by_task[rest.rows[version]["task"]].append(version)
    tasks = dict.fromkeys([*rest.tasks, *by_task])
    return [Work(VersionId(task), tuple(by_task.get(task, ())), task in rest.tasks) for task in tasks]


def _drawn(versions: Sequence[VersionId], most: int | None) -> list[VersionId]:
    if most is None or most >= len(versions):
        return list(versions)
    kept = set(rng("reverify", 1).sample(range(len(versions)), most))
    return [version for index, version in enumerate(versions) if index in kept]


def _going(world: World, correction: Correction, rest: _Rest, found: Sequence[Rescoring]) -> Iterator[Going]:
    """The part; what holds it; tasks that fall; episodes that change; what lists or learnt from those.

    Without a right part, all that used it fall.
    """
    states = _states(world)

    def going(version: str, why: str, **evidence: Any) -> Iterator[Going]:
        kind, state = states.get(version, ("", "retired"))
        if state != "retired":
            yield Going(VersionId(version), kind, state, why, evidence)

    blind = correction.data is None
    fallen = {each.task: each.against for each in found if each.against}
    why = "it used the part" if blind else "it does not stand with the right part"
    if blind:
        fallen |= {VersionId(task): fallen.get(VersionId(task)) for task in rest.tasks}
    changed = {each.trajectory: each for result in found for each in result.episodes if each.changed}
    lived = dict.fromkeys(rest.trajectories if blind else changed)
    if not (blind or fallen or changed):
        return
    yield from going(correction.part, "it is broken")
    holders = {link.child for link in rest.impact.held_by if states.get(link.child, ("",))[0] == "environment"}
    for holder in sorted(holders):
        yield from going(holder, "it pins the part")
    for task, against in sorted(fallen.items()):
        if task != correction.part:
            yield from going(task, why, against=against)
    for version in lived:
        each = changed.get(version)
        if each is None or each.new is None:
            yield from going(version, "it used the part")
        else:
            old, new = each.old.status, each.new.status
            yield from going(version, _how(each), old=old, new=new, steps=list(each.differing))
    lists = Counter(child for child, _ in rest.links({correction.part, *fallen}, "task"))
    for version, count in sorted(lists.items()):
        if states.get(version, ("",))[0] == "task_set":
            yield from going(version, "it lists tasks that go", tasks=count)
    learnt = Counter(child for child, _ in rest.links({*lived}, *LEARNT_FROM))
    for version, count in sorted(learnt.items()):
        yield from going(version, "it was trained on episodes that go", episodes=count)
    drawn = Counter(child for child, _ in rest.links({*lived}, "attempt"))
    for version, count in sorted(drawn.items()):
        yield from going(version, "it was drawn from episodes that go", episodes=count)


def _how(episode: Rescored) -> str:
    if episode.other_outcome:
        return "it is judged otherwise"
    return "its calls bring back something else" if episode.differing else "it ends in another state"


def _changes(world: World, rest: _Rest, found: Sequence[Rescoring]) -> Iterator[Change]:
    """Tasks, episodes, rewards, rounds, evaluations and checkpoints, old and new."""
    for each in found:
        if each.against:
            yield Change("task", each.task, "stands", each.against)
    episodes = {each.trajectory: each for result in found for each in result.episodes}
    changed = {version: each for version, each in episodes.items() if each.changed}
    for version, each in changed.items():
        assert each.new is not None
        steps = f"; steps {', '.join(map(str, each.differing))}" if each.differing else ""
        state = "; other final state" if each.new_digest != each.old_digest else ""
        yield Change("trajectory", version, _said(each.old.status, each.old.failed),
                     _said(each.new.status, each.new.failed) + steps + state)  # fmt: skip
    judged = {version: each.new for version, each in changed.items() if each.new and each.other_outcome}
    yield from _rewards(world, {version: new.reward for version, new in judged.items()})
    yield from _evaluations(world, rest, episodes)
    learnt = defaultdict(set)
    for child, parent in rest.links({*changed}, *LEARNT_FROM):
        learnt[child].add(parent)
    for checkpoint, wrong in sorted(learnt.items()):
        of = sum(link.role in LEARNT_FROM for link in world.graph.neighbours(checkpoint, up=True))
        yield Change("checkpoint", checkpoint, f"learnt from {of} episodes", f"{len(wrong)} of them change")


def _rewards(world: World, judged: Mapping[VersionId, float | None]) -> Iterator[Change]:
    """Rewards of the arena, one by one, and what they make of the pass rate of their round."""
    rows = world.read("rewards")
    rounds = {row["version_id"]: row["round"] for row in world.read("trajectories", columns=["version_id", "round"])}
    by_round: dict[int, list[tuple[float | None, float | None]]] = defaultdict(list)
    touched = set()
    for row in rows:
        version, round = row["trajectory"], rounds.get(row["trajectory"], 0)
        new = judged.get(version, row["reward"])
        by_round[round].append((row["reward"], new))
        if new != row["reward"]:
            touched.add(round)
            yield Change("reward", version, _number(row["reward"]), _number(new))
    for round in sorted(touched):
        old, new = ([pair[side] for pair in by_round[round] if pair[side] is not None] for side in (0, 1))
        yield Change("round", f"arena, round {round}", _mean(old), _mean(new))


def _evaluations(world: World, rest: _Rest, episodes: Mapping[VersionId, Rescored]) -> Iterator[Change]:
    """The pass rate at each point: of a few samples the episode is kept, the others only rest on the part."""
    kept = {
        (row["policy_version"], row["task"], row["sample"]): episodes[VersionId(version)]
        for version, row in rest.rows.items()
        if row["purpose"] == "evaluation" and version in episodes
    }
    users = {*rest.tasks, *(row["task"] for row in rest.rows.values())}
    points: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in world.read("evaluations"):
        points[row["point"], row["mode"]].append(row)
    for (point, mode), rows in points.items():
        resting = [row for row in rows if row["task"] in users]
        if not resting:
            continue
        new_rows, tried, other = [], 0, 0
        for row in rows:
            # Only sampled episodes are kept (assets/traces.py).
            each = kept.get((row["policy_version"], row["task"], row["sample"])) if mode == "sampled" else None
            status = each.new.status if each and each.new else row["status"]
            tried += bool(each and each.new)
            other += status != row["status"]
            new_rows.append({**row, "status": status})
        old, new = pass_rate(rows), pass_rate(new_rows)
        without = pass_rate([row for row in rows if row["task"] not in users])
        yield Change(
            "evaluation", f"{point} {mode}", _rate(old),
            f"{_rate(new)}; {len(resting)} of {len(rows)} samples rest on it, {tried} played again, {other} change;"
            f" {_rate(without)} without them",
        )  # fmt: skip


def _resting(world: World, goes: Sequence[Going]) -> dict[str, int]:
    """What was made from what goes, by kind; a tool's environment merely holds it."""
    gone = {going.version for going in goes}
    graph = world.graph
    reached = {hop.version_id for v in gone for hop in graph.walk(v, up=False, limit=_ALL, without=HOLDS).hops} - gone
    return dict(sorted(Counter(graph.kind(version) for version in reached).items()))


def _standing(world: World, table: str, *columns: str) -> list[dict[str, Any]]:
    return world.read(table, where={"state": ["created", "superseded"]}, columns=["version_id", *columns])


def _states(world: World) -> dict[str, tuple[str, Any]]:
    """Kind and state of everything that may have to go."""
    tables = {
        "tools": "tool", "environments": "environment", "tasks": "task", "trajectories": "trajectory",
        "task_sets": "task_set", "checkpoints": "checkpoint", "diagnoses": "diagnosis",
    }  # fmt: skip
    return {
        row["version_id"]: (kind, row["state"])
        for table, kind in tables.items()
        for row in world.read(table, columns=["version_id", "state"])
    }


def _turn(world: World, correction: Correction) -> Digest:
    """The derivation: what has been undone may be done again, and is then another batch."""
    where = {"stage": [STAGE, UNDONE], "partition": correction.part}
    before = world.read("batches", where=where, columns=["batch"])
    return sha256(canonical_json([correction.digest, [row["batch"] for row in before]]))


def _said(status: str, failed: Sequence[str]) -> str:
    return f"{status} ({', '.join(failed)})" if failed else status


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _mean(values: Sequence[float | None]) -> str:
    given = [value for value in values if value is not None]
    return f"{sum(given) / len(given):.4f} of {len(given)}" if given else "none"


def _rate(found: Any) -> str:
    return "none" if found is None else f"{found.estimate:.4f}"
