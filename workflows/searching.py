"""Searching for one sub-query: every provider of the run by its policy, one list of hits (X-16, S0-053, S0-097)."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures
from contracts.activities import SearchRequest, SearchResponse
from contracts.plan import SubQuery
from contracts.request import SearchPolicy, SourceType
from contracts.resolved import ProviderChoice, ResolvedResearch
from contracts.timeframes import published_between
from workflows.activity_options import search_options
from workflows.call_errors import is_cancelled, reason_of
from workflows.search_merging import merged

if TYPE_CHECKING:
    from workflows.run import ResearchRun

CORPUS: Final = "corpus"
MOST_FAILURES: Final = 2
"""A provider that failed so often, each time after its retries, is lost for the run."""
HOPELESS: Final = (failures.SEARCH_REJECTED, failures.CORPUS_UNAVAILABLE)
"""Failures that will not pass: a key that is refused, a folder that is gone."""


@dataclass(frozen=True)
class Place:
    """One provider asked for one type of source."""

    choice: ProviderChoice
    source_type: SourceType

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.choice.name


@dataclass
class Answers:
    """What the providers gave for one sub-query, in their order, and why the others gave nothing."""

    responses: list[SearchResponse] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Provider → typed reason."""
    asked: list[tuple[str, str, int | None]] = field(default_factory=list)
    """Provider, type of source and number of hits of each search, null where it failed."""

    @property
    def failed(self) -> str | None:
        """Why there is no answer at all; null if anyone answered, even with nothing."""
        if self.responses:
            return None
        if len(self.errors) == 1:
            return next(iter(self.errors.values()))
        return "; ".join(f"{name}: {why}" for name, why in self.errors.items()) or "nobody could be asked"


def places(resolved: ResolvedResearch) -> list[Place]:
    """Whom to ask and for what, in order: each available provider for each wanted type that it has."""
    wanted = resolved.search.source_types
    return [
        Place(choice, source_type)
        for choice in resolved.providers
        if choice.available
        for source_type in ([SourceType.WEB] if choice.name == CORPUS else wanted)
        if choice.name == CORPUS or source_type in choice.source_types
    ]


def one_response(answers: Answers, limit: int) -> SearchResponse:
    """The answers as one: hits in turns, what a corpus said of the words kept."""
    responses = answers.responses
    if len(responses) == 1:
        return responses[0]
    told = next((response for response in responses if response.documents_searched is not None), None)
    return SearchResponse(
        provider="+".join(dict.fromkeys(response.provider for response in responses)),
        hits=merged(responses, limit),
        documents_searched=told.documents_searched if told else None,
        term_documents=told.term_documents if told else {},
        coverage=told.coverage if told else None,
    )


class Searching:
    """Asks the providers for the sub-queries of one gathering; remembers who gave out."""

    def __init__(self, run: "ResearchRun", per_query: int) -> None:
        self._run = run
        self._resolved = run.resolved
        self._places = places(run.resolved)
        self._most = max(per_query * 2, run.resolved.search.max_results_per_query if run.resolved.web else 0)
        self._failures: dict[str, int] = {}

    async def search(self, query: SubQuery) -> Answers:
        """Ask by the run's policy. Raises only what ends the whole gathering."""
        answers = Answers()
        if self._resolved.search.policy is SearchPolicy.FIRST_SUCCESS:
            for place in self._usable():
                await self._ask(query, place, answers)
                if answers.responses and answers.responses[-1].hits:
                    break
            return answers
        asked = self._usable()
        parts = [Answers() for _ in asked]
        await asyncio.gather(*(self._ask(query, place, part) for place, part in zip(asked, parts, strict=True)))
        for part in parts:
            answers.responses += part.responses
            answers.errors |= part.errors
            answers.asked += part.asked
        return answers

    def response(self, answers: Answers) -> SearchResponse:
        """One list of hits for the sub-query."""
        return one_response(answers, self._most)

    def _usable(self) -> list[Place]:
        """Those that were not lost; all of them once more when nobody is left, so that an outage can end."""
        left = [place for place in self._places if place.name not in self._run.state.lost_providers]
        return left or self._places

    async def _ask(self, query: SubQuery, place: Place, answers: Answers) -> None:
        run = self._run
        operation = f"search/{query.id}/{place.name}"
        if place.source_type is not SourceType.WEB:
            operation += f"/{place.source_type.value}"
        alone = len(self._places) == 1
        options = search_options(operation, f"search: {query.text}", run.remaining_work_seconds(), alone=alone)
        request = self._request(operation, query, place)
        try:
            response = await run.host.execute(activities.search.__name__, request, SearchResponse, options)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            answers.errors[place.name] = reason_of(error)
            answers.asked.append((place.name, place.source_type.value, None))
            self._failed(place.name, error)
            return
        answers.responses.append(response)
        answers.asked.append((place.name, place.source_type.value, len(response.hits)))
        for warning in response.warnings:
            run.note("status", f"{place.name}: {warning}", level="info", provider=place.name)

    def _request(self, operation: str, query: SubQuery, place: Place) -> SearchRequest:
        resolved, search = self._resolved, self._resolved.search
        first, last = published_between(search.timeframe, self._run.state.started_at[:10])
        corpus = resolved.corpus.name if resolved.corpus and place.name == CORPUS else None
        return SearchRequest(
            research_id=resolved.research_id,
            tenant=resolved.tenant,
            operation=operation,
            provider=place.name,
            corpus=corpus,
            text=query.text,
            max_results=self._most,
            source_type=place.source_type,
            domains_allow=[] if corpus else search.domains_allow,
            domains_deny=[] if corpus else search.domains_deny,
            language=None if corpus else search.language,
            published_from=None if corpus else first,
            published_to=None if corpus else last,
        )

    def _failed(self, name: str, error: ActivityError) -> None:
        """Count a failure; a provider that will not come back is told of once and not asked any more."""
        run = self._run
        self._failures[name] = self._failures.get(name, 0) + 1
        cause = error.cause
        hopeless = isinstance(cause, ApplicationError) and cause.type in HOPELESS
        if len({place.name for place in self._places}) == 1 or name in run.state.lost_providers:
            return
        if hopeless or self._failures[name] >= MOST_FAILURES:
            why = cause.message if isinstance(cause, ApplicationError) else reason_of(error)
            run.state.lost_providers[name] = why[:200]
            run.degrade(f"search provider {name} was lost during the run: {why[:200]}")
