"""Roles and turns of agents over endpoints: the real activities and SDK, and a fake that refuses what does not fit."""

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures, roles
from contracts.evidence import Gap
from contracts.roles import RoleSpec
from contracts.tokens import ContentEntry, TokenSettings
from contracts.tool_turns import Transcript, TurnResult
from contracts.tools import ToolAnswer
from contracts.vocabulary import Confidence, EngineKind, GapStatus, Severity
from providers.models.chat import ToolUse
from providers.models.endpoints import EndpointCapabilities, capabilities_of
from tests.fakes import tool_work
from tests.fakes.conversation import blocks_of
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook
from tests.fakes.model_work import unmarked
from tests.toy.asker import ASKER, AskerInput
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

MODEL = "claude-opus-4-8"
CUT = "of this answer left out]"
PROSE = "Vacuum prevents transaction ID wraparound by freezing old rows in every table that it visits. "
TEXTS = {
    "prose": PROSE * 60,
    "settings": "# Vacuum and wraparound\n\n"
    + "autovacuum_freeze_max_age = 200000000 (0x0BEBC200), see https://example.test/a?b=1&c=2.\n\n" * 60,
    "chinese": "真空操作可以防止事务标识回卷。" * 300,
}


PROTECTED = [f"src-{number:010d}" for number in range(20)]


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

    async def turn(self, before: TurnResult | None = None, said: str = "") -> TurnResult:
        """The asker's first turn, or the one after another, with the same answer to each of its calls."""
        fields = common(model=MODEL, word="vacuum")
        if before is not None:
            answers = [ToolAnswer(call_id=call.id, text=f"See also: {said}") for call in before.calls]
            fields |= {"transcript": before.transcript, "answers": answers}
        output: TurnResult = await self.run(ASKER, AskerInput(**fields))
        return output


@asynccontextmanager
async def bench(*apis: MessagesApi, models: tuple[str, ...] = (), **own: Any) -> AsyncIterator[Bench]:
    """A bench over endpoints that run for the time of the block: `default`, with its own figures, then `second`."""
    overrides = {"default": EndpointCapabilities.model_validate(own)} if own else {}
    async with AsyncExitStack() as stack:
        running = {
            name: await stack.enter_async_context(api) for name, api in zip(("default", "second"), apis, strict=False)
        }
        yield Bench(await stack.enter_async_context(engine_for(running, models, own=overrides)), apis[0])


def narrow(window: int) -> AbstractAsyncContextManager[Bench]:
    """A bench whose endpoint has a small window, as its configuration says."""
    book = TokenBook(window=window, characters_per_token=3.0, tokens_per_other=1.3, counts_tools=True)
    return bench(MessagesApi(book=book), window=window)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", list(TEXTS))
@pytest.mark.parametrize(("window", "count"), [(8_192, 1), (16_384, 8), (32_768, 20)])
async def test_no_analysis_exceeds_its_window(window: int, count: int, text: str) -> None:
    """Whatever the sources are made of, the first request fits, every source is shown, and the account says how."""
    async with narrow(window) as one:
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
    assert (content.shown < content.considered) == bool(content.shortened) == bool(content.entry) == output.narrowed


async def read_with_part(one: Bench, text: str, part: float) -> tuple[roles.AnalyzerResult, int]:
    """The reading of a page with this part of the input tokens that its prompt needs, and these."""
    request = await one.analyze_input(text, 1, outlined=True, reserved_output_tokens=2_000)
    with pytest.raises(ApplicationError) as refused:
        await one.run(roles.ANALYZER, request.model_copy(update={"reserved_input_tokens": 0}))
    needed = refused.value.details[0]["input_tokens"]
    limited = {"reserved_input_tokens": int(part * needed), "shorten": True}
    return await one.run(roles.ANALYZER, request.model_copy(update=limited)), needed


