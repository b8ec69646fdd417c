from trainers.guard import CollapseGuard, GuardLimits

HEALTHY = {"reward": 0.4, "tool_calls": 2.0, "entropy": 0.3, "truncated": 0.05}


def run(steps, **limits):
    guard = CollapseGuard(GuardLimits(window=2, **limits))
    for number, step in enumerate(steps):
        if not guard.watch(**{**HEALTHY, **step}):
            return number, guard.reason
    return None, guard.reason


def test_a_healthy_run_is_left_alone():
    assert run([{"entropy": 0.3 - 0.01 * n, "tool_calls": 2 - 0.02 * n} for n in range(25)]) == (None, "")


def test_a_policy_that_stops_calling_tools_is_stopped():
    step, reason = run([{}, {}, {"tool_calls": 0.4}, {"tool_calls": 0.2}])
    assert step == 3
    assert "tool calls fell from 2.00 to 0.30" in reason


def test_a_policy_that_needs_fewer_calls_and_passes_more_is_left_alone():
    fewer = [{"tool_calls": 0.8, "reward": 0.4 + gain} for gain in (0.05, 0.1)]
    assert run([{}, {}, *fewer]) == (None, "")
    assert run([{}, {}, *fewer, {"tool_calls": 0.8, "reward": 0.1}])[0] == 4


def test_entropy_that_vanishes_or_explodes_stops_the_run():
    assert "entropy fell" in run([{}, {}, {"entropy": 0.0}, {"entropy": 0.0}])[1]
    assert "entropy rose" in run([{}, {}, {"entropy": 2.0}, {"entropy": 2.4}])[1]


def test_episodes_that_no_longer_end_stop_the_run():
    assert "60%, 5% at the start" in run([{}, {}, {"truncated": 0.6}, {"truncated": 0.6}])[1]


def test_one_bad_step_is_no_collapse():
    assert run([{}, {}, {"tool_calls": 0.9}, {}, {}]) == (None, "")


def test_a_weak_start_is_measured_against_itself():
    weak = {"entropy": 1.5, "truncated": 0.6, "tool_calls": 0.5}
    assert run([weak] * 10) == (None, "")
