"""One-line mutations of the core; each must break at least one of the tests named with it."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """Replace `old` by `new` once in `file`; the tests below `tests` must notice."""

    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    Mutation("agent_world/identity.py", "sort_keys=True", "sort_keys=False", "tests/test_identity.py"),
    Mutation("agent_world/identity.py", '"blob_root": blob_root', '"blob_root": None', "tests/test_identity.py"),
    Mutation(
        "agent_world/identity.py", '"parents": sorted(parents)', '"parents": list(parents)', "tests/test_identity.py"
    ),
    Mutation(
        "agent_world/lake/log.py", "return key in self.read(since", "return key not in self.read(since", "tests/lake"
    ),
    Mutation("agent_world/environments/tool_gate.py", "accuracy > 0.5", "accuracy >= 0.5", "tests/environments"),
    Mutation("agent_world/environments/tool_gate.py", "if digests[0] != digests[1]", "if False", "tests/environments"),
    Mutation("agent_world/tasks/gates.py", "RANDOM_PASSES = 1", "RANDOM_PASSES = 20", "tests/tasks"),
    Mutation("agent_world/tasks/gates.py", "CONSISTENT_RUNS = 2", "CONSISTENT_RUNS = 0", "tests/tasks"),
    Mutation("agent_world/tasks/static_gates.py", "guesses < FEWEST_GUESSES and", "False and", "tests/tasks"),
    Mutation("agent_world/tasks/static_gates.py", "if not found:", "if True:", "tests/tasks"),
    Mutation(
        "agent_world/rollouts/canonical.py",
        'return ("boolean", value)',
        'return ("number", int(value))',
        "tests/rollouts",
    ),
    Mutation(
        "agent_world/rollouts/rewards.py",
        "failed = [each.name for each in typed if not criterion_holds(",
        "failed = [each.name for each in typed[:0] if not criterion_holds(",
        "tests/rollouts",
    ),
    Mutation(
        "agent_world/rollouts/rewards.py",
        'return [Outcome(status="infra_error", detail=f"judge: {type(error).__name__}: {error}")] * len(answers)',
        'return [Outcome(status="fail")] * len(answers)',
        "tests/rollouts",
    ),
    Mutation(
        "agent_world/rollouts/model.py",
        '{"pass": 1.0, "fail": 0.0}',
        '{"pass": 1.0, "fail": 0.0, "infra_error": 0.0}',
        "tests/rollouts tests/trainers",
    ),
    Mutation(
        "agent_world/rollouts/loop.py",
        "same_digest=digest == trajectory.final_digest",
        "same_digest=True",
        "tests/rollouts tests/tasks",
    ),
    Mutation(
        "trainers/rollouts.py",
        "[int(by_policy) for by_policy in context.written[context.prompt :]]",
        "[1 for _ in context.written[context.prompt :]]",
        "tests/trainers",
    ),
    Mutation(
        "trainers/guard.py", 'if now["calls"] < limits.least_calls', "if 0 > limits.least_calls", "tests/trainers"
    ),
    Mutation("agent_world/arena/labels.py", 'return "wrong_argument"', 'return "wrong_tool"', "tests/arena"),
    Mutation("agent_world/arena/diagnosis.py", "FAILURE_FLOOR = 0.1", "FAILURE_FLOOR = 1.0", "tests/arena"),
    Mutation(
        "agent_world/arena/diagnosis.py",
        'failure.label != "infra"]\n    passes',
        "failure.label]\n    passes",
        "tests/arena",
    ),
    Mutation("expectations/custom.py", "strict_min: bool = True", "strict_min: bool = False", "tests/expectations"),
)
