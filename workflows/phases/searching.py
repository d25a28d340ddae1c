"""Searching for one sub-query: the providers of the run by its policy, and one list of hits from their answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures
from contracts.addresses import canonical_url, doi_of
from contracts.canary import STEERED_NOTE
from contracts.evidence import SearchHit, together
from contracts.messages import SearchRequest, SearchResponse
from contracts.names import CORPUS_PROVIDER
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.request import EARLIER, SearchPolicy, SourceType, published_between
from contracts.resolved import ProviderChoice, ResolvedResearch
from contracts.texts import shorten
from contracts.vocabulary import AgentRole
from workflows.rules.query_matching import asked_before
from workflows.run.budget import account
from workflows.run.calls import (
    describe_failure,
    is_cancelled,
    is_outage,
    last_failure,
    reason_of,
    search_options,
    spent_by,
)
from workflows.run.research_run import ResearchRun

MOST_FAILURES: Final = 2
"""Failures, each after its retries, from which a provider is lost for the run."""
PATIENCE_SECONDS: Final = 10.0
"""One of several providers is tried for this long, then the search goes on with the others."""
LONGEST_PATIENCE_SECONDS: Final = 30.0
"""The same when no provider answered: the search is repeated, and one that does not come back delays the others."""
PERMANENT: Final = (failures.SEARCH_NOT_CONFIGURED, failures.CORPUS_UNAVAILABLE)
"""Failures that will not pass: a key that is refused, a folder that is gone."""


@dataclass(frozen=True)
class Service:
    """One provider for one type of source."""

    choice: ProviderChoice
    source_type: SourceType

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.choice.name


EARLIER_RUN: Final = Service(ProviderChoice(name=EARLIER, available=True), SourceType.WEB)
"""The sources of the run that this one follows: offered before all others."""


@dataclass
class Answers:
    """The responses of the providers for one sub-query, in their order, and the failures of the others."""

    responses: list[SearchResponse] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Provider → typed reason."""
    asked: list[tuple[str, str, int | None]] = field(default_factory=list)
    """Provider, type of source and number of hits of each search; None where it failed."""
    failures: list[tuple[str, str, ActivityError]] = field(default_factory=list)
    """Operation, provider and error of each search that failed."""

    @property
    def is_outage(self) -> bool:
        """No provider answered, and one of them may answer later."""
        return not self.responses and any(is_outage(error) for _, _, error in self.failures)

    @property
    def folded(self) -> int:
        """Number of hits that became one with another: more than one provider had them."""
        hits = sum(len(response.hits) for response in self.responses)
        return hits - len(_distinct_hits(self.responses)) if len(self.responses) > 1 else 0

    @property
    def failed(self) -> str | None:
        """Reason for which there is no answer at all; None if a provider answered, even without hits."""
        if self.responses:
            return None
        if len(self.errors) == 1:
            return next(iter(self.errors.values()))
        return "; ".join(f"{name}: {reason}" for name, reason in self.errors.items()) or "nobody could be asked"


def services_of(resolved: ResolvedResearch) -> list[Service]:
    """Return the services of a run in order: each available provider for each requested type that it has."""
    return [
        Service(choice, source_type)
        for choice in resolved.providers
        if choice.available
        for source_type in ([SourceType.WEB] if choice.name == CORPUS_PROVIDER else resolved.search.source_types)
        if choice.name == CORPUS_PROVIDER or source_type in choice.source_types
    ]


