"""When somebody who did not answer is asked again."""

from providers.shared.stores.fallback_store import STEADY_SECONDS, ReconnectBackoff


class Clock:
    """Time that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def waited(circuit: ReconnectBackoff, clock: Clock) -> float:
    """Seconds until an attempt is due, in steps of an eighth; the attempt fails."""
    begun = clock.now
    while not circuit.attempt_is_due():
        clock.now += 0.125
    circuit.failed()
    return clock.now - begun


def test_the_first_attempts_come_soon_and_later_ones_more_seldom() -> None:
    """A server that is back within a second is noticed within one; one that stays away costs an attempt every 5 s."""
    clock = Clock()
    circuit = ReconnectBackoff(clock=clock)
    assert not circuit.attempt_is_due()
    assert circuit.failed()
    assert [waited(circuit, clock) for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert circuit.succeeded()
    clock.now += STEADY_SECONDS
    circuit.failed()
    assert waited(circuit, clock) == 0.5


def test_a_store_that_comes_and_goes_is_asked_more_and_more_seldom() -> None:
    """Each change of sides costs runs time: one that keeps failing soon after it was back changes them once a minute."""
    clock = Clock()
    circuit = ReconnectBackoff(clock=clock)
    changes, begun = 0, clock.now
    while clock.now - begun < 600:
        circuit.failed()
        while not circuit.attempt_is_due():
            clock.now += 0.125
        assert circuit.succeeded()
        changes += 1
        clock.now += 1
    assert changes < 25


def test_of_many_who_ask_one_tries() -> None:
    """An attempt is due for one caller; failures of calls that were under way already postpone it, no more."""
    clock = Clock()
    circuit = ReconnectBackoff(clock=clock)
    for _ in range(50):
        circuit.failed()
    clock.now += 0.6
    assert [circuit.attempt_is_due() for _ in range(5)] == [True, False, False, False, False]
