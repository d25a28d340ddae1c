"""Slow models: their pace is learnt from their answers, and they are asked for what the time allows."""

import pytest

from contracts.roles import SYNTHESIZER, WriteInput
from contracts.vocabulary import EngineKind
from providers.interfaces import EngineTask, ShortPrompt
from providers.models.capabilities import CapabilityOverrides
from providers.models.model_speed import Speeds
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for

SENTENCE = "Vacuum prevents wraparound by freezing rows. "


def task(limit_seconds: float = 300.0, sentences: int = 20) -> EngineTask:
    """A report to be written, of so many sentences at most."""
    given = WriteInput(
        research_id="r-1",
        operation="write/1",
        engine=EngineKind.MODEL,
        model="qwen3:8b",
        date="2026-11-22",
        query="How does vacuum work?",
        time_limit_seconds=limit_seconds,
    )
    question = "<question>\nHow does vacuum work?\n</question>\n"

    def shortened(share: float) -> ShortPrompt:
        return ShortPrompt(question + SENTENCE * max(1, int(sentences * share)))

    whole = shortened(1.0).prompt
    return EngineTask(SYNTHESIZER, given, {}, "role: synthesizer\n\nYou write.", whole, "1", 0, shortened)


@pytest.mark.parametrize(("reading", "writing"), [(0.01, 0.1), (0.002, 0.02), (0.05, 0.1), (0.0, 0.2)])
def test_both_paces_are_found(reading: float, writing: float) -> None:
    """After answers of different lengths the time for each sort of token is known."""
    speeds = Speeds()
    for prompt, answer in [(900, 400), (4_000, 300), (2_000, 2_500), (6_000, 900), (1_000, 3_000), (5_000, 200)]:
        speeds.learn("m", prompt, answer, 1.0 + prompt * reading + answer * writing)
    pace = speeds.pace("m")
    assert pace is not None
    assert pace.writing == pytest.approx(writing, rel=0.1)
    assert pace.reading == pytest.approx(reading, rel=0.25, abs=0.003)


def test_one_answer_gives_a_first_idea() -> None:
    """Reading is taken to be ten times as fast as writing until answers show otherwise."""
    speeds = Speeds()
    speeds.learn("m", 1_000, 400, 51.0)
    pace = speeds.pace("m")
    assert pace is not None
    assert pace.seconds(1_000, 400) == pytest.approx(50, rel=0.05)
    assert pace.tokens_per_second == pytest.approx(10, rel=0.05)


def test_newer_answers_count_more() -> None:
    """A model that has become faster is soon known to be."""
    speeds = Speeds()
    for _ in range(5):
        speeds.learn("m", 1_000, 500, 101.0)
    for _ in range(8):
        speeds.learn("m", 1_000, 500, 11.0)
    pace = speeds.pace("m")
    assert pace is not None
    assert pace.seconds(1_000, 500) < 40


def test_quick_and_short_answers_are_no_measure() -> None:
    """The fixed part of an answer's time makes no model slow, and a quick answer forgets a slow past."""
    speeds = Speeds()
    speeds.learn("m", 100, 15, 60.0)
    speeds.learn("m", 100, 50, 2.5)
    assert speeds.pace("m") is None
    speeds.learn("m", 100, 50, 20.0)
    assert speeds.pace("m") is not None
    speeds.learn("m", 100, 50, 0.5)
    assert speeds.pace("m") is None


async def test_a_slow_model_is_asked_for_shorter_answers() -> None:
    """When the whole answer would exceed the time limit, the cap and the wish are smaller, and the account says why."""
    now = [0.0]

    def clock() -> float:
        now[0] += 12.0
        return now[0]

    async with MessagesApi() as api, engine_for({"default": api}, clock=clock) as engine:
        first = await engine.answer(task())
        second = await engine.answer(task())
        generous = await engine.answer(task(limit_seconds=100_000))
    caps = [request.body["max_tokens"] for request in api.requests]
    assert first.warnings == []
    assert caps[1] < caps[0] / 2
    assert "Keep the whole answer under" in api.requests[1].prompt
    assert len(second.warnings) == 1
    assert second.warnings[0].startswith("the model gives about ")
    assert second.warnings[0].endswith(" tokens a second: shorter answers are asked for")
    assert caps[2] == caps[0]
    assert generous.warnings == []


async def test_a_model_that_reads_slowly_is_shown_less() -> None:
    """Where reading alone takes more than half of the time, content is left out too."""
    now = [0.0]

    def clock() -> float:
        now[0] += step[0]
        return now[0]

    step = [200.0]
    own = {"default": CapabilityOverrides(window=200_000)}
    async with MessagesApi() as api, engine_for({"default": api}, own=own, clock=clock) as engine:
        await engine.answer(task(limit_seconds=10_000, sentences=2_000))
        step[0] = 1.0
        answer = await engine.answer(task(limit_seconds=300, sentences=2_000))
    assert len(api.requests[1].prompt) < 0.7 * len(api.requests[0].prompt)
    assert answer.share < 0.7
    assert any(line.startswith("shown ") for line in answer.warnings)