class Searching:
    """Searches for the sub-queries of one gathering, and remembers the providers that failed."""

    def __init__(self, run: ResearchRun, sub_queries: Sequence[PlanNode] = ()) -> None:
        """`sub_queries` are all that are searched at the same time."""
        self._run = run
        self._resolved = resolved = run.resolved
        self._questions = [query.text for query in sub_queries]
        self._services = services_of(resolved)
        follows = resolved.follow_up is not None and bool(resolved.follow_up.entry) and run.state.iteration == 1
        self._earlier = [EARLIER_RUN] if follows else []
        self._failures: dict[str, set[str]] = {}
        self._answered: set[str] = set()

    async def search(self, query: PlanNode) -> Answers:
        """Ask by the run's policy, but never with a query that contains the canary.

        A failed provider is part of the answer. While no provider answers for a reason that may pass, the search is
        repeated until the time for work is over. Raises `ActivityError` only for a cancelled call.
        """
        run = self._run
        if run.contains_canary(query.text):
            run.degrade(STEERED_NOTE)
            return Answers(errors=dict.fromkeys((service.name for service in self._services), "refused_private"))
        remaining = run.clock.remaining_work_seconds()
        patience = None if len(self._services) == 1 else PATIENCE_SECONDS
        answers = await self._search_once(query, patience)
        while patience is not None and answers.is_outage and remaining > patience:
            run.note("status", f"no search provider answers: trying again: {query.text}", level="warning")
            remaining, patience = remaining - patience, min(2 * patience, LONGEST_PATIENCE_SECONDS)
            answers = await self._search_once(query, patience)
        return answers

    async def _search_once(self, query: PlanNode, patience: float | None) -> Answers:
        chains = [*([service] for service in self._earlier), *self._chains()]
        parts = [Answers() for _ in chains]
        searches = zip(chains, parts, strict=True)
        await asyncio.gather(*(self._ask_chain(query, chain, part, patience) for chain, part in searches))
        answers = Answers()
        for part in parts:
            if self._earlier and part is parts[0] and not any(response.hits for response in part.responses):
                continue  # an earlier run without a fitting source proves nothing about the providers
            answers.responses += part.responses
            answers.errors |= part.errors
            answers.asked += part.asked
            answers.failures += part.failures
        for operation, name, error in answers.failures:
            if answers.responses or not is_outage(error):
                self._count_failure(query, operation, name, error)
        return answers

    def response(self, answers: Answers) -> SearchResponse:
        """Return one response for the sub-query: the hits of all providers by turns, the word counts of a corpus."""
        if len(answers.responses) == 1:
            return answers.responses[0]
        most = max((self._most_hits(service.name) for service in [*self._services, *self._earlier]), default=0)
        corpus = next((one for one in answers.responses if one.documents_searched is not None), None)
        return SearchResponse(
            provider="+".join(dict.fromkeys(response.provider for response in answers.responses)),
            hits=merge_hits(answers.responses, most),
            documents_searched=corpus.documents_searched if corpus else None,
            term_documents=corpus.term_documents if corpus else {},
        )

    # --- the order of the services ---------------------------------------------------------------------------------
    def _chains(self) -> list[list[Service]]:
        """Return lists of services that are asked in parallel, each until one of them finds something.

        By the policy `fan_out` each service is a list of its own, else all services of one type: no type replaces
        another. When all providers are lost all are asked once more, so that an outage can end.
        """
        lost = self._run.state.lost_providers
        usable = [service for service in self._services if service.name not in lost] or self._services
        if self._resolved.search.policy is SearchPolicy.FAN_OUT:
            return [[service] for service in usable]
        types = dict.fromkeys(service.source_type for service in usable)
        return [[service for service in usable if service.source_type is source_type] for source_type in types]

    async def _ask_chain(self, query: PlanNode, chain: list[Service], answers: Answers, patience: float | None) -> None:
        for service in chain:
            await self._ask(query, service, answers, patience)
            if answers.responses and answers.responses[-1].hits:
                return

    # --- one search ------------------------------------------------------------------------------------------------
    async def _ask(self, query: PlanNode, service: Service, answers: Answers, patience: float | None) -> None:
        run = self._run
        request = self._request(query, service).model_copy(update={"patience_seconds": patience})
        known = asked_before(run.state.ledger.queries, query.text, service.name, service.source_type.value)
        if known is not None and known.text != query.text:
            # The cache has the answer to the earlier wording.
            request = request.model_copy(update={"text": known.text})
            run.note("status", f"asked before: “{shorten(known.text, 150)}”", provider=service.name)
        options = search_options(request.operation, f"search: {query.text}", run.clock.remaining_work_seconds())
        try:
            response = await run.host.execute(activities.SEARCH, request, options)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            answers.errors[service.name] = reason_of(error)
            answers.asked.append((service.name, service.source_type.value, None))
            account(run.state, AgentRole.GATHERER, spent_by(error))
            answers.failures.append((request.operation, service.name, error))
            return
        self._answered.add(service.name)
        run.state.note_entry(response.entry)
        usage = Usage(searches=1, cached_searches=int(response.cached), cost_usd=response.cost_usd)
        account(run.state, AgentRole.GATHERER, usage.plus(response.spent_before or Usage()))
        answers.responses.append(_with_labels(response))
        answers.asked.append((service.name, service.source_type.value, len(response.hits)))
        for warning in response.warnings:
            run.note("status", f"{service.name}: {warning}", level="info", provider=service.name)

    def _request(self, query: PlanNode, service: Service) -> SearchRequest:
        run, resolved, search = self._run, self._resolved, self._resolved.search
        operation = run.scoped(f"search/{query.id}/{service.name}")
        if service.source_type is not SourceType.WEB:
            operation += f"/{service.source_type.value}"
        today = run.state.started_at[:10]
        request = SearchRequest(
            research_id=resolved.research_id,
            tenant=resolved.tenant,
            operation=operation,
            provider=service.name,
            text=query.text,
            max_results=self._most_hits(service.name),
            source_type=service.source_type,
            earlier_entry=resolved.follow_up.entry if resolved.follow_up and service.name == EARLIER else "",
            titled=resolved.limits.max_sources_per_query,
            questions=self._questions,
            date=today,
            resolved_entry=run.state.resolved_entry,
            permitted=run.is_permitted,
        )
        if service.name == CORPUS_PROVIDER and resolved.corpus:
            return request.model_copy(update={"corpus": resolved.corpus.name})
        first, last = published_between(resolved.constraints.timeframe, today)
        return request.model_copy(
            update={
                "domains_allow": search.domains_allow,
                "domains_deny": search.domains_deny,
                "language": resolved.constraints.language,
                "published_from": first,
                "published_to": last,
            }
        )

    def _most_hits(self, provider: str) -> int:
        limits = self._resolved.limits
        is_corpus = provider == CORPUS_PROVIDER
        return 2 * limits.max_sources_per_query if is_corpus else self._resolved.search.max_results_per_query

    # --- failures --------------------------------------------------------------------------------------------------
    def _count_failure(self, query: PlanNode, operation: str, provider: str, error: ActivityError) -> None:
        """Count a failure, and give up a provider that will not come back, as long as there is another one.

        A query that a provider refuses is one failure for all types of source, and none if it answers others.
        """
        run, cause, reason = self._run, last_failure(error), describe_failure(error)
        kind = cause.type if isinstance(cause, ApplicationError) else reason_of(error)
        refused = kind == failures.SEARCH_REJECTED
        if refused:
            text = f"{provider} did not take “{shorten(query.text, 150)}”: {reason}"
            run.note("status", text, level="warning", provider=provider)
        if not refused or provider not in self._answered:
            self._failures.setdefault(provider, set()).add(query.id if refused else operation)
        if len({service.name for service in self._services}) == 1 or provider in run.state.lost_providers:
            return
        if kind in PERMANENT or len(self._failures.get(provider, ())) >= MOST_FAILURES:
            run.state.lost_providers[provider] = reason
            run.degrade(f"search provider {provider} was lost during the run: {reason}")


