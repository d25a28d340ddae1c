"""Sub-queries: from proposals of planner and refiner to nodes with ids, and their remaining work. Pure."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from contracts.addresses import canonical_url, normalize, normalized_text, sub_query_id
from contracts.evidence import Candidate, QueryRecord, SectionRef
from contracts.exclusions import is_excluded
from contracts.gaps import MAX_GAP_SECTIONS, GapReading
from contracts.plan import PlanNode
from contracts.resolved import EffectiveLimits
from contracts.roles import SubQuery
from contracts.sentences import Message
from contracts.state import ResearchState
from contracts.supervisor_roles import MAX_FOLLOW_UPS, GapAssessment
from contracts.texts import shorten
from contracts.vocabulary import NodeStatus
from workflows.rules.duplicates import Identities

ENOUGH: Final = Message("answered_before")
"""Reason for skipping a step without leaving a question open."""
MAX_PASSED_OVER: Final = 500
"""Limit of remembered unread hits, a few hundred bytes each."""
MIN_WORD_LENGTH: Final = 4
"""Shortest word, in characters, that counts as a subject word."""
STEM: Final = 5
"""Length of the prefix shared by inflected forms of a word."""
PUNCTUATION: Final = ".,;:!?¿¡\"'()[]{}<>“”„‘’«»‹›…–—·|/\\*_~`。、「」『』،؛؟।॥"
"""Stripped around words, not within; a leading hyphen excludes a word, and `C++`, `C#` and `5%` are words."""


# --- comparison of queries -----------------------------------------------------------------------------------------
def query_record(query: PlanNode, provider: str, *, found: int | None, source_type: str = "web") -> QueryRecord:
    """Return the record of a query; `found` is the number of hits, None if the search failed."""
    return QueryRecord(
        text=query.text,
        provider=provider,
        source_type=source_type,
        sub_query_id=query.id,
        iteration=query.iteration,
        found=found or 0,
        outcome="failed" if found is None else "answered",
    )


def find_asked(
    ledger: Iterable[QueryRecord], text: str, provider: str | None = None, source_type: str | None = None
) -> QueryRecord | None:
    """Return the first answered record of the same query, or None; a failed query may be repeated.

    `provider` and `source_type` restrict the records; None means any.
    """
    for record in ledger:
        is_of_kind = provider in (None, record.provider) and source_type in (None, record.source_type)
        if is_of_kind and record.outcome == "answered" and same_query(record.text, text):
            return record
    return None


def same_query(first: str, second: str) -> bool:
    """Return true if two queries have the same words in the same order."""
    return normalized_query(first) == normalized_query(second)


@lru_cache(maxsize=2_048)
def normalized_query(text: str) -> str:
    """Return a query's words in order, case-folded and without punctuation."""
    words = (word.rstrip(PUNCTUATION + "-").lstrip(PUNCTUATION) for word in normalize("NFKC", text).casefold().split())
    return " ".join(filter(None, words))


def subject_words(text: str) -> set[str]:
    """Return the stems of a text's subject words, so that inflected forms match."""
    return {word[:STEM] for word in normalized_text(text).split() if len(word) >= MIN_WORD_LENGTH or not word.isascii()}


# --- from proposals to nodes ---------------------------------------------------------------------------------------
def plan_sub_queries(proposed: Sequence[SubQuery], iteration: int, limit: int) -> list[PlanNode]:
    """Return at most `limit` distinct sub-queries, most important first, ties in the planner's order."""
    queries: dict[str, PlanNode] = {}
    for proposal in sorted(proposed, key=lambda proposal: proposal.priority):
        text = shorten(proposal.query.strip(), 500)
        query = PlanNode(
            id=sub_query_id(text),
            text=text,
            rationale=shorten(proposal.rationale, 300),
            priority=max(1, proposal.priority),
            facet=proposal.facet[:60],
            iteration=iteration,
        )
        if key := normalized_query(text):
            queries.setdefault(key, query)
    return list(queries.values())[:limit]


