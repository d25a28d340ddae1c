"""Analysis: the pages of an iteration are read once, for all open sub-queries, and merged in plan order."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from temporalio.exceptions import ActivityError

from contracts.addresses import gap_id
from contracts.evidence import CHOSEN_BY_OPERATOR, Finding, Gap, Source
from contracts.gaps import SettledGap
from contracts.notebooks import add_derived_fields
from contracts.outcome import GateIssue
from contracts.plan import OTHER_FORM, PlanNode
from contracts.roles import ANALYZER, AnalyzeInput, AnalyzerResult, ProposedGap, QualityUpdate, RoleSpec
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.texts import plural, shorten
from contracts.vocabulary import AgentRole, EngineKind, Phase, Quality
from workflows.phases.role_inputs import reading_input, sources_to_analyze
from workflows.rules import gaps
from workflows.rules.duplicates import protected_ids
from workflows.rules.reading import PageToRead, distribute_pages, group_by_size
from workflows.rules.sub_queries import queries_to_analyze, queries_to_repeat
from workflows.run.calls import explain
from workflows.run.host import abandon
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun

I = TypeVar("I", bound=AnalyzeInput)
O = TypeVar("O", bound=AnalyzerResult)

QUALITY_STEPS: Final = (Quality.LOW, Quality.MEDIUM, Quality.HIGH)
QUALITY_LABELS: Final = {
    Quality.HIGH: Message("label_high"),
    Quality.MEDIUM: Message("label_medium"),
    Quality.LOW: Message("label_low"),
    Quality.UNKNOWN: Message("label_unknown"),
}


SECTION_CHARACTERS_PER_TOKEN: Final = 3
"""Of named sections in a call: fewer than a token usually has, so that they fit."""


@dataclass(frozen=True)
class Reading:
    """One analysis to make: some pages for some sub-queries, under a stable name."""

    step: str
    queries: list[PlanNode]
    request: AnalyzeInput


async def analyze(run: ResearchRun, *, again: bool = False, engine: EngineKind | None = None) -> None:
    """Read what was gathered for the sub-queries not analyzed yet, at most `max_parallel` calls at a time.

    A model reads each page once, for all of them; without a model each sub-query is analyzed by itself. `again` reads
    for those of this iteration that failed or found nothing, with the issues of the pause. Finished analyses are
    always merged; `Interrupted` or `asyncio.CancelledError` is raised after the merge.
    """
    state = run.state
    if again:
        queries = queries_to_repeat(state)
    else:
        queries = queries_to_analyze(state)
    issues = run.issues(Phase.ANALYSIS)
    by_model = (engine or run.resolved.engine) is EngineKind.MODEL
    if by_model:
        readings = plan_readings(run, queries, issues)
    else:
        readings = _readings_by_query(run, queries, issues)
    turns = asyncio.Semaphore(run.resolved.limits.max_parallel)

    async def read(reading: Reading) -> AnalyzerResult:
        async with turns:
            return await read_sources(run, ANALYZER, reading.step, reading.request, engine)

    calls = [asyncio.ensure_future(read(reading)) for reading in readings]
    interruption: BaseException | None = None
    try:
        await run.host.settle(list(calls))
    except asyncio.CancelledError as cancelled:
        await abandon(run.host, calls)
        interruption = cancelled
    results = list[tuple[Reading, AnalyzerResult]]()
    unfinished = set[str]()
    for reading, call in zip(readings, calls, strict=True):
        query_ids = {query.id for query in reading.queries}
        error = None if call.cancelled() else call.exception()
        if call.cancelled():
            unfinished |= query_ids
        elif isinstance(error, ActivityError):
            # A failed analysis fails only its branch, not the run.
            subject = shorten(reading.request.subject(), 150)
            run.branch_failed(Message("analysis_failed", query=subject, reason=explain(error)))
            unfinished |= query_ids
        elif error is not None:
            interruption = interruption or error
            unfinished |= query_ids
        else:
            results.append((reading, call.result()))
    finished = {query.id for reading, _ in results for query in reading.queries}
    replaced = {source.id for reading, _ in results for source in reading.request.sources if not source.again}
    with _record_gap_changes(run):
        withdraw(state, [query for query in queries if query.id in finished], replaced)
    merge_readings(run, queries, results, unfinished if interruption is not None else set())
    done = {reading.step for reading, output in results if output.account.engine is run.resolved.engine}
    _note_left(state, queries, [reading for reading in readings if reading.step not in done])
    if interruption is not None:
        raise interruption


def plan_readings(run: ResearchRun, queries: Sequence[PlanNode], issues: list[GateIssue]) -> list[Reading]:
    """Distribute the pages of sub-queries among calls that read each of them once.

    A page that an earlier analysis has read is read again only for sub-queries that came after it. Sub-queries that
    name sections of pages already read are shown these alone.
    """
    state = run.state
    limits = run.resolved.limits
    by_sections = [one for one in queries if one.sections]
    queries = [one for one in queries if not one.sections]
    protected = set(protected_ids(state).values())
    pages = dict[str, PageToRead]()
    for number, query in enumerate(queries):
        for rank, source in enumerate(_sources_left(run, query), start=1):
            if source.id in pages:
                known = pages[source.id]
                pages[source.id] = replace(known, rank=min(known.rank, rank), found_by=known.found_by + 1)
                continue
            pages[source.id] = PageToRead(
                id=source.id,
                characters=source.text.size if source.text else 0,
                query=number,
                rank=rank,
                again=_is_known(state, source, query),
                protected=source.id in protected,
            )
    readings = []
    for batch in distribute_pages(list(pages.values()), limits.analysis_tokens, limits.reading_tokens):
        read_before = {name for name in batch.ids if pages[name].again}
        request = reading_input(run, queries, [state.evidence.sources[name] for name in batch.ids], issues, read_before)
        request = request.with_fields(most_tokens=batch.tokens)
        readings.append(Reading(f"analyze/{batch.ids[0]}", list(queries), request))
    return [*readings, *_section_readings(run, by_sections, issues)]


def _section_readings(run: ResearchRun, queries: Sequence[PlanNode], issues: list[GateIssue]) -> list[Reading]:
    """Return analyses of the sections that sub-queries name, several sub-queries in one call as far as they fit."""
    state = run.state
    readings = list[Reading]()
    room = SECTION_CHARACTERS_PER_TOKEN * run.resolved.limits.analysis_tokens
    for group in group_by_size(
        queries, lambda query: sum(section.end - section.start for section in query.sections), room
    ):
        sections = list(
            {(section.source_id, section.start): section for query in group for section in query.sections}.values()
        )
        names = [
            name for name in dict.fromkeys(section.source_id for section in sections) if name in state.evidence.sources
        ]
        if names:
            request = reading_input(run, group, [state.evidence.sources[name] for name in names], issues, names)
            request = request.with_fields(wanted=sections)
            readings.append(Reading(f"analyze/{group[0].id}", group, request))
    return readings


def _readings_by_query(run: ResearchRun, queries: Sequence[PlanNode], issues: list[GateIssue]) -> list[Reading]:
    """Return one analysis for each sub-query with sources."""
    return [
        Reading(f"analyze/{query.id}", [query], reading_input(run, [query], sources, issues))
        for query in queries
        if (sources := _sources_left(run, query))
    ]


def _sources_left(run: ResearchRun, query: PlanNode) -> list[Source]:
    """Return the sources to read for a sub-query: those that an unfinished analysis has left, else all.

    Those that say nothing on it, or on the sub-query that it asks once more, are not read again.
    """
    asked = {query.id, gaps.asked_again(run.state, query.gap_id)}
    sources = [source for source in sources_to_analyze(run, query) if asked.isdisjoint(source.nothing_on)]
    left = run.state.work.pages_left.get(query.id)
    if left is None:
        return sources
    return [source for source in sources if source.id in left]


def pages_waiting(run: ResearchRun) -> set[str]:
    """Return the ids of pages that are read and wait for their analysis, without those that an analysis left out."""
    queries = queries_to_analyze(run.state)
    return {source.id for query in queries for source in _sources_left(run, query) if not source.analyzed}


def _is_known(state: ResearchState, source: Source, query: PlanNode) -> bool:
    """Return true for a page that an analysis for other sub-queries has read."""
    return source.analyzed and query.id not in state.work.pages_left


def _note_left(state: ResearchState, queries: Sequence[PlanNode], undone: Sequence[Reading]) -> None:
    """Note the sub-queries, with their pages, whose analysis a resumed run repeats."""
    query_ids = {query.id for query in queries}
    left = {
        query.id: [source.id for reading in undone if query in reading.queries for source in reading.request.sources]
        for query in queries
    }
    kept = {name: pages for name, pages in state.work.pages_left.items() if name not in query_ids}
    state.work.pages_left = kept | {name: pages for name, pages in left.items() if pages}
    others = [name for name in state.work.hasty_analyses if name not in query_ids]
    state.work.hasty_analyses = [*others, *(name for name, pages in left.items() if pages)]


async def read_sources(
    run: ResearchRun, role: RoleSpec[I, O], step: str, request: I, engine: EngineKind | None = None
) -> O:
    """Have a role read sources, and once more where it asks for sections that it was not shown.

    To the second call the gaps that the first answer states are open ones like any other, which its findings may
    answer, and those that it answers are open no more. Raises `Interrupted`, and `ActivityError` for a call that
    failed; if only the second one fails, the first answer counts.
    """
    source_ids = [source.id for source in request.sources]
    first = await run.ask(role, step, request, engine)
    result = add_derived_fields(first, source_ids)
    if not first.wanted:
        return result
    statements = [finding.statement for finding in first.findings]
    stated = {gap_id(gap.description): gap.description for gap in first.gaps}
    listed = {gap.id for gap in request.gaps}
    answered = {one.gap_id for one in first.settled_gaps if one.answered_by}
    own = [Gap(id=name, description=text) for name, text in stated.items() if name not in listed]
    more = request.with_fields(
        wanted=first.wanted,
        found=[*request.found, *statements],
        gaps=[*(gap for gap in request.gaps if gap.id not in answered), *own],
        shown_before=True,
        narrowed_before=first.narrowed,
        seen=first.seen,
    )
    with suppress(ActivityError, Interrupted):  # an interruption stays in the inbox, where the next step finds it
        second = await run.ask(role, f"{step}/sections", more, engine)
        return _joined(run, result, add_derived_fields(second, []))
    return result


def _joined(run: ResearchRun, first: O, second: O) -> O:
    """Return both answers as one, without the gaps of the first that the second answers or states with a place."""
    if first.entry is not None:
        run.state.evidence.note_entry(first.entry)
    known = {finding.id for finding in first.findings}
    fresh = [finding for finding in second.findings if finding.id not in known]
    numbers = dict(zip((finding.id for finding in second.findings), second.answered, strict=False))
    answered = [*_numbers(first), *(numbers.get(finding.id, []) for finding in fresh)]
    dealt_with = {one.gap_id for one in second.settled_gaps} | {gap_id(gap.description) for gap in second.gaps}
    remaining = [gap for gap in first.gaps if gap_id(gap.description) not in dealt_with]
    return first.with_fields(
        findings=[*first.findings, *fresh],
        answered=answered,
        evidence=[*first.evidence, *second.evidence],
        gaps=[*remaining, *second.gaps],
        settled_gaps=[*first.settled_gaps, *second.settled_gaps],
        outline=_hidden_after_both(first.outline, second.outline),
        quality_updates=[*first.quality_updates, *second.quality_updates],
        dropped_quotes=first.dropped_quotes + second.dropped_quotes,
        entry=second.entry or first.entry,
    )


def _hidden_after_both(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return the lines of the second outline whose section the first one has, too; lines begin with its number."""
    hidden = {line.partition(".")[0] for line in first}
    return [line for line in second if line.partition(".")[0] in hidden]


