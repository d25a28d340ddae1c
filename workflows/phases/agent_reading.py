"""Reading for a role with tools: searches that number their pages, reads by number, and notes on the pages.

A number means the same page in every turn. The role sees titles, places, the snippets of searches and notes, never the
text of a page.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from contracts.addresses import canonical_url, document_at, gap_id, name_page, page_place, short_hash, sub_query_id
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY
from contracts.evidence import Candidate, SearchHit, Source
from contracts.plan import WITHOUT_SEARCH, PlanNode
from contracts.protected_sources import NAMED
from contracts.roles import ANALYZER, AnalyzeInput, AnalyzerResult
from contracts.sentences import Message, counted
from contracts.state import Position, ResearchState
from contracts.texts import plural, shorten
from contracts.vocabulary import EngineKind, GapStatus, SourceStatus
from workflows.phases.analysis import merge, read_sources
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import MAX_NOTES_SHOWN, findings_of_page, notes_on, reading_input
from workflows.rules.duplicates import Identities
from workflows.rules.sub_queries import normalized_query
from workflows.run.host import ended_calls, run_parallel
from workflows.run.research_run import ResearchRun

MAX_LISTED_PAGES: Final = 12
"""Pages listed per search."""
MAX_LISTED_SECTIONS: Final = 10
SECTION_CHARACTERS: Final = 90  # of a section beyond these, with its number: room for two or three names of settings
MAX_READINGS: Final = 6
"""Readings of one page, each for a purpose of its own."""
READ_WHOLE: Final = "read whole before, and noted in the report already"
BY_PLACE: Final = "pages named by their place"
"""Node of the plan that such pages belong to."""
NO_PLACE: Final = "{place} is no place in the collection that is searched: give the number of a page that was found"
NOTHING_IN_PAGE: Final = "nothing in it speaks about the task; all of it was read."
NOTHING_IN_PARTS: Final = "nothing in the parts that were read speaks about the task."


@dataclass(frozen=True)
class PageReading:
    """One reading of a page: for the task as a whole, or for a purpose of its own."""

    source_id: str
    focus: str = ""
    """Question to read it for; empty: the task."""
    section: int = 0
    """Number of the section to read, from the outline of an earlier reading; 0: what fits best."""

    @property
    def purpose(self) -> str:
        """Return the key by which repeated readings are recognized."""
        return f"{self.section} {normalized_query(self.focus)}".strip()


class ReadingPosition(Position):
    """Base position of strategies in which a role chooses the pages."""

    opened: list[int] = []
    """Numbers of opened pages."""
    not_analyzed: list[str] = []
    """Ids of sources whose analysis failed or did not show them; it is not retried."""
    purposes: dict[str, list[str]] = {}
    """By source id: for what a page was read already."""
    hidden: dict[str, list[str]] = {}
    """By source id: lines of the outline for sections that no reading was shown whole."""


# --- pages ---------------------------------------------------------------------------------------------------------
def list_pages(state: ResearchState) -> list[Candidate]:
    """Return the hits of all searches, one per URL, numbered from 1."""
    pages: dict[str, Candidate] = {}
    for candidate in state.evidence.candidates:
        pages.setdefault(canonical_url(candidate.hit.url), candidate)
    return list(pages.values())


def page_source(state: ResearchState, number: int) -> Source | None:
    """Return the source of an opened page; None if it was not read."""
    hit = list_pages(state)[number - 1].hit
    return state.evidence.sources.get(Identities(state.evidence.sources, state.evidence.aliases).identity_of(hit))


def number_of_place(state: ResearchState, place: str) -> int:
    """Return the number of the page at a place of the run's collection, adding it to the pages if no search listed it.

    0 if there is no such place; whether a document is there, its reading finds out.
    """
    corpus = state.resolution.corpus
    address = document_at(corpus.name, place) if corpus else ""
    if not address:
        return 0
    numbers = {canonical_url(page.hit.url): number for number, page in enumerate(list_pages(state), start=1)}
    if address not in numbers:
        node = PlanNode(id=sub_query_id(BY_PLACE), text=BY_PLACE, origin=WITHOUT_SEARCH, iteration=state.work.iteration)
        if all(known.id != node.id for known in state.work.plan.nodes):
            state.work.plan = state.work.plan.with_nodes(node)
        page = Candidate(sub_query_id=node.id, hit=SearchHit(url=address, provider=NAMED))
        state.evidence.candidates = [*state.evidence.candidates, page]
    return numbers.get(address, len(numbers) + 1)


def repeated_reading(position: ReadingPosition, reading: PageReading) -> str:
    """Return the reason why a page that was read is not read again; empty if it is."""
    purposes = position.purposes.get(reading.source_id, [])
    if reading.purpose in purposes:
        what = f"section {reading.section}" if reading.section else "this purpose"
        return f"it was read for {what} already: its notes stand above; name another focus, or a section not shown yet"
    if len(purposes) >= MAX_READINGS:
        return f"it was read {plural(len(purposes), 'time')} already: open another page, or report"
    return ""


def page_refusal(run: ResearchRun, number: int, opened: Collection[int], reads_left: int) -> str:
    """Return the reason why a page is not opened; empty if it is. `opened` are the numbers of opened pages."""
    pages = list_pages(run.state)
    if not 0 < number <= len(pages):
        numbers = f"pages are numbered from 1 to {len(pages)}" if pages else "search first"
        return f"there is no page {number}: {numbers}"
    if number in opened:
        return f"page {number} was opened already: its notes stand above"
    if run.is_excluded(pages[number - 1].hit):
        return f"page {number} is excluded by the request"
    if reads_left:
        return ""
    return "no page is left to open: report what was found"


async def search_and_open(
    run: ResearchRun, position: ReadingPosition, searches: Sequence[PlanNode], pages: Sequence[int]
) -> list[PlanNode]:
    """Make searches and read pages in parallel; return the plan nodes of both.

    Raises `Interrupted`.
    """
    state = run.state
    candidates = list_pages(run.state)
    addresses = frozenset(canonical_url(candidates[number - 1].hit.url) for number in pages)
    # A page found by several searches belongs to the first of them in the plan, in whatever order they were answered.
    owners = {
        candidate.sub_query_id
        for candidate in state.evidence.candidates
        if canonical_url(candidate.hit.url) in addresses
    }
    earlier = [node for node in state.work.plan.nodes if node.id in owners]
    nodes = [*earlier, *(node for node in searches if node.id not in owners)]
    if nodes:
        await Gathering(run, nodes, only=addresses).carry_out()
    position.opened += [number for number in pages if number not in position.opened]
    return nodes


# --- analysis ------------------------------------------------------------------------------------------------------
def unanalyzed_sources(state: ResearchState, position: ReadingPosition) -> list[Source]:
    """Return the sources that were read but not analyzed yet."""
    failed = set(position.not_analyzed)
    return [source for source in state.evidence.readable_sources() if not source.analyzed and source.id not in failed]


async def read_for_purposes(
    run: ResearchRun,
    position: ReadingPosition,
    task: PlanNode,
    readings: Sequence[PageReading],
    engine: EngineKind | None,
    limit: int = FINDINGS_PER_SUB_QUERY,
) -> dict[PageReading, AnalyzerResult]:
    """Have pages read concurrently, each in one call for all its purposes; a failure affects only its own page.

    `task` owns the findings; `limit` is the least number of findings that a reader may make of a page. All answers are
    merged in order, and returned by reading. Raises `Interrupted`.
    """
    kind = engine or run.resolved.engine
    groups = group_readings(readings, together=kind is EngineKind.MODEL)
    asked = [
        partial(read_sources, run, ANALYZER, _step(group), _reading_input(run, task, group, limit, kind), engine)
        for group in groups
    ]
    calls = await run_parallel(run.host, asked, run.resolved.limits.max_parallel)
    results = dict[PageReading, AnalyzerResult]()
    for group, call, reason in ended_calls(groups, calls):
        source = run.state.evidence.sources[group[0].source_id]
        if reason is None:
            results |= {reading: part_for(call.result(), number) for number, reading in enumerate(group, start=1)}
            merge(run, task, call.result())
        else:
            run.branch_failed(Message("analysis_of_pages_failed", pages=counted("page", 1), reason=reason))
        if not run.state.evidence.sources[source.id].analyzed:
            position.not_analyzed.append(source.id)  # not retried
        purposes = position.purposes.setdefault(source.id, [])
        is_as_asked = reason is None and not is_made_by_rules(run.state, call.result())
        if is_as_asked:
            note_hidden(position, source.id, call.result().outline)
            purposes += [purpose for purpose in dict.fromkeys(one.purpose for one in group) if purpose not in purposes]
    return results


def group_readings(readings: Iterable[PageReading], *, together: bool) -> list[tuple[PageReading, ...]]:
    """Return the distinct readings, `together` those of one page, but sections that are named apart from the rest.

    A page that one call reads for two purposes is paid once, and its notes do not repeat each other.
    """
    groups = dict[object, tuple[PageReading, ...]]()
    for reading in dict.fromkeys(readings):
        key = (reading.source_id, bool(reading.section)) if together else reading
        groups[key] = (*groups.get(key, ()), reading)
    return list(groups.values())


def _step(group: Sequence[PageReading]) -> str:
    """Return the name of the call for readings of one page."""
    purpose = "; ".join(reading.purpose for reading in group)
    suffix = "" if purpose == "0" else f"/{short_hash(purpose)}"
    return f"analyze/{group[0].source_id}{suffix}"


def part_for(result: AnalyzerResult, number: int) -> AnalyzerResult:
    """Return what of an answer to several purposes is for one of them: what names none of them is for the first."""
    if not result.answered:
        return result
    chosen = [
        (finding, numbers)
        for finding, numbers in zip(result.findings, result.answered, strict=True)
        if number in (numbers or [1])
    ]
    return result.with_fields(
        findings=[finding for finding, _ in chosen],
        answered=[numbers for _, numbers in chosen],
        gaps=[gap for gap in result.gaps if number == max(1, gap.sub_query)],
    )


def may_read_by_rules(run: ResearchRun, position: ReadingPosition) -> bool:
    """Return true if pages that no model could read any more are left to rules: if nothing was found by a model.

    What rules pick is not mixed with a model's findings; a resumed run reads the pages.
    """
    has_own = run.resolved.engine is EngineKind.MODEL and any(
        not finding.by_rules for finding in run.state.evidence.findings
    )
    if has_own and (left := unanalyzed_sources(run.state, position)):
        run.degrade(Message("pages_not_analyzed", pages=counted("page", len(left))))
    return not has_own


def _reading_input(
    run: ResearchRun, task: PlanNode, group: Sequence[PageReading], limit: int, engine: EngineKind
) -> AnalyzeInput:
    """Return the request to read one page for its purposes."""
    queries = [
        task.with_fields(text=reading.focus, expected_contribution="") if reading.focus else task for reading in group
    ]
    source = run.state.evidence.sources[group[0].source_id]
    request = reading_input(run, queries, [source], issues=[])
    if engine is EngineKind.MODEL:
        limit = max(limit, findings_of_page(source))
    return request.with_fields(
        max_findings=limit,
        sections=list(dict.fromkeys(reading.section for reading in group if reading.section)),
        outlined=True,
        found=[*known_notes(run.state, source), *notes_on(run.state.evidence.findings, [source.id])][-MAX_NOTES_SHOWN:],
    )


# --- descriptions --------------------------------------------------------------------------------------------------
def describe_search(
    state: ResearchState, search: PlanNode, listed: Collection[int], limit: int = MAX_LISTED_PAGES
) -> tuple[str, list[int] | None]:
    """Describe the best pages of a search not `listed` before, and return their numbers; None if it failed."""
    search = state.work.plan.newest(search)
    if search.error and not search.result_count:
        return f"The search for “{search.text}” failed: {search.error}.", None
    found = {canonical_url(page.hit.url): page for page in state.evidence.candidates if page.sub_query_id == search.id}
    numbered = enumerate(list_pages(state), start=1)
    own = {number: found.get(canonical_url(page.hit.url)) for number, page in numbered if number not in listed}
    ranked = sorted((page.hit.rank, number, page) for number, page in own.items() if page is not None)
    numbers = [number for _, number, _ in ranked[:limit]]
    whole = _places_read_whole(state)
    lines = [
        f"{number}. {describe_hit(page, READ_WHOLE if canonical_url(page.hit.url) in whole else '')}"
        for _, number, page in ranked[:limit]
    ]
    again = [number for number, page in enumerate(list_pages(state), start=1)
             if number in listed and canonical_url(page.hit.url) in found]  # fmt: skip
    if again:
        lines += [f"Also found, and known from before: page {', '.join(map(str, again))}."]
    if numbers:
        headline = f"Found for “{search.text}”:"
    else:
        headline = f"Nothing new was found for “{search.text}”."
    return "\n".join([headline, *lines]), numbers


def _places_read_whole(state: ResearchState) -> set[str]:
    """Return the addresses of pages of which another agent was shown all before this one was started."""
    ledger = state.evidence.ledger
    return {canonical_url(page.url) for page in ledger.pages if page.id in ledger.read_whole}


def describe_hit(page: Candidate, remark: str = "") -> str:
    """Return the title of a page with its date, its place, a remark, and the snippet of the search that found it."""
    located = name_page(page_title(page), page.hit.url)
    if remark:
        located = f"{located} ({remark})"
    snippet = page.hit.snippet
    if snippet:
        return f"{located}: {snippet}"
    return located


def page_title(page: Candidate) -> str:
    """Return the title of a page with its date, if it has one, and whether only an abstract of it is open."""
    date = f" ({page.hit.published_at})" if page.hit.published_at else ""
    extent = " (abstract only)" if page.hit.abstract_only else ""
    return f"{page.hit.title or 'without a title'}{date}{extent}"


def unread_reason(source: Source | None) -> str:
    """Return the reason why a chosen page has no text; `source` is None if a limit prevented reading it."""
    if source and source.status_reason:
        return source.status_reason
    return "the limit of pages is reached"


def describe_page(
    state: ResearchState, number: int, known: Collection[str], result: AnalyzerResult | None
) -> tuple[str, bool]:
    """Describe a page by the notes of its newest reading, and return true if it could not be read.

    `known` are the ids of earlier findings; `result` is that of the reading, None if there is none.
    """
    source = page_source(state, number)
    hit = list_pages(state)[number - 1].hit
    title = hit.title or (source.title if source else "") or page_place(hit.url) or "without a title"
    if source is None or source.status is not SourceStatus.FULL:
        return f"Page {number}, “{title}”, could not be read: {unread_reason(source)}.", True
    if result is None:
        return f"Page {number}, “{title}”, could not be analyzed.", True
    lines = describe_reading(state, source, known, result)
    quality = "" if state.resolution.one_collection else f", quality {source.quality.value}"
    return "\n".join([f"Page {number}, “{title}”{quality}:", *lines]), False


def describe_reading(state: ResearchState, source: Source, known: Collection[str], result: AnalyzerResult) -> list[str]:
    """Return the lines of a reading: its notes, and what it leaves open."""
    if is_made_by_rules(state, result):
        return ["no model could read it for this: have it read again, or open another page."]
    made = {finding.id for finding in result.findings}
    lines = list_notes(state, source, made - set(known))
    if not lines and known_notes(state, source):
        lines = ["nothing beyond what was found in it before."]
    elif not lines and result.findings:
        lines = ["nothing new: its notes stand above."]
    elif not lines and any(source.id in finding.source_ids for finding in state.evidence.findings):
        where = " in the parts that were read" if result.outline else ""
        lines = [f"nothing beyond its notes above{where}."]
    elif not lines:
        lines = [NOTHING_IN_PARTS if result.outline else NOTHING_IN_PAGE]
    lines += _list_gaps(state, result)
    return [*lines, *_list_earlier(state, source)]


def _list_gaps(state: ResearchState, result: AnalyzerResult) -> list[str]:
    """Return the lines of the gaps that a reading leaves open, and of those from before that its notes answer."""
    known = {gap.id: gap for gap in state.evidence.gaps}
    numbers = {finding.id: number for number, finding in enumerate(state.evidence.findings, start=1)}
    closed = {name for name, gap in known.items() if gap.status is not GapStatus.OPEN}
    still_open = [gap.description for gap in result.gaps if gap_id(gap.description) not in closed]
    lines = [f"left open by this page: {description}" for description in still_open]
    for settled in result.settled_gaps:
        notes = [str(numbers[name]) for name in settled.answered_by if name in numbers]
        if settled.gap_id in closed and notes:
            lines.append(f"no longer open, by note {', '.join(notes)}: {known[settled.gap_id].description}")
    return lines


def _list_earlier(state: ResearchState, source: Source) -> list[str]:
    """Return the lines of what other agents had found in a page, which is in the report without this one."""
    own = {finding.statement for finding in state.evidence.findings}
    earlier = [statement for statement in known_notes(state, source) if statement not in own]
    if not earlier:
        return []
    head = "found in it before and in the report already, so not among your notes:"
    return [head, *(f"({number}) {statement}" for number, statement in enumerate(earlier, start=1))]


def known_notes(state: ResearchState, source: Source) -> list[str]:
    """Return what other agents of the run had found in a page before this one was started."""
    return state.evidence.ledger.notes.get(source.id, [])


def note_hidden(position: ReadingPosition, source_id: str, outline: Sequence[str]) -> None:
    """Note the sections of a page that no reading so far was shown whole; each line begins with its number."""
    hidden = position.hidden.get(source_id)
    if hidden is None:
        position.hidden[source_id] = list(outline)
        return
    shown_in_part = {line.partition(".")[0] for line in outline}
    position.hidden[source_id] = [line for line in hidden if line.partition(".")[0] in shown_in_part]


def list_unread(state: ResearchState, result: AnalyzerResult | None) -> list[str]:
    """Return the lines of the sections that a reading was not shown; empty if it was shown all."""
    if result is None or is_made_by_rules(state, result):
        return []
    return list_sections(result.outline)


def list_sections(outline: Sequence[str]) -> list[str]:
    """Return the lines of sections that no reader was shown; empty if there are none."""
    if not outline:
        return []
    lines = ["not shown to the reader; give a number as `section` to have it read:", *outline[:MAX_LISTED_SECTIONS]]
    if rest := outline[MAX_LISTED_SECTIONS:]:
        # Of the others a few words, so that a long page does not fill the turn.
        lines.append("also: " + "; ".join(shorten(line, SECTION_CHARACTERS) for line in rest))
    return lines


def list_links(state: ResearchState, result: AnalyzerResult | None) -> list[str]:
    """Return the line of the documents to which a page that was read links; empty if there are none."""
    if result is None or not result.links or is_made_by_rules(state, result):
        return []
    return [f"links to these documents of the collection, which open by `place`: {'; '.join(result.links)}"]


def is_made_by_rules(state: ResearchState, result: AnalyzerResult) -> bool:
    """Return true for a reading by rules in a model's place: no report has its findings, so no role is shown them."""
    return state.resolution.engine is EngineKind.MODEL and result.account.engine is not EngineKind.MODEL


def list_notes(state: ResearchState, source: Source, wanted: Collection[str]) -> list[str]:
    """Return the numbered notes on a source, of those with these ids."""
    return [
        f"note {number}: {finding.statement}"
        for number, finding in enumerate(state.evidence.findings, start=1)
        if finding.id in wanted and source.id in finding.source_ids
    ]
