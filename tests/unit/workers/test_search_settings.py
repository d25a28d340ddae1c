"""From the environment to the search pool: which services a run can ask, and which answers are stored."""

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.request import SourceType
from providers.errors import NotConfigured
from providers.search.anthropic_search import AnthropicSearch
from providers.search.declarations import BUILT_IN
from providers.shared.limits import ServiceLimits
from tests.fakes.search_answers import APP, CSE_ID, KEYS, MODEL, PAPERS, PROVIDERS
from tests.fakes.search_apis import SearchApis, asking
from workers.composition import find_unreachable, open_search_providers, search_limits, user_agent
from workers.resolution_inputs import configuration_of, search_choices, search_model
from workers.settings.loading import Settings, load_settings
from workers.settings.models import EndpointSettings

SERVICES = [name for name in PROVIDERS if name != "anthropic"]


def loaded(folder: Path, **environment: str) -> Settings:
    return load_settings(environment=environment, user_folder=folder)


def variables(server: SearchApis) -> dict[str, str]:
    keys = {f"{name.upper()}_API_KEY": key for name, key in KEYS.items()}
    addresses = {f"{name.upper()}_BASE_URL": server.url(name) for name in SERVICES if name != "searxng"}
    return {
        **keys,
        **addresses,
        "GOOGLE_CSE_ID": CSE_ID,
        "VERTEX_AI_SEARCH_APP": APP,
        "SEARXNG_URL": server.url("searxng"),
    }


def test_every_provider_of_the_product_has_a_fake_service() -> None:
    """A provider without one is not tested: its path and its answers belong into `tests/fakes/search_answers.py`."""
    assert [one.name for one in BUILT_IN if one.name not in PROVIDERS] == []


def test_limits_that_services_state_hold_for_all_workers(tmp_path: Path) -> None:
    """One request in three seconds for arXiv, more with a key for PubMed; the operator may set another rate."""
    limits = search_limits(loaded(tmp_path))
    assert limits["search/arxiv"] == ServiceLimits(20, is_spaced=True, one_at_a_time=True)
    assert limits["search/pubmed"].requests_per_minute == 60
    assert set(limits) == {"search/arxiv", "search/pubmed", "search/crossref"}
    (tmp_path / "research.toml").write_text("[search.requests_per_minute]\narxiv = 4\ntavily = 30\n")
    limits = search_limits(loaded(tmp_path, PUBMED_API_KEY="k"))
    assert limits["search/arxiv"] == ServiceLimits(4, is_spaced=True, one_at_a_time=True)
    assert (limits["search/pubmed"].requests_per_minute, limits["search/tavily"]) == (200, ServiceLimits(30))


SERVER = """
[search]
providers = ["mcp.wiki", "tavily"]

[search.mcp.wiki]
url = "https://wiki.example.org/mcp"
headers = { Authorization = "WIKI_KEY" }

[search.mcp.notes]
command = ["/opt/notes", "--all"]
environment = ["NOTES_TOKEN", "HOME"]
"""


def test_a_server_of_documents_has_only_the_variables_that_it_names(tmp_path: Path) -> None:
    """Their values are secrets of logs, and in no description; without one of them it is skipped, with its name."""
    (tmp_path / "research.toml").write_text(SERVER)
    settings = loaded(tmp_path, NOTES_TOKEN="planted-token", OTHER="other", HOME="/home/somebody")
    wiki, notes = settings.document_servers()
    assert notes.environment == {"NOTES_TOKEN": "planted-token", "HOME": "/home/somebody"}
    assert (wiki.headers, wiki.missing) == ({}, ("WIKI_KEY",))
    choices = {choice.name: choice for choice in search_choices(settings)}
    assert list(choices)[:2] == ["mcp.wiki", "mcp.notes"]
    assert (choices["mcp.wiki"].available, str(choices["mcp.wiki"].reason)) == (False, "set WIKI_KEY")
    assert (choices["mcp.notes"].available, choices["mcp.notes"].host) == (True, "mcp.notes")
    with_key = loaded(tmp_path, NOTES_TOKEN="planted-token", WIKI_KEY="planted-header")
    assert {"planted-token", "planted-header"} <= set(with_key.secrets())
    assert "/home/somebody" not in settings.secrets()
    assert "planted" not in json.dumps(with_key.describe()) + repr(with_key.document_servers()) + repr(with_key)
    assert with_key.mark() != settings.mark()
    assert [choice.host for choice in search_choices(with_key, with_key.search.providers)] == [
        "wiki.example.org",
        "api.tavily.com",
    ]
    chosen = configuration_of(settings).choose_providers(None, [SourceType.WEB])
    assert [choice.name for choice in chosen if choice.available] == []  # tavily has no key: nothing else is named
    assert {choice.name for choice in chosen} == {"mcp.wiki", "tavily"}