def parts_of_page(one: Bench, output: roles.AnalyzerResult) -> tuple[set[str], set[str]]:
    """The parts of a page that the first prompt shows, and those that the result lists as hidden, by their numbers."""
    shown = set(re.findall(r"(?m)^## Part (\d+)$", unmarked(one.api.requests[0].prompt)))
    hidden = {match[1] for line in output.outline if (match := re.match(r"\d+\. Part (\d+)", line))}
    return shown, hidden


async def test_an_agent_learns_which_sections_a_small_window_hid() -> None:
    """Those that the choice had and the level of the page left out stand in the list, too, and none that was shown."""
    text = "\n\n".join(f"## Part {number}\n\n{PROSE * 16}" for number in range(20))
    async with narrow(16_384) as one:
        output = await one.run(roles.ANALYZER, await one.analyze_input(text, 1, outlined=True))
    assert output.narrowed
    shown, hidden = parts_of_page(one, output)
    assert shown
    assert hidden
    assert not shown & hidden
    assert len(shown | hidden) >= 20


async def test_a_reading_of_its_measured_size_shows_all_of_its_page() -> None:
    """What a prompt needs has the room for a repair with it: with less, the page would be shortened for that alone."""
    text = "\n\n".join(f"## Part {number}\n\n{PROSE * 8}" for number in range(9))
    async with bench(MessagesApi()) as one:
        output, needed = await read_with_part(one, text, 1.0)
    assert not output.narrowed
    assert output.outline == []
    assert output.account.estimated_input_tokens <= needed


async def test_a_small_window_considers_less_of_each_source() -> None:
    """Where two fifths of the five best do not fit, less of all is shown, and the account says so (C0-23)."""
    async with narrow(16_384) as one:
        request = await one.analyze_input(PROSE * 200, 8)
        output = await one.run(roles.ANALYZER, request)
    content = output.account.content
    assert [call.status for call in one.api.calls] == [200]
    assert 8 * 300 < content.considered_characters < 8 * 12_000
    assert content.used <= content.available
    assert output.narrowed
    assert any(warning.startswith("shown ") for warning in output.account.warnings)


async def test_a_page_that_does_not_fit_fills_the_room_that_it_has() -> None:
    """Of a page a tenth too long nine tenths are shown, where the highest level below all of it shows seven."""
    text = "\n\n".join(f"## Part {number}\n\n{PROSE * 6}" for number in range(30))
    async with bench(MessagesApi()) as one:
        output, needed = await read_with_part(one, text, 0.9)
    content = output.account.content
    shown, hidden = parts_of_page(one, output)
    assert output.narrowed
    assert output.account.estimated_input_tokens <= int(0.9 * needed)
    assert 0.8 < content.shown / content.considered < 0.95
    assert hidden
    assert not shown & hidden
    assert len(shown | hidden) == 30


async def test_what_is_quoted_from_is_never_summarised() -> None:
    """Sources, findings and passages are shown in their own words, whatever model could summarise them (S0-140)."""
    tokens = TokenSettings(summarization_provider="scripted-1")
    async with narrow(16_384) as one:
        analysis = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20, tokens=tokens))
        report = await one.run(roles.SYNTHESIZER, await one.write_input(120, tokens=tokens))
    assert analysis.account.content.shortened
    assert report.account.content.shortened
    assert [call.role for call in one.api.calls] == ["analyzer", "synthesizer"]


async def test_a_repair_shows_what_the_first_call_showed() -> None:
    """Room for the reasons of a repair is left free from the start (invariant 11)."""
    async with narrow(16_384) as one:
        request = await one.analyze_input(TEXTS["prose"], 20)
        first = await one.run(roles.ANALYZER, request)
        second = await one.run(roles.ANALYZER, request.model_copy(update={"repair": "findings: at least one " * 15}))
    assert second.account.content.shown == first.account.content.shown < first.account.content.considered


