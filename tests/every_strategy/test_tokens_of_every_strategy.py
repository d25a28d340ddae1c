"""What models are shown in whole runs: at a small window, with and without dropping, without management, at endpoints
that lie about their windows or counts; and the shares of a run's tokens, in every strategy.
"""

from pathlib import Path
from typing import Any

import pytest

from activities.reporting.audit import audit
from contracts.evidence import CheckMethod, DocumentRef
from contracts.tokens import TokenSettings, TokenShare
from contracts.vocabulary import Outcome
from tests.comparable import comparable
from tests.every_strategy.joined import MODELLED, TWO_MODELLED, Trial, at_window
from tests.fakes.corpus import long_manual
from tests.fakes.model_tokens import TokenBook
from workflows.status import build_status

WINDOW = 16_000
ONE_QUESTION = {"max_sub_queries": 1, "max_sources": 40, "max_sources_per_query": 20, "max_source_characters": 3_000}
"""Limits with which one analysis gets all sources."""

PAGES = long_manual(20)


def honest(window: int = WINDOW, characters_per_token: float = 3.0) -> TokenBook:
    """The books of an endpoint that refuses what exceeds its window."""
    return TokenBook(window=window, characters_per_token=characters_per_token, counts_tools=True)


def recomputed(fidelity: dict[str, Any]) -> float:
    """The fidelity as a stranger makes it of phases and items: of all tokens, those that no listed item lost."""
    considered = sum(phase["considered"] for phase in fidelity["phases"].values())
    items = [item for call in fidelity["shortened_calls"] for item in call["items"]]
    lost = sum(item["original_tokens"] - item["current_tokens"] for item in items)
    return float(1 - lost / considered)


def _reference(identity: str) -> DocumentRef:
    return DocumentRef(hash=identity, media_type="text/plain")


async def assert_verbatim(trial: Trial) -> None:
    """Every quote is in its source, and the files are what report.json gives."""
    files = trial.state.work.result.files
    documents = {form: await trial.world.content.get(each) for form, each in files.by_form().items()}
    audited = await audit(
        documents["json"],
        lambda identity: trial.world.content.get_text(_reference(identity)),
        lambda identity: trial.world.content.get(_reference(identity)),
        trial.world.isolated,
        version="0.1.0",
        markdown=documents["md"].decode(),
        html=documents["html"],
    )
    assert audited.problems == []


async def test_a_stranger_recomputes_the_fidelity_of_a_report(tmp_path: Path) -> None:
    """Twenty pages at 16,000 tokens: report.json has all items, the five best keep 0.3, nothing is dropped, and the
    report has one line about it; each call has the tokens of its prompt and its room (S0-154, S0-156, S0-157, C0-12).
    """
    async with at_window(tmp_path, "supervisor", honest(), PAGES, depth="extended", limits=ONE_QUESTION) as trial:
        document, markdown = await trial.document(), await trial.report()
        await assert_verbatim(trial)
    fidelity = document["fidelity"]
    assert fidelity["fidelity"] == pytest.approx(recomputed(fidelity), rel=0.001)
    assert fidelity["fidelity"] < 0.9
    (call, *_) = (one for one in fidelity["shortened_calls"] if one["role"] == "analyzer")
    ratios = sorted(item["current_tokens"] / item["original_tokens"] for item in call["items"])
    assert len(ratios) == 20
    assert ratios[-5] >= 0.3
    assert sum(item["current_tokens"] for item in call["items"]) < call["used"] <= call["available"] < 16_000
    assert (fidelity["dropped_content_ids"], fidelity["not_analyzed"]) == ([], 0)
    (line,) = (line for line in markdown.splitlines() if "Shown to models" in line)
    assert f"{fidelity['fidelity']:.0%}" in line
    assert [call.status for call in trial.api.calls] == [200] * len(trial.api.calls)


async def test_what_is_dropped_is_named_and_counts_as_not_analyzed(tmp_path: Path) -> None:
    """With dropping allowed the report names what no call showed; the coverage does without it (C0-23, S0-143)."""
    dropping = TokenSettings(allow_content_dropping=True)
    limits = ONE_QUESTION | {"max_source_characters": 6_000, "analysis_tokens": 60_000, "reading_tokens": 100_000}
    async with at_window(tmp_path, "supervisor", honest(10_000), PAGES, tokens=dropping, limits=limits) as trial:
        document, markdown = await trial.document(), await trial.report()
        await assert_verbatim(trial)
    fidelity, state = document["fidelity"], trial.state
    unseen = [source.id for source in state.evidence.readable_sources() if not source.analyzed]
    assert fidelity["dropped_content_ids"]
    assert sorted(fidelity["dropped_content_ids"]) == sorted(unseen)
    assert fidelity["not_analyzed"] == len(unseen)
    (gate,) = (one for one in state.people.decisions if one.action == "evaluate_phase" and one.phase == "analysis")
    cited = {source for finding in state.evidence.findings for source in finding.source_ids}
    figures = gate.inputs | (gate.outputs or {})
    assert figures["not_analyzed"] == len(unseen)
    assert figures["coverage"] == pytest.approx(
        len(cited) / (len(state.evidence.readable_sources()) - len(unseen)), abs=0.001
    )
    (line,) = (line for line in markdown.splitlines() if "Shown to models" in line)
    assert f"{len(unseen)}" in line
    assert fidelity["fidelity"] == pytest.approx(recomputed(fidelity), rel=0.001)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TWO_MODELLED)