def follow_ups(
    state: ResearchState,
    assessments: Iterable[GapAssessment],
    readings: Iterable[GapReading],
    priority_gaps: Sequence[str],
    limit: int,
) -> list[PlanNode]:
    """Return at most `limit` new sub-queries for open gaps; none repeats an answered one.

    A gap that sections of pages already read may answer (`readings`) becomes a sub-query that needs no search; it is
    searched for besides only where the refiner asks for that.
    """
    # A sub-query whose search failed may be repeated.
    done = (query for query in state.work.plan.sub_queries if query.status is not NodeStatus.FAILED)
    asked = {"", *(normalized_query(query.text) for query in done)}
    nodes = {node.id: node for node in state.work.plan.nodes}
    by_gap = {assessment.gap_id: assessment for assessment in assessments}
    further = {node.gap_id: node for node in reading_nodes(state, readings, state.work.iteration + 1)}
    order = sorted(state.evidence.unaddressed_gaps(), key=lambda gap: (gap.id not in priority_gaps, gap.priority))
    fresh: list[PlanNode] = []
    for gap in order:
        proposed = by_gap[gap.id].follow_up_queries if gap.id in by_gap else []
        texts = [(query.query, query.expected_contribution) for query in proposed]
        if gap.id in further and len(fresh) < limit:
            fresh.append(further[gap.id])
        else:
            texts = texts or [(text, "") for text in gap.suggested_queries]
        for text, expected in texts[:MAX_FOLLOW_UPS]:
            if len(fresh) >= limit or find_asked(state.evidence.query_ledger, text) or normalized_query(text) in asked:
                continue
            asked.add(normalized_query(text))
            parent = nodes.get(gap.origin.removeprefix("sub_query:"))
            fresh.append(
                PlanNode(
                    id=sub_query_id(text),
                    parent=parent.id if parent else None,
                    depth=parent.depth + 1 if parent else 0,
                    text=shorten(text.strip(), 500),
                    rationale=shorten(gap.description, 300),
                    priority=gap.priority,
                    origin=f"gap:{gap.id}",
                    expected_contribution=shorten(expected, 500),
                    iteration=state.work.iteration + 1,
                )
            )
    return fresh


def reading_nodes(
    state: ResearchState, readings: Iterable[GapReading], iteration: int, parent: PlanNode | None = None
) -> list[PlanNode]:
    """Return a sub-query for each open gap that sections of pages already read may answer; it counts as searched.

    They are those of `readings`, whose passages were seen to answer it, else those that readers of the pages named;
    none that was read for that gap before.
    """
    named = {gap.id: gap.unread for gap in state.evidence.unaddressed_gaps() if gap.unread}
    for reading in readings:
        named[reading.gap_id] = reading.sections or named.get(reading.gap_id, [])
    still_open = {gap.id: gap for gap in state.evidence.unaddressed_gaps()}
    done = {
        (node.gap_id, section.source_id, section.start) for node in state.work.plan.nodes for section in node.sections
    }
    nodes = []
    for name, places in named.items():
        gap = still_open.get(name)
        by_start = dict[tuple[str, int], SectionRef]()
        for section in places:
            by_start.setdefault((section.source_id, section.start), section)
        sections = [one for key, one in by_start.items() if (name, *key) not in done][:MAX_GAP_SECTIONS]
        identity = sub_query_id(" ".join([name, "sections", *(f"{one.source_id}:{one.start}" for one in sections)]))
        if gap is not None and sections:
            node = PlanNode(
                id=identity,
                parent=parent.id if parent else None,
                depth=parent.depth + 1 if parent else 0,
                text=gap.description,
                rationale=gap.description,
                priority=gap.priority,
                origin=f"gap:{gap.id}",
                sections=sections,
                iteration=iteration,
                status=NodeStatus.COMPLETED,
            )
            nodes.append(node)
    return nodes