def _numbers(output: AnalyzerResult) -> list[list[int]]:
    """Return the numbers of the sub-queries that each finding answers."""
    return output.answered or [[] for _ in output.findings]


async def analyze_without_model(run: ResearchRun) -> bool:
    """Analyze the rest without a model as the run ends; return true if that changed anything. A resumed run repeats it.

    What a model found is not mixed with passages that rules pick: then the rest stays for a resumed run.
    """
    state = run.state
    waiting = [query.id for query in queries_to_analyze(state)]
    if not waiting:
        return False
    if any(not finding.by_rules for finding in state.evidence.findings) and run.resolved.engine is EngineKind.MODEL:
        if left := pages_waiting(run):
            run.degrade(Message("pages_not_analyzed", pages=counted("page", len(left))))
        state.work.hasty_analyses = list(dict.fromkeys([*state.work.hasty_analyses, *waiting]))
        return False
    try:
        await analyze(run, engine=EngineKind.EXTRACTIVE)
    except Interrupted:
        run.degrade(Message("degraded_analysis"))
    state.work.hasty_analyses = list(dict.fromkeys([*state.work.hasty_analyses, *waiting]))
    return True


# --- earlier results -----------------------------------------------------------------------------------------------
@contextmanager
def _record_gap_changes(run: ResearchRun) -> Iterator[None]:
    """Record the gaps whose status changes during the block."""
    statuses = {gap.id: gap.status for gap in run.state.evidence.gaps}
    yield
    for gap in run.state.evidence.gaps:
        if statuses.get(gap.id, gap.status) is not gap.status:
            run.record_gap(gap, AgentRole.ANALYZER)


