"""Which providers can be asked, and which of them a run uses."""

import pytest

from contracts.request import SourceType
from contracts.resolved import ProviderChoice
from providers.search.availability import ADVICE, NEEDS, ORDER, TRAITS, advice, choose, provider_choices, usable

WEB, ACADEMIC, NEWS = [SourceType.WEB], [SourceType.ACADEMIC], [SourceType.NEWS]


def by_name(choices: list[ProviderChoice]) -> dict[str, ProviderChoice]:
    """Choices by their names."""
    return {choice.name: choice for choice in choices}


def test_the_order_and_what_is_missing() -> None:
    """Tavily, Google, Semantic Scholar, then the others; each skipped one names what to set (S0-102, S0-171)."""
    choices = provider_choices([])
    assert [choice.name for choice in choices] == [
        "tavily", "google", "semantic_scholar", "brave", "searxng", "wikipedia", "anthropic",
    ]  # fmt: skip
    assert {choice.name: choice.reason for choice in choices if not choice.available} == {
        "tavily": "set TAVILY_API_KEY",
        "google": "set GOOGLE_API_KEY and GOOGLE_CSE_ID",
        "brave": "set BRAVE_API_KEY",
        "searxng": "set SEARXNG_URL",
        "anthropic": "needs a model endpoint that searches the web: set ANTHROPIC_API_KEY and RESEARCH_MODEL, "
        "without ANTHROPIC_BASE_URL",
    }
    assert usable(choices) == ["semantic_scholar", "wikipedia"]


def test_half_of_a_pair_is_not_enough() -> None:
    """Google needs two values; the one that is missing is named alone."""
    google = provider_choices(["GOOGLE_API_KEY"])[1]
    assert (google.available, google.reason) == (False, "set GOOGLE_CSE_ID")


def test_everything_set_makes_all_available_in_order() -> None:
    """The order is fixed, not that of the variables (S0-102)."""
    variables = {name for needs in NEEDS.values() for name in needs.required}
    assert usable(provider_choices(variables)) == list(NEEDS)


def test_another_order_is_kept() -> None:
    """An operator may say who is asked first (S0-102)."""
    choices = provider_choices(["TAVILY_API_KEY"], ["wikipedia", "tavily"])
    assert usable(choices) == ["wikipedia", "tavily"]


def test_none_available_is_an_empty_list() -> None:
    """Whoever chooses from an order without any available one sees that nothing is left (S0-102)."""
    assert usable(provider_choices([], ["tavily", "brave"])) == []


def test_an_unknown_provider_is_an_error() -> None:
    """A name that does not exist is not taken for one that is not configured."""
    with pytest.raises(KeyError):
        provider_choices([], ["altavista"])


def test_every_provider_has_traits_and_says_where_queries_go() -> None:
    """Types of sources and hosts are data; an address of one's own takes the place of the service's (X-16)."""
    assert set(TRAITS) == {*ORDER, "corpus"}
    addresses = {
        "searxng": "http://me:word@search.example:8080/searx",
        "wikipedia": "https://{language}.mirror.example",
        "brave": "https://proxy.example",
    }
    hosts = {choice.name: choice.host for choice in provider_choices([], addresses=addresses)}
    assert hosts == {
        "tavily": "api.tavily.com",
        "google": "customsearch.googleapis.com",
        "semantic_scholar": "api.semanticscholar.org",
        "brave": "proxy.example",
        "searxng": "search.example:8080",
        "wikipedia": "mirror.example",
        "anthropic": "api.anthropic.com",
    }
    types = {choice.name: choice.source_types for choice in provider_choices([])}
    assert types["tavily"] == types["brave"] == [SourceType.WEB, SourceType.NEWS]
    assert types["searxng"] == [SourceType.WEB, SourceType.NEWS, SourceType.ACADEMIC]
    assert types["semantic_scholar"] == ACADEMIC


@pytest.mark.parametrize("variables", [["TAVILY_API_KEY"], ["GOOGLE_API_KEY", "GOOGLE_CSE_ID"], ["SEARXNG_URL"]])
def test_the_models_search_is_a_way_out_only(variables: list[str]) -> None:
    """It is used where no other provider of the web at large is set up, and says so otherwise (X-16)."""
    alone = by_name(provider_choices([], model_offers_search=True))["anthropic"]
    beside = by_name(provider_choices(variables, model_offers_search=True))["anthropic"]
    assert alone.available
    assert not beside.available
    assert beside.reason.startswith("not needed: ")


def test_a_provider_that_the_operator_left_out_makes_nothing_superfluous() -> None:
    """A key for a provider outside the configured order does not stand in the way of the model's search."""
    choices = provider_choices(["TAVILY_API_KEY"], ["wikipedia", "anthropic"], model_offers_search=True)
    assert usable(choices) == ["wikipedia", "anthropic"]


