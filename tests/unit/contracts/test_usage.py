"""Sums of usage."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.outcome import Usage

COSTS = st.none() | st.integers(0, 10**10).map(lambda tenths: tenths / 1e10)
COUNTS = st.integers(0, 10**6)
USAGES = st.builds(
    Usage,
    model_calls=COUNTS,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cached_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    cost_usd=COSTS,
    searches=COUNTS,
    cached_searches=COUNTS,
    reads=COUNTS,
    cached_reads=COUNTS,
)


def added(usages: list[Usage]) -> Usage:
    together = Usage()
    for item in usages:
        together = together.plus(item)
    return together


@given(st.lists(USAGES, max_size=8), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_their_order(usages, random) -> None:
    """Counts, money and what is known of it: the same to the last digit in whatever order they were added."""
    shuffled = list(usages)
    random.shuffle(shuffled)
    assert added(usages) == added(shuffled)


def test_an_unknown_cost_stays_unknown_and_its_known_part_counts() -> None:
    """Null never becomes 0, and a cap can still go by what is known."""
    mixed = added([Usage(cost_usd=0.25), Usage(searches=1, cost_usd=None), Usage(cost_usd=0.5)])
    assert (mixed.cost_usd, mixed.known_cost_usd) == (None, 0.75)
    assert added([Usage(cost_usd=0.25), Usage(cost_usd=0.5)]).known_cost_usd == 0.75