def withdraw(state: ResearchState, queries: list[PlanNode], pages: Collection[str] | None = None) -> None:
    """Remove the results of earlier analyses of these sub-queries, except passages still cited elsewhere.

    `pages` are the ids of the sources that were read again; findings from others stay. None: all findings go.
    """
    query_ids = {query.id for query in queries}
    removed = [
        finding
        for finding in state.evidence.findings
        if finding.sub_query_id in query_ids and (pages is None or set(finding.source_ids) <= set(pages))
    ]
    state.evidence.findings = [finding for finding in state.evidence.findings if finding not in removed]
    cited = {item for finding in state.evidence.findings for item in finding.evidence_ids}
    cited.update(state.evidence.draft_citations)
    unused = {item for finding in removed for item in finding.evidence_ids} - cited
    state.evidence.passages = {name: item for name, item in state.evidence.passages.items() if name not in unused}
    state.evidence.gaps = gaps.withdraw_gaps(
        state.evidence.gaps, queries, state.work.iteration, [finding.id for finding in removed]
    )


# --- new results ---------------------------------------------------------------------------------------------------
def merge_readings(
    run: ResearchRun,
    queries: Sequence[PlanNode],
    results: Sequence[tuple[Reading, AnalyzerResult]],
    unfinished: Collection[str],
) -> None:
    """Merge analyses that each answer several sub-queries, in plan order.

    A finding belongs to the first sub-query that it names, else to the first one that found its source, and counts for
    all that it names. `unfinished` are the ids of sub-queries with an analysis that is still to be made.
    """
    state = run.state
    own = {query.id: list[Finding]() for query in queries}
    stated = {query.id: list[ProposedGap]() for query in queries}
    shared = Counter[str]()
    settled = list[SettledGap]()
    for reading, output in results:
        merge_sources(run, output)
        settled += output.settled_gaps
        names = [query.id for query in reading.queries]
        for finding, numbers in zip(_marked(run, output), _numbers(output), strict=True):
            answered = [names[number - 1] for number in numbers if number <= len(names)]
            owner = answered[0] if answered else _owner(state, finding, names)
            own[owner].append(finding)
            shared.update(name for name in answered if name != owner)
        _note_silence(state, [names[number - 1] for number in output.nothing_on], output.read_whole)
        for gap in output.gaps:
            stated[names[max(0, min(gap.sub_query, len(names)) - 1)]].append(gap)
    fresh = {query.id: add_findings(run, query, own[query.id]) for query in queries}
    for query in queries:
        newest = state.work.plan.newest(query)
        earlier = sum(finding.sub_query_id == query.id for finding in state.evidence.findings) - len(fresh[query.id])
        count = max(earlier, 0) + len(own[query.id]) + shared[query.id]
        state.work.plan = state.work.plan.with_nodes(newest.with_fields(finding_count=count))
    close_answered(run, settled)
    for query in queries:
        if query.id not in unfinished:
            _end(run, query, fresh[query.id], stated[query.id])


