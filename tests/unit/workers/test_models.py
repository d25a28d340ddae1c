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
from providers.errors import NotConfigured, Unavailable
from providers.interfaces import EngineTask, RenderedPrompt
from providers.models.chat import ChatApi
from providers.shared.limits import Limiter
from tests.fakes.completions_api import CompletionsApi
from tests.fakes.messages_api import MessagesApi
from tests.fakes.shared_stores import MemorySharedStore
from workers.composition import create_language_model
from workers.resolution_inputs import configuration_of
from workers.settings.loading import FILE_NAME, Settings, SettingsError, load_settings

KEY = "sk-of-the-gateway"
CONFIGURED = """
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


def settings_of(folder: Path, text: str, **environment: str) -> Settings:
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    return load_settings(environment=environment, user_folder=folder)


def task(tier_model: str | None) -> EngineTask:
    given = PlanInput(engine=EngineKind.MODEL, model=tier_model, query="How?")
    return EngineTask(PLANNER, given, {}, "role: planner", RenderedPrompt("<question>\nHow?\n</question>"), "1")


@asynccontextmanager
async def engine_of(settings: Settings) -> AsyncIterator[Any]:
    engine = create_language_model(settings, Limiter(MemorySharedStore(), {}))
    try:
        yield engine
    finally:
        await engine.close()


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
        for configured, model, variable in (
            (text, "own:m", "RESEARCH_ENDPOINT_OWN_KEY"),
            ('[models]\ndefault = "m"', "m", "ANTHROPIC_API_KEY"),
        ):
            async with engine_of(settings_of(tmp_path, configured)) as engine:
                with pytest.raises(NotConfigured, match=variable):
                    await engine.answer(task(model))


async def test_an_endpoint_may_be_silent_for_as_long_as_its_setting_says(tmp_path: Path) -> None:
    """A call that sends nothing for so long is given up and soon made again; the message names the endpoint's setting."""
    async with MessagesApi("slow") as api:
        text = f'[models]\n[models.endpoints.own]\nbase_url = "{api.base_url}"\nsilence_seconds = 1'
        async with engine_of(settings_of(tmp_path, text)) as engine:
            setting = r"for 1 s: if it is slow, raise models\.endpoints\.own\.silence_seconds"
            with pytest.raises(Unavailable, match=setting) as raised:
                await engine.answer(task("own:m"))
    assert raised.value.retry_after == 1.0


def resolved(folder: Path, models: Models | None = None, text: str = CONFIGURED) -> ResolvedResearch:
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
    with_key = settings_of(tmp_path, keyless, ANTHROPIC_API_KEY="k")
    assert with_key.model_host == "api.anthropic.com, own.example"


def test_the_reserve_is_for_the_dearest_model_that_may_answer(tmp_path: Path) -> None:
    """A first model that is cheap or has no price lowers no reserve for the dear one that may take over."""
    dear = ModelPrice(input=300 * 1.25, output=1_500)
    for first in ("free", "other:free", "cheap"):
        text = CONFIGURED.replace('"usual"', f'["{first}", "paid:dear"]')
        assert resolved(tmp_path, text=text).model_prices == dict.fromkeys((tier.value for tier in Tier), dear)
    assert resolved(tmp_path).model_prices == {}
    assert resolved(tmp_path, Models(complex="paid:dear")).model_prices == {"complex": dear}


@pytest.mark.parametrize(("window", "price"), [(200_000, 3.75), (1_000_000, 7.5)])
def test_the_reserve_knows_the_window_of_its_model(tmp_path: Path, window: int, price: float) -> None:
    """What longer prompts than its own cost is reserved for none of its calls."""
    text = f'[models]\ndefault = "own:claude-sonnet-4-5"\n[models.endpoints.own]\nbase_url = "http://own.example"\nwindow = {window}'
    assert resolved(tmp_path, text=text).model_prices["complex"].input == price


# --- variables of the openai SDK --------------------------------------------------------------------------------------
def test_openai_variables_name_the_endpoint_where_nothing_else_does(tmp_path: Path) -> None:
    """The key alone means the public address, an address alone a server without a key; both speak chat completions."""
    public = settings_of(tmp_path, 'models.default = "gpt-5"', OPENAI_API_KEY=KEY)
    assert (public.model_host, public.model_keys()["default"].get_secret_value()) == ("api.openai.com", KEY)
    assert KEY in public.secrets()
    own = settings_of(tmp_path, 'models.default = "qwen3"', OPENAI_BASE_URL="http://127.0.0.1:11434/v1")
    assert (own.model_host, own.model_keys()) == ("127.0.0.1:11434", {})
    assert own.models.capabilities_at("default", "qwen3").api is ChatApi.CHAT
    assert not settings_of(tmp_path, "", OPENAI_API_KEY=KEY).notices(), "other programs use this variable, too"


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ('models.base_url = "http://127.0.0.1:8080"', {}),
        ("", {"ANTHROPIC_API_KEY": "another"}),
        ("", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8080"}),
    ],
)
def test_a_key_of_openai_never_goes_to_an_address_of_ours(text: str, variables: dict[str, str], tmp_path: Path) -> None:
    """Where anything else names the endpoint, neither the key nor the address of these variables counts."""
    address = "https://openai.example/v1"
    settings = settings_of(tmp_path, text, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=address, **variables)
    assert KEY not in [key.get_secret_value() for key in settings.model_keys().values()]
    assert settings.models.base_url != address
    assert settings.models.capabilities_at("default", "m").api is not ChatApi.CHAT


def test_a_key_of_openai_that_would_be_sent_in_clear_is_refused_by_its_own_name(tmp_path: Path) -> None:
    """The error names the variable to unset, and the one with the address."""
    with pytest.raises(SettingsError, match=r"^OPENAI_BASE_URL: .* so OPENAI_API_KEY would be sent in clear"):
        settings_of(tmp_path, 'models.default = "m"', OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://models.example/v1")


async def test_a_server_of_chat_completions_answers_from_its_address_alone(tmp_path: Path) -> None:
    """No setting names the protocol; the window that the server states is the one of the run."""
    models = [{"id": "qwen3:8b", "max_model_len": 9_000}]
    async with CompletionsApi(models=models) as api:
        settings = settings_of(tmp_path, f'models = {{default = "qwen3:8b", base_url = "{api.base_url}/v1"}}')
        async with engine_of(settings) as engine:
            answer = await engine.answer(task(None))
    assert answer.model == "qwen3:8b"
    assert len(api.calls) == 1