async def test_without_management_nothing_is_shortened() -> None:
    """What does not fit is refused with both figures; what fits has no figures of fidelity (S0-137, S0-178)."""
    off = TokenSettings(token_management_enabled=False)
    async with narrow(16_384) as one:
        whole = await one.run(
            roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 5, tokens=off, max_characters=1_000)
        )
        assert whole.account.content is None
        assert not any("shown" in warning for warning in whole.account.warnings)
        with pytest.raises(ApplicationError, match=r"needs about \d+ tokens and .* has room for \d+"):
            await one.run(
                roles.ANALYZER, await one.analyze_input(TEXTS["settings"], 20, tokens=off, shown_tokens=90_000)
            )
    assert len(one.api.calls) == 1


async def test_the_run_can_name_the_window_of_a_model() -> None:
    """A window of the settings goes over the known one (S0-147)."""
    own = TokenSettings(model_context_overrides={"scripted-1": 16_384})
    async with narrow(200_000) as one:
        output = await one.run(roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20, tokens=own))
    assert output.account.content.available < 16_384
    assert output.account.content.shortened


@pytest.mark.parametrize(("window", "count"), [(8_192, 3), (8_192, 60), (16_384, 60), (200_000, 60)])
async def test_no_report_exceeds_its_window(window: int, count: int) -> None:
    """A writer with little room sees all findings, the passages of the sure ones longest (S0-099, S0-159)."""
    async with narrow(window) as one:
        output = await one.run(roles.SYNTHESIZER, await one.write_input(count))
    prompt = one.api.requests[0].prompt
    assert [call.status for call in one.api.calls] == [200]
    assert len(re.findall(r"(?m)^\w\w¦ ?Finding[ (]", prompt)) == count
    content = output.account.content
    if content.shortened:
        entry = await one.activities.notebooks.read(content.entry, ContentEntry)
        ratios = [item.compression_ratio for item in entry.items]
        sure, guessed = (sum(ratios[place :: len(Confidence)]) for place in (0, len(Confidence) - 1))
        assert sure > guessed
    if window == 200_000:
        assert output.account.warnings == []


async def test_the_gaps_of_a_tree_do_not_keep_a_model_from_writing() -> None:
    """Hundreds of them are an item like any other: the grave ones are shown, the rest is counted (S4-036, C0-10)."""
    text = "Whether the setting {} concerns replicas of a cluster that was upgraded in place, and how long that takes"
    gaps = [
        Gap(id=f"gap-{number}", description=text.format(number), severity=Severity.MINOR, status=GapStatus.OPEN)
        for number in range(400)
    ]
    grave = Gap(id="gap-x", description="Whether zyzzyvas are safe", severity=Severity.CRITICAL, status=GapStatus.OPEN)
    async with narrow(32_768) as one:
        output = await one.run(roles.SYNTHESIZER, await one.write_input(20, gaps=[*gaps, grave]))
    assert [call.status for call in one.api.calls] == [200]
    assert output.account.engine is EngineKind.MODEL
    prompt = one.api.requests[0].prompt
    assert "Whether zyzzyvas are safe" in prompt
    assert re.search(r"\[\d+ more are not shown\]", prompt)
    assert "Row 19 is frozen." in prompt


async def test_the_remedy_for_a_full_window_fits_its_cause() -> None:
    """What fills it is named, not the number of sources where there are none."""
    async with narrow(8_192) as one:
        with pytest.raises(ApplicationError, match="or shorten the question, its context or its instructions"):
            await one.run(roles.PLANNER, plan_input(query="Why? " * 6_000))


async def test_dropped_findings_are_named() -> None:
    """Where content may be dropped, guesses go first; findings of high confidence stay (S0-143, S0-151)."""
    dropping = TokenSettings(allow_content_dropping=True)
    async with narrow(8_192) as one:
        request = await one.write_input(120, tokens=dropping)
        output = await one.run(roles.SYNTHESIZER, request)
    by_id = {one.id: one.confidence for one in request.findings}
    dropped = {by_id[identity] for identity in output.account.content.dropped}
    assert dropped
    assert not dropped & {Confidence.CONFIRMED, Confidence.HIGH}


