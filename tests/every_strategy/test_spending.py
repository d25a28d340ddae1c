"""What is spent of a limit of costs: never more, and nearly all of it where a run says that it was reached."""

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.caps import RECORDED, spend
from contracts.resolved import ModelPrice
from contracts.vocabulary import Tier

PAGES = 40
ROLES = ("planner", "supervisor", "analyzer", "synthesizer", "refiner", "checker", "agent", "orchestrator", "reviewer")
SIZES = st.fixed_dictionaries(
    {
        role: st.lists(st.tuples(st.integers(200, 20_000), st.integers(20, 5_000)), min_size=1, max_size=4)
        for role in ROLES
    }
)
COSTS = st.builds(ModelPrice, input=st.floats(0.1, 20), output=st.floats(0.1, 80))


async def test_a_run_that_says_that_its_limit_was_reached_has_spent_it() -> None:
    """At least 85 % of it, over the sizes of recorded calls, though each is reserved before it is made."""
    run = await spend(0.3, "supervisor", RECORDED["supervisor"], pages=PAGES, verify="off")
    assert run.says_limit
    assert 0.85 <= run.share <= 1


@settings(max_examples=6)
@given(st.floats(0.02, 0.6), SIZES, COSTS, st.sampled_from(["supervisor", "orchestrator"]))
async def test_no_run_spends_more_than_its_limit(cap, sizes, price, strategy) -> None:
    """Whatever calls cost and however large they turn out: measured prompts and bounded answers keep it, to the cent."""
    run = await spend(cap, strategy, sizes, dict.fromkeys(Tier, price), pages=12)
    assert run.bill.spent <= cap + 1e-9


async def test_an_answer_that_its_reservation_cuts_is_asked_for_once_more() -> None:
    """Analyses longer than those before them are cut, made again with more room, and none is done without the model."""
    sizes = RECORDED["supervisor"] | {"analyzer": [(7_000, 400), (7_000, 1_500), (7_000, 400), (7_000, 2_500)]}
    run = await spend(0.35, "supervisor", sizes, pages=PAGES, verify="off")
    assert run.bill.cut
    assert run.without_model == 0
