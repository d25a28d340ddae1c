"""Which search providers a run gets, and what it says where it gets none."""

from typing import Any

import pytest

from activities.configuration import ResearchConfiguration, WebSearchConfiguration
from activities.preparation import RunRefused, resolve, resolve_again
from contracts.request import Constraints, ResearchRequest, SearchOptions, SourceType
from contracts.resolved import CorpusSnapshot, ProviderChoice
from contracts.vocabulary import StopReason

CORPUS = CorpusSnapshot(name="manual", files=3)
HERE = ProviderChoice(name="searxng", available=True, reason="configured", host="s.test")
NOTHING = "there is nothing to search: name a folder with --corpus DIR, or set up a search provider"
AWAY = ProviderChoice(name="brave", available=False, reason="set RESEARCH_BRAVE_API_KEY")


class Services:
    """A worker's search services, and what it was asked to choose by."""

    def __init__(self, *choices: ProviderChoice) -> None:
        self.asked: list[Any] = []
        self._choices = choices
        self.configuration = ResearchConfiguration(web_search=WebSearchConfiguration(choose=self._choose))

    def _choose(self, named: Any, types: Any) -> list[ProviderChoice]:
        self.asked.append((named, list(types)))
        if named == ["nobody"]:
            raise ValueError("nobody is no provider")
        return list(self._choices)

    def resolve(self, corpus: CorpusSnapshot | None = None, **fields: Any) -> Any:
        """A run of this worker."""
        request = ResearchRequest(query="x", **fields)
        return resolve("r-1", request, self.configuration, corpus, search_attributes=False)


@pytest.mark.parametrize(
    ("fields", "corpus", "names", "asked"),
    [
        ({}, None, ["searxng", "brave"], None),
        ({"web": True}, CORPUS, ["corpus", "searxng", "brave"], None),
        ({"search": {"providers": ["corpus", "searxng"]}}, CORPUS, ["corpus", "searxng", "brave"], ["searxng"]),
    ],
)
def test_the_web_is_searched_where_it_is_wanted(fields: Any, corpus: Any, names: list[str], asked: Any) -> None:
    """Without a corpus, when it is asked for, or when a provider of it is named; the corpus comes first."""
    services = Services(HERE, AWAY)
    resolved = services.resolve(corpus, **fields)
    assert [choice.name for choice in resolved.providers] == names
    assert services.asked == [(asked, [SourceType.WEB, SourceType.ACADEMIC])]
    assert resolved.web


@pytest.mark.parametrize("fields", [{"web": False}, {"search": {"providers": ["corpus"]}}])
def test_the_web_is_left_alone_where_it_is_not(fields: Any) -> None:
    """Where the corpus alone is named, or the web refused, nobody is asked for it."""
    services = Services(HERE)
    resolved = services.resolve(CORPUS, **fields)
    assert ([choice.name for choice in resolved.providers], services.asked, resolved.web) == (["corpus"], [], False)


@pytest.mark.parametrize(
    ("choices", "fields", "corpus", "reason", "words"),
    [
        (
            [AWAY],
            {},
            None,
            StopReason.NO_PROVIDERS,
            f"{NOTHING}\nbrave: set RESEARCH_BRAVE_API_KEY",
        ),
        (
            [HERE],
            {"search": {"providers": ["nobody"]}},
            None,
            StopReason.INVALID_INPUT,
            "search.providers: nobody is no provider",
        ),
        (
            [HERE],
            {"web": False, "search": {"providers": ["corpus", "searxng"]}},
            CORPUS,
            StopReason.INVALID_INPUT,
            "search.providers: searxng searches the web, and web is false",
        ),
    ],
)
def test_a_run_without_providers_is_refused_with_why(
    choices: list[ProviderChoice], fields: Any, corpus: Any, reason: StopReason, words: str
) -> None:
    """What each one lacks, or what of the request cannot be."""
    with pytest.raises(RunRefused) as caught:
        Services(*choices).resolve(corpus, **fields)
    assert (caught.value.reason, str(caught.value)) == (reason, words)


def test_a_resumed_run_searches_as_it_is_asked_to() -> None:
    """Language and time are taken over; providers are chosen anew only where the request says something of them."""
    services = Services(HERE)
    stored = services.resolve(CORPUS, web=True)
    services.asked.clear()

    def again(**fields: Any) -> Any:
        return resolve_again(stored, ResearchRequest(query="x", **fields), services.configuration)

    changed = again(constraints=Constraints(language="de", timeframe="year"))
    assert (changed.search.language, changed.search.timeframe) == ("de", "year")
    assert (changed.providers, services.asked) == (stored.providers, [])
    assert again(search=SearchOptions(max_results_per_query=3)).search.max_results_per_query == 3
    assert services.asked == []
    without = again(web=False)
    assert ([choice.name for choice in without.providers], without.web) == (["corpus"], False)
    typed = again(search=SearchOptions(source_types=[SourceType.NEWS]))
    assert (typed.search.source_types, typed.web) == ([SourceType.NEWS], True)
    assert services.asked == [(None, [SourceType.NEWS])]
    named = again(search=SearchOptions(providers=["searxng"]))
    assert ([choice.name for choice in named.providers], named.web) == (["corpus", "searxng"], True)
    assert services.asked[1:] == [(["searxng"], [SourceType.WEB, SourceType.ACADEMIC])]