def _note_silence(state: ResearchState, query_ids: Sequence[str], source_ids: Sequence[str]) -> None:
    """Note sources of which a model has read all, and found nothing on these sub-queries."""
    for source_id in source_ids if query_ids else ():
        source = state.evidence.sources[source_id]
        silent = list(dict.fromkeys([*source.nothing_on, *query_ids]))
        state.evidence.sources[source_id] = source.with_fields(nothing_on=silent)


def _owner(state: ResearchState, finding: Finding, names: Sequence[str]) -> str:
    """Return the sub-query that found a finding's source, or the first one."""
    found_by = {name for source_id in finding.source_ids for name in state.evidence.sources[source_id].sub_query_ids}
    return next((name for name in names if name in found_by), names[0])


def merge(run: ResearchRun, query: PlanNode, output: AnalyzerResult) -> None:
    """Merge the analysis of some pages of a sub-query; its other pages are analyzed in other calls."""
    state = run.state
    merge_sources(run, output)
    fresh = add_findings(run, query, _marked(run, output))
    query = state.work.plan.newest(query)
    count = query.finding_count + len(output.findings)
    state.work.plan = state.work.plan.with_nodes(query.with_fields(finding_count=count))
    close_answered(run, output.settled_gaps)
    _end(run, query, fresh, output.gaps, in_parts=True)


