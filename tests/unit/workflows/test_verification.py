"""`verify: full` as a phase of whole runs, over real activities and a loopback model, without a server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from activities.verifying.claims import WORTH
from contracts.evidence import DocumentRef, VerdictsEntry
from contracts.request import Checks, Review, Verify
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, StopReason
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of


class Finished:
    """A run that has ended, with what is stored of it."""

    def __init__(self, world: World, state: ResearchState, api: MessagesApi, outcome: Outcome) -> None:
        self.world, self.state, self.api, self.outcome = world, state, api, outcome

    async def document(self) -> dict[str, Any]:
        """Its `report.json`."""
        document: dict[str, Any] = json.loads(await self.world.content.get_text(self.state.result.files.json_document))
        return document


@asynccontextmanager
async def finished(
    folder: Path,
    by_role: dict[str, str],
    *,
    prepare: Callable[[InProcessHost, Inbox], None] = lambda host, inbox: None,
    **fields: Any,
) -> AsyncIterator[Finished]:
    """A run with `verify: full` whose writer embroiders, to its end."""
    roles = {"synthesizer": "embroiders", **by_role}
    async with MessagesApi(by_role=roles) as api:
        world = model_world(folder, api.base_url)
        try:
            state = await begin(world, **({"verify": "full"} | fields))
            host, inbox = world.host(), Inbox()
            prepare(host, inbox)
            outcome = await Driver(ResearchRun(state, inbox, host), strategy_of(state.resolution.strategy)).conduct()
            yield Finished(world, state, api, outcome)
        finally:
            await world.close()


@pytest.mark.parametrize("verify", [Verify.FULL, Verify.LIGHT])
async def test_events_tell_each_verdict_once_and_the_sum(tmp_path: Path, verify: Verify) -> None:
    """One `claim.verified` for each claim of the report, one `verification.summary`, whoever judges (S1-041)."""
    async with finished(tmp_path, {}, verify=verify) as run:
        kinds = [event.type for event in run.state.events]
    assert kinds.count("claim.verified") == run.state.result.verification.claims
    assert kinds.count("verification.summary") == 1


async def test_corrections_that_fail_the_check_are_not_taken(tmp_path: Path) -> None:
    """What a corrector makes up is not taken; the statements that it leaves wrong are removed, headings stay."""
    async with finished(tmp_path, {"corrector": "worsening"}) as run:
        document = await run.document()
    text = document["report"]["markdown"]
    assert "99 TB" not in text
    told = document["verification"]
    assert set(told["correction_counts"]) == {"remove"}
    assert not {"unsupported", "contradicted"} & set(told["verdict_counts"])
    assert [title for title in document["report"]["sections"] if title in ("Summary", "Details")] == [
        "Summary", "Details",
    ]  # fmt: skip


async def test_a_stop_in_the_middle_ends_with_what_was_judged(tmp_path: Path) -> None:
    """The report comes at once; what no checker was asked for is counted and called unverified."""

    def stop_at_check(host: InProcessHost, inbox: Inbox) -> None:
        async def interrupt(_: Any) -> Any:
            inbox.interrupt(StopReason.USER_STOPPED)
            await asyncio.Event().wait()

        host.implementations["check_claims"] = interrupt

    async with finished(tmp_path, {}, prepare=stop_at_check) as run:
        document = await run.document()
    told = document["verification"]
    assert told["not_reached"] >= 1
    assert told["verdict_counts"]["unverified"] > told["not_reached"] - 1
    assert run.outcome is Outcome.COMPLETED
    assert "Not checked" in document["report"]["markdown"]


async def test_the_verdicts_are_in_the_notebook_and_the_state_has_figures(tmp_path: Path) -> None:
    """Verdicts with their reasons lie under a hash; the state as it is stored holds none of their words."""
    async with finished(tmp_path, {}) as run:
        entry = await run.world.notebooks.read(run.state.verdicts_entry, VerdictsEntry)
        stored = run.state.pack()
    assert len(entry.verdicts) == run.state.result.verification.claims
    assert sum(WORTH[one.verdict] for one in entry.verdicts) > 0.5 * len(entry.verdicts)
    assert ResearchState.unpack(stored).verdicts_entry == run.state.verdicts_entry
    reasons = [one.reason for one in entry.verdicts if one.reason]
    assert reasons
    assert not any(reason in json.dumps(run.state.snapshot()) for reason in reasons)


@pytest.mark.parametrize("strategy", ["supervisor", "orchestrator"])
async def test_a_model_reviews_the_final_report_unless_nothing_is_checked(tmp_path: Path, strategy: str) -> None:
    """By default, whatever the strategy; with `verify: off` no model is asked for it (S3-053)."""
    for verify, method in ((None, "model"), (Verify.OFF, None)):
        async with finished(tmp_path / str(method), {}, verify=verify, strategy=strategy) as run:
            review, asked = run.state.result.review, "reviewer" in run.api.counts()
        assert (review.method if review else None, asked) == (method, method is not None)


@pytest.mark.parametrize("scores", [(3, 8), (5, 3)])
async def test_a_draft_below_the_bar_is_revised_and_the_better_one_is_used(
    tmp_path: Path, scores: tuple[int, int]
) -> None:
    """A reviewer that is not content gets one revision; it is used only if it scores higher (S3-053)."""
    drafts: list[DocumentRef] = []

    def score(host: InProcessHost, _: Inbox) -> None:
        work = host.implementations["review_report"]

        async def reviewed(request: Any) -> Any:
            given = dict.fromkeys(("coverage", "support", "depth", "readability"), float(scores[len(drafts)]))
            drafts.append(request.draft)
            return (await work(request)).model_copy(update={**given, "notes": ["Say more."]})

        host.implementations["review_report"] = reviewed

    async with finished(tmp_path, {}, prepare=score, checks=Checks(review=Review.MODEL, correct=False)) as run:
        review, draft, writers = run.state.result.review, run.state.draft.document, run.api.counts()["synthesizer"]
        told = [event.text for event in run.state.events if event.type == "review.finished"]
    better = scores[1] > scores[0]
    assert told[-1] == f"a revision scores {scores[1]} and was {'kept' if better else 'dropped'}"
    assert (writers, review.method, review.revised) == (2, "model", better)
    assert (review.overall, review.before) == (max(scores), scores[0])
    assert draft == drafts[better]
