"""`[models]`: tiers, endpoints, keys, the engine that is made of them, and what a run resolves to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from activities.preparation import resolve
from contracts.request import Models, ResearchRequest
from contracts.resolved import CorpusSnapshot, ModelPrice, ResolvedResearch
from contracts.roles import PLANNER, PlanInput
from contracts.vocabulary import EngineKind, Tier
from providers.errors import NotConfigured
from providers.interfaces import EngineTask
from providers.shared.limits import Limiter
from tests.fakes.memory_store import MemorySharedStore
from tests.fakes.messages_api import MessagesApi
from workers.composition import create_language_model
from workers.resolution_inputs import configuration_of
from workers.settings.loading import FILE_NAME, Settings, SettingsError, load_settings
from workers.settings.models import key_variable

KEY = "sk-of-the-gateway"
TWO = """
[models]
simple = "small:qwen3:8b"
analytical = ["claude-opus-4-8", "gateway-1:claude-opus-4-8", "qwen3:8b"]
complex = "gateway-1:big"

[models.endpoints.small]
base_url = "http://user:password@127.0.0.1:11434"
mode = "text"
window = 8192
reasoning_tokens = 0
requests_per_minute = 30

[models.endpoints.gateway-1]
base_url = "https://gateway.example/anthropic"
tokens_per_minute = 90000
caching = true

[models.prices."gateway-1:big"]
input = 7
output = 9
"""


def settings_of(folder: Path, text: str, **environment: str) -> Settings:
    """The settings of one file and these variables."""
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    return load_settings(environment=environment, user_folder=folder)


def task(tier_model: str | None) -> EngineTask:
    """A plan to be made."""
    given = PlanInput(
        research_id="r-1",
        operation="plan/1",
        engine=EngineKind.MODEL,
        model=tier_model,
        date="2026-11-22",
        query="How does vacuum work?",
    )
    return EngineTask(PLANNER, given, {}, "role: planner\n\nYou plan.", "<question>\nHow?\n</question>", "1")


@asynccontextmanager
async def engine_of(settings: Settings) -> AsyncIterator[Any]:
    """The engine as workers make it."""
    engine = create_language_model(settings, Limiter(MemorySharedStore(), {}))
    try:
        yield engine
    finally:
        await engine.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[models.endpoints.x]\nwindow = 9000", "models.endpoints: x.base_url: missing"),
        ('[models.endpoints.default]\nbase_url = "http://h"', "models.endpoints: default.base_url"),
        ('[models.endpoints.x]\nbase_url = "http://h"\nkey = "k"', "models.endpoints.x.key: unknown key"),
        ('[models.endpoints."Not A Name"]\nbase_url = "http://h"', "models.endpoints.Not A Name"),
        ("[models]\ndefault = []", "models.default"),
        ("[models.prices.m]\ninput = -3\noutput = 1", "models.prices.m.input: Input should be greater than or equal"),
        ("[models.prices.m]\ninput = nan\noutput = 1", "models.prices.m.input: Input should be"),
        ('[models.endpoints.x]\nbase_url = "http://h"\nwindow = 5', "models.endpoints.x.window"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(tmp_path: Path, text: str, problem: str) -> None:
    """Keys have no place in the file, every endpoint but the default one needs an address, and prices are not below 0."""
    with pytest.raises(SettingsError) as raised:
        settings_of(tmp_path, text)
    assert problem in str(raised.value)


def test_keys_come_from_the_environment_and_are_shown_nowhere(tmp_path: Path) -> None:
    """An endpoint's key is in its own variable; neither it nor a password of an address is in what is described."""
    assert key_variable("gateway-1") == "RESEARCH_ENDPOINT_GATEWAY_1_KEY"
    settings = settings_of(tmp_path, TWO, RESEARCH_ENDPOINT_GATEWAY_1_KEY=KEY, RESEARCH_ENDPOINT_SMALL_KEY=" ")
    assert {name: key.get_secret_value() for name, key in settings.model_keys().items()} == {"gateway-1": KEY}
    assert KEY in settings.secrets()
    shown = str(settings.describe()) + repr(settings)
    assert KEY not in shown
    assert "password" not in str(settings.describe())
    assert settings.describe()["endpoint_keys"] == {"RESEARCH_ENDPOINT_GATEWAY_1_KEY": "set"}
    other = settings_of(tmp_path, TWO, RESEARCH_ENDPOINT_GATEWAY_1_KEY="another")
    assert settings.digest() == other.digest()


