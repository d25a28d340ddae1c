"""From proposals to sub-queries: nothing is asked twice, and what failed may be asked again."""

from contracts.roles import FollowUpQuery, GapAssessment, SubQuery
from contracts.vocabulary import NodeStatus, Severity
from tests.fakes import states
from workflows.rules.query_matching import record_of
from workflows.rules.sub_queries import follow, follow_ups, plan_sub_queries


def test_near_repetitions_are_planned_once() -> None:
    """Spelling, articles and order in a comparison are no difference; a number is (S0-043)."""
    texts = ["PostgreSQL vs MySQL in 2023", "mysql vs. postgresql in 2023?", "PostgreSQL vs MySQL in 2024"]
    queries = plan_sub_queries([SubQuery(query=text) for text in texts], 1, 5)
    assert [query.text for query in queries] == [texts[0], texts[2]]


def test_what_the_ledger_has_an_answer_to_is_not_asked_again() -> None:
    """Whichever sub-query asked it; a search that failed is no answer (C0-1)."""
    hole = states.gap("How do locks behave?")
    answered, failed = states.sub_query("how do locks behave under load"), states.sub_query("who holds a lock longest")
    failed = failed.model_copy(update={"status": NodeStatus.FAILED})
    state = states.state(plan=states.plan(failed), gaps=[hole])
    state.query_ledger = [record_of(answered, "one", found=3), record_of(failed, "one", found=None)]
    drafts = [FollowUpQuery(query=answered.text.upper()), FollowUpQuery(query=failed.text)]
    asked = GapAssessment(gap_id=hole.id, severity=Severity.CRITICAL, addressable=True, follow_up_queries=drafts)
    assert [query.text for query in follow_ups(state, [asked], [], 5)] == [failed.text]


def test_a_failed_sub_query_takes_its_old_place() -> None:
    """It is pending and to be analyzed again; there are no two of one id."""
    failed = states.sub_query("who holds a lock longest", status=NodeStatus.FAILED)
    other = states.sub_query("how do locks behave")
    state = states.state(plan=states.plan(failed, other), analyzed_sub_queries=[failed.id, other.id])
    again = failed.model_copy(update={"status": NodeStatus.PENDING, "iteration": 2})
    follow(state, [again])
    assert [(query.id, query.status) for query in state.plan.sub_queries] == [
        (failed.id, NodeStatus.PENDING), (other.id, NodeStatus.COMPLETED)
    ]  # fmt: skip
    assert state.analyzed_sub_queries == [other.id]
