"""Which providers can be asked."""

import pytest

from providers.search.availability import NEEDS, provider_choices, usable


def test_the_order_and_what_is_missing() -> None:
    """S0-102, S0-171: Tavily, Google, Semantic Scholar, then the others; each skipped one names its variables."""
    choices = provider_choices([])
    assert [choice.name for choice in choices] == [
        "tavily", "google", "semantic_scholar", "brave", "searxng", "wikipedia",
    ]  # fmt: skip
    assert {choice.name: choice.reason for choice in choices if not choice.available} == {
        "tavily": "set TAVILY_API_KEY",
        "google": "set GOOGLE_API_KEY and GOOGLE_CSE_ID",
        "brave": "set BRAVE_API_KEY",
        "searxng": "set SEARXNG_URL",
    }
    assert usable(choices) == ["semantic_scholar", "wikipedia"]


def test_half_of_a_pair_is_not_enough() -> None:
    """Google needs two values; the one that is missing is named alone."""
    google = provider_choices(["GOOGLE_API_KEY"])[1]
    assert (google.available, google.reason) == (False, "set GOOGLE_CSE_ID")


def test_everything_set_makes_all_available_in_order() -> None:
    """S0-102: the order is fixed, not that of the variables."""
    variables = {name for needs in NEEDS.values() for name in needs.required}
    assert usable(provider_choices(variables)) == list(NEEDS)


def test_none_available_is_an_empty_list() -> None:
    """S0-102: whoever chooses from an order without any available one sees that nothing is left."""
    assert usable(provider_choices([], ["tavily", "brave"])) == []


def test_an_unknown_provider_is_an_error() -> None:
    """A name that does not exist is not taken for one that is not configured."""
    with pytest.raises(KeyError):
        provider_choices([], ["altavista"])
