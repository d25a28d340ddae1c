"""The providers that are available, and those that a run uses."""

from datetime import date

import pytest

from contracts.request import SourceType
from contracts.resolved import ProviderChoice
from providers.search.availability import (
    ADVICE,
    advice,
    choose,
    ended_services,
    ending,
    probe,
    probe_address,
    provider_choices,
    usable,
)
from providers.search.declarations import BY_MODEL, declared_names, search_declaration
from tests.fakes.search_answers import PROVIDERS
from tests.fakes.search_apis import SearchApis, open_provider

WEB, ACADEMIC, NEWS = [SourceType.WEB], [SourceType.ACADEMIC], [SourceType.NEWS]


def by_name(choices: list[ProviderChoice]) -> dict[str, ProviderChoice]:
    return {choice.name: choice for choice in choices}


def set_to(variables: list[str]) -> dict[str, str]:
    return {name: "http://127.0.0.1" if name.endswith("_URL") else "x" for name in variables}


KEYED = {"tavily", "google", "vertex_ai_search", "openalex", "brave", "exa", "serper", "searxng", "anthropic"}
FREE_PAPERS = ["semantic_scholar", "pubmed", "crossref", "arxiv"]
"""Services of papers that need no key."""


def test_the_order_and_what_is_missing() -> None:
    """Tavily, Google's two, Semantic Scholar, then the others; each skipped one names what to set, also where none is left that
    has the type of a request (S0-102, S0-171).
    """
    choices = provider_choices({})
    names = [choice.name for choice in choices]
    assert names[:4] == ["tavily", "google", "vertex_ai_search", "semantic_scholar"]
    assert names[-1] == "anthropic"
    assert {choice.name: choice.reason for choice in choices if choice.name in KEYED and not choice.available} == {
        "tavily": "set TAVILY_API_KEY",
        "google": "set GOOGLE_API_KEY and GOOGLE_CSE_ID",
        "vertex_ai_search": "set VERTEX_AI_SEARCH_API_KEY or GOOGLE_APPLICATION_CREDENTIALS and VERTEX_AI_SEARCH_APP",
        "openalex": "set OPENALEX_API_KEY",
        "brave": "set BRAVE_API_KEY",
        "exa": "set EXA_API_KEY",
        "serper": "set SERPER_API_KEY",
        "searxng": "set SEARXNG_URL",
        "anthropic": "needs a model endpoint that searches the web: set ANTHROPIC_API_KEY and RESEARCH_MODEL, "
        "without ANTHROPIC_BASE_URL",
    }
    assert usable(choices) == [*FREE_PAPERS, "wikipedia"]
    news = {"tavily", "brave", "exa", "serper", "searxng"}
    assert choose(choices, None, NEWS) == [choice for choice in choices if choice.name in news]


def test_an_operator_may_choose_the_order() -> None:
    """Those that are set up are used in it; half of a pair is not enough, an unknown name is an error (S0-102)."""
    names = [name for name in declared_names() if name != BY_MODEL]
    required = {variable for name in names for variable in search_declaration(name).required_variables}
    required |= {search_declaration(name).key_variable for name in names} - {""}
    assert usable(provider_choices(set_to(sorted(required)))) == names
    assert usable(provider_choices({"TAVILY_API_KEY": "k"}, ["wikipedia", "tavily"])) == ["wikipedia", "tavily"]
    assert usable(provider_choices({}, ["tavily", "brave"])) == []
    assert provider_choices({"GOOGLE_API_KEY": "k"}, ["google"])[0].reason == "set GOOGLE_CSE_ID"
    with pytest.raises(KeyError):
        provider_choices({}, ["altavista"])


def test_choices_have_hosts_and_types() -> None:
    """An operator's address takes the place of the service's, without the user that may be in it (X-16)."""
    addresses = {
        "SEARXNG_URL": "http://me:word@search.example:8080/searx",
        "WIKIPEDIA_BASE_URL": "https://{language}.mirror.example",
        "BRAVE_BASE_URL": "https://proxy.example",
    }
    hosts = {choice.name: choice.host for choice in provider_choices(addresses)}
    assert hosts["tavily"] == "api.tavily.com"
    assert (hosts["brave"], hosts["searxng"]) == ("proxy.example", "search.example:8080")
    assert hosts["wikipedia"] == "mirror.example"
    types = {choice.name: choice.source_types for choice in provider_choices({})}
    assert types["tavily"] == types["brave"] == [SourceType.WEB, SourceType.NEWS]
    assert types["searxng"] == [SourceType.WEB, SourceType.NEWS, SourceType.ACADEMIC]
    assert types["semantic_scholar"] == ACADEMIC


@pytest.mark.parametrize("variables", [["TAVILY_API_KEY"], ["SEARXNG_URL"]])
def test_the_models_search_is_a_way_out_only(variables: list[str]) -> None:
    """It is used where no other provider of the web at large is set up, and has a reason elsewhere (X-16)."""
    alone = by_name(provider_choices({}, model={}))["anthropic"]
    beside = by_name(provider_choices(set_to(variables), model={}))["anthropic"]
    assert alone.available
    assert not beside.available
    assert beside.reason.startswith("not needed: ")


