"""What is written down of each paid answer."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.outcome import Usage
from contracts.roles import PlanInput
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Phase
from tests.fakes import states
from workflows.run.budget import MOST_PAID_FAILURES, account, account_failure, answer_key, forget_failures

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
    key = answer_key("plan/1", request())
    account_failure(state, "planner", key, PAID)
    again = ResearchState.unpack(state.pack())
    account_failure(again, "planner", answer_key("plan/1", request(time_limit_seconds=7.0)), PAID)
    assert again.usage == PAID
    assert again.usage_by_phase == {"planning": PAID}


def test_another_answer_is_another_payment() -> None:
    """The repair, and the same operation asked with another prompt, are paid for themselves."""
    state = states.state()
    account_failure(state, "planner", answer_key("plan/1", request()), PAID)
    account_failure(state, "planner", answer_key("plan/1/repair", request(repair="no JSON")), PAID)
    account_failure(state, "planner", answer_key("plan/1", request(max_iterations=9)), PAID)
    assert state.usage.model_calls == 3


def test_only_answers_of_unfinished_operations_are_remembered() -> None:
    """A finished operation is never asked again; a failure that cost nothing is not remembered."""
    state = states.state()
    for operation in ("plan/1", "plan/1/repair", "plan/1/again-2"):
        account_failure(state, "planner", answer_key(operation, request()), PAID)
    account_failure(state, "planner", answer_key("plan/3", request()), Usage())
    forget_failures(state, "plan/1")
    assert [item.split(":")[0] for item in state.paid_failures] == ["plan/1/again-2"]


def test_the_memory_stays_small() -> None:
    """A session that is resumed without end does not grow without end."""
    state = states.state()
    for number in range(MOST_PAID_FAILURES + 5):
        account_failure(state, "planner", f"plan/{number}:x", PAID)
    assert len(state.paid_failures) == MOST_PAID_FAILURES
    assert state.paid_failures[-1] == f"plan/{MOST_PAID_FAILURES + 4}:x"
