"""Roles over endpoints with small windows: the real activities and SDK, and a fake that refuses what does not fit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures, roles
from contracts.roles import RoleSpec
from contracts.vocabulary import Confidence
from providers.models.endpoints import EndpointCapabilities
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook
from tests.unit.activities.scripted import (
    MemoryStore,
    analyze_input,
    common,
    environment,
    finding,
    passage,
    plan_input,
    role_activities,
    source,
)

PROSE = "Vacuum prevents transaction ID wraparound by freezing old rows in every table that it visits. "
TEXTS = {
    "prose": PROSE * 60,
    "settings": "autovacuum_freeze_max_age = 200000000  # (0x0BEBC200) https://example.test/a?b=1&c=2\n\n" * 60,
    "chinese": "真空操作可以防止事务标识回卷。" * 300,
}


class Bench:
    """Activities over an engine and a fake endpoint of one window."""

    def __init__(self, engine: Any, api: MessagesApi) -> None:
        self.api = api
        self.content = MemoryStore()
        self.activities = role_activities(engine, self.content)

    async def run(self, role: RoleSpec[Any, Any], request: Any) -> Any:
        """One role, with the ids of the sources that an analysis read."""
        result = await environment().run(self.activities.run, role, request)
        if isinstance(result, roles.AnalyzerResult) and result.analyzed_source_ids is None:
            result = result.model_copy(update={"analyzed_source_ids": [source.id for source in request.sources]})
        return result

    async def analyze_input(self, text: str, count: int, **changes: Any) -> roles.AnalyzeInput:
        """A hand-off with that many different sources."""
        stored = [await self.content.put_text(f"Source {number}.\n\n{text}") for number in range(count)]
        sources = [source(one, id=f"src-{number:010d}", title="A title " * 30) for number, one in enumerate(stored)]
        return analyze_input(sources, **changes)

    async def write_input(self, count: int, **changes: Any) -> roles.WriteInput:
        """A hand-off with that many findings of one source."""
        text = "\n\n".join(f"Row {number} is frozen. {PROSE}{PROSE}{PROSE}" for number in range(count))
        stored = await self.content.put_text(text)
        levels = list(Confidence)
        found, evidence = [], []
        for number in range(count):
            quote = passage(text, f"Row {number} is frozen. {PROSE}{PROSE}")
            evidence.append(quote)
            found.append(finding(f"Row {number} is frozen.", quote, confidence=levels[number % len(levels)]))
        fields = {"findings": found, "evidence": evidence, "sources": [source(stored)], **changes}
        return roles.WriteInput(**common(**fields))


@asynccontextmanager
async def bench(window: int, *, characters_per_token: float = 3.0, **options: Any) -> AsyncIterator[Bench]:
    """A bench whose endpoint has a small window, as its configuration says."""
    own = {"default": EndpointCapabilities(window=window, **options.pop("own", {}))}
    book = TokenBook(window=window, characters_per_token=characters_per_token, tokens_per_other=1.3, counts_tools=True)
    async with MessagesApi(book=book, **options) as api, engine_for({"default": api}, own=own) as engine:
        yield Bench(engine, api)


@pytest.mark.parametrize("text", list(TEXTS))
@pytest.mark.parametrize(("window", "count"), [(8_192, 1), (8_192, 20), (16_384, 20), (32_768, 20)])
async def test_no_analysis_exceeds_its_window(window: int, count: int, text: str) -> None:
    """Whatever the sources are made of, the first request fits, and the content is cut no more than needed (S0-099)."""
    async with bench(window) as one:
        output = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS[text], count))
        again = await one.run(
            roles.ANALYZER, await one.analyze_input(TEXTS[text], count, query="And what does it cost?")
        )
    assert [call.status for call in one.api.calls] == [200, 200]
    assert output.analyzed_source_ids
    assert again.analyzed_source_ids
    shown = one.api.requests[0].prompt.count("<source-")
    assert len(output.analyzed_source_ids) == shown
    if shown < count:
        assert any(f"{count - shown} of {count} sources had no room" in line for line in output.account.warnings)
    if window == 32_768 and text == "prose":
        assert output.account.warnings == []


@pytest.mark.parametrize(("window", "count"), [(8_192, 3), (8_192, 60), (16_384, 60), (200_000, 60)])
async def test_no_report_exceeds_its_window(window: int, count: int) -> None:
    """A writer with little room sees the sure findings, and the account names what was left out (S0-099, S0-159)."""
    async with bench(window) as one:
        output = await one.run(roles.SYNTHESIZER, await one.write_input(count))
    prompt = one.api.requests[0].prompt
    assert [call.status for call in one.api.calls] == [200]
    shown = prompt.count("Finding (confidence")
    if shown < count:
        assert shown >= 5
        assert f"{count - shown} of {count} findings had no room in the prompt" in output.account.warnings
        assert prompt.count("confidence: confirmed") >= prompt.count("confidence: speculation")
    if window == 200_000:
        assert shown == count
        assert output.account.warnings == []


async def test_what_cannot_be_shortened_is_refused_before_it_is_sent() -> None:
    """A question that fills the window alone fails for good, with need and room, and nothing is asked (S0-099)."""
    async with bench(8_192) as one:
        with pytest.raises(ApplicationError) as caught:
            await one.run(roles.PLANNER, plan_input(query=PROSE * 400))
    assert one.api.calls == []
    assert (caught.value.type, caught.value.non_retryable) == (failures.MODEL_REJECTED, True)
    assert "window 8192" in caught.value.message
    assert "needs about" in caught.value.message
