"""Whether those that a run would ask answer, and whether a stored run finds its models here."""

import socket
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from client.cli.command_errors import CommandError, ExitCode
from client.cli.options import RunOptions
from client.cli.preflight import check_model_named, check_reachable, model_flags, resolve_here, use_local_endpoints
from client.view.decision_wording import engine_words, searching_words
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from workers.settings.loading import Settings
from workers.settings.models import EndpointSettings, ModelsSettings
from workers.settings.web_search import WebSearchSettings

SILENT = "http://127.0.0.1:1"
NOTHING = RunOptions()


@pytest.fixture
def answering() -> Iterator[str]:
    """An address that takes connections; nothing is asked there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def web(wikipedia: str) -> Settings:
    addresses = {"WIKIPEDIA_BASE_URL": wikipedia, "SEMANTIC_SCHOLAR_BASE_URL": SILENT, "SEARXNG_URL": SILENT}
    return Settings(web_search=WebSearchSettings(variables=addresses))


def asked(settings: Settings, **values: object) -> ResolvedResearch:
    return resolve_here(ResearchRequest.model_validate({"query": "q", **values}), settings)


async def test_who_cannot_be_reached_is_named_and_not_counted_on(answering: str) -> None:
    """First lines, where text goes and the estimate speak of those that can be asked (S0-102)."""
    settings = web(answering)
    known = await check_reachable(asked(settings), settings)
    assert [choice.name for choice in known.providers if choice.available] == ["wikipedia"]
    words = searching_words(known)
    assert words.startswith("searching with wikipedia; not with semantic_scholar (127.0.0.1 is not reachable at port 1")
    assert "127.0.0.1:1;" not in known.egress
    assert answering.removeprefix("http://") in known.egress


async def test_with_a_folder_a_run_goes_on_without_the_web() -> None:
    """Nobody of the web answers: the folder is searched, and the others are named."""
    settings = web(SILENT)
    known = await check_reachable(asked(settings, corpus="manual", web=True), settings)
    assert not known.web
    assert searching_words(known).startswith("searching with corpus; not with semantic_scholar (127.0.0.1 is not")


async def test_with_nobody_to_ask_the_run_is_refused_with_what_to_set() -> None:
    """Exit code 7 before any work, each provider with its reason, others with what they need (S0-102)."""
    settings = web(SILENT)
    with pytest.raises(CommandError, match=r"wikipedia: 127\.0\.0\.1 is not reachable") as refused:
        await check_reachable(asked(settings), settings)
    assert refused.value.code == ExitCode.NOTHING_TO_WORK_WITH
    assert "or set up tavily: set TAVILY_API_KEY" in str(refused.value)
    assert "set SEARXNG_URL" not in str(refused.value)


async def test_a_provider_whose_key_is_gone_cannot_be_asked_again(answering: str) -> None:
    """A run goes on with what it was given; what this machine lacks for it is named."""
    before = asked(web(answering).model_copy(update={"web_search": _with_tavily(answering)}))
    assert "tavily" in [choice.name for choice in before.providers if choice.available]
    known = await check_reachable(before, web(answering))
    assert {choice.name: choice.reason for choice in known.providers}["tavily"] == "set TAVILY_API_KEY"


def _with_tavily(wikipedia: str) -> WebSearchSettings:
    return WebSearchSettings(variables=web(wikipedia).web_search.variables | {"TAVILY_API_KEY": SecretStr("k")})


async def test_a_model_endpoint_that_is_down_is_found_out_before_the_run(answering: str) -> None:
    """With another one for its calls it is told; without, the run is refused with the remedy."""
    alone = Settings(models=ModelsSettings(default="m", base_url=SILENT))
    with pytest.raises(CommandError, match=r"127\.0\.0\.1:1 cannot be used now.*\n.*ANTHROPIC_BASE_URL") as refused:
        await check_reachable(asked(alone, corpus="manual"), alone)
    assert refused.value.code == ExitCode.NOTHING_TO_WORK_WITH
    two = ModelsSettings(
        default=["m", "spare:n"], base_url=SILENT, endpoints={"spare": EndpointSettings(base_url=answering)}
    )
    known = await check_reachable(asked(Settings(models=two), corpus="manual"), Settings(models=two))
    assert any("127.0.0.1:1 cannot be used now" in line for line in known.advice)
    extractive = asked(alone, corpus="manual", engine="extractive")
    assert await check_reachable(extractive, alone) == extractive


def test_a_stored_run_finds_its_model_or_is_refused() -> None:
    """The run keeps its models: without their endpoint here it is refused before any work, with what to add."""
    there = Settings(models=ModelsSettings(default="qwen3", base_url="http://127.0.0.1:8080"))
    stored = asked(there, corpus="manual")
    assert use_local_endpoints(stored, there, NOTHING) == stored
    elsewhere = Settings(models=ModelsSettings(default="qwen3", base_url="http://models.example"))
    for settings in (Settings(), elsewhere):
        with pytest.raises(CommandError, match=r"qwen3 at .*8080.*add --model qwen3 --model-url URL") as refused:
            use_local_endpoints(stored, settings, NOTHING)
        assert refused.value.code == ExitCode.USAGE
    moved = use_local_endpoints(stored, elsewhere, RunOptions(model_url="http://models.example"))
    assert moved.egress == "passages go to models.example"
    assert engine_words(moved) == "model qwen3"


def test_a_stored_run_of_the_public_endpoint_needs_its_key() -> None:
    """The key is what to set there; a run without a model needs nothing."""
    public = Settings(models=ModelsSettings(default="m"), anthropic_api_key=SecretStr("k"))
    stored = asked(public, corpus="manual")
    assert use_local_endpoints(stored, public, NOTHING) == stored
    with pytest.raises(CommandError, match="add --model m and set ANTHROPIC_API_KEY"):
        use_local_endpoints(stored, Settings(), NOTHING)
    extractive = asked(Settings(), corpus="manual")
    assert use_local_endpoints(extractive, Settings(), NOTHING) == extractive


def test_a_model_that_is_named_is_meant() -> None:
    """`--model` without key and address would have given a report without a model."""
    with pytest.raises(CommandError, match="--model m cannot be used: set ANTHROPIC_API_KEY"):
        check_model_named(RunOptions(model="m"), Settings())
    check_model_named(NOTHING, Settings())
    check_model_named(RunOptions(model="m"), Settings(models=ModelsSettings(default="m", base_url=SILENT)))


def test_the_command_that_goes_on_names_the_model_again() -> None:
    """What was given by hand is needed again; a password is not printed."""
    assert model_flags(RunOptions(model="a b", model_url="http://h:1")) == " --model 'a b' --model-url http://h:1"
    assert model_flags(RunOptions(model="m", model_url="http://u:p@h")) == " --model m --model-url URL"
    assert model_flags(NOTHING) == ""
