"""From the environment to search providers of the web."""

import json
from pathlib import Path

import pytest

from contracts.request import SourceType
from providers.errors import NotConfigured
from providers.search.anthropic_search import AnthropicSearch
from providers.search.declarations import declared_names
from tests.fakes.search_answers import CSE_ID, KEYS, MODEL
from tests.fakes.search_apis import SearchApis, asking
from workers.resolution_inputs import configuration_of
from workers.settings.loading import Settings, load_settings
from workers.settings.models import EndpointSettings
from workers.web_access import open_search_providers, search_choices, search_model, user_agent

SERVICES = [name for name in declared_names() if name != "anthropic"]


def loaded(folder: Path, **environment: str) -> Settings:
    """The settings of these variables alone."""
    return load_settings(environment=environment, user_folder=folder)


def variables(server: SearchApis) -> dict[str, str]:
    """Every variable, pointing at the loopback server."""
    keys = {f"{name.upper()}_API_KEY": key for name, key in KEYS.items()}
    addresses = {f"{name.upper()}_BASE_URL": server.url(name) for name in SERVICES if name != "searxng"}
    return {**keys, **addresses, "GOOGLE_CSE_ID": CSE_ID, "SEARXNG_URL": server.url("searxng")}


async def test_every_provider_is_made_in_order_and_answers(tmp_path: Path) -> None:
    """With all variables set, all providers exist in their order, with their own keys and addresses (S0-102)."""
    async with SearchApis() as server:
        settings = loaded(tmp_path, **variables(server))
        async with open_search_providers(settings) as providers:
            assert list(providers) == SERVICES
            for name, provider in providers.items():
                assert provider.name == name
                assert len((await provider.search(asking(name))).hits) == 10
    assert [asked.provider for asked in server.asked] == SERVICES
    assert {asked.headers["user-agent"].split("/")[0] for asked in server.asked} == {"durable-research"}


async def test_the_contact_is_told_to_every_service(tmp_path: Path) -> None:
    """A service can turn to whoever runs this; Wikimedia asks every client for an address (X-16)."""
    async with SearchApis() as server:
        settings = loaded(tmp_path, RESEARCH_CONTACT="https://example.org/bot", **variables(server))
        async with open_search_providers(settings) as providers:
            for name, provider in providers.items():
                await provider.search(asking(name))
    assert len(server.asked) == len(SERVICES)
    assert {asked.headers["user-agent"] for asked in server.asked} == {user_agent("https://example.org/bot")}
    assert user_agent("https://example.org/bot").endswith(" (https://example.org/bot)")
    assert user_agent().endswith(" (self-hosted research)")


async def test_the_models_own_search_is_made_with_its_key_and_prices(tmp_path: Path) -> None:
    """The cheapest configured model asks the public endpoint; what it costs is known (X-16)."""
    settings = loaded(tmp_path, ANTHROPIC_API_KEY=KEYS["anthropic"], RESEARCH_MODEL="m", RESEARCH_MODEL_SIMPLE=MODEL)
    model = search_model(settings)
    assert model is not None
    assert (model["RESEARCH_MODEL"], "ANTHROPIC_BASE_URL" in model) == (MODEL, False)
    async with open_search_providers(settings) as providers:
        assert list(providers) == ["semantic_scholar", "wikipedia", "anthropic"]
        assert isinstance(providers["anthropic"], AnthropicSearch)
        assert providers["anthropic"].address == "https://api.anthropic.com"
    async with SearchApis() as server:
        endpoints = {"default": EndpointSettings(searches_web=True)}
        models = settings.models.model_copy(update={"base_url": server.url("anthropic"), "endpoints": endpoints})
        here = settings.model_copy(update={"models": models})
        async with open_search_providers(here, ["anthropic"]) as providers:
            answer = await providers["anthropic"].search(asking("anthropic"))
    assert len(answer.hits) == 10
    assert answer.cost_usd == pytest.approx(0.0125)