def assign_readings(state: ResearchState, nodes: Iterable[PlanNode]) -> None:
    """Make the sources of sections that are to be read sources of their sub-queries."""
    for node in nodes:
        for name in dict.fromkeys(section.source_id for section in node.sections):
            if (source := state.evidence.sources.get(name)) is not None:
                finders = list(dict.fromkeys([*source.sub_query_ids, node.id]))
                state.evidence.sources[name] = source.with_fields(sub_query_ids=finders)


# --- remaining work ------------------------------------------------------------------------------------------------
def skip_unfinished(state: ResearchState, reason: str) -> None:
    """Skip the unfinished nodes because the run ends; a resumed run continues them."""
    unfinished = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    state.work.plan = state.work.plan.with_nodes(
        *(node.skipped(reason) for node in state.work.plan.nodes if node.status in unfinished)
    )


def queries_to_analyze(state: ResearchState) -> list[PlanNode]:
    """Return the unanalyzed sub-queries that were searched, or were skipped but have sources."""
    done = set(state.work.analyzed_sub_queries)
    ended = {NodeStatus.COMPLETED, NodeStatus.FAILED}
    read = {query_id for source in state.evidence.readable_sources() for query_id in source.sub_query_ids}
    return [
        query
        for query in state.work.plan.sub_queries
        if query.id not in done and (query.status in ended or (query.status is NodeStatus.SKIPPED and query.id in read))
    ]


def queries_to_repeat(state: ResearchState) -> list[PlanNode]:
    """Return the sub-queries of this iteration whose analysis failed or has no finding."""
    current = [query for query in state.work.plan.sub_queries if query.iteration == state.work.iteration]
    return [query for query in current if query.id in state.work.hasty_analyses or not query.finding_count]


def reads_left(query: PlanNode, limits: EffectiveLimits) -> int:
    """Return the number of sources that a sub-query may still read, over all gatherings."""
    return max(0, limits.max_sources_per_query - query.new_source_count)


def sources_left(state: ResearchState, limits: EffectiveLimits) -> int:
    """Return the number of sources that may still be read in this iteration; an agent's ledger pages do not count."""
    ledger_ids = {page.id for page in state.evidence.ledger.pages}
    readable = [source for source in state.evidence.readable_sources() if source.id not in ledger_ids]
    new = sum(source.iteration == state.work.iteration for source in readable)
    return max(0, min(limits.max_new_sources - new, limits.max_sources - len(readable)))


def unread_candidates(state: ResearchState, limits: EffectiveLimits) -> list[Candidate]:
    """Return the unread hits that a repeated gathering may read."""
    if not sources_left(state, limits):
        return []
    room = {query.id: reads_left(query, limits) for query in state.work.plan.sub_queries}
    return [candidate for candidate in unread_hits(state) if room.get(candidate.sub_query_id)]


def unread_hits(state: ResearchState) -> list[Candidate]:
    """Return the unread hits, whether or not a limit allows reading them."""
    identities = Identities(state.evidence.sources, state.evidence.aliases)
    fetched = state.evidence.fetched_sources()
    return [
        candidate for candidate in state.evidence.candidates if identities.identity_of(candidate.hit) not in fetched
    ]


def pass_over_unread(state: ResearchState) -> None:
    """Move the unread hits of an iteration from its candidates to `passed_over`."""
    pass_over(state, unread_hits(state))
    state.evidence.candidates = []


def pass_over(state: ResearchState, unread: Sequence[Candidate]) -> None:
    """Add unread hits that are not excluded to `passed_over`, one per page, at most `MAX_PASSED_OVER`."""
    by_url = {canonical_url(candidate.hit.url): candidate for candidate in state.evidence.passed_over}
    for candidate in unread:
        if not is_excluded(candidate.hit.title, candidate.hit.url, state.resolution.exclude):
            # The search entries have the other details, so checkpoints need not repeat them.
            hit = candidate.hit
            if hit.entries:
                hit = hit.with_fields(title="", snippet="", rank=1)
            by_url.setdefault(canonical_url(hit.url), candidate.with_fields(hit=hit))
    state.evidence.passed_over = list(by_url.values())[:MAX_PASSED_OVER]