def _marked(run: ResearchRun, output: AnalyzerResult) -> list[Finding]:
    """Return the findings of an analysis; those of rules in a model's place say so."""
    if output.account.engine is run.resolved.engine:
        return output.findings
    return [finding.with_fields(by_rules=True) for finding in output.findings]


def add_findings(run: ResearchRun, query: PlanNode, findings: Sequence[Finding]) -> list[Finding]:
    """Add the findings of a sub-query to the run, and return those that are new to it."""
    state = run.state
    known = {finding.id for finding in state.evidence.findings}
    fresh = [
        finding.with_fields(iteration=state.work.iteration, sub_query_id=query.id)
        for finding in findings
        if finding.id not in known
    ]
    state.evidence.findings += fresh
    if fresh:
        text = f"{plural(len(fresh), 'finding')}: {query.text}"
        data = {"statement": fresh[0].statement[:200]}
        run.note("finding.added", text, count=len(fresh), sub_query_id=query.id, **data)
    return fresh


def close_answered(run: ResearchRun, settled: Sequence[SettledGap]) -> None:
    """Close the gaps that a model calls answered by findings of the run."""
    with _record_gap_changes(run):
        run.state.evidence.gaps = gaps.settle_gaps(run.state, settled)


def _end(
    run: ResearchRun,
    query: PlanNode,
    fresh: list[Finding],
    drafts: Sequence[ProposedGap],
    *,
    in_parts: bool = False,
) -> None:
    """Mark a sub-query as analyzed, and open the gaps that it leaves."""
    state = run.state
    query = run.state.work.plan.newest(query)
    if query.id not in state.work.analyzed_sub_queries:
        state.work.analyzed_sub_queries.append(query.id)
    stated = _merge_gaps(run, query, fresh, drafts, in_parts=in_parts)
    if in_parts:
        stated = list(dict.fromkeys([*query.stated_gaps, *stated]))
    state.work.plan = state.work.plan.with_nodes(query.with_fields(stated_gaps=stated))


