"""Summaries by a model: whole requests of runs whose calls have no room, as the fake endpoint gets them."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.canary import STEERED_NOTE
from contracts.evidence import Gap
from contracts.state import ResearchState
from contracts.summaries import SUMMARIZER
from contracts.supervisor_roles import REFINER, RefineInput, RefinerAnswer
from contracts.tokens import TokenSettings
from contracts.tools import ToolAnswer
from contracts.vocabulary import EngineKind
from tests.fakes import hostile_pages, model_request
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_tokens import TokenBook
from tests.fakes.model_work import element
from tests.fakes.tool_work import answered
from tests.fakes.world import World, begin, model_world
from tests.toy import declared
from tests.toy.asker import ASKER, ASKING, AskerInput
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

PROSE = "Vacuum prevents transaction ID wraparound by freezing old rows in every table that it visits. "
DRAFT = "".join(
    f"Setting {number} of the engine is 200000{number} (0x{number:04x}) by default.\n" for number in range(105)
)
SETTINGS = TokenSettings(summarization_provider="small", summarization_providers=["other"])
SUMMARY = "In short: "


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with declared(ASKING):
        yield


@asynccontextmanager
async def run_at(
    folder: Path, api: MessagesApi, window: int = 8_192, tokens: TokenSettings = SETTINGS, **fields: Any
) -> AsyncIterator[tuple[ResearchRun, World]]:
    """A run that has just begun, in a world whose models all have one window at the endpoint."""
    async with api:
        world = model_world(folder, api.base_url, None, window, tokens)
        try:
            yield ResearchRun(await begin(world, strategy="asking", **fields), Inbox(), world.host()), world
        finally:
            await world.close()


async def refine(run: ResearchRun, world: World) -> RefinerAnswer:
    """Have the refiner judge a gap beside a draft."""
    stored = await world.content.put_text(DRAFT)
    gaps = [Gap(id="gap-1", description="measured costs")]
    return await run.ask(REFINER, "refine", RefineInput(gaps=gaps, remaining_iterations=1, draft=stored))


def asked(api: MessagesApi, role: str) -> list[model_request.ModelRequest]:
    """The requests of a role."""
    return [request for request in api.requests if request.role == role]


def draft_of(api: MessagesApi) -> str:
    """The draft that the refiner was shown last."""
    return element(asked(api, "refiner")[-1].prompt, "draft")


async def test_older_answers_of_a_conversation_are_summarised_once(tmp_path: Path) -> None:
    """By the named model, as data, with the canary and without tools; each is paid for once (S0-140, S0-177)."""
    api = MessagesApi(book=TokenBook(window=20_000))
    async with run_at(tmp_path, api, 20_000) as (run, _):
        turn = await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))
        for number in range(2, 16):
            answers = [ToolAnswer(call_id=one.id, text=f"See also: word{number}. {PROSE * 45}") for one in turn.calls]
            turn = await run.turn(ASKER, f"ask/{number}", AskerInput(transcript=turn.transcript, answers=answers))
    summaries, texts = asked(api, "summarizer"), answered(asked(api, "asker")[-1].body)
    assert {call.status for call in api.calls} == {200}
    assert summaries
    assert len({request.prompt for request in summaries}) == len(summaries)
    assert {request.model for request in summaries} == {"small"}
    assert not any(request.body.get("tools") for request in summaries)
    assert all(run.resolved.canary in request.system for request in summaries)
    assert all(PROSE.strip() in element(request.prompt, "original").replace("\n", " ") for request in summaries)
    shown = [text for text in texts if SUMMARY in text]
    assert len(shown) == len(summaries)
    assert all(re.search(rf"<answer-\w+>\n\w\w¦ ?{SUMMARY}", text) for text in shown)
    assert not texts[-1].count(SUMMARY)
    assert run.state.accounts.usage_by_role[SUMMARIZER.name].model_calls == len(summaries)
    assert run.state.accounts.usage.model_calls == len(api.calls)
    assert not run.state.work.degraded


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("scenario", "tokens", "limits", "models"),
    [
        ("good", SETTINGS, {}, ["small"]),
        *((fault, SETTINGS, {}, ["small", "other"]) for fault in ("status:401", "empty", "cut", "slow")),
        ("good", TokenSettings(), {}, []),
        ("good", SETTINGS, {"max_model_calls": 11}, []),
    ],
)
async def test_a_draft_without_room_is_summarised_in_place_of_its_own_sentences(
    tmp_path: Path, scenario: str, tokens: TokenSettings, limits: dict[str, int], models: list[str]
) -> None:
    """By the named models in their order, each within its time; where none is named, or a limit forbids the summary,
    the refiner is asked all the same, with sentences of the draft (S0-140, S0-141, S0-166, S0-177).
    """
    api = MessagesApi(book=TokenBook(window=8_192), by_model={"small": scenario})
    tokens = tokens.model_copy(update={"summarization_timeout": 1.0})
    async with run_at(tmp_path, api, tokens=tokens, limits=limits) as (run, world):
        run.state.accounts.usage = run.state.accounts.usage.model_copy(update={"model_calls": 7})
        answer = await refine(run, world)
    assert [request.model for request in asked(api, "summarizer")] == models
    assert len(asked(api, "refiner")) == 1
    assert answer.account.engine is EngineKind.MODEL
    assert answer.account.content.shortened == 1
    assert draft_of(api).startswith(SUMMARY) == bool(models)
    assert models or draft_of(api).splitlines()[0] in DRAFT
    assert not run.state.work.failed_branches


@pytest.mark.parametrize("fault", ["longer", "canary", "citation", "failure"])
async def test_what_cannot_be_used_falls_to_the_sentences_of_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A longer text, the canary, a citation of its own, or no answer; the run says so, and its call is done (S0-166)."""
    bad = {
        "longer": lambda request: DRAFT,
        "citation": lambda request: "Costs are known [ev-0123456789].",
        "canary": lambda request: f"It is {hostile_pages.mark_of(request.system)}.",
        "failure": lambda request: "",
    }[fault]
    good = model_request.ModelRequest.good_answer
    monkeypatch.setattr(
        model_request.ModelRequest,
        "good_answer",
        lambda request, **fields: bad(request) if request.role == "summarizer" else good(request, **fields),
    )
    api = MessagesApi()
    async with run_at(tmp_path, api) as (run, world):
        answer = await refine(run, world)
    assert [request.model for request in asked(api, "summarizer")] == ["small", "other"]
    assert answer.account.engine is EngineKind.MODEL
    assert draft_of(api).splitlines()[0] in DRAFT
    assert any(note.startswith("summarizer: ") for note in run.state.work.degraded)
    assert (STEERED_NOTE in run.state.work.degraded) == (fault == "canary")
    assert run.state.accounts.usage.model_calls == len(api.calls) == 3


