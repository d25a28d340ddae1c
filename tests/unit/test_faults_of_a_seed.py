"""The benchmark of faults: what a seed draws, and when it calls an answer paid twice."""

from benchmarks.chaos import EVERYWHERE, OF_STORE, STRATEGIES, Kill, draw_faults, paid_again


def test_a_seed_draws_every_kind_and_strategy_and_the_same_again() -> None:
    """Each kind strikes before one strikes again; another seed has another order."""
    faults = draw_faults(36, len(EVERYWHERE) + 2, "redis", can_mount=False)
    assert {fault.kind for fault in faults} == {*EVERYWHERE, *OF_STORE["redis"]}
    assert {fault.strategy for fault in faults} == set(STRATEGIES)
    assert faults == draw_faults(36, len(faults), "redis", can_mount=False)
    assert faults != draw_faults(37, len(faults), "redis", can_mount=False)
    assert "disk" not in {fault.kind for fault in draw_faults(36, 20, "file", can_mount=False)}


def test_no_answer_is_paid_twice_unless_a_kill_lost_it() -> None:
    """Neither a kill long after the answer excuses a second payment, nor one at which everything was written."""
    unwritten, written = Kill(100.0, 1, [], 100.0), Kill(100.0, 0, [], 100.0)
    assert paid_again([[99.5, 120.0], [50.0]], [unwritten]) == (0, 1)
    assert paid_again([[99.5, 120.0], [99.6, 121.0]], [unwritten]) == (1, 1)
    assert paid_again([[99.5, 120.0]], [written]) == (1, 0)
    assert paid_again([[50.0, 120.0]], [unwritten]) == (1, 0)
    assert paid_again([[50.0, 120.0]], []) == (1, 0)