def _with_labels(response: SearchResponse) -> SearchResponse:
    """Return the response with rank, provider and entry in each hit, which the activity gives once for all."""
    if response.entry is None:
        return response
    hits = [
        hit.model_copy(update={"rank": rank, "provider": response.provider, "entries": [response.entry]})
        for rank, hit in enumerate(response.hits, start=1)
    ]
    return response.model_copy(update={"hits": hits})


# --- one list of hits ----------------------------------------------------------------------------------------------
def merge_hits(responses: Sequence[SearchResponse], limit: int) -> list[SearchHit]:
    """Return at most `limit` hits, ranked from 1: the providers take turns, rank by rank, in the order of `responses`.

    Hits of one canonical URL or one DOI become one at the best place, with the richer details of both.
    """
    distinct = _distinct_hits(responses)
    return [hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(distinct[: max(0, limit)], start=1)]


def _distinct_hits(responses: Sequence[SearchResponse]) -> list[SearchHit]:
    by_rank = [sorted(response.hits, key=lambda hit: hit.rank) for response in responses]
    hits: dict[int, SearchHit] = {}
    places: dict[str, int] = {}
    """URL or DOI → place in `hits`."""
    for rank in range(max(map(len, by_rank), default=0)):
        for found in by_rank:
            if rank < len(found):
                _add_distinct(found[rank], hits, places)
    return [hits[place] for place in sorted(hits)]


def _add_distinct(hit: SearchHit, hits: dict[int, SearchHit], places: dict[str, int]) -> None:
    """Add a hit, or merge it with the one or more hits of the same URL or DOI."""
    same = sorted({places[key] for key in _keys(hit) if key in places})
    place = same[0] if same else max(hits, default=-1) + 1
    hits[place] = together(hits[place], hit) if same else hit
    for other in same[1:]:
        hits[place] = together(hits[place], hits.pop(other))
        places.update({key: place for key, known in places.items() if known == other})
    places.update(dict.fromkeys(_keys(hits[place]) + _keys(hit), place))


def _keys(hit: SearchHit) -> list[str]:
    doi = doi_of(hit.doi) or doi_of(hit.url)
    return [canonical_url(hit.url), *([f"doi:{doi}"] if doi else [])]
