"""Rules of the orchestrator: tasks that stand alone, reports with one numbering, and steps that tasks serve."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.call_sizes import BYTES_PER_TOKEN
from contracts.evidence import Finding
from contracts.plan import Plan, PlanNode
from contracts.vocabulary import Confidence, NodeKind, NodeStatus
from tests.fakes import states
from workflows.strategies.orchestrator.agent_tasks import build_report, task_problem, unserved_steps, with_step_statuses
from workflows.strategies.units import step_node


def finding(statement: str, *sources: str, **changes: object) -> Finding:
    return states.finding(statement, id=f"f-{statement}", source_ids=list(sources), evidence_ids=["ev-1"], **changes)


# --- tasks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("Compare the battery life of the Pixel 9 and the iPhone 16, with figures and their sources.", ""),
        ("Which questions did the 2021 census of England ask for the first time?", ""),
        ("What happens in step 2 of the Calvin cycle, and which enzymes take part?", ""),
        ("日本の2024年の出生率はいくつですか", ""),
        ("Wie antwortet die Regierung auf die Frage nach dem Ausbau der Nutzerrechte im Netz?", ""),
        ("Find out what the user wants to know about batteries", "the user"),
        ("Research step 3 of the plan in detail", "step 3"),
        ("Verify the findings of agent-2 about batteries", "agent-2"),
        ("Answer the original question with more figures", "the original question"),
        ("Compare the previous report with newer sources", "previous report"),
        ("vacuum", "too short"),
        ("", "too short"),
    ],
)
def test_a_task_that_points_elsewhere_is_refused(task: str, named: str) -> None:
    """The answer quotes what points to nothing; a task that names its subject is given as it is (S3-037)."""
    assert named in task_problem(task)
    assert bool(task_problem(task)) is bool(named)


# --- reports ---------------------------------------------------------------------------------------------------------
def test_what_has_no_room_in_a_report_is_counted() -> None:
    """At most 10,000 tokens; the surest findings stay, in their order, and every loss is known (S3-051)."""
    long = [finding(f"{number} " + "word " * 100, f"src-{number}") for number in range(100)]
    unsure = finding("0 unsure " + "word " * 100, "src-u", confidence=Confidence.SPECULATION)
    report = build_report([unsure, *long])
    lines = report.text.splitlines()
    assert len(report.text.encode()) <= 10_000 * BYTES_PER_TOKEN
    assert 0 < report.omitted == 101 - len(lines)
    assert "unsure" not in report.text
    assert [line.partition(" word")[0] for line in lines] == [str(number) for number in range(len(lines))]
    assert [report.documents[number - 1] for number in report.numbers] == [
        f"src-{place}" for place in range(len(lines))
    ]


def test_the_documents_example_of_one_numbering_holds() -> None:
    """Documents A and B, then C and D become 1 to 4, and C is [3] in the second report (S3-006, S3-023, S3-028, S3-039)."""
    first = build_report([finding("X is so.", "A"), finding("Z too.", "B", "A")])
    second = build_report([finding("Y", "C"), finding("W", "D", "C")], first.documents)
    assert first.text == "X is so. [1]\nZ too. [2][1]"
    assert second.documents == ["A", "B", "C", "D"]
    assert second.text == "Y [3]\nW [4][3]"
    assert second.numbers == [3, 4]


@given(
    st.lists(st.lists(st.lists(st.sampled_from("ABCDEFG"), min_size=1, max_size=3), max_size=4), min_size=1, max_size=4)
)
def test_numbers_stand_for_the_same_documents_as_before(given_sources: list[list[list[str]]]) -> None:
    """A number never changes, and no document has two (S3-024 to S3-026)."""
    known: list[str] = []
    for of_agent in given_sources:
        report = build_report([finding(f"S{place}.", *sources) for place, sources in enumerate(of_agent)], known)
        assert report.documents[: len(known)] == known
        assert len(set(report.documents)) == len(report.documents)
        assert {report.documents[number - 1] for number in report.numbers} == {
            source for sources in of_agent for source in sources
        }
        known = report.documents


# --- steps and tasks -------------------------------------------------------------------------------------------------
def planned(*texts: str, tasks: Sequence[NodeStatus] = ()) -> Plan:
    plan = Plan(version=1, nodes=[step_node(text) for text in texts])
    nodes = [
        PlanNode(id=f"agent-{number}", text="a task", kind=NodeKind.TASK, status=status, parent=plan.steps[0].id)
        for number, status in enumerate(tasks, start=1)
    ]
    return plan.with_nodes(*nodes)


def test_a_step_is_done_when_one_of_its_agents_is() -> None:
    """Where all of them failed it waits for another one (S3-022, S3-045)."""
    first, second = planned("one", "two").steps
    served = {"agent-1": [first.id], "agent-2": [first.id]}
    done = planned("one", "two", tasks=[NodeStatus.FAILED, NodeStatus.COMPLETED])
    assert unserved_steps(with_step_statuses(done, served)) == [second]
    failed = planned("one", "two", tasks=[NodeStatus.FAILED])
    assert unserved_steps(with_step_statuses(failed, served)) == [first, second]
    both = planned("one", "two", tasks=[NodeStatus.COMPLETED])
    assert unserved_steps(with_step_statuses(both, {"agent-1": [first.id, second.id]})) == []
