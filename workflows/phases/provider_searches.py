"""Searching for one sub-query: every provider of the run by its policy, one list of hits."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures
from contracts.canary import STEERED_NOTE
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.request import EARLIER, SearchPolicy, SourceType, published_between
from contracts.resolved import ProviderChoice, ResolvedResearch
from contracts.texts import shorten
from contracts.vocabulary import AgentRole
from workflows.rules.query_matching import asked_before
from workflows.rules.search_merging import folded_in, merge_hits
from workflows.run.accounting import account
from workflows.run.activity_options import search_options
from workflows.run.call_errors import describe_failure, is_cancelled, is_outage, last_failure, reason_of, spent_by
from workflows.run.research_run import ResearchRun

CORPUS: Final = "corpus"
MOST_FAILURES: Final = 2
"""A provider that failed so often, each time after its retries, is lost for the run."""
HOPELESS: Final = (failures.SEARCH_NOT_CONFIGURED, failures.CORPUS_UNAVAILABLE)
"""Failures that will not pass: a key that is refused, a folder that is gone."""
PATIENCE_SECONDS: Final = 10.0
"""One of several providers is tried for this long, then the search goes on with the others."""
LONGEST_PATIENCE_SECONDS: Final = 30.0
"""The same when no provider answered: the search is repeated, and one that does not come back delays the others."""


@dataclass(frozen=True)
class ProviderTurn:
    """One provider asked for one type of source."""

    choice: ProviderChoice
    source_type: SourceType

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.choice.name


EARLIER_PLACE: Final = ProviderTurn(ProviderChoice(name=EARLIER, available=True), SourceType.WEB)
"""The sources of the run that this one follows: offered before those that anybody finds."""


@dataclass
class Answers:
    """What the providers gave for one sub-query, in their order, and why the others gave nothing."""

    responses: list[SearchResponse] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Provider → typed reason."""
    asked: list[tuple[str, str, int | None]] = field(default_factory=list)
    """Provider, type of source and number of hits of each search, null where it failed."""
    failures: list[tuple[str, str, ActivityError]] = field(default_factory=list)
    """Operation, provider and error of each search that failed."""

    @property
    def is_outage(self) -> bool:
        """No provider answered, and one of them may answer later."""
        return not self.responses and any(is_outage(error) for _, _, error in self.failures)

    @property
    def folded(self) -> int:
        """How many hits became one with another: what more than one provider had."""
        return folded_in(self.responses) if len(self.responses) > 1 else 0

    @property
    def failed(self) -> str | None:
        """Why there is no answer at all; null if anyone answered, even with nothing."""
        if self.responses:
            return None
        if len(self.errors) == 1:
            return next(iter(self.errors.values()))
        return "; ".join(f"{name}: {why}" for name, why in self.errors.items()) or "nobody could be asked"


def places(resolved: ResolvedResearch) -> list[ProviderTurn]:
    """Whom to ask and for what, in order: each available provider for each wanted type that it has."""
    wanted = resolved.search.source_types
    return [
        ProviderTurn(choice, source_type)
        for choice in resolved.providers
        if choice.available
        for source_type in ([SourceType.WEB] if choice.name == CORPUS else wanted)
        if choice.name == CORPUS or source_type in choice.source_types
    ]


def in_turn(usable: list[ProviderTurn], policy: SearchPolicy) -> list[list[ProviderTurn]]:
    """Lists of places that are asked side by side, each until somebody finds something.

    Everybody is a list of its own, or everybody who has one type of source: no type stands in for another.
    """
    if policy is SearchPolicy.FAN_OUT:
        return [[place] for place in usable]
    types = dict.fromkeys(place.source_type for place in usable)
    return [[place for place in usable if place.source_type is source_type] for source_type in types]


