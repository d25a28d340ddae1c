"""Vetting: a librarian's searches for one need, and candidates that are read and examined one by one.

The record of each need belongs to the strategy's position, so that a resumed run repeats no search and no examination.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from temporalio.exceptions import ActivityError

from contracts.addresses import canonical_url, sub_query_id
from contracts.evidence import Source
from contracts.plan import CHOSEN_BY_AGENT, PlanNode
from contracts.recursive_roles import (
    LIBRARIAN,
    SCANNED_CHARACTERS,
    SCANNER,
    LibrarianInput,
    MentionedWork,
    ScanInput,
    ScannerAnswer,
    VettedSource,
)
from contracts.roles import QualityUpdate
from contracts.state import ResearchState
from contracts.texts import plural, shorten
from contracts.vetting import ExaminedSource, Vetted, need_id
from contracts.vocabulary import EngineKind, NodeStatus, SourceStatus
from workflows.phases.analysis import update_quality
from workflows.phases.gathering import Gathering
from workflows.phases.role_calls import ask_for
from workflows.phases.role_inputs import extract_of
from workflows.rules.candidates import assess_by_rules, choose_candidates, hits_of
from workflows.rules.duplicates import Identities, protected_ids
from workflows.run.calls import is_cancelled
from workflows.run.host import abandon
from workflows.run.research_run import ResearchRun, Unanswered

NEED_CHARACTERS: Final = 300
"""Of a need in the log of a run."""
SEARCHED: Final = (NodeStatus.COMPLETED, NodeStatus.FAILED)
WITHOUT_SCAN: Final = "sources were assessed by rules alone"


async def vet(
    run: ResearchRun,
    need: str,
    *,
    most: int,
    known: dict[str, Vetted],
    caller: str,
    works: Sequence[MentionedWork] = (),
    engine: EngineKind | None = None,
) -> Vetted:
    """Find sources for a need: at most `most` candidates are read, within the limits of the run, and examined.

    `known` has what was vetted before, by the id of the need, and is extended: what was examined for a need does not
    come back for it; an interrupted round is finished, a complete one is followed by another. `works` become words for
    the searches, and come first if a search finds them; none of them is opened for that.
    The record of the newest round, which may have no source. Raises `Interrupted`, `CallNotAllowed`.
    """
    key = need_id(need)
    record = known.get(key, Vetted(need=need))
    known[key] = record = record.next_round() if record.complete else record
    if record.searched < record.round:
        known[key] = record = await _name_searches(run, record, caller, works, engine)
    earlier = {one.source_id for one in record.examined if one.round < record.round}
    names = await _read_candidates(run, record, works, earlier, most)
    await _examine(run, names, known, key, engine)
    known[key] = record = known[key].model_copy(update={"complete": True})
    accepted, rejected = ([one.source_id for one in part] for part in (record.accepted, record.rejected))
    text = f"{len(accepted)} of {plural(len(names), 'candidate')} vetted: {shorten(need, NEED_CHARACTERS)}"
    run.decide(LIBRARIAN.name, "vet_sources", text, {"need": key}, {"accepted": accepted, "rejected": rejected})
    return record


def describe_vetted(state: ResearchState, vetted: Vetted) -> list[VettedSource]:
    """Return the vetted sources of the newest round for a planner of trees."""
    return [
        VettedSource(id=one.source_id, title=state.sources[one.source_id].title, quality=one.quality, reason=one.reason)
        for one in vetted.accepted
    ]


async def _name_searches(
    run: ResearchRun, record: Vetted, caller: str, works: Sequence[MentionedWork], engine: EngineKind | None
) -> Vetted:
    """Have the librarian name searches, and put them into the plan."""
    plan, key = run.state.plan, need_id(record.need)
    request = LibrarianInput(
        need=record.need,
        asked=[node.text for node in plan.nodes if node.id in record.searches],
        works=list(dict.fromkeys(work.search_words for work in works)),
    )
    answer = await ask_for(run, caller, LIBRARIAN, f"librarian/{key}", request, engine)
    nodes = [
        PlanNode(id=sub_query_id(text), text=text, origin=CHOSEN_BY_AGENT, iteration=run.state.iteration)
        for text in answer.searches
    ]
    run.state.plan = plan.with_nodes(*(plan.newest(node) for node in nodes))
    searches = list(dict.fromkeys([*record.searches, *(node.id for node in nodes)]))
    return record.model_copy(update={"searches": searches, "searched": record.round})


async def _read_candidates(
    run: ResearchRun, record: Vetted, works: Sequence[MentionedWork], earlier: Collection[str], most: int
) -> list[str]:
    """Search, and read the candidates of this round; their ids as sources, those that the request names first."""
    state = run.state
    nodes = [node for node in state.plan.nodes if node.id in record.searches]
    unsearched = [node for node in nodes if node.status not in SEARCHED]
    if unsearched:
        await Gathering(run, unsearched, only=frozenset()).carry_out()
    # The sources are examined here, not analyzed by search.
    state.analyzed_sub_queries = list(dict.fromkeys([*state.analyzed_sub_queries, *record.searches]))
    hits = [hit for hit in hits_of(state, record.searches, works) if not run.is_excluded(hit)]
    chosen = choose_candidates(state, hits, earlier, most)
    identities, fetched = Identities(state.sources, state.aliases), state.fetched_sources()
    unread = frozenset(canonical_url(hit.url) for hit in chosen if identities.identity_of(hit) not in fetched)
    owners = {one.sub_query_id for one in state.candidates if canonical_url(one.hit.url) in unread}
    if unread:
        await Gathering(run, [node for node in nodes if node.id in owners], only=unread).carry_out()
    identities = Identities(state.sources, state.aliases)
    found = [*_named(state, record), *(identities.identity_of(hit) for hit in chosen)]
    return [name for name in dict.fromkeys(found) if name in state.sources and name not in earlier]


def _named(state: ResearchState, record: Vetted) -> list[str]:
    """Return the sources that the request names and that were read for this need."""
    of_request = [state.sources[name] for name in protected_ids(state).values() if name in state.sources]
    return [source.id for source in of_request if not set(source.sub_query_ids).isdisjoint(record.searches)]


async def _examine(
    run: ResearchRun, candidates: Sequence[str], known: dict[str, Vetted], key: str, engine: EngineKind | None
) -> None:
    """Examine the candidates that were not examined yet, each alone in its call, side by side.

    All that is answered is taken over, in the order of the candidates. Raises `Interrupted`.
    """
    record, at_once = known[key], asyncio.Semaphore(run.resolved.limits.max_parallel)
    done = {one.source_id for one in record.examined}
    due = [run.state.sources[name] for name in candidates if name not in done]
    named = frozenset(_named(run.state, record))
    by_rules = (engine or run.resolved.engine) is EngineKind.EXTRACTIVE

    async def scan(source: Source) -> ScannerAnswer | None:
        if by_rules or source.status is not SourceStatus.FULL or source.id in named:
            return None
        need = PlanNode(id=key, text=record.need)
        request = ScanInput(sub_query=need, sources=[extract_of(source)], source_characters=SCANNED_CHARACTERS)
        async with at_once:
            return await ask_for(run, LIBRARIAN.name, SCANNER, f"scan/{key}/{source.id}", request)

    calls = [asyncio.ensure_future(scan(source)) for source in due]
    try:
        await run.host.settle(calls)
    except asyncio.CancelledError:
        await abandon(run.host, calls)
        raise
    interruption: BaseException | None = None
    for source, call in zip(due, calls, strict=True):
        error = call.exception()
        is_lost = isinstance(error, Unanswered) or (isinstance(error, ActivityError) and not is_cancelled(error))
        if error is not None and not is_lost:
            interruption = interruption or error
            continue
        answer = call.result() if error is None else None
        if error is not None:
            run.degrade(WITHOUT_SCAN)
        examined = (
            _with_scan(run, source, answer, record.round)
            if answer is not None
            else assess_by_rules(source, record.round, is_named=source.id in named)
        )
        known[key] = known[key].model_copy(update={"examined": [*known[key].examined, examined]})
    if interruption is not None:
        raise interruption


def _with_scan(run: ResearchRun, source: Source, answer: ScannerAnswer, number: int) -> ExaminedSource:
    """Return the result for one candidate; a scan moves the label of the rules by at most one step."""
    source = update_quality(source, QualityUpdate(source_id=source.id, quality=answer.credibility), SCANNER.name)
    run.state.sources[source.id] = source
    reason = answer.reason or f"credibility {answer.credibility.value}, relevance {answer.relevance.value}"
    accepted = answer.accepts(source.quality)
    return ExaminedSource(source_id=source.id, accepted=accepted, quality=source.quality, reason=reason, round=number)