async def test_what_cannot_be_shortened_is_refused_before_anything_is_paid() -> None:
    """Need, room and margin are named, and no model is asked (C0-10, S0-099, S0-166)."""
    async with narrow(8_192) as one:
        for role, request in (
            (roles.ANALYZER, await one.analyze_input(TEXTS["prose"], 20, protected_source_ids=PROTECTED)),
            (roles.PLANNER, plan_input(query=PROSE * 400)),
        ):
            with pytest.raises(ApplicationError, match=r"needs about \d+ tokens and .*window 8192") as caught:
                await one.run(role, request)
            assert re.search("with a margin of 15% room for \\d+", caught.value.message)
            assert (caught.value.type, caught.value.non_retryable) == (failures.MODEL_REJECTED, True)
    assert one.api.calls == []


# --- turns of an agent ---------------------------------------------------------------------------------------------
async def test_a_model_that_takes_no_tools_is_passed_over() -> None:
    """The next one of its tier does the turn; where none takes any, nothing is asked and the reason is told."""
    async with bench(
        first := MessagesApi(), second := MessagesApi(), models=(MODEL, "second:other"), tools=ToolUse.NONE
    ) as one:
        output = await one.turn()
    assert (len(first.calls), len(second.calls)) == (0, 1)
    assert output.account.model == "other"
    async with bench(MessagesApi(), tools=ToolUse.NONE) as one:
        with pytest.raises(ApplicationError, match=f"{MODEL} takes none: name another model") as caught:
            await one.turn()
    assert (caught.value.type, len(one.api.calls)) == (failures.MODEL_REJECTED, 0)


async def test_thoughts_go_to_no_other_endpoint() -> None:
    """Another model gets the conversation without the thoughts of the first; the first gets its own again."""
    first, second = MessagesApi(plan=["good", "status:401", "good"]), MessagesApi()
    async with bench(first, second, models=(MODEL, "second:other")) as one:
        last = await one.turn()
        for number in range(2):
            last = await one.turn(last, said=f"word{number}.")
        stored = Transcript.model_validate_json(await one.content.get_text(last.transcript))
    assert (first.refused, second.refused) == ([], [])
    assert [turn.author for turn in stored.turns] == [f"default:{MODEL}", "second:other", f"default:{MODEL}"]
    kinds = [block["type"] for message in second.requests[0].body["messages"] for block in blocks_of(message)]
    assert "thinking" not in kinds
    messages = first.requests[-1].body["messages"]
    assert [blocks_of(messages[place])[0]["type"] for place in (1, 3)] == ["thinking", "tool_use"]


async def test_a_turn_has_a_cap_on_its_output() -> None:
    """The role's own, with room for thoughts in addition: a turn that runs on is stopped, and not used (S3-036)."""
    async with bench(MessagesApi("cut")) as one:
        with pytest.raises(ApplicationError) as caught:
            await one.turn()
    assert caught.value.type == failures.ANSWER_CUT
    thoughts = capabilities_of(one.api.base_url, MODEL).reasoning_tokens
    assert [request.body["max_tokens"] for request in one.api.requests] == [ASKER.output_tokens + thoughts]


async def test_a_long_conversation_fits_its_window() -> None:
    """Where a window has no room for all, the oldest answers are shortened, and the account says by how much."""
    api, shortened = MessagesApi(book=TokenBook(window=20_000)), list[int]()
    async with bench(api, window=20_000, reasoning_tokens=500) as one:
        last = await one.turn()
        for number in range(15):
            last = await one.turn(last, said=f"word{number}. {PROSE * 45}")
            shortened += [last.account.content.shortened] if last.account.content else []
    assert api.refused == []
    assert [call.status for call in api.calls] == [200] * 16
    assert next(filter(None, shortened)) == 1
    cut = [CUT in text for text in tool_work.answered(api.requests[-1].body)]
    assert cut == sorted(cut, reverse=True)
    assert cut[0]
    assert not cut[-1]
    counts = [str(request.body).count(CUT) for request in api.requests]
    assert counts == sorted(counts)
    assert len(set(counts)) <= 10  # not each turn changes what an endpoint may have in its cache
