"""Roles over endpoints with small windows: the real activities and SDK, and a fake that refuses what does not fit."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures, roles
from contracts.roles import RoleSpec
from contracts.tokens import ContentEntry, Level, TokenSettings
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
async def bench(window: int) -> AsyncIterator[Bench]:
    """A bench whose endpoint has a small window, as its configuration says."""
    own = {"default": EndpointCapabilities(window=window)}
    book = TokenBook(window=window, characters_per_token=3.0, tokens_per_other=1.3, counts_tools=True)
    async with MessagesApi(book=book) as api, engine_for({"default": api}, own=own) as engine:
        yield Bench(engine, api)


@pytest.mark.parametrize("text", list(TEXTS))
@pytest.mark.parametrize(("window", "count"), [(8_192, 1), (16_384, 8), (32_768, 20)])
async def test_no_analysis_exceeds_its_window(window: int, count: int, text: str) -> None:
    """Whatever the sources are made of, the first request fits, every source is shown, and the account says how."""
    async with bench(window) as one:
        output = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS[text], count))
        again = await one.run(
            roles.ANALYZER, await one.analyze_input(TEXTS[text], count, query="And what does it cost?")
        )
    assert [call.status for call in one.api.calls] == [200, 200]
    assert output.analyzed_source_ids
    assert again.analyzed_source_ids
    assert len(output.analyzed_source_ids) == one.api.requests[0].prompt.count("<source-") == count
    content = output.account.content
    assert content.items == count
    assert content.used <= content.available
    assert (content.shown < content.considered) == bool(content.shortened) == bool(content.entry)
    if window == 32_768 and text == "prose":
        assert content.shown == content.considered
        assert output.account.warnings == []


async def test_floors_that_do_not_fit_are_refused_before_anything_is_paid() -> None:
    """Twenty sources of which five keep two fifths do not fit into 8,192 tokens: need, room and margin (C0-10, S0-166)."""
    async with bench(8_192) as one:
        with pytest.raises(ApplicationError) as caught:
            await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20))
    assert one.api.calls == []
    assert re.search(r"needs about \d+ tokens and .* with a margin of 15% room for \d+", caught.value.message)


async def test_a_small_window_considers_less_of_each_source() -> None:
    """Where two fifths of the five best do not fit, less of all is considered, and the account says so (C0-23)."""
    async with bench(16_384) as one:
        request = await one.analyze_input(PROSE * 200, 8, source_characters=12_000)
        output = await one.run(roles.ANALYZER, request)
    content = output.account.content
    assert [call.status for call in one.api.calls] == [200]
    assert 8 * 300 < content.considered_characters < 8 * 12_000
    assert content.used <= content.available
    assert any("less text of each source was considered" in warning for warning in output.account.warnings)


async def test_what_was_shown_can_be_counted_again() -> None:
    """The entry of a call has all items; its figures are their sums, and the five best keep 0.3 (S0-153, S0-157)."""
    async with bench(16_384) as one:
        output = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20, source_characters=3_000))
    content = output.account.content
    entry = await one.activities.notebooks.read(content.entry, ContentEntry)
    assert len(entry.items) == content.items == 20
    assert sum(item.original_tokens for item in entry.items) == content.considered
    assert sum(item.current_tokens for item in entry.items) == content.shown
    assert sum(item.current_level is not Level.FULL for item in entry.items) == content.shortened
    assert sum(item.compression_ratio >= 0.3 for item in entry.items) == 5
    assert all(item.current_level is not Level.DROPPED for item in entry.items)
    assert content.considered_characters < content.stored_characters


async def test_what_is_quoted_from_is_never_summarised() -> None:
    """Sources, findings and passages are shown in their own words, whatever model could summarise them (S0-140)."""
    tokens = TokenSettings(summarization_provider="scripted-1")
    async with bench(16_384) as one:
        analysis = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20, tokens=tokens))
        report = await one.run(roles.SYNTHESIZER, await one.write_input(120, tokens=tokens))
    assert analysis.account.content.shortened
    assert report.account.content.shortened
    assert [call.role for call in one.api.calls] == ["analyzer", "synthesizer"]


async def test_a_repair_shows_what_the_first_call_showed() -> None:
    """Room for the reasons of a repair is left free from the start (invariant 11)."""
    async with bench(16_384) as one:
        request = await one.analyze_input(TEXTS["prose"], 20)
        first = await one.run(roles.ANALYZER, request)
        second = await one.run(roles.ANALYZER, request.model_copy(update={"repair": "findings: at least one " * 15}))
    assert second.account.content.shown == first.account.content.shown < first.account.content.considered


async def test_without_management_nothing_is_shortened() -> None:
    """What does not fit is refused with both figures; what fits has no figures of fidelity (S0-137, S0-178)."""
    off = TokenSettings(token_management_enabled=False)
    async with bench(16_384) as one:
        whole = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 5, tokens=off))
        assert (whole.account.content, whole.account.warnings) == (None, [])
        with pytest.raises(ApplicationError, match=r"needs about \d+ tokens and .* has room for \d+"):
            await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["settings"], 20, tokens=off))
    assert len(one.api.calls) == 1


async def test_the_run_can_name_the_window_of_a_model() -> None:
    """A window of the settings goes over the known one (S0-147)."""
    own = TokenSettings(model_context_overrides={"scripted-1": 16_384})
    async with bench(200_000) as one:
        output = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20, tokens=own))
    assert output.account.content.available < 16_384
    assert output.account.content.shortened


@pytest.mark.parametrize(("window", "count"), [(8_192, 3), (8_192, 60), (16_384, 60), (200_000, 60)])
async def test_no_report_exceeds_its_window(window: int, count: int) -> None:
    """A writer with little room sees all findings, the passages of the sure ones longest (S0-099, S0-159)."""
    async with bench(window) as one:
        output = await one.run(roles.SYNTHESIZER, await one.write_input(count))
    prompt = one.api.requests[0].prompt
    assert [call.status for call in one.api.calls] == [200]
    assert prompt.count("Finding (confidence") == count
    content = output.account.content
    if content.shortened:
        entry = await one.activities.notebooks.read(content.entry, ContentEntry)
        ratios = [item.compression_ratio for item in entry.items]
        sure, guessed = (sum(ratios[place :: len(Confidence)]) for place in (0, len(Confidence) - 1))
        assert sure > guessed
    if window == 200_000:
        assert output.account.warnings == []


async def test_dropped_findings_are_named() -> None:
    """Where content may be dropped, guesses go first; findings of high confidence stay (S0-143, S0-151)."""
    dropping = TokenSettings(allow_content_dropping=True)
    async with bench(8_192) as one:
        request = await one.write_input(120, tokens=dropping)
        output = await one.run(roles.SYNTHESIZER, request)
    by_id = {one.id: one.confidence for one in request.findings}
    dropped = {by_id[identity] for identity in output.account.content.dropped}
    assert dropped
    assert not dropped & {Confidence.CONFIRMED, Confidence.HIGH}


async def test_what_cannot_be_shortened_is_refused_before_it_is_sent() -> None:
    """A question that fills the window alone fails for good, with need and room, and nothing is asked (S0-099)."""
    async with bench(8_192) as one:
        with pytest.raises(ApplicationError) as caught:
            await one.run(roles.PLANNER, plan_input(query=PROSE * 400))
    assert one.api.calls == []
    assert (caught.value.type, caught.value.non_retryable) == (failures.MODEL_REJECTED, True)
    assert "window 8192" in caught.value.message
    assert "needs about" in caught.value.message