def test_a_header_goes_to_no_other_machine_in_clear(tmp_path: Path) -> None:
    """Such a server is skipped; on this machine it is not."""
    for host, available in (("wiki.example.org", False), ("127.0.0.1:8000", True)):
        (tmp_path / "research.toml").write_text(
            f'[search.mcp.wiki]\nurl = "http://{host}/mcp"\nheaders = {{ Authorization = "WIKI_KEY" }}\n'
        )
        (choice,) = [one for one in search_choices(loaded(tmp_path, WIKI_KEY="k")) if one.name == "mcp.wiki"]
        assert choice.available is available


async def test_every_provider_is_made_in_order_and_answers(tmp_path: Path) -> None:
    """With their own keys and addresses; each service gets the contact that Wikimedia asks for (S0-102, X-16)."""
    async with SearchApis() as server:
        settings = loaded(tmp_path, RESEARCH_CONTACT="https://example.org/bot", **variables(server))
        async with open_search_providers(settings) as opened:
            providers = {name: provider for name, provider in opened.items() if name in SERVICES}
            assert list(providers) == SERVICES
            for name, provider in providers.items():
                assert len((await provider.search(asking(name))).hits) == 10
    assert list(dict.fromkeys(asked.provider for asked in server.asked)) == SERVICES
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
        assert list(providers) == ["semantic_scholar", "pubmed", "crossref", "arxiv", "wikipedia", "anthropic"]
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


def test_a_model_behind_a_gateway_searches_only_if_an_operator_says_so(tmp_path: Path) -> None:
    """Else the one at the public endpoint does; the line about egress names a gateway that searches."""
    local = '[models]\nsimple = "local:m"\n{}[models.endpoints.local]\nbase_url = "http://127.0.0.1:9"\n'
    public = '[models.endpoints.public]\nbase_url = "https://api.anthropic.com"\n'
    named = 'complex = "public:claude-opus-5-5"\n'
    for text, model, address in (
        (local.format(""), None, None),
        (local.format(named) + public, "claude-opus-5-5", "https://api.anthropic.com"),
        (local.format("") + "searches_web = true\n", "m", "http://127.0.0.1:9"),
    ):
        (tmp_path / "research.toml").write_text(text)
        settings = loaded(tmp_path, RESEARCH_ENDPOINT_PUBLIC_KEY="planted" if public in text else "")
        found = search_model(settings) or {}
        assert (found.get("RESEARCH_MODEL"), found.get("ANTHROPIC_BASE_URL")) == (model, address)
    chosen = {choice.name: choice for choice in search_choices(settings)}
    assert (chosen["anthropic"].available, chosen["anthropic"].host) == (True, "127.0.0.1:9")


@pytest.mark.parametrize("name", [name for name in SERVICES if name in KEYS])
async def test_a_key_that_cannot_be_one_costs_its_provider_alone(tmp_path: Path, name: str) -> None:
    """The others are made; asked for alone it is refused; no line shows the key (S0-102)."""
    variable = f"{name.upper()}_API_KEY"
    async with SearchApis() as server:
        settings = loaded(tmp_path, **{**variables(server), variable: "planted key"})
        async with open_search_providers(settings) as providers:
            made = [other for other in providers if other in SERVICES]
            assert made == [other for other in SERVICES if other != name]
    choices = {choice.name: choice for choice in search_choices(settings)}
    assert (choices[name].available, choices[name].reason) == (False, f"{variable} holds characters that no key has")
    with pytest.raises(NotConfigured, match=f"{name} cannot be used: {variable} holds"):
        async with open_search_providers(settings, [name]):
            pass
    types = [SourceType.ACADEMIC] if name in PAPERS else list(SourceType)
    offered = configuration_of(settings).choose_providers(None, types)
    assert [choice.name for choice in offered if not choice.available and choice.name in KEYS] == [name]
    assert "planted key" not in json.dumps(settings.describe())


async def test_unreachable_providers_are_skipped_while_another_can_be_reached() -> None:
    """Each with its reason; a run that could ask nobody is refused before any work (X-16)."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    away: dict[str, Any] = {name: SimpleNamespace(name=name, address=address) for name in ("tavily", "searxng")}
    providers = {**away, "brave": SimpleNamespace(name="brave")}
    missing = await find_unreachable(providers, ["tavily", "brave", "searxng"])
    assert list(missing) == ["tavily", "searxng"]
    assert "not reachable" in missing["searxng"]
