"""Pages in which facts are planted, their search and their reader, and a model that finds just those that it is shown.

Every page has one, four or twelve facts at random places, by turns in words of the question and in others. Around them
is talk of the same kiln, of which some has the words of the question and no fact.
"""

import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks.many_sources import thorough, thorough_plan
from contracts.evidence import DocumentRef, SearchHit
from contracts.messages import SearchRequest, SearchResponse
from providers.domains import ANYWHERE, Domains
from providers.errors import SourceUnreadable
from providers.interfaces import ExtractedDocument
from tests.fakes.many_pages import MINERALS, PARTS, PEOPLE, PLACES, paragraph
from tests.fakes.model_request import ModelRequest
from tests.fakes.model_scenarios import Reply, answered
from tests.fakes.model_work import question_of, sources_of, without_signs

PROVIDER: Final = "searxng"
FACTS_OF_PAGES: Final = (1, 4, 12)
SHORTEST, LONGEST = 3_000, 20_000
"""Characters of a page, about."""
IN_ITS_WORDS: Final = "The ashen glaze of a Velmar kiln is free of crazing at {number} degrees with {mineral}."
IN_OTHERS: Final = "Jars came out whole after {number} minutes below the {part}, {person} noted."
TALK: Final = (
    "Whoever owns a Velmar kiln in {place} has heard how much is said about its ashen glaze.",
    "To protect a glaze from crazing was an old wish of {person}, who came to {place} for it.",
)
"""Sentences with words of the question, and without a fact."""
OF_SEVERAL: Final = "Jars and glaze of such a kiln stay whole under conditions that were measured."
OF_SEVERAL_REWORDED: Final = "What potters put down in these books comes to this: nothing breaks if one heeds them"
MARKER: Final = re.compile(r"\[ev-[^\]]+\]")
SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True)
class PlantedPage:
    """A page and its facts, which occur nowhere else."""

    url: str
    title: str
    text: str
    facts: tuple[str, ...]


def planted_pages(count: int = 28, seed: int = 0) -> list[PlantedPage]:
    """Make so many pages, the same ones for the same numbers."""
    numbers = iter(random.Random(seed).sample(range(1_000, 10_000), 12 * count))
    return [_page(number, random.Random(f"{seed}/{number}"), numbers) for number in range(count)]


def _page(number: int, chance: random.Random, numbers: Iterable[int]) -> PlantedPage:
    facts = []
    for place, figure in zip(range(FACTS_OF_PAGES[number % len(FACTS_OF_PAGES)]), numbers, strict=False):
        form = (IN_ITS_WORDS, IN_OTHERS)[(place + number // len(FACTS_OF_PAGES)) % 2]
        facts.append(_filled(form, chance, number=figure))
    length, paragraphs = chance.randrange(SHORTEST, LONGEST), list[str]()
    while sum(map(len, paragraphs)) < length:
        talk = f"{_filled(chance.choice(TALK), chance)} " if chance.random() < 0.4 else ""
        paragraphs.append(talk + paragraph(chance))
    for fact in facts:
        place = chance.randrange(len(paragraphs))
        sentences = re.split(r"(?<=\.) ", paragraphs[place])
        sentences.insert(chance.randrange(1, len(sentences)), fact)
        paragraphs[place] = " ".join(sentences)
    title = f"{chance.choice(PLACES)} kiln book {number + 1}"
    url = f"https://chapter-{number}.kilns.edu/books/{number + 1}"
    return PlantedPage(url, title, "\n\n".join([f"# {title}", *paragraphs]), tuple(facts))


def _filled(form: str, chance: random.Random, **given: Any) -> str:
    words = {"place": PLACES, "person": PEOPLE, "part": PARTS, "mineral": MINERALS}
    return form.format(**{name: chance.choice(choices) for name, choices in words.items()}, **given)


def is_in_its_words(fact: str) -> bool:
    """Return whether a fact has words of the question."""
    return fact.startswith(IN_ITS_WORDS[:20])


class PlantedSources:
    """A search provider over planted pages, and the reader of what it finds."""

    name = PROVIDER

    def __init__(self, pages: Iterable[PlantedPage]) -> None:
        self._pages = {page.url: page for page in pages}

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Pages drawn by the words: another question has mostly others."""
        chosen = random.Random(request.text).sample(sorted(self._pages), min(request.max_results, len(self._pages)))
        hits = [
            SearchHit(url=url, title=self._pages[url].title, snippet="", rank=rank, provider=self.name)
            for rank, url in enumerate(chosen, 1)
        ]
        return SearchResponse(provider=self.name, hits=hits)

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, given: DocumentRef | None = None
    ) -> ExtractedDocument:
        """The page as it is read."""
        del tenant, domains, given
        page = self._pages.get(url)
        if page is None:
            raise SourceUnreadable("not_found", "no such page")
        return ExtractedDocument(
            url=url,
            title=page.title,
            text=page.text,
            raw=page.text.encode(),
            media_type="text/html",
            authors=["Ida Marrow", "Teo Quill"],
            publisher=f"The Society of Kilns, chapter {page.url.rpartition('/')[2]}",
            published_at="2024-05-17",
            language="en",
        )


def reading(facts: Iterable[str]) -> Callable[[ModelRequest], Reply]:
    """Return the scenario of a model that finds the facts that are visible in its sources, and no others.

    The facts are dealt to as many findings as it may write, each with all of its quotes.
    """
    known = list(facts)

    def reply(request: ModelRequest) -> Reply:
        if request.role == "planner":
            return answered(request, json.dumps(thorough_plan(request.prompt)))
        if request.role == "analyzer":
            return answered(request, json.dumps(_analysis(request, known)))
        return answered(request, _report(request.prompt)) if request.role == "synthesizer" else thorough(request)

    return reply


def _report(prompt: str) -> str:
    """A report that states every finding once, in words of its own, so that rules cannot tell whether it is true."""
    findings = re.split(r"^Finding \(", without_signs(prompt), flags=re.MULTILINE)[1:]
    lines = [f"- {OF_SEVERAL_REWORDED} {''.join(MARKER.findall(finding)[:3])}." for finding in findings]
    return "\n".join([f"# {question_of(prompt)}", "", "## Summary", "", *lines])


def visible(prompt: str, facts: Iterable[str]) -> list[tuple[str, str]]:
    """Each fact that the sources of a prompt show, with the id of its source."""
    shown = [(source_id, SPACE.sub(" ", text)) for source_id, _, text in sources_of(prompt)]
    return [(source_id, fact) for source_id, text in shown for fact in facts if fact in text]


def _analysis(request: ModelRequest, facts: list[str]) -> dict[str, Any]:
    quotes = [{"source_id": source_id, "quote": fact} for source_id, fact in visible(request.prompt, facts)]
    limit = re.search(r"at most (\d+) findings", request.prompt)
    groups = [quotes[start :: int(limit[1])] for start in range(int(limit[1]))] if limit else [quotes]
    answer = json.loads(thorough(replace(request, mode="text")).body)["content"][0]["text"]
    findings = [{"content": _statement(group), "confidence": "high", "quotes": group} for group in groups if group]
    return {**json.loads(answer), "findings": findings}


def _statement(group: list[dict[str, str]]) -> str:
    first = group[0]["quote"]
    return first if len(group) == 1 else OF_SEVERAL