def one_response(answers: Answers, limit: int) -> SearchResponse:
    """The answers as one: hits in turns, what a corpus said of the words kept."""
    responses = answers.responses
    if len(responses) == 1:
        return responses[0]
    told = next((response for response in responses if response.documents_searched is not None), None)
    return SearchResponse(
        provider="+".join(dict.fromkeys(response.provider for response in responses)),
        hits=merge_hits(responses, limit),
        documents_searched=told.documents_searched if told else None,
        term_documents=told.term_documents if told else {},
        spellings=told.spellings if told else {},
    )


def used_by(response: SearchResponse) -> Usage:
    """What a search took that was answered, with what its earlier attempts paid for nothing."""
    use = Usage(searches=1, cached_searches=int(response.cached), cost_usd=response.cost_usd)
    return use.plus(response.spent_before or Usage())


class Searching:
    """Asks the providers for the sub-queries of one gathering; remembers who gave out."""

    def __init__(self, run: ResearchRun, sub_queries: Sequence[PlanNode] = ()) -> None:
        """`sub_queries` are all that are searched at the same time."""
        self._run = run
        self._titled = run.resolved.limits.max_sources_per_query
        self._questions = [query.text for query in sub_queries]
        self._resolved = run.resolved
        self._places = places(run.resolved)
        followed = run.resolved.follow_up
        self._earlier = [EARLIER_PLACE] if followed is not None and followed.entry and run.state.iteration == 1 else []
        some = 2 * run.resolved.limits.max_sources_per_query
        self._most = {
            place.name: some if place.name == CORPUS else run.resolved.search.max_results_per_query
            for place in [*self._places, *self._earlier]
        }
        self._failures: dict[str, set[str]] = {}
        self._answered: set[str] = set()

    async def search(self, query: PlanNode) -> Answers:
        """Search by the run's policy; not at all for what would give the canary away. Raises only cancellations.

        While no provider answers for a reason that may pass, the search is repeated until the time for work is over.
        """
        run = self._run
        if run.gives_away(query.text):
            run.degrade(STEERED_NOTE)
            return Answers(errors=dict.fromkeys((place.name for place in self._places), "refused_private"))
        left, patience = run.remaining_work_seconds(), None if len(self._places) == 1 else PATIENCE_SECONDS
        answers = await self._search_once(query, patience)
        while patience is not None and answers.is_outage and left > patience:
            run.note("status", f"no search provider answers: trying again: {query.text}", level="warning")
            left, patience = left - patience, min(2 * patience, LONGEST_PATIENCE_SECONDS)
            answers = await self._search_once(query, patience)
        return answers

    async def _search_once(self, query: PlanNode, patience: float | None) -> Answers:
        asked = [*([place] for place in self._earlier), *in_turn(self._usable(), self._resolved.search.policy)]
        parts = [Answers() for _ in asked]
        searches = zip(asked, parts, strict=True)
        await asyncio.gather(*(self._ask_in_turn(query, turn, part, patience) for turn, part in searches))
        answers = Answers()
        for part in parts:
            if self._earlier and part is parts[0] and not any(response.hits for response in part.responses):
                continue  # that an earlier run knew nothing of it says nothing about the providers
            answers.responses += part.responses
            answers.errors |= part.errors
            answers.asked += part.asked
            answers.failures += part.failures
        for operation, name, error in answers.failures:
            if answers.responses or not is_outage(error):
                self._count_failure(query, operation, name, error)
        return answers

    def response(self, answers: Answers) -> SearchResponse:
        """One list of hits for the sub-query."""
        return one_response(answers, max(self._most.values(), default=0))

    def _usable(self) -> list[ProviderTurn]:
        """Those that were not lost; all of them once more when nobody is left, so that an outage can end."""
        left = [place for place in self._places if place.name not in self._run.state.lost_providers]
        return left or self._places

    async def _ask_in_turn(
        self, query: PlanNode, turn: list[ProviderTurn], answers: Answers, patience: float | None
    ) -> None:
        for place in turn:
            await self._ask(query, place, answers, patience)
            if answers.responses and answers.responses[-1].hits:
                return

    async def _ask(self, query: PlanNode, place: ProviderTurn, answers: Answers, patience: float | None) -> None:
        run = self._run
        operation = run.scoped(f"search/{query.id}/{place.name}")
        if place.source_type is not SourceType.WEB:
            operation += f"/{place.source_type.value}"
        options = search_options(operation, f"search: {query.text}", run.remaining_work_seconds())
        request = self._request(operation, query, place).model_copy(update={"patience_seconds": patience})
        known = asked_before(run.state.ledger.queries, query.text, place.name, place.source_type.value)
        if known is not None and known.text != query.text:
            # In the words of who asked first, the cache has the answer.
            request = request.model_copy(update={"text": known.text})
            run.note("status", f"asked before: “{shorten(known.text, 150)}”", provider=place.name)
        try:
            response = await run.host.execute(activities.search, request, options)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            answers.errors[place.name] = reason_of(error)
            answers.asked.append((place.name, place.source_type.value, None))
            account(run.state, AgentRole.GATHERER, spent_by(error))
            answers.failures.append((operation, place.name, error))
            return
        self._answered.add(place.name)
        response = self._known_by_entry(response)
        account(run.state, AgentRole.GATHERER, used_by(response))
        answers.responses.append(response)
        answers.asked.append((place.name, place.source_type.value, len(response.hits)))
        for warning in response.warnings:
            run.note("status", f"{place.name}: {warning}", level="info", provider=place.name)

    def _known_by_entry(self, response: SearchResponse) -> SearchResponse:
        """The response whose hits say who found them, in which place, and where their details are."""
        if response.entry is None:
            return response
        self._run.state.note_entry(response.entry)
        hits = [
            hit.model_copy(update={"rank": rank, "provider": response.provider, "entries": [response.entry]})
            for rank, hit in enumerate(response.hits, start=1)
        ]
        return response.model_copy(update={"hits": hits})

    def _request(self, operation: str, query: PlanNode, place: ProviderTurn) -> SearchRequest:
        resolved, search = self._resolved, self._resolved.search
        first, last = published_between(search.timeframe, self._run.state.started_at[:10])
        corpus = resolved.corpus.name if resolved.corpus and place.name == CORPUS else None
        return SearchRequest(
            research_id=resolved.research_id,
            tenant=resolved.tenant,
            operation=operation,
            provider=place.name,
            corpus=corpus,
            corpus_digest=resolved.corpus.digest if resolved.corpus and corpus else "",
            text=query.text,
            max_results=self._most[place.name],
            source_type=place.source_type,
            domains_allow=[] if corpus else search.domains_allow,
            domains_deny=[] if corpus else search.domains_deny,
            language=None if corpus else search.language,
            published_from=None if corpus else first,
            published_to=None if corpus else last,
            earlier_entry=resolved.follow_up.entry if resolved.follow_up and place.name == EARLIER else "",
            titled=self._titled,
            questions=self._questions,
            date=self._run.state.started_at[:10],
            resolved_entry=self._run.state.resolved_entry,
            permission=self._run.permission(),
        )

    def _count_failure(self, query: PlanNode, operation: str, name: str, error: ActivityError) -> None:
        """Count a failure; a provider that will not come back is told of once and not asked any more.

        A query that is refused for every type of source is one failure; none of a provider that answers others.
        """
        run, cause, why = self._run, last_failure(error), describe_failure(error)
        kind = cause.type if isinstance(cause, ApplicationError) else reason_of(error)
        refused = kind == failures.SEARCH_REJECTED
        if refused:
            run.note(
                "status", f"{name} did not take “{shorten(query.text, 150)}”: {why}", level="warning", provider=name
            )
        if not refused or name not in self._answered:
            self._failures.setdefault(name, set()).add(query.id if refused else operation)
        if len({place.name for place in self._places}) == 1 or name in run.state.lost_providers:
            return
        if kind in HOPELESS or len(self._failures.get(name, ())) >= MOST_FAILURES:
            run.state.lost_providers[name] = why
            run.degrade(f"search provider {name} was lost during the run: {why}")
