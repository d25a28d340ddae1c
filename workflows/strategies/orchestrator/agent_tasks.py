"""The tasks of agents: the steps of the plan that they serve, and the reports on them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.agents import TaskResult
from contracts.call_sizes import BYTES_PER_TOKEN
from contracts.evidence import Finding
from contracts.plan import Plan, PlanNode
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import Confidence, NodeKind, NodeStatus
from workflows.rules.sub_queries import normalized_query

MIN_TASK_CHARACTERS: Final = 12
MIN_TASK_WORDS: Final = 3
OUTSIDE_REFERENCES: Final = re.compile(
    r"\bthe (?:user|asker)\b|\b(?:the|this|our) (?:original|overall|main|research) (?:question|query|plan|request)\b"
    r"|\b(?:step|part|item|point) \d+\b(?! of (?!(?:the|this|our) (?:plan|research|question)\b))"
    r"|\b(?:previous|earlier|other|last|first) (?:agent|task|report|finding)s?\b(?! (?:about|by|for|from|in|of|on)\b)"
    r"|\bagent-\d+|\b(?:mentioned|listed|described|discussed) above|\bthe above\b",
    re.IGNORECASE,
)
"""Phrases that refer to something outside the task."""
MAX_REPORT_TOKENS: Final = 10_000
"""Limit of one agent's report."""
LOW_CONFIDENCE: Final = (Confidence.LOW, Confidence.SPECULATION)
MIN_FINDINGS: Final = 3
MIN_SOURCES: Final = 2


# --- tasks and steps of the plan ------------------------------------------------------------------------------------
def task_problem(task: str) -> str:
    """Return why the task is not self-contained, and the remedy; empty if there is no problem."""
    words = normalized_query(task).split()
    # Scripts without spaces say much in few characters.
    if not words or (task.isascii() and (len(task) < MIN_TASK_CHARACTERS or len(words) < MIN_TASK_WORDS)):
        return "task: too short to be understood; name the subject and what is to be found out about it"
    if reference := OUTSIDE_REFERENCES.search(task):
        return (
            f"task: “{reference[0]}” means nothing to an agent, which knows only its task; "
            "write what it stands for in its place"
        )
    return ""


def agent_tasks(plan: Plan) -> list[PlanNode]:
    """Return the agents' tasks, in order."""
    return [node for node in plan.nodes if node.kind is NodeKind.TASK]


def unserved_steps(plan: Plan) -> list[PlanNode]:
    """Return the steps that have no agent, or whose agents all failed."""
    return [step for step in plan.steps if step.status is NodeStatus.PENDING]


def served_steps(plan: Plan, numbers: Sequence[int], task: str) -> list[PlanNode]:
    """Return the steps that a task serves: those with these numbers (from 1), else the one sharing most words."""
    named = [plan.steps[number - 1] for number in dict.fromkeys(numbers) if 0 < number <= len(plan.steps)]
    if named:
        return named
    words = set(normalized_query(task).split())
    shared = [(len(words & set(normalized_query(step.text).split())), -index) for index, step in enumerate(plan.steps)]
    shared_count, index = max(shared, default=(0, 0))
    if shared_count > 1:
        return [plan.steps[-index]]
    return []


def with_step_statuses(plan: Plan, served: Mapping[str, Sequence[str]]) -> Plan:
    """Return the plan with step statuses derived from their agents; `served` maps agents to steps.

    A step is completed if one of its agents is, and pending again if all of them failed.
    """
    updated = []
    for step in plan.steps:
        tasks = [task for task in agent_tasks(plan) if step.id in served.get(task.id, ())]
        statuses = {task.status for task in tasks}
        if not tasks or step.status is NodeStatus.SKIPPED:
            continue
        if NodeStatus.COMPLETED in statuses:
            status = NodeStatus.COMPLETED
        elif statuses == {NodeStatus.FAILED}:
            status = NodeStatus.PENDING
        else:
            status = NodeStatus.EXECUTING
        finding_count = max(task.finding_count for task in tasks)
        updated.append(step.with_fields(status=status, finding_count=finding_count, status_reason=""))
    return plan.with_nodes(*updated)


def list_steps(plan: Plan, steps: Sequence[PlanNode]) -> str:
    """List steps with their numbers in the plan, from 1."""
    lines = []
    for step in steps:
        line = f"{plan.steps.index(step) + 1}. {step.text}"
        if step.gap_id:
            line += " (the person who asked wants this)"
        lines.append(line)
    return "; ".join(lines)


