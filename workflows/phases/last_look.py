"""A last look at open gaps: one call reads what the pages of the run say about them, before a report states them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from temporalio.exceptions import ActivityError

from contracts.addresses import page_place
from contracts.evidence import Finding, Gap, Source
from contracts.gaps import SettledGap
from contracts.notebooks import add_derived_fields
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, AnalyzeInput, AnalyzerResult
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import EngineKind
from workflows.phases.analysis import add_findings, close_answered, merge_sources
from workflows.phases.role_inputs import gaps_to_answer, to_extract
from workflows.phases.writing import write_draft
from workflows.rules import gaps
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun

LAST_LOOK: Final = "last-look"
NAMED_PLACE: Final = re.compile(r"\[([^\s\[\]]+[./][^\s\[\]]+)\]|\(([^\s()]+/[^\s()]+)\)")
"""A document in the words of an agent, which had no room left to open it: `[pg/release.html]`, as lists show it."""
TOKENS_PER_GAP: Final = 2_000
"""Of sections to show for each gap: about three sections of a manual."""


async def look_at_gaps(run: ResearchRun) -> bool:
    """Have the sections that speak most of the open gaps read once, of all pages read; return true if any was closed.

    Each gap is looked at once in a run. Without a model, or where the call does not fit beside what the report needs,
    gaps stay as they are.
    """
    state = run.state
    # Pages that a vetting refused, or that no role has analyzed yet, support nothing.
    readable = [source for source in state.evidence.readable_sources() if source.analyzed]
    not_looked_at = [gap for gap in state.evidence.gaps if gap.id not in state.work.gaps_looked_at]
    due = gaps_to_answer([gap for gap in not_looked_at if _may_be_answered(state, gap, readable)])
    if run.resolved.engine is not EngineKind.MODEL or not due or not readable:
        return False
    unread = {gap.id: gap.unread for gap in state.evidence.gaps}
    request = AnalyzeInput(
        sub_query=PlanNode(id=LAST_LOOK, text=run.resolved.query),
        sources=[to_extract(source, to_search=False) for source in readable],
        gaps=[gap.with_fields(unread=unread[gap.id]) for gap in due],
        source_count=len(readable),
        high_quality_sources=len(state.evidence.high_quality_sources()),
        most_tokens=TOKENS_PER_GAP * len(due),
        for_gaps=True,
    )
    with suppress(Interrupted, ActivityError):  # an interruption stays in the inbox, where the next step finds it
        answer = add_derived_fields(await run.ask(ANALYZER, LAST_LOOK, request), [])
        if answer.account.engine is not EngineKind.MODEL:
            return False  # rules take every passage for an answer
        state.work.gaps_looked_at += [gap.id for gap in due]
        return _merge(run, due, answer)
    return False


def _may_be_answered(state: ResearchState, gap: Gap, pages: Sequence[Source]) -> bool:
    """Return false for a gap that no page read can answer.

    It names the places of documents of which none was read, or says that nothing answers a sub-query on which each
    page, read whole, says nothing.
    """
    named = {place for match in NAMED_PLACE.finditer(gap.description) for place in match.groups() if place}
    if named and named.isdisjoint(page_place(page.url) for page in pages):
        return False
    return not gaps.is_fruitless(state, gap.id, pages)


async def write_last_draft(run: ResearchRun) -> None:
    """Write a report after which nothing is searched, with what a last look at its gaps has found.

    Raises `Interrupted`.
    """
    await look_at_gaps(run)
    await write_draft(run)


def _merge(run: ResearchRun, due: list[Gap], answer: AnalyzerResult) -> bool:
    """Add the findings of the look, and close the gaps that they answer; a finding that the run has closes them itself.

    A finding belongs to the part of the plan that stated its gap, and counts for all parts whose gaps it answers.
    """
    state = run.state
    merge_sources(run, answer.with_fields(analyzed_source_ids=[]))  # a few sections of each were read
    known = {frozenset(finding.evidence_ids): finding.id for finding in state.evidence.findings}
    same = {
        finding.id: known[passages]
        for finding in answer.findings
        if (passages := frozenset(finding.evidence_ids)) in known
    }
    for finding in answer.findings:
        if finding.id not in same:
            add_findings(run, _owner(state, finding, answer.settled_gaps), [finding])
    settled = [
        one.with_fields(answered_by=list(dict.fromkeys(same.get(name, name) for name in one.answered_by)))
        for one in answer.settled_gaps
    ]
    for node_id, names in _answers_by_node(state, settled).items():
        node = next(one for one in state.work.plan.nodes if one.id == node_id)
        own = {finding.id for finding in state.evidence.findings if finding.sub_query_id == node_id}
        count = max(node.finding_count, len(own | names))
        state.work.plan = state.work.plan.with_nodes(node.with_fields(finding_count=count))
    before = len(state.evidence.unaddressed_gaps())
    close_answered(run, settled)
    closed = before - len(state.evidence.unaddressed_gaps())
    text = f"{plural(len(due), 'open gap')} looked at in the pages read: {closed} answered"
    run.note("status", text, level="info", gaps=len(due), answered=closed)
    return bool(closed)


def _answers_by_node(state: ResearchState, settled: Sequence[SettledGap]) -> dict[str, set[str]]:
    """Return the findings that answer gaps, by the part of the plan that stated them."""
    known = {node.id for node in state.work.plan.nodes}
    origins = {gap.id: gap.origin.removeprefix("sub_query:") for gap in state.evidence.gaps}
    answers = dict[str, set[str]]()
    for one in settled:
        if (node := origins.get(one.gap_id, "")) in known:
            answers.setdefault(node, set()).update(one.answered_by)
    return {node: names for node, names in answers.items() if names}


def _owner(state: ResearchState, finding: Finding, settled: list[SettledGap]) -> PlanNode:
    """Return the part of the plan that stated the first gap that a finding answers, else the first sub-query."""
    nodes = {node.id: node for node in state.work.plan.nodes}
    origins = {gap.id: gap.origin.removeprefix("sub_query:") for gap in state.evidence.gaps}
    stated_by = [origins.get(one.gap_id, "") for one in settled if finding.id in one.answered_by]
    others = [node.id for node in state.work.plan.sub_queries] or list(nodes)
    return next((nodes[name] for name in [*stated_by, *others] if name in nodes), PlanNode(id=LAST_LOOK, text=""))
