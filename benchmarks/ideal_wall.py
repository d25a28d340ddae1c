"""How long a run would take if nothing but the outside world took time: the longest chain of injected latencies.

The chain follows what the work depends on: a plan; in each iteration all searches, each followed by the reads of its
pages, then all analyses, then the refinement; drafts and the report. Where slots are fewer than the work wants, the
work divided by the slots counts (Brent's bound).
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from contracts.evidence import Source
from contracts.state import ResearchState
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_work import element
from tests.fakes.web_world import WebWorld

ANSWERED: Final = 200
TOO_MANY: Final = 429


@dataclass(frozen=True)
class Ideal:
    """Seconds."""

    undisturbed: float
    """As if every request had been answered at once."""
    as_it_went: float
    """With the failed attempts, and with the waiting that refusals asked for; none is added after a 500."""


def ideal_wall(state: ResearchState, world: WebWorld, model: MessagesApi, *, slots: int) -> Ideal:
    """From the journals of both fakes, which refuse for the same time, and what a finished run knows."""
    return Ideal(
        _Chain(state, world, model, slots, with_failures=False).seconds(),
        _Chain(state, world, model, slots, with_failures=True).seconds(),
    )


class _Chain:
    def __init__(
        self, state: ResearchState, world: WebWorld, model: MessagesApi, slots: int, *, with_failures: bool
    ) -> None:
        self._state = state
        self._world = world
        self._slots = slots
        self._with_failures = with_failures
        self._wait = float(world.faults.retry_after)
        self._asked = Counter(world.asked)
        self._by_role: dict[str, float] = defaultdict(float)
        self._by_reading: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for request, call in zip(model.requests, model.calls, strict=True):
            if call.status != ANSWERED and not with_failures:
                continue
            seconds = model.latency + (self._wait if call.status == TOO_MANY else 0.0)
            if call.role == "analyzer":
                iteration = request.prompt.partition("Iteration: ")[2].partition(" ")[0]
                self._by_reading[iteration][element(request.prompt, "source")[:200]] += seconds
            else:
                self._by_role[call.role] += seconds

    def seconds(self) -> float:
        iterations = {query.iteration for query in self._state.work.plan.sub_queries}
        return sum(self._by_role.values()) + sum(self._iteration(number) for number in iterations)

    def _iteration(self, number: int) -> float:
        queries = [query for query in self._state.work.plan.sub_queries if query.iteration == number]
        pages: dict[str, list[float]] = defaultdict(list)
        for source in self._state.evidence.sources.values():
            if source.iteration == number:
                pages[source.sub_query_ids[0]].append(self._page(source))
        searched = {query.id: self._search(query.text) for query in queries}
        chain = max(seconds + max(pages[identity], default=0.0) for identity, seconds in searched.items())
        work = min(searched.values()) + sum(sum(each) for each in pages.values()) / self._slots
        return max(chain, work) + max(self._by_reading[str(number)].values(), default=0.0)

    def _search(self, text: str) -> float:
        asked = [self._place(place) for place in (f"search {text}", f"search/science {text}") if self._asked[place]]
        return max(asked)

    def _page(self, source: Source) -> float:
        parts = urlsplit(source.url)
        return self._world.latencies.of(f"{parts.hostname} /robots.txt") + self._place(f"{parts.hostname} {parts.path}")

    def _place(self, place: str) -> float:
        once = self._world.latencies.of(place)
        if not self._with_failures:
            return once
        statuses = [self._world.faults.status(place, time) for time in range(1, self._asked[place] + 1)]
        return sum(once + (self._wait if status == TOO_MANY else 0.0) for status in statuses)