# --- the report of one agent: statements with document numbers, which are stable across all agents of a run ----------
@dataclass(frozen=True)
class IntermediateReport:
    """The report of one agent."""

    text: str
    """One statement per line."""
    documents: list[str]
    """Ids of the sources of all reports so far; the number of a document is its position, from 1."""
    numbers: list[int]
    """Numbers of the documents in this report."""
    omitted: int
    """Number of findings omitted for lack of room."""


def build_report(findings: Sequence[Finding], known: Sequence[str] = ()) -> IntermediateReport:
    """Return the report of one agent; `known` are the documents of earlier reports, whose numbers never change.

    If room is short, the best-supported findings remain, in order; the others are counted.
    """
    documents = list(dict.fromkeys([*known, *(source for finding in findings for source in finding.source_ids)]))
    numbers = {source: number for number, source in enumerate(documents, start=1)}
    lines = []
    for finding in findings:
        marks = "".join(f"[{numbers[source]}]" for source in dict.fromkeys(finding.source_ids))
        doubt = " (weakly supported)" if finding.confidence in LOW_CONFIDENCE else ""
        lines.append(f"{finding.statement.rstrip()}{doubt} {marks}".rstrip())
    room = MAX_REPORT_TOKENS
    chosen: list[int] = []
    for index in sorted(range(len(lines)), key=lambda index: (findings[index].confidence in LOW_CONFIDENCE, index)):
        size = math.ceil(len(f"{lines[index]}\n".encode()) / BYTES_PER_TOKEN)
        if size <= room:
            chosen.append(index)
            room -= size
    chosen.sort()
    return IntermediateReport(
        text="\n".join(lines[index] for index in chosen),
        documents=documents,
        numbers=sorted({numbers[source] for index in chosen for source in findings[index].source_ids}),
        omitted=len(lines) - len(chosen),
    )


def assess_findings(findings: Sequence[Finding], omitted: int) -> list[str]:
    """Return the weaknesses of a report, for the orchestrator; empty for a thorough one."""
    if not findings:
        return ["nothing was found"]
    sources = {source for finding in findings for source in finding.source_ids}
    uncited = sum(not finding.evidence_ids for finding in findings)
    weak = sum(finding.confidence in LOW_CONFIDENCE for finding in findings)
    contested = sum(bool(finding.contradicts) for finding in findings)
    remarks = {
        f"shallow: {plural(len(findings), 'finding')}": len(findings) < MIN_FINDINGS,
        "one source alone says all of it": len(sources) < MIN_SOURCES,
        f"uncited: {plural(uncited, 'statement')}": uncited,
        f"weakly supported: {weak} of {len(findings)} findings": 2 * weak > len(findings),
        f"sources disagree about {plural(contested, 'finding')}": contested,
        f"{plural(omitted, 'finding')} had no room in this report; the final report has them": omitted,
    }
    return [remark for remark, applies in remarks.items() if applies]


def pages_read_whole(state: ResearchState) -> set[str]:
    """Return the ids of the sources of which an agent was shown all."""
    results = [record.result for record in state.work.agents if record.result]
    return {name for result in results for name, page in result.pages_read.items() if not page.hidden}


def report_text(
    state: ResearchState,
    agent: str,
    result: TaskResult,
    report: IntermediateReport,
    remarks: Sequence[str],
    left_open: Mapping[int, str],
    known: int = 0,
    more_open: int = 0,
    fruitless: Sequence[str] = (),
) -> str:
    """Return what the orchestrator is shown of an agent; `left_open` are its open points by number.

    `known` is the number of statements of its earlier start, which it was shown then, `more_open` that of open points
    without room, `fruitless` what its pages say nothing on.
    """
    if result.is_stub:
        return f"{agent} brought nothing: {result.problem or result.stop_reason.value}."
    lines = [f"{agent} reports:", report.text or "(no statement)"]
    if known:
        lines = [f"{agent} reports, beyond its {plural(known, 'statement')} above:", report.text or "(nothing new)"]
    sources = {number: state.evidence.sources[report.documents[number - 1]] for number in report.numbers}
    whole = pages_read_whole(state)
    titles = [
        f"[{number}] {source.title[:150] or 'without a title'}{' (read whole)' if source.id in whole else ''}"
        for number, source in sources.items()
    ]
    if titles:
        lines += ["Documents:", *titles]
    lines += [f"Open point {number}: {description}" for number, description in left_open.items()]
    if more_open:
        lines.append(f"and {more_open} more open {'point' if more_open == 1 else 'points'}")
    lines += [f"The pages read for it say nothing on this: {text}" for text in fruitless]
    if result.problem:
        lines.append(f"Cut short: {result.problem}")
    lines += [f"Remark: {remark}" for remark in remarks]
    return "\n".join(lines)