@pytest.mark.parametrize("shared", [True, False])
async def test_another_run_of_the_tenant_does_not_pay_again(tmp_path: Path, shared: bool) -> None:
    """The same text at the same level is asked for once, unless the cache is off (S0-142, S0-177)."""
    api = MessagesApi()
    settings = SETTINGS.model_copy(update={"summarization_cache_enabled": shared})
    async with run_at(tmp_path, api, tokens=settings) as (first, world):
        run = ResearchRun(first.state.model_copy(deep=True), Inbox(), world.host())
        run.state.work.resolved = run.resolved.model_copy(update={"research_id": "r-2"})
        for each in (first, run):
            await refine(each, world)
            assert draft_of(api).startswith(SUMMARY)
        assert run.state.accounts.usage_by_role[SUMMARIZER.name].model_calls == (0 if shared else 1)
    assert len(asked(api, "summarizer")) == (1 if shared else 2)


async def test_a_run_killed_between_summary_and_call_pays_neither_twice(tmp_path: Path) -> None:
    """The journal answers what was paid, without the cache too (S0-177)."""
    api = MessagesApi()
    settings = SETTINGS.model_copy(update={"summarization_cache_enabled": False})
    async with run_at(tmp_path, api, tokens=settings) as (run, world):
        before = run.state.model_dump_json()
        work = run.host.implementations["refine_gaps"]  # type: ignore[attr-defined]

        async def killed(request: RefineInput) -> RefinerAnswer:
            if request.summaries:
                raise RuntimeError("killed")
            return await work(request)

        run.host.implementations["refine_gaps"] = killed  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError, match="killed"):
            await refine(run, world)
        again = ResearchRun(ResearchState.model_validate_json(before), Inbox(), world.host())
        await refine(again, world)
        await refine(ResearchRun(ResearchState.model_validate_json(before), Inbox(), world.host()), world)
    assert [request.role for request in api.requests] == ["summarizer", "refiner"]
    assert again.state.accounts.usage.model_calls == 2
