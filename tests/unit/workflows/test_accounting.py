"""What is written down of each paid answer."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.outcome import Usage
from contracts.roles import PlanInput
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Phase
from tests.fakes import states
from workflows.run.budget import account, account_failure

PAID = Usage(model_calls=1, input_tokens=300, output_tokens=40, cost_usd=0.0003)
USES = st.lists(
    st.tuples(
        st.sampled_from(["planner", "analyzer", "gatherer"]),
        st.none() | st.sampled_from(list(Phase)),
        st.builds(
            Usage,
            model_calls=st.integers(0, 1),
            input_tokens=st.integers(0, 9_999),
            cached_tokens=st.integers(0, 9_999),
            searches=st.integers(0, 3),
            cost_usd=st.none() | st.integers(0, 10**6).map(lambda parts: parts / 1e7),
        ),
    ),
    max_size=12,
)


def added(parts: dict[str, Usage]) -> Usage:
    together = Usage()
    for item in parts.values():
        together = together.plus(item)
    return together


@given(USES)
def test_roles_and_phases_each_sum_up_to_the_total(uses) -> None:
    """Whatever was used by whom and when: both tables hold all of it, to the last digit."""
    state = states.state()
    for role, phase, usage in uses:
        state.phase = phase
        account(state, role, usage)
    assert added(state.usage_by_role) == added(state.usage_by_phase) == state.usage


def request(**changes: object) -> PlanInput:
    given_fields = {"research_id": "r-1", "operation": "plan/1", "engine": EngineKind.MODEL, "date": "2026-11-22"}
    return PlanInput(**given_fields | {"query": "what is it?"} | changes)


def test_an_unusable_answer_that_is_told_again_is_paid_once() -> None:
    """After cancel and resume the call store tells it again; also when the session was stored in between (S0-131)."""
    state = states.state(phase=Phase.PLANNING)
    account_failure(state, "planner", request(), PAID)
    again = ResearchState.unpack(state.pack())
    account_failure(again, "planner", request(time_limit_seconds=7.0), PAID)
    assert again.usage == PAID
    assert again.usage_by_phase == {"planning": PAID}