async def test_the_configured_endpoints_are_asked_in_order(tmp_path: Path) -> None:
    """From the file to the wire: overrides hold, the list of a tier is tried in order, and each endpoint gets its own key."""
    async with MessagesApi("status:529") as main, MessagesApi() as spare:
        text = f"""
[models]
base_url = "{main.base_url}"
default = ["qwen3:8b", "spare:qwen3:8b"]
[models.endpoints.spare]
base_url = "{spare.base_url}"
mode = "text"
reasoning_tokens = 0
"""
        settings = settings_of(tmp_path, text, RESEARCH_ENDPOINT_SPARE_KEY=KEY, ANTHROPIC_API_KEY="main-key")
        async with engine_of(settings) as engine:
            answer = await engine.answer(task(settings.models.by_tier()["analytical"]))
    assert (main.calls[0].model, spare.calls[0].model) == ("qwen3:8b", "qwen3:8b")
    assert (main.calls[0].mode, spare.calls[0].mode) == ("tool", "text")
    assert spare.requests[0].body["max_tokens"] == PLANNER.output_tokens
    assert (str(main.headers[0]).count("main-key"), str(spare.headers[0]).count(KEY)) == (1, 1)
    assert KEY not in str(main.headers)
    assert answer.warnings == ["model qwen3:8b did not answer (Unavailable): spare:qwen3:8b did"]


async def test_a_missing_key_is_named_by_its_variable(tmp_path: Path) -> None:
    """The public API without a key, and an endpoint that refuses one, each name the variable to set."""
    async with MessagesApi("status:401") as api:
        text = f'[models]\ndefault = "own:m"\n[models.endpoints.own]\nbase_url = "{api.base_url}"'
        async with engine_of(settings_of(tmp_path, text)) as engine:
            with pytest.raises(NotConfigured, match="RESEARCH_ENDPOINT_OWN_KEY"):
                await engine.answer(task("own:m"))
            with pytest.raises(NotConfigured, match=r"RESEARCH_ENDPOINT_OWN_KEY|ANTHROPIC_API_KEY"):
                await engine.answer(task("claude-opus-4-8"))
    async with engine_of(settings_of(tmp_path, '[models]\ndefault = "m"')) as engine:
        with pytest.raises(NotConfigured, match="ANTHROPIC_API_KEY"):
            await engine.answer(task("m"))


RESOLVED = """
[models]
default = "usual"
base_url = "http://127.0.0.1:1001"
[models.endpoints.other]
base_url = "http://other.example"
[models.endpoints.paid]
base_url = "https://paid.example"
[models.prices.dear]
input = 300
output = 1500
[models.prices.cheap]
input = 1
output = 2
"""


def resolved(folder: Path, models: Models | None = None, text: str = RESOLVED) -> ResolvedResearch:
    """A request for these models as a worker with this configuration resolves it."""
    request = ResearchRequest(query="x", corpus="manual", models=models or Models())
    corpus = CorpusSnapshot(name="manual", files=1)
    return resolve("r-1", request, configuration_of(settings_of(folder, text)), corpus, search_attributes=False)


def test_egress_names_every_endpoint_that_may_be_asked(tmp_path: Path) -> None:
    """Endpoints of the request's own models come first, then those that take over; without a key nothing goes (S0-101)."""
    every_tier = Models(simple="other:m", analytical="other:m", complex="other:m")
    assert resolved(tmp_path, every_tier).egress == "passages go to other.example, 127.0.0.1:1001 (this machine)"
    assert resolved(tmp_path).egress == "passages go to 127.0.0.1:1001 (this machine)"
    keyless = '[models]\ndefault = ["big", "own:m"]\n[models.endpoints.own]\nbase_url = "http://own.example"'
    assert resolved(tmp_path, Models(simple="other"), keyless).model_host == "own.example"
    with_key = settings_of(tmp_path, TWO, ANTHROPIC_API_KEY="k")
    assert with_key.model_host == "gateway.example, api.anthropic.com, 127.0.0.1:11434"


def test_the_reserve_is_for_the_dearest_model_that_may_answer(tmp_path: Path) -> None:
    """A first model that is cheap or has no price lowers no reserve for the dear one that may take over."""
    dear = ModelPrice(input=300 * 1.25, output=1_500)
    for first in ("free", "other:free", "cheap"):
        text = RESOLVED.replace('"usual"', f'["{first}", "paid:dear"]')
        assert resolved(tmp_path, text=text).model_prices == dict.fromkeys((tier.value for tier in Tier), dear)
    assert resolved(tmp_path).model_prices == {}
    assert resolved(tmp_path, Models(complex="paid:dear")).model_prices == {"complex": dear}
