"""The rules of the strategy `orchestrator`: cycles, tasks, reports, numbers, judgements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.agents import AgentRecord, AgentTask
from contracts.evidence import Finding
from contracts.orchestrator_roles import OutlinedStep
from contracts.plan import Plan
from contracts.presets import preset
from contracts.request import Depth
from contracts.vocabulary import AgentStatus, Confidence, NodeStatus
from tests.fakes import states
from workflows.strategies.orchestrator.agent_reports import (
    IntermediateReport,
    Line,
    collapse,
    remarks_on,
    report_of,
    tokens_of,
)
from workflows.strategies.orchestrator.plan import (
    deciding_cycles,
    problem_of,
    resumed_plan,
    step_node,
    task_node,
    unserved,
    with_steps_updated,
)


def finding(statement: str, *sources: str, **changes: object) -> Finding:
    """A finding with one passage."""
    return states.finding(statement, id=f"f-{statement}", source_ids=list(sources), evidence_ids=["ev-1"], **changes)


def steps(*texts: str) -> list[OutlinedStep]:
    return [OutlinedStep(step=text) for text in texts]


# --- cycles ----------------------------------------------------------------------------------------------------------
def test_the_presets_keep_the_numbers_of_the_document() -> None:
    """Eight cycles, six steps, 12 and 30 minutes for an agent, one deadline of 30 minutes, 5 of them for the report
    (S3-005, S3-017, S3-029 to S3-032, C3-1).
    """
    for depth in (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED):
        limits = preset("orchestrator", depth)
        assert limits.max_iterations == 8
        assert limits.max_steps <= 6
        assert (limits.agent_seconds, limits.agent_wait_seconds) == (720, 1_800)
        assert (limits.deadline_seconds, limits.reserve_seconds) == (1_800, 300)
    assert preset("orchestrator", Depth.MEDIUM).max_steps == 6


def test_the_last_cycle_decides_nothing() -> None:
    """Of eight cycles seven decide, of four three; one cycle is there in any case (C3-4)."""
    limits = preset("orchestrator", Depth.MEDIUM)
    assert deciding_cycles(limits) == 7
    assert deciding_cycles(limits.model_copy(update={"max_iterations": 4})) == 3
    assert deciding_cycles(limits.model_copy(update={"max_iterations": 1})) == 1


# --- tasks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "task",
    [
        "How does PostgreSQL prevent transaction ID wraparound?",
        "Compare the battery life of the Pixel 9 and the iPhone 16, with figures and their sources.",
        "What is the plan of the European Union for hydrogen until 2030?",
        "Which questions did the 2021 census of England ask for the first time?",
        "日本の2024年の出生率はいくつですか",
        "Wie antwortet die Regierung auf die Frage nach dem Ausbau der Nutzerrechte im Netz?",
        "Quelle est la question centrale du débat sur les retraites en France ?",
    ],
)
def test_a_task_that_names_its_subject_stands_by_itself(task: str) -> None:
    """It is given to an agent as it is (S3-037)."""
    assert problem_of(task) == ""


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("Find out what the user wants to know about batteries", "the user"),
        ("Research step 3 of the plan in detail", "step 3"),
        ("Verify the findings of agent-2 about batteries", "agent-2"),
        ("Answer the original question with more figures", "the original question"),
        ("Compare the previous report with newer sources", "previous report"),
        ("vacuum", "too short"),
        ("", "too short"),
        ("word " * 2_000, "longer than"),
    ],
)
def test_a_task_that_points_elsewhere_is_refused(task: str, named: str) -> None:
    """The answer quotes what points to nothing (S3-037)."""
    assert named in problem_of(task)


# --- reports ---------------------------------------------------------------------------------------------------------
def test_a_report_is_statements_with_numbers_of_its_own() -> None:
    """No title, no section, no conclusion; documents are numbered from 1 (S3-006, S3-023, S3-039)."""
    report = report_of([finding("A is so.", "src-a"), finding("B too.", "src-b", "src-a")])
    assert report.text() == "A is so. [1]\nB too. [2][1]"
    assert report.documents == {1: "src-a", 2: "src-b"}
    assert report.omitted == 0


def test_what_has_no_room_in_a_report_is_counted() -> None:
    """At most 10,000 tokens; the surest findings stay, in their order, and every loss is known (S3-051)."""
    long = [finding(f"{number} " + "word " * 100, f"src-{number}") for number in range(100)]
    unsure = finding("0 unsure " + "word " * 100, "src-u", confidence=Confidence.SPECULATION)
    report = report_of([unsure, *long])
    assert tokens_of(report.text()) <= 10_000
    assert 0 < report.omitted == 101 - len(report.lines)
    assert "unsure" not in report.text()
    assert [line.statement for line in report.lines] == [one.statement for one in long[: len(report.lines)]]
    assert set(report.documents.values()) == {f"src-{number}" for number in range(len(report.lines))}


def test_the_documents_example_of_collapsing_holds() -> None:
    """{1:A, 2:B} and {1:C, 2:D} become {1:A, 2:B, 3:C, 4:D}, and the second report's [1] becomes [3] (S3-024, S3-028)."""
    first = IntermediateReport([Line("X", (1,)), Line("Z", (2,))], {1: "A", 2: "B"})
    second = IntermediateReport([Line("Y", (1,)), Line("W", (2, 1))], {1: "C", 2: "D"})
    (kept, shifted), documents = collapse([first, second])
    assert documents == {1: "A", 2: "B", 3: "C", 4: "D"}
    assert kept.text() == first.text()
    assert shifted.text() == "Y [3]\nW [4][3]"