def test_named_providers_are_used_alone() -> None:
    """In their order, each once, for any type; an unavailable one stays with its reason, an unknown one is an error (X-16)."""
    choices = provider_choices({"BRAVE_API_KEY": "k"})
    chosen = choose(choices, ["wikipedia", "tavily", "brave", "wikipedia"], WEB)
    assert [(choice.name, choice.available) for choice in chosen] == [
        ("wikipedia", True), ("tavily", False), ("brave", True),
    ]  # fmt: skip
    assert chosen[1].reason == "set TAVILY_API_KEY"
    assert choose(choices, ["wikipedia"], NEWS)[0].source_types == [*WEB, *NEWS]
    with pytest.raises(ValueError, match="called altavista; there are: tavily, google, vertex_ai_search"):
        choose(choices, ["altavista"], WEB)


@pytest.mark.parametrize(
    ("variables", "types", "names"),
    [
        (["TAVILY_API_KEY"], WEB, ["tavily", "wikipedia"]),
        (["TAVILY_API_KEY"], ACADEMIC, FREE_PAPERS),
        (["TAVILY_API_KEY", "BRAVE_API_KEY"], NEWS, ["tavily", "brave"]),
        (["SEARXNG_URL"], [*WEB, *ACADEMIC], ["semantic_scholar", "searxng", "wikipedia"]),
        (["OPENALEX_API_KEY"], [*WEB, *ACADEMIC], ["semantic_scholar", "openalex", "wikipedia"]),
        ([], WEB, ["semantic_scholar", "wikipedia"]),
    ],
)
def test_providers_of_a_requested_type_are_used(
    variables: list[str], types: list[SourceType], names: list[str]
) -> None:
    """Without any key, articles and papers replace the web at large (S0-102, S0-171)."""
    chosen = choose(provider_choices(set_to(variables)), None, types)
    assert [choice.name for choice in chosen] == names
    assert all(choice.available for choice in chosen)
    assert all(set(choice.source_types) & set(types) for choice in chosen)


LAST_DAY, FIRST_DAY = date(2026, 12, 31), date(2027, 1, 1)


def test_a_service_that_has_ended_is_passed_over_and_says_so() -> None:
    """Until its last day it is used, and its end announced; from then on the others are, unless it is named (S0-102)."""
    values = {"GOOGLE_API_KEY": "k", "GOOGLE_CSE_ID": "x"}
    assert ended_services(values, LAST_DAY) == {}
    ended = ended_services(values, FIRST_DAY)
    assert ended == {"google": "its service has ended on 2027-01-01: set up vertex_ai_search"}
    assert ended_services({}, FIRST_DAY) == {}
    choices = provider_choices(values, today=FIRST_DAY)
    chosen = choose(choices, None, WEB, ended=ended)
    assert [choice.name for choice in chosen if choice.available] == ["semantic_scholar", "wikipedia"]
    assert by_name(chosen)["google"].reason == ended["google"]
    assert [choice.available for choice in choose(choices, ["google"], WEB, ended=ended)] == [True]
    before, after = (ending("google", day) for day in (LAST_DAY, FIRST_DAY))
    assert before == "google: its service ends on 2027-01-01; its successor is vertex_ai_search"
    assert after == before.replace("ends on", "has ended on")
    assert (ending("tavily"), ending("mcp.wiki")) == (None, None)
    assert any(line.startswith("google: its service ") for line in advice(choose(choices, ["google"], WEB)))


def test_the_search_of_a_model_takes_the_place_of_a_service_that_has_ended() -> None:
    """A service that answers nobody is no other provider of the whole web."""
    values = {"GOOGLE_API_KEY": "k", "GOOGLE_CSE_ID": "x"}
    used = [
        by_name(provider_choices(values, model={}, today=day))["anthropic"].available for day in (LAST_DAY, FIRST_DAY)
    ]
    assert used == [False, True]


def test_services_of_papers_alone_are_named_or_asked_for_papers() -> None:
    """Beside pages of the web they would take their places; an operator's own list of providers is obeyed."""
    both = [*WEB, *ACADEMIC]
    names = [
        choice.name for choice in choose(provider_choices({}, ["wikipedia", "arxiv"]), None, both, is_ordered=True)
    ]
    assert names == ["wikipedia", "arxiv"]
    assert [choice.name for choice in choose(provider_choices({}), ["arxiv"], both)] == ["arxiv"]
    assert [choice.name for choice in choose(provider_choices({}), None, both)] == ["semantic_scholar", "wikipedia"]


def test_documents_of_the_operator_are_no_web() -> None:
    """Their servers come first and are used, but replace neither the web at large nor the search of a model."""
    servers = [ProviderChoice(name="mcp.wiki", available=True, host="mcp.wiki")]
    choices = provider_choices({}, model={}, servers=servers)
    assert by_name(choices)["anthropic"].available
    chosen = choose(provider_choices({}, servers=servers), None, WEB)
    assert [choice.name for choice in chosen] == ["mcp.wiki", "semantic_scholar", "wikipedia"]
    assert advice(chosen) == [ADVICE]
    assert advice(choose(choices, ["mcp.wiki"], WEB)) == []
    assert [choice.name for choice in choose(choices, ["mcp.wiki"], WEB)] == ["mcp.wiki"]


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_connection_is_all_that_a_probe_takes(name: str) -> None:
    """No query is sent, and no search charged; a refused connection or an unknown name is a reason."""
    async with SearchApis() as server, open_provider(name, server.url(name)) as provider:
        assert await probe(provider) is None
        assert server.asked == []
    reason = await probe(provider)
    assert reason is not None
    assert "127.0.0.1 is not reachable at port" in reason
    assert reason.endswith("): start its server, or check the port")
    assert "connection refused" in reason
    assert "unknown host" in str(await probe_address("http://nobody.invalid"))
