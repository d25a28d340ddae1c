"""Searching for one sub-query: calls to the run's providers by its policy, and their hits merged into one list."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import zip_longest
from typing import Any, Final

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures
from contracts.canary import STEERED_NOTE, public_query
from contracts.evidence import QueryRecord, SearchHit, join_hits, keys_of
from contracts.messages import SearchRequest, SearchResponse
from contracts.names import CORPUS_PROVIDER, SEARCH_QUEUE
from contracts.outcome import Usage
from contracts.plan import OTHER_FORM, PlanNode
from contracts.request import EARLIER_PROVIDER, SearchPolicy, SourceType, published_between
from contracts.roles import SourceExtract
from contracts.sentences import Message
from contracts.texts import shorten
from contracts.thread_roles import ARCHIVIST, RecallInput
from contracts.vocabulary import AgentRole
from workflows.rules.sub_queries import find_asked, query_record
from workflows.run.budget import account
from workflows.run.calls import (
    call_options,
    defects_of,
    describe_failure,
    is_cancelled,
    is_outage,
    last_failure,
    reason_of,
    spent_by,
)
from workflows.run.research_run import ResearchRun

MAX_FAILURES: Final = 2
"""Failures, each after its retries, after which a provider is dropped for the run."""
PATIENCE_SECONDS: Final = 10.0
"""Time for retries of one of several providers before the search continues with the others."""
MAX_PATIENCE_SECONDS: Final = 30.0
"""Upper limit of this time when the whole search is repeated, because a dead provider delays the others."""
SNIPPET_CHARACTERS: Final = 160
"""Shown of each hit to a role that chooses pages: a sentence."""
PERMANENT_FAILURES: Final = (failures.SEARCH_NOT_CONFIGURED, failures.CORPUS_UNAVAILABLE)
"""Permanent failures: a rejected key, a missing folder."""


Service = tuple[str, SourceType]
"""One provider for one type of source."""


@dataclass
class Answers:
    """The providers' responses for one sub-query, in provider order, and their failures."""

    responses: list[SearchResponse] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Provider → typed reason."""
    asked: list[QueryRecord] = field(default_factory=list)
    """Record of each search, including failed ones."""
    failures: list[tuple[str, ActivityError]] = field(default_factory=list)
    """Provider and error of each failed search."""

    @classmethod
    def of(cls, parts: Iterable["Answers"]) -> "Answers":
        """Return the answers of several providers or chains as one, in order."""
        answers = cls()
        for part in parts:
            answers.responses += part.responses
            answers.errors |= part.errors
            answers.asked += part.asked
            answers.failures += part.failures
        return answers

    @property
    def has_hits(self) -> bool:
        """Return true if a provider found something."""
        return any(response.hits for response in self.responses)

    @property
    def is_outage(self) -> bool:
        """Return true if no provider answered but one may answer later."""
        return not self.responses and any(is_outage(error) for _, error in self.failures)

    @property
    def duplicate_hits(self) -> int:
        """Return the number of hits merged into others, because several providers had them."""
        hits = sum(len(response.hits) for response in self.responses)
        if len(self.responses) <= 1:
            return 0
        return hits - len(merge_hits(self.responses, hits))

    @property
    def failed(self) -> str | None:
        """Return the reason why no provider answered; None if one did, even without hits."""
        if self.responses:
            return None
        return _named(self.errors)

    @property
    def failed_in_words(self) -> str:
        """Return the same reason for people."""
        return _named({name: failures.EXPLANATIONS.get(reason, reason) for name, reason in self.errors.items()})


@dataclass
class Recalled:
    """The sources of the thread above a run that fit its sub-queries, offered before all searches."""

    answers: dict[str, Answers] = field(default_factory=dict)
    """By sub-query; only those with sources that the run has not read yet."""
    answered: set[str] = field(default_factory=set)
    """Ids of the sub-queries that these sources answer, so that nothing is searched for them."""


def _named(errors: Mapping[str, str]) -> str:
    """Return the errors of providers in one line: the only one, or each with its name."""
    if len(errors) == 1:
        return next(iter(errors.values()))
    return "; ".join(f"{name}: {reason}" for name, reason in errors.items()) or "no provider could be asked"


class Searching:
    """Searches for the sub-queries of one gathering, and tracks failing providers."""

    def __init__(self, run: ResearchRun, sub_queries: Sequence[PlanNode] = (), *, titled: bool = False) -> None:
        """`sub_queries` are all those searched at the same time; `titled` is for a role that chooses by hits."""
        self._run = run
        self._titled = titled
        self._resolved = resolved = run.resolved
        self._questions = [query.text for query in sub_queries]
        self._services: list[Service] = []
        """Each available provider for each requested source type it supports, in order."""
        for choice in resolved.providers:
            if choice.available and choice.name == CORPUS_PROVIDER:
                self._services.append((choice.name, SourceType.WEB))
            elif choice.available:
                supported = [kind for kind in resolved.search.source_types if kind in choice.source_types]
                self._services += [(choice.name, source_type) for source_type in supported]
        self._sub_queries = sub_queries
        self._thread = resolved.follow_up.entry if resolved.follow_up else ""
        """Hash of the entry with the sources of the thread above this run; empty: there are none."""
        self._recalling: asyncio.Task[Recalled] | None = None
        self._failed: dict[str, set[str]] = {}
        """Provider → ids of the sub-queries for which it failed."""

    async def search(self, query: PlanNode) -> Answers:
        """Search by the run's policy, but never with a query that contains the canary.

        Provider failures are part of the answer. If all providers fail transiently, the search is repeated until the
        time for work is up. Raises `ActivityError` only for a cancelled call.
        """
        run = self._run
        if run.contains_canary(query.text):
            run.degrade(STEERED_NOTE)
            return Answers(errors=dict.fromkeys((name for name, _ in self._services), "refused_private"))
        remaining = run.clock.remaining_work_seconds()
        # One provider with two source types is still a single provider, which nothing replaces.
        patience = None if len({name for name, _ in self._services}) == 1 else PATIENCE_SECONDS
        recalled = await self._recall()
        earlier = recalled.answers.get(query.id)
        if earlier is not None and query.id in recalled.answered:
            run.note("status", f"answered by what the thread has read: {query.text}", level="info")
            return earlier
        answers = await self._search_once(query, patience)
        if earlier is not None:
            return Answers.of([earlier, answers])
        while patience is not None and answers.is_outage and remaining > patience:
            run.note("status", f"no search provider answers: trying again: {query.text}", level="warning")
            remaining = remaining - patience
            patience = min(2 * patience, MAX_PATIENCE_SECONDS)
            answers = await self._search_once(query, patience)
        return answers

    async def _search_once(self, query: PlanNode, patience: float | None) -> Answers:
        """Search once: chains of services in parallel, each chain until one of its services has hits.

        With the policy `fan_out` each service is its own chain; otherwise all services of one source type are, because
        one type cannot replace another. If all providers were dropped, all are tried again, as an outage may be over.
        """
        lost = self._run.state.work.lost_providers
        usable = [service for service in self._services if service[0] not in lost] or self._services
        if self._resolved.search.policy is SearchPolicy.FAN_OUT:
            chains = [[service] for service in usable]
        else:
            types = dict.fromkeys(source_type for _, source_type in usable)
            chains = [[service for service in usable if service[1] is source_type] for source_type in types]

        async def ask_chain(chain: list[Service]) -> Answers:
            parts: list[Answers] = []
            for provider, source_type in chain:
                parts.append(await self._ask(query, provider, source_type, patience))
                if parts[-1].has_hits:
                    break
            return Answers.of(parts)

        parts = await asyncio.gather(*map(ask_chain, chains))
        answers = Answers.of(parts)
        for name, error in answers.failures:
            if answers.responses or not is_outage(error):
                self._count_failure(query, name, error)
        return answers

    def response(self, answers: Answers) -> SearchResponse:
        """Return one response for the sub-query: the interleaved hits of all providers, a corpus's term frequencies."""
        if len(answers.responses) == 1:
            return answers.responses[0]
        names = [name for name, _ in self._services]
        if self._thread:
            names.append(EARLIER_PROVIDER)
        corpus = next((one for one in answers.responses if one.documents_searched is not None), answers.responses[0])
        return corpus.with_fields(
            provider="+".join(dict.fromkeys(response.provider for response in answers.responses)),
            hits=merge_hits(answers.responses, max(map(self._max_hits, names), default=0)),
        )

    # --- what the thread has read ----------------------------------------------------------------------------------
    async def _recall(self) -> Recalled:
        """Return what the thread above the run offers, asked for once for all sub-queries of the gathering."""
        if not self._thread:
            return Recalled()
        if self._recalling is None:
            self._recalling = asyncio.ensure_future(self._ask_thread())
        return await self._recalling

    async def _ask_thread(self) -> Recalled:
        """Search the archived texts of the thread for each sub-query, and ask which of them they answer.

        Sources that the run has read already are not offered again. Raises as `ResearchRun.ask` does.
        """
        run = self._run
        forms = {query.id for query in self._sub_queries if query.facet == OTHER_FORM}
        known = {key for source in run.state.evidence.fetched_sources().values() for key in keys_of(source)}
        due = [query for query in self._sub_queries if not run.contains_canary(query.text)]
        found = await asyncio.gather(*(self._ask(query, EARLIER_PROVIDER, SourceType.WEB, None) for query in due))
        recalled = Recalled()
        archived: dict[str, None] = {}
        asked: list[PlanNode] = []
        for query, answers in zip(due, found, strict=True):
            hits = [hit for response in answers.responses for hit in response.hits if not known & set(keys_of(hit))]
            if not hits:  # a thread without a matching source is not a provider's answer
                continue
            recalled.answers[query.id] = answers
            archived |= dict.fromkeys(hit.archived for hit in hits if hit.archived)
            if query.id not in forms:
                asked.append(query)
        if asked and archived:
            request = RecallInput.of(
                [(query.id, query.text) for query in asked],
                read_sources=[SourceExtract(entry=entry) for entry in archived],
            )
            output = await run.ask(ARCHIVIST, f"recall/{asked[0].id}", request)
            recalled.answered = {asked[number - 1].id for number in output.answered}
            if recalled.answered == {query.id for query in due} - forms:
                recalled.answered |= forms  # the words of the question in another form ask for nothing else
        return recalled

    # --- one search ------------------------------------------------------------------------------------------------
    async def _ask(self, query: PlanNode, provider: str, source_type: SourceType, patience: float | None) -> Answers:
        """Return the answer of one provider, or its failure. Raises `ActivityError` only for a cancelled call."""
        run = self._run
        text = self._wording(query, provider, source_type)
        if not text:
            return Answers(errors={provider: "refused_private"})
        most = self._resolved.limits.max_searches
        is_counted = provider != EARLIER_PROVIDER  # nothing is asked of anybody
        if is_counted and most is not None and run.state.accounts.usage.searches + run.searches_under_way >= most:
            run.degrade(failures.EXPLANATIONS[failures.SEARCH_LIMIT])
            return Answers(errors={provider: failures.SEARCH_LIMIT})
        request = self._request(query, provider, source_type).with_fields(text=text, patience_seconds=patience)
        remaining = run.clock.remaining_work_seconds()
        options = call_options(SEARCH_QUEUE, request.operation, f"search: {query.text}", remaining)
        run.searches_under_way += is_counted
        try:
            response = await run.host.execute(activities.SEARCH, request, options)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            account(run.state, AgentRole.GATHERER, spent_by(error))
            run.state.work.note_defects(defects_of(error))
            return Answers(
                errors={provider: reason_of(error)},
                asked=[query_record(query, provider, found=None, source_type=source_type.value)],
                failures=[(provider, error)],
            )
        finally:
            run.searches_under_way -= is_counted
        run.state.evidence.note_entry(response.entry)
        if is_counted:
            usage = Usage(searches=1, cached_searches=int(response.cached), cost_usd=response.cost_usd)
            account(run.state, AgentRole.GATHERER, usage.plus(response.spent_before or Usage()))
        if response.entry is not None:
            # The activity returns provider and entry once for all hits, and ranks as list order.
            hits = [
                hit.with_fields(rank=rank, provider=response.provider, entries=[response.entry])
                for rank, hit in enumerate(response.hits, start=1)
            ]
            response = response.with_fields(hits=hits)
        for warning in response.warnings:
            run.note("status", f"{provider}: {warning}", level="info", provider=provider)
        record = query_record(query, provider, found=len(response.hits), source_type=source_type.value)
        return Answers(responses=[response], asked=[record])

    def _wording(self, query: PlanNode, provider: str, source_type: SourceType) -> str:
        """Return the text to search for: the wording of an equal earlier query, because that is a cache hit.

        Public services get no addresses and no long text; empty if nothing else is in the query.
        """
        run = self._run
        text = query.text
        earlier = find_asked(run.state.evidence.ledger.queries, text, provider, source_type.value)
        if earlier is not None and earlier.text != text:
            text = earlier.text
            run.note("status", f"searched before: “{shorten(text, 150)}”", provider=provider)
        if provider in (CORPUS_PROVIDER, EARLIER_PROVIDER):
            return text
        public = public_query(text, self._resolved.query)
        if public != " ".join(text.split()):
            note = f"searched without addresses and shortened: “{public}”"
            run.note("status", note, level="info", provider=provider)
        return public

    def _request(self, query: PlanNode, provider: str, source_type: SourceType) -> SearchRequest:
        run = self._run
        resolved = self._resolved
        search = self._resolved.search
        operation = run.scoped(f"search/{query.id}/{provider}")
        if source_type is not SourceType.WEB:
            operation += f"/{source_type.value}"
        today = run.state.clock.started_at[:10]
        if provider == CORPUS_PROVIDER and resolved.corpus:
            filters: dict[str, Any] = {"corpus": resolved.corpus.name}
        else:
            first, last = published_between(resolved.constraints.timeframe, today)
            filters = {
                "domains_allow": search.domains_allow,
                "domains_deny": search.domains_deny,
                "language": resolved.constraints.language,
                "published_from": first,
                "published_to": last,
            }
        return SearchRequest(
            research_id=resolved.research_id,
            tenant=resolved.tenant,
            operation=operation,
            provider=provider,
            text=query.text,
            max_results=self._max_hits(provider),
            source_type=source_type,
            earlier_entry=self._thread if provider == EARLIER_PROVIDER else "",
            titled=self._max_hits(provider) if self._titled else resolved.limits.max_sources_per_query,
            snippet_characters=SNIPPET_CHARACTERS if self._titled else 0,
            questions=self._questions,
            date=today,
            resolved_entry=run.state.work.resolved_entry,
            permitted=run.is_permitted,
            **filters,
        )

    def _max_hits(self, provider: str) -> int:
        if provider == CORPUS_PROVIDER:
            return 2 * self._resolved.limits.max_sources_per_query
        return self._resolved.search.max_results_per_query

    def _count_failure(self, query: PlanNode, provider: str, error: ActivityError) -> None:
        """Count a failure, and drop a provider that will not recover, as long as there is another one.

        A rejected query is not a failure of the provider.
        """
        run = self._run
        cause = last_failure(error)
        reason = describe_failure(error)
        if isinstance(cause, ApplicationError):
            kind = cause.type
        else:
            kind = reason_of(error)
        if kind == failures.SEARCH_REJECTED:
            text = f"{provider} did not take “{shorten(query.text, 150)}”: {reason}"
            run.note("status", text, level="warning", provider=provider)
            return
        failed = self._failed.setdefault(provider, set())
        failed.add(query.id)
        if len({name for name, _ in self._services}) == 1 or provider in run.state.work.lost_providers:
            return
        if kind in PERMANENT_FAILURES or len(failed) >= MAX_FAILURES:
            run.state.work.lost_providers[provider] = reason
            run.degrade(Message("degraded_provider", name=provider, why=reason))


def merge_hits(responses: Sequence[SearchResponse], limit: int) -> list[SearchHit]:
    """Return at most `limit` hits, ranked from 1: interleaved rank by rank, in the order of `responses`.

    Hits with the same canonical URL or DOI are merged at the best rank, with the details of both.
    """
    by_rank = zip_longest(*(sorted(response.hits, key=lambda hit: hit.rank) for response in responses))
    distinct: list[tuple[frozenset[str], SearchHit]] = []
    """Keys (URLs and DOIs) of a source, and its hit."""
    for hit in (hit for rank in by_rank for hit in rank if hit is not None):
        keys = frozenset(keys_of(hit))
        same = [entry for entry in distinct if entry[0] & keys]
        merged = (keys.union(*(entry[0] for entry in same)), reduce(join_hits, [*(entry[1] for entry in same), hit]))
        index = distinct.index(same[0]) if same else len(distinct)
        distinct = [*distinct[:index], merged, *(entry for entry in distinct[index:] if entry not in same)]
    return [hit.with_fields(rank=rank) for rank, (_, hit) in enumerate(distinct[:limit], start=1)]