async def test_without_management_no_report_knows_of_fidelity(tmp_path: Path, name: str) -> None:
    """Neither report.json nor text nor status has a figure; where all fits, the text is otherwise that of a run with
    management, to the byte (S0-178).
    """
    texts = {}
    for managed in (True, False):
        tokens = TokenSettings(token_management_enabled=managed)
        folder, pages = tmp_path / str(managed), long_manual(3, paragraphs=2)
        async with at_window(folder, name, honest(200_000), pages, tokens=tokens) as trial:
            document, texts[managed] = await trial.document(), await trial.report()
    assert document["fidelity"] is None
    assert (
        trial.state.accounts.fidelity,
        trial.state.accounts.shortened_calls,
        trial.state.accounts.dropped_content_ids,
    ) == ({}, [], [])
    assert build_status(trial.state, 0.0).fidelity is None
    lines = texts[True].splitlines(keepends=True)
    (shown,) = (line for line in lines if "Shown to models" in line)
    assert "100%" in shown
    assert texts[False] == "".join(line for line in lines if line != shown)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "depth"), [*((name, "light") for name in MODELLED), ("supervisor", "medium")])
async def test_no_share_of_the_tokens_is_passed(tmp_path: Path, name: str, depth: str) -> None:
    """60,000 tokens and three calls side by side: each share ends within its own part and what those before it left,
    and there is a report (S0-165, C0-16).
    """
    limits = {"max_tokens": 60_000, "max_parallel": 3}
    # These pages are estimated at 3.2 characters for a token: a limit holds where the estimate is not too low.
    async with at_window(tmp_path, name, honest(200_000, 3.3), PAGES, depth=depth, limits=limits) as trial:
        document, markdown = await trial.document(), await trial.report()
    shares = document["usage"]["by_share"]
    assert [shares[share]["limit"] for share in TokenShare] == [6_000, 24_000, 9_000, 21_000]
    for count in range(1, len(TokenShare) + 1):
        parts = [shares[share] for share in list(TokenShare)[:count]]
        assert sum(part["tokens"] for part in parts) <= sum(part["limit"] for part in parts)
    assert sum(part["tokens"] for part in shares.values()) == trial.state.accounts.usage.tokens > 0
    assert trial.state.work.result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)
    assert markdown.startswith("# ")
    assert bool(trial.state.evidence.citations) is bool(trial.state.evidence.findings)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TWO_MODELLED)
async def test_an_endpoint_that_refuses_at_half_of_its_window(tmp_path: Path, name: str) -> None:
    """What it refuses is not lost: the run says so with the remedy, and every quote is verbatim (S0-099)."""
    async with at_window(tmp_path, name, honest(WINDOW // 2), PAGES, known=WINDOW, limits=ONE_QUESTION) as trial:
        document, markdown = await trial.document(), await trial.report()
        await assert_verbatim(trial)
    refused = [call.role for call in trial.api.calls if call.status == 400]
    assert trial.state.work.result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)
    assert "[1]" in markdown
    assert refused
    noted = [*document["failed_branches"], *(event.text for event in trial.state.people.events)]
    assert any("window" in line for line in noted)
    assert {claim["method"] for claim in document["claims"]} & {CheckMethod.VERBATIM.value, CheckMethod.RULES.value}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("characters", [0.5, 40.0])
@pytest.mark.parametrize("name", TWO_MODELLED)
async def test_an_endpoint_that_counts_wrongly(tmp_path: Path, name: str, characters: float) -> None:
    """Eight times too many tokens, or ten times too few: the account is the endpoint's, and there is a report."""
    book = TokenBook(characters_per_token=characters, counts_tools=True)
    limits = {"max_tokens": 120_000}
    async with at_window(tmp_path, name, book, PAGES, known=200_000, depth="light", limits=limits) as trial:
        markdown = await trial.report()
        await assert_verbatim(trial)
    usage, charges = trial.state.accounts.usage, book.charges
    assert (usage.model_calls, usage.input_tokens) == (len(charges), sum(charge.prompt for charge in charges))
    assert markdown.startswith("# ")
    assert bool(trial.state.evidence.citations) is bool(trial.state.evidence.findings)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TWO_MODELLED)
async def test_an_endpoint_that_forgets_its_cache(tmp_path: Path, name: str) -> None:
    """The account has what was read of the cache and what was not; requests and the rest of the report are the same."""
    requests, reports = [], []
    for forgets_after in (None, 2):
        book = TokenBook(cacheable=100, counts_tools=True, forgets_after=forgets_after)
        folder = tmp_path / str(forgets_after)
        thinking = {"gates": {"think": "model"}}  # calls of one role in a row, which share a beginning
        async with at_window(folder, name, book, long_manual(6), known=200_000, **thinking) as trial:
            report, share = await trial.report(), trial.state.accounts.usage.cached_share
            reports.append(comparable(report).replace(f" {share:.0%} of the input from a cache,", ""))
            await assert_verbatim(trial)
        usage, charges = trial.state.accounts.usage, book.charges
        assert usage.input_tokens == sum(charge.prompt for charge in charges)
        assert usage.cached_tokens == sum(charge.read for charge in charges)
        assert usage.cache_write_tokens == sum(charge.write for charge in charges)
        assert any(charge.read for charge in charges[2:]) is (forgets_after is None)
        requests.append(sorted((request.role, len(request.prompt)) for request in trial.api.requests))
    assert requests[0] == requests[1]
    assert reports[0] == reports[1]
