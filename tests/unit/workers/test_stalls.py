"""When an event loop counts as stalled."""

import pytest

from workers.stalls import has_stalled


@pytest.mark.parametrize(
    ("used", "waited", "stalled"),
    [(30.1, 30.1, True), (29.9, 119.0, False), (0.0, 30.1, False), (0.0, 120.1, True), (30.1, 0.0, True)],
)
def test_a_stall_is_processor_time_or_four_times_as_many_looks(used: float, waited: float, stalled: bool) -> None:
    """A loop that computes has the limit itself; one that gets no time, or waits for a file, four times as long."""
    assert has_stalled(used, waited, 30.0) is stalled
