"""What is spent of a limit of costs: never more, and nearly all of it where a run says that it was reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.caps import RECORDED, spend
from contracts.resolved import ModelPrice
from contracts.vocabulary import Outcome, StopReason, Tier
from tests.drawn import draws
from workflows.run.research_run import DONE_WITHOUT_MODEL

PAGES = 40
ROLES = ("planner", "supervisor", "analyzer", "synthesizer", "refiner", "checker", "agent", "orchestrator", "reviewer")
SIZES = st.fixed_dictionaries(
    {
        role: st.lists(st.tuples(st.integers(200, 20_000), st.integers(20, 5_000)), min_size=1, max_size=4)
        for role in ROLES
    }
)
COSTS = st.builds(ModelPrice, input=st.floats(0.1, 20), output=st.floats(0.1, 80))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("strategy", "cap", "verify"),
    [
        ("supervisor", 0.1, "full"),
        pytest.param("supervisor", 0.3, "light", marks=pytest.mark.soak),
        pytest.param("supervisor", 0.25, "full", marks=pytest.mark.soak),
        pytest.param("orchestrator", 0.15, "full", marks=pytest.mark.soak),
        pytest.param("orchestrator", 0.4, "full", marks=pytest.mark.soak),
        ("reflective", 0.15, "full"),
    ],
)
async def test_a_run_that_says_that_its_limit_was_reached_has_spent_it(strategy: str, cap: float, verify: str) -> None:
    """At least 85 % of it, over the sizes of recorded calls, though each is reserved before it is made."""
    recorded = RECORDED.get(strategy, RECORDED["supervisor"])
    run = await spend(cap, strategy, recorded, pages=PAGES, verify=verify)
    assert run.says_limit
    assert 0.85 <= run.share <= 1


async def test_a_run_that_has_left_much_of_its_limit_says_that_the_rest_was_too_little() -> None:
    """After a first report that costs half a dollar with its analyses, another iteration does not fit."""
    run = await spend(0.5, "supervisor", RECORDED["living"], pages=PAGES, verify="light")
    assert run.share < 0.85
    assert run.reason is StopReason.BUDGET_REST
    assert run.outcome is Outcome.PARTIAL


async def test_a_prompt_that_may_not_fit_is_measured_before_its_call_is_refused() -> None:
    """The first analysis is guessed at many times its size, so a small limit would forbid what it has room for."""
    run = await spend(0.1, "supervisor", RECORDED["supervisor"], pages=PAGES, verify="off")
    assert "analyzer" in run.bill.roles
    assert run.by_model


async def test_a_report_that_no_revision_can_follow_is_not_reviewed() -> None:
    """After a reached limit its claims are checked, and nothing more is paid."""
    run = await spend(0.5, "supervisor", RECORDED["supervisor"], pages=PAGES, verify="full")
    assert run.says_limit
    assert "checker" in run.bill.roles
    assert "reviewer" not in run.bill.roles


@pytest.mark.soak
async def test_the_review_of_an_earlier_report_takes_nothing_from_the_next_one() -> None:
    """What is left after the first report pays for reading and writing; the review beside the reading is left out."""
    run = await spend(0.7, "supervisor", RECORDED["supervisor"], pages=PAGES, verify="full")
    assert run.bill.roles.count("synthesizer") == 2
    last = len(run.bill.roles) - run.bill.roles[::-1].index("synthesizer")
    assert "analyzer" in run.bill.roles[run.bill.roles.index("synthesizer") : last]
    assert "reviewer" not in run.bill.roles[:last]
    assert run.by_model


@pytest.mark.soak
async def test_agents_for_whom_a_budget_is_too_small_together_work_one_after_another() -> None:
    """With a third of it none of them could pay for an analysis."""
    run = await spend(0.2, "orchestrator", RECORDED["orchestrator"], pages=PAGES, verify="full")
    assert "analyzer" in run.bill.roles
    assert run.by_model


@draws(1)
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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("strategy", ["supervisor", pytest.param("living", marks=pytest.mark.soak)])
async def test_short_answers_make_no_reservation_smaller_than_what_is_asked_for(strategy: str) -> None:
    """After answers of a few tokens a model still gets room for what its prompt asks for, or is asked for less."""
    sizes = {role: [(tokens, 60) for tokens, _ in calls] for role, calls in RECORDED["living"].items()}
    run = await spend(0.6, strategy, sizes, pages=PAGES, verify="full")
    assert len(run.bill.roles) > 10
    assert run.bill.tight == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("strategy", "cap"),
    [
        ("supervisor", 0.46),
        pytest.param("reflective", 0.4, marks=pytest.mark.soak),
        pytest.param("orchestrator", 1.0, marks=pytest.mark.soak),
        ("living", 0.6),
        pytest.param("recursive", 0.8, marks=pytest.mark.soak),
    ],
)
async def test_each_role_whose_first_answer_is_cut_answers_the_second_time(strategy: str, cap: float) -> None:
    """Where the reservation has cut it and more fits: the second call has more room, and no role is replaced by rules."""
    run = await spend(cap, strategy, {}, pages=PAGES, verify="full", cuts_first=True)
    assert len(set(run.bill.cut)) >= 2
    assert run.bill.again
    assert set(run.bill.again) <= set(run.bill.cut)
    assert not [note for note in run.notes if DONE_WITHOUT_MODEL in note]