def test_a_model_behind_a_gateway_is_passed_over(tmp_path: Path) -> None:
    """Of the models of all tiers, the one at the public endpoint searches; its name is sent without the endpoint's."""
    (tmp_path / "research.toml").write_text(
        '[models]\nsimple = "local:small"\ncomplex = ["local:large", "public:claude-opus-5-5"]\n'
        '[models.endpoints.local]\nbase_url = "http://127.0.0.1:9"\n'
        '[models.endpoints.public]\nbase_url = "https://api.anthropic.com"\n'
    )
    model = search_model(loaded(tmp_path, RESEARCH_ENDPOINT_PUBLIC_KEY="planted"))
    assert model is not None
    assert (model["RESEARCH_MODEL"], model["ANTHROPIC_BASE_URL"]) == ("claude-opus-5-5", "https://api.anthropic.com")
    assert search_model(loaded(tmp_path)) is None


def test_an_operator_can_say_that_a_gateway_searches(tmp_path: Path) -> None:
    """Then it is asked, and the line that tells where queries go names it: a capability is data, not a host's name."""
    (tmp_path / "research.toml").write_text(
        '[models]\ndefault = "m"\nbase_url = "http://127.0.0.1:9"\n[models.endpoints.default]\nsearches_web = true\n'
    )
    settings = loaded(tmp_path)
    model = search_model(settings)
    assert model is not None
    assert (model["RESEARCH_MODEL"], model["ANTHROPIC_BASE_URL"]) == ("m", "http://127.0.0.1:9")
    chosen = {choice.name: choice for choice in search_choices(settings)}
    assert (chosen["anthropic"].available, chosen["anthropic"].host) == (True, "127.0.0.1:9")


@pytest.mark.parametrize("name", [name for name in SERVICES if name in KEYS])
async def test_a_key_that_cannot_be_one_costs_its_provider_alone(tmp_path: Path, name: str) -> None:
    """The others are made; asked for alone it is refused; no line shows the key (S0-102)."""
    variable = f"{name.upper()}_API_KEY"
    async with SearchApis() as server:
        settings = loaded(tmp_path, **{**variables(server), variable: "planted key"})
        async with open_search_providers(settings) as providers:
            assert list(providers) == [other for other in SERVICES if other != name]
    choices = {choice.name: choice for choice in search_choices(settings)}
    assert (choices[name].available, choices[name].reason) == (False, f"{variable} holds characters that no key has")
    with pytest.raises(NotConfigured, match=f"{name} cannot be used: {variable} holds"):
        async with open_search_providers(settings, [name]):
            pass
    told = configuration_of(settings).web_search.choose(None, list(SourceType))
    assert [choice.name for choice in told if not choice.available and choice.name in KEYS] == [name]
    assert "planted key" not in json.dumps(settings.describe())


async def test_those_that_lack_a_key_are_skipped(tmp_path: Path) -> None:
    """Without any variable the two remain that need no key (S0-102, S0-171)."""
    async with open_search_providers(loaded(tmp_path)) as providers:
        assert list(providers) == ["semantic_scholar", "wikipedia"]


@pytest.mark.parametrize(("name", "said"), [("tavily", "set TAVILY_API_KEY"), ("altavista", "there are: tavily")])
async def test_a_provider_that_cannot_be_asked_is_refused_by_name(tmp_path: Path, name: str, said: str) -> None:
    """Asked for alone, a provider says what it lacks; an unknown one is no provider."""
    with pytest.raises(NotConfigured, match=said):
        async with open_search_providers(loaded(tmp_path), [name]):
            pass


def test_keys_are_secrets_everywhere(tmp_path: Path) -> None:
    """Neither what is shown nor what is hashed nor an error holds a key; the log's redaction knows them all."""
    planted = {f"{name.upper()}_API_KEY": key for name, key in KEYS.items()}
    settings = loaded(tmp_path, SEARXNG_URL="https://me:planted-password@search.example", **planted)
    shown = json.dumps(settings.describe()) + repr(settings)
    assert not any(key in shown for key in KEYS.values())
    assert "planted-password" not in json.dumps(settings.describe())
    assert set(KEYS.values()) | {"planted-password"} <= set(settings.secrets())
    assert settings.digest() == loaded(tmp_path).digest()