def test_what_is_set_and_cannot_be_used_is_told_beside_those_that_are_used() -> None:
    """A key with a slip of the pen makes its provider unavailable with that reason, and nobody else (S0-102)."""
    broken = {"tavily": "TAVILY_API_KEY holds characters that no key has"}
    choices = provider_choices(["TAVILY_API_KEY"], model_offers_search=True, broken=broken)
    chosen = choose(choices, None, WEB, broken=broken)
    assert [(choice.name, choice.available) for choice in chosen] == [
        ("tavily", False), ("wikipedia", True), ("anthropic", True),
    ]  # fmt: skip
    assert chosen[0].reason == choose(choices, ["tavily"], WEB, broken=broken)[0].reason == broken["tavily"]
    assert "tavily" not in by_name(choose(choices, None, ACADEMIC, broken=broken))


def test_named_providers_are_used_alone() -> None:
    """In the order in which they are named, each once; one that cannot be asked stays, with its reason (X-16)."""
    choices = provider_choices(["BRAVE_API_KEY"])
    chosen = choose(choices, ["wikipedia", "tavily", "brave", "wikipedia"], WEB)
    assert [(choice.name, choice.available) for choice in chosen] == [
        ("wikipedia", True), ("tavily", False), ("brave", True),
    ]  # fmt: skip
    assert chosen[1].reason == "set TAVILY_API_KEY"


def test_a_named_provider_is_asked_whatever_it_has() -> None:
    """Whoever names one wants it asked: it says itself that it has no news."""
    (chosen,) = choose(provider_choices([]), ["wikipedia"], NEWS)
    assert chosen.source_types == [SourceType.WEB, SourceType.NEWS]


def test_a_name_that_nobody_knows_lists_the_known_ones() -> None:
    """A slip of the pen is told from a missing key."""
    with pytest.raises(ValueError, match="called altavista; there are: tavily, google, semantic_scholar, brave"):
        choose(provider_choices([]), ["altavista"], WEB)


@pytest.mark.parametrize(
    ("variables", "types", "names"),
    [
        (["TAVILY_API_KEY"], WEB, ["tavily", "wikipedia"]),
        (["TAVILY_API_KEY"], ACADEMIC, ["semantic_scholar"]),
        (["TAVILY_API_KEY", "BRAVE_API_KEY"], NEWS, ["tavily", "brave"]),
        (["SEARXNG_URL"], ACADEMIC, ["semantic_scholar", "searxng"]),
        (["SEARXNG_URL"], [*WEB, *ACADEMIC], ["semantic_scholar", "searxng", "wikipedia"]),
        ([], WEB, ["semantic_scholar", "wikipedia"]),
        ([], ACADEMIC, ["semantic_scholar"]),
    ],
)
def test_whoever_has_a_wanted_type_is_used(variables: list[str], types: list[SourceType], names: list[str]) -> None:
    """Without any key, articles and papers stand in for the web at large (S0-102, S0-171)."""
    chosen = choose(provider_choices(variables), None, types)
    assert [choice.name for choice in chosen] == names
    assert all(choice.available for choice in chosen)
    assert all(set(choice.source_types) & set(types) for choice in chosen)


def test_papers_stand_in_for_the_web_only_where_nobody_searches_it() -> None:
    """Whoever goes by the types of a choice asks Semantic Scholar for web pages exactly then."""
    without = by_name(choose(provider_choices([]), None, WEB))["semantic_scholar"]
    assert without.source_types == [SourceType.ACADEMIC, SourceType.WEB]
    both = by_name(choose(provider_choices([]), None, [*WEB, *ACADEMIC]))["semantic_scholar"]
    assert both.source_types == ACADEMIC
    with_model = choose(provider_choices([], model_offers_search=True), None, WEB)
    assert [choice.name for choice in with_model] == ["wikipedia", "anthropic"]


def test_a_type_that_nobody_has_names_what_to_set() -> None:
    """If none is left, those that could be set up are given with their reasons, none of them available (S0-102)."""
    chosen = choose(provider_choices([]), None, NEWS)
    assert {choice.name: choice.reason for choice in chosen} == {
        "tavily": "set TAVILY_API_KEY",
        "brave": "set BRAVE_API_KEY",
        "searxng": "set SEARXNG_URL",
    }
    assert usable(chosen) == []


@pytest.mark.parametrize(
    ("variables", "model", "types", "lines"),
    [
        ([], False, WEB, [ADVICE]),
        ([], False, [*WEB, *ACADEMIC], [ADVICE]),
        ([], False, ACADEMIC, []),
        ([], True, WEB, []),
        (["SEARXNG_URL"], False, WEB, []),
        (["SEARXNG_URL"], False, ACADEMIC, []),
    ],
)
def test_advice_where_coverage_is_narrow(
    variables: list[str], model: bool, types: list[SourceType], lines: list[str]
) -> None:
    """A run over articles and papers alone says what would widen it; no other run is lectured."""
    choices = provider_choices(variables, model_offers_search=model)
    assert advice(choose(choices, None, types)) == lines
    assert "TAVILY_API_KEY" in ADVICE
    assert "SEARXNG_URL" in ADVICE