@given(
    st.lists(st.lists(st.lists(st.sampled_from("ABCDEFG"), min_size=1, max_size=3), max_size=4), min_size=1, max_size=4)
)
def test_numbers_stand_for_the_same_documents_as_before(given_sources: list[list[list[str]]]) -> None:
    """What was told keeps its number, and no document has two (S3-024 to S3-026)."""
    reports = [
        report_of([finding(f"S{place}.", *sources) for place, sources in enumerate(of_agent)])
        for of_agent in given_sources
    ]
    collapsed, documents = collapse(reports)
    for before, after in zip(reports, collapsed, strict=True):
        told = [[before.documents[number] for number in line.numbers] for line in before.lines]
        assert [[documents[number] for number in line.numbers] for line in after.lines] == told
        assert [line.statement for line in after.lines] == [line.statement for line in before.lines]
    assert len(set(documents.values())) == len(documents)
    later, more = collapse(reports[:1], documents)
    assert more == documents
    assert later[0].text() == collapsed[0].text()


# --- judgements ------------------------------------------------------------------------------------------------------
def test_weaknesses_of_a_report_are_named() -> None:
    """Shallow, of one source, uncited, weak, cut for length; a thorough report gets no remark (S3-053)."""
    weak = states.finding("Tables are vacuumed.", id="f-1", source_ids=["src-a"], confidence=Confidence.LOW)
    assert remarks_on([weak], omitted=2) == [
        "shallow: 1 finding",
        "one source alone says all of it",
        "uncited: 1 statement",
        "weakly supported: 1 of 1 findings",
        "2 findings had no room in this report; the final report has them",
    ]
    assert remarks_on([]) == ["nothing was found"]
    thorough = [finding(f"Postgres tables are vacuumed {how}.", f"src-{how}") for how in ("daily", "weekly", "rarely")]
    assert remarks_on(thorough) == []


# --- steps and tasks -------------------------------------------------------------------------------------------------
def planned(*texts: str) -> Plan:
    return Plan(version=1, nodes=[step_node(step) for step in steps(*texts)])


def with_tasks(plan: Plan, *statuses: NodeStatus) -> Plan:
    """The plan with agents for its first step."""
    tasks = [
        task_node(f"agent-{number}", f"task {number}", plan.steps[:1], 1).model_copy(update={"status": status})
        for number, status in enumerate(statuses, start=1)
    ]
    return plan.with_nodes(*tasks)


def test_a_step_is_done_when_one_of_its_agents_is() -> None:
    """Where all of them failed it waits for another one (S3-022, S3-045)."""
    plan = planned("one", "two")
    assert [node.text for node in unserved(plan)] == ["one", "two"]
    done = with_steps_updated(with_tasks(plan, NodeStatus.FAILED, NodeStatus.COMPLETED), {})
    assert [node.text for node in unserved(done)] == ["two"]
    failed = with_steps_updated(with_tasks(plan, NodeStatus.FAILED), {})
    assert [node.text for node in unserved(failed)] == ["one", "two"]
    both = with_steps_updated(with_tasks(plan, NodeStatus.COMPLETED), {"agent-1": [plan.steps[1].id]})
    assert unserved(both) == []


def test_a_resumed_plan_gives_cut_off_tasks_again_and_keeps_what_was_omitted() -> None:
    """Agents that ended stay ended; a step that was judged not to be needed stays out."""
    plan = with_tasks(planned("one", "two"), NodeStatus.PENDING, NodeStatus.PENDING)
    state = states.state(plan=plan)
    state.agents = [
        AgentRecord(task=AgentTask(id="agent-1", text="task 1", strategy="agent"), status=AgentStatus.DONE),
        AgentRecord(task=AgentTask(id="agent-2", text="task 2", strategy="agent"), status=AgentStatus.CUT_OFF),
    ]
    again = resumed_plan(state, [plan.steps[1].id])
    by_id = {node.id: node.status for node in again.nodes}
    assert (by_id["agent-1"], by_id["agent-2"]) == (NodeStatus.COMPLETED, NodeStatus.EXECUTING)
    assert [step.status for step in again.steps] == [NodeStatus.COMPLETED, NodeStatus.SKIPPED]