def merge_sources(run: ResearchRun, output: AnalyzerResult) -> None:
    """Merge what an analysis says of its sources: passages, quality, and which of them were read."""
    state = run.state
    state.evidence.note_entry(output.entry)
    state.evidence.passages.update({item.id: item for item in output.evidence})
    if output.dropped_quotes:
        dropped = plural(output.dropped_quotes, "quote")
        run.note("status", f"{dropped} left out: in no source word for word", level="info")
    for source_id in output.analyzed_source_ids or ():
        if source_id in state.evidence.sources:
            state.evidence.sources[source_id] = state.evidence.sources[source_id].with_fields(analyzed=True)
    for update in output.quality_updates:
        if (source := state.evidence.sources.get(update.source_id)) is not None:
            state.evidence.sources[source.id] = update_quality(source, update)


def update_quality(source: Source, update: QualityUpdate, by: str = ANALYZER.name) -> Source:
    """Return the source with the quality assigned by a role, at most one step from the rules' label.

    The operator's labels are fixed, and the opinion `unknown` has no effect. Repeated analyses do not accumulate steps.
    A source without a label by rules starts at `medium`.
    """
    if update.quality not in QUALITY_STEPS or source.quality_reason.startswith(CHOSEN_BY_OPERATOR):
        return source
    by_rules = source.found_quality or source.quality
    base = by_rules if by_rules in QUALITY_STEPS else Quality.MEDIUM
    index = QUALITY_STEPS.index(base)
    opinion = QUALITY_STEPS.index(update.quality)
    highest = QUALITY_STEPS.index(source.best_quality)
    quality = QUALITY_STEPS[max(index - 1, min(index + 1, opinion, highest))]
    reason = ""
    if quality is not by_rules:
        reason = Message("quality_changed", role=by, now=QUALITY_LABELS[quality], before=QUALITY_LABELS[by_rules])
    known = source.found_quality if quality is source.quality else by_rules
    return source.with_fields(quality=quality, quality_reason=reason, found_quality=known)


def _merge_gaps(
    run: ResearchRun, query: PlanNode, fresh: list[Finding], drafts: Sequence[ProposedGap], *, in_parts: bool
) -> list[str]:
    """Open and give up gaps; return the ids of all gaps that this sub-query states, of any origin."""
    state = run.state
    if not (query.finding_count or drafts or query.gap_id or in_parts or query.facet == OTHER_FORM):
        drafts = [gaps.silent_gap(query)]
    state.evidence.gaps = gaps.with_unread(gaps.reopen_stated(state.evidence.gaps, drafts), drafts)
    with _record_gap_changes(run):
        # That sections already read do not answer a gap says nothing of other pages.
        if query.gap_id and not query.sections and not query.finding_count and not in_parts:
            state.evidence.gaps = gaps.give_up_gap(state.evidence.gaps, query.gap_id)
        # A follow-up without findings must not reopen its gap in other words; a leaf reports gaps stated by its source.
        may_open = fresh or not query.gap_id or query.source_id is not None
        opened: list[Gap] = []
        if may_open:
            opened = gaps.open_gaps(state, drafts, f"sub_query:{query.id}")
        state.evidence.gaps = gaps.with_gaps(state, opened)
        for gap in opened:
            run.note("gap.opened", f"gap: {gap.description}", gap_id=gap.id)
    known = {gap.id for gap in state.evidence.gaps}
    return [identity for identity in map(gap_id, (draft.description for draft in drafts)) if identity in known]
