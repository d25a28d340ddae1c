"""Reading for a role with tools: searches that number their pages, reads by number, and notes on the pages.

A number means the same page in every turn. The role sees titles, places, the snippets of searches and notes, never the
text of a page.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import unquote, urlsplit

from contracts.addresses import canonical_url
from contracts.evidence import Candidate, Source
from contracts.names import CORPUS_SCHEME
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, AnalyzeInput
from contracts.state import Position, ResearchState
from contracts.texts import plural
from contracts.vocabulary import EngineKind, SourceStatus
from workflows.phases.analysis import merge, read_sources
from workflows.phases.gathering import Gathering
from workflows.rules.duplicates import Identities
from workflows.run.host import ended_calls, run_parallel
from workflows.run.research_run import ResearchRun

MAX_LISTED_PAGES: Final = 12
"""Pages listed per search."""
PLACE_CHARACTERS: Final = 80


class ReadingPosition(Position):
    """Base position of strategies in which a role chooses the pages."""

    opened: list[int] = []
    """Numbers of opened pages."""
    not_analyzed: list[str] = []
    """Ids of sources whose analysis failed or did not show them; it is not retried."""


# --- pages ---------------------------------------------------------------------------------------------------------
def list_pages(state: ResearchState) -> list[Candidate]:
    """Return the hits of all searches, one per URL, numbered from 1."""
    pages: dict[str, Candidate] = {}
    for candidate in state.candidates:
        pages.setdefault(canonical_url(candidate.hit.url), candidate)
    return list(pages.values())


def page_source(state: ResearchState, number: int) -> Source | None:
    """Return the source of an opened page; None if it was not read."""
    hit = list_pages(state)[number - 1].hit
    return state.sources.get(Identities(state.sources, state.aliases).identity_of(hit))


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
    return "" if reads_left else "no page is left to open: report what was found"


async def search_and_open(
    run: ResearchRun, position: ReadingPosition, searches: Sequence[PlanNode], pages: Sequence[int]
) -> list[PlanNode]:
    """Make searches and read pages in parallel; return the plan nodes of both.

    Raises `Interrupted`.
    """
    state, candidates = run.state, list_pages(run.state)
    addresses = frozenset(canonical_url(candidates[number - 1].hit.url) for number in pages)
    # A page found by several searches belongs to the first of them in the plan, in whatever order they were answered.
    owners = {candidate.sub_query_id for candidate in state.candidates if canonical_url(candidate.hit.url) in addresses}
    earlier = [node for node in state.plan.nodes if node.id in owners]
    nodes = [*earlier, *(node for node in searches if node.id not in owners)]
    if nodes:
        await Gathering(run, nodes, only=addresses).carry_out()
    position.opened += [number for number in pages if number not in position.opened]
    return nodes


# --- analysis ------------------------------------------------------------------------------------------------------
def unanalyzed_sources(state: ResearchState, position: ReadingPosition) -> list[Source]:
    """Return the sources that were read but not analyzed yet."""
    failed = set(position.not_analyzed)
    return [source for source in state.readable_sources() if not source.analyzed and source.id not in failed]


async def analyze_opened(
    run: ResearchRun,
    position: ReadingPosition,
    task: PlanNode,
    requests: Mapping[str, AnalyzeInput],
    engine: EngineKind | None,
) -> None:
    """Analyze opened pages concurrently, one request per step; a failure affects only its own pages.

    All answers are merged, in request order. Raises `Interrupted`.
    """
    asked = [partial(read_sources, run, ANALYZER, step, request, engine) for step, request in requests.items()]
    calls = await run_parallel(run.host, asked, run.resolved.limits.max_parallel)
    for request, call, reason in ended_calls(requests.values(), calls):
        names = [source.id for source in request.sources]
        if reason is None:
            merge(run, task, call.result())
            # A source that the call did not show is not retried.
            names = [name for name in names if not run.state.sources[name].analyzed]
        else:
            run.branch_failed(f"analysis of {plural(len(names), 'page')}: {reason}")
        position.not_analyzed += names


# --- descriptions --------------------------------------------------------------------------------------------------
def describe_search(
    state: ResearchState, search: PlanNode, listed: Collection[int], limit: int = MAX_LISTED_PAGES
) -> tuple[str, list[int] | None]:
    """Describe the best pages of a search not `listed` before, and return their numbers; None if it failed."""
    search = state.plan.newest(search)
    if search.error and not search.result_count:
        return f"The search for “{search.text}” failed: {search.error}.", None
    found = {canonical_url(page.hit.url): page for page in state.candidates if page.sub_query_id == search.id}
    numbered = enumerate(list_pages(state), start=1)
    own = {number: found.get(canonical_url(page.hit.url)) for number, page in numbered if number not in listed}
    ranked = sorted((page.hit.rank, number, page) for number, page in own.items() if page is not None)
    numbers = [number for _, number, _ in ranked[:limit]]
    lines = [f"{number}. {describe_hit(page)}" for _, number, page in ranked[:limit]]
    headline = f"Found for “{search.text}”:" if lines else f"Nothing new was found for “{search.text}”."
    return "\n".join([headline, *lines]), numbers


def describe_hit(page: Candidate) -> str:
    """Return the title of a page with its date, its place, and the snippet of the search that found it."""
    place, snippet = page_place(page.hit.url), page.hit.snippet
    located = f"{page_title(page)} [{place}]" if place else page_title(page)
    return f"{located}: {snippet}" if snippet else located


def page_place(url: str) -> str:
    """Return the path of a document in its collection, or the host of a web page; the end of a long one."""
    if url.startswith(CORPUS_SCHEME):
        place = unquote(url.removeprefix(CORPUS_SCHEME).partition("/")[2])
    else:
        place = (urlsplit(url).hostname or "").removeprefix("www.")
    place = " ".join(place.split())
    return place if len(place) <= PLACE_CHARACTERS else f"…{place[-PLACE_CHARACTERS:]}"


def page_title(page: Candidate) -> str:
    """Return the title of a page with its date, if it has one."""
    date = f" ({page.hit.published_at})" if page.hit.published_at else ""
    return f"{page.hit.title or 'without a title'}{date}"


def unread_reason(source: Source | None) -> str:
    """Return the reason why a chosen page has no text; `source` is None if a limit prevented reading it."""
    return source.status_reason if source and source.status_reason else "the limit of pages is reached"


def describe_page(state: ResearchState, number: int, known: Collection[str]) -> tuple[str, bool]:
    """Describe a page by its notes, without those already `known`, and return true if it could not be read."""
    source, title = page_source(state, number), list_pages(state)[number - 1].hit.title or "without a title"
    if source is None or source.status is not SourceStatus.FULL:
        return f"Page {number}, “{title}”, could not be read: {unread_reason(source)}.", True
    notes = list_notes(state, source, known)
    if not notes:
        return f"Page {number}, “{title}”, was read: nothing in it speaks about the task.", False
    return "\n".join([f"Page {number}, “{title}”, quality {source.quality.value}:", *notes]), False


def list_notes(state: ResearchState, source: Source, known: Collection[str]) -> list[str]:
    """Return the numbered notes on a source, without those already `known`."""
    return [
        f"note {number}: {finding.statement}"
        for number, finding in enumerate(state.findings, start=1)
        if finding.id not in known and source.id in finding.source_ids
    ]
