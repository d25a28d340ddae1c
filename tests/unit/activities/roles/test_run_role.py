"""The activities that do roles."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from contracts import failures, roles
from contracts.canary import STEERED, exposes_private_text
from contracts.notebooks import AnalysisEntry
from contracts.outcome import Usage
from contracts.vocabulary import EngineKind
from providers import errors
from providers.shared.paid_calls import CallLease
from providers.storage.stored_notebooks import Notebooks
from tests.unit.activities.scripted import (
    MemoryCalls,
    MemoryStore,
    ScriptedEngine,
    analyze_input,
    environment,
    plan_input,
    role_activities,
    source,
)

PLAN = roles.PlannerAnswer(
    research_brief="A brief.",
    sub_queries=[roles.SubQuery(query="what is vacuum"), roles.SubQuery(query="what is wraparound")],
)


class Bench:
    """Activities over a scripted engine, a content store and a call store in memory."""

    def __init__(self, script: Any, *, calls: MemoryCalls | None = None, renew_seconds: float = 2.0) -> None:
        self.engine = ScriptedEngine(script)
        self.calls = calls or MemoryCalls()
        self.content = MemoryStore()
        self.notebooks = Notebooks(self.content)
        self.activities = role_activities(self.engine, self.content, self.calls, renew_seconds)

    async def plan(self, **changes: Any) -> Any:
        return await environment().run(self.activities.run, roles.PLANNER, plan_input(**changes))

    async def failed_plan(self, **changes: Any) -> ApplicationError:
        with pytest.raises(ApplicationError) as caught:
            await self.plan(**changes)
        return caught.value


async def test_a_role_is_done_and_accounted() -> None:
    """The output has the draft, the engine, the model, the prompt's version and the usage; extraction has no prompt."""
    bench = Bench(PLAN)
    output = await bench.plan()
    assert [query.query for query in output.sub_queries] == ["what is vacuum", "what is wraparound"]
    account = output.account
    assert (account.engine, account.model, account.usage.model_calls) == (EngineKind.MODEL, "scripted-1", 1)
    assert account.prompt_version
    assert bench.calls.log == ["begin", "finish"]
    engine = ScriptedEngine(PLAN, kind=EngineKind.EXTRACTIVE, paid=False)
    activities = role_activities(engine, MemoryStore())
    output = await environment().run(activities.run, roles.PLANNER, plan_input(engine=EngineKind.EXTRACTIVE))
    assert (engine.tasks[0].whole.prompt, output.account.prompt_version) == ("", "")


async def test_an_answered_call_is_never_paid_again() -> None:
    """A second attempt gets answer and usage, for the first result was lost; another operation pays nothing (S0-131)."""
    bench = Bench(PLAN)
    first, second, other = await bench.plan(), await bench.plan(), await bench.plan(operation="op/2")
    assert len(bench.engine.tasks) == 1
    assert second == first
    assert other.sub_queries == first.sub_queries
    assert (first.account.usage.model_calls, other.account.usage) == (1, Usage())


async def test_a_quote_with_the_signs_of_lines_is_found() -> None:
    """What a model copies from signed lines is grounded in the stored text, and no sign stays in what is kept."""
    quote = roles.Quote(source_id="src-1", quote="3a¦Vacuum must visit\n3a¦every table.")
    finding = roles.ProposedFinding(content="3a¦Vacuum visits all.", confidence="medium", quotes=[quote])
    bench = Bench(roles.AnalyzerAnswer(findings=[finding]))
    stored = await bench.content.put_text("First. Vacuum must visit every table. Last.")
    request = analyze_input([source(stored, id="src-1")])
    output = await environment().run(bench.activities.run, roles.ANALYZER, request)
    assert [(item.start, item.end) for item in output.evidence] == [(7, 37)]
    assert output.findings[0].statement == "Vacuum visits all."
    assert (await bench.notebooks.read(output.entry, AnalysisEntry)).findings[0].statement == "Vacuum visits all."


async def cancelled(bench: Bench, begun: asyncio.Event, go_on: asyncio.Event) -> None:
    """Cancel a call after `begun`, and set `go_on` in the same moment."""
    env = environment()
    attempt = asyncio.create_task(env.run(bench.activities.run, roles.PLANNER, plan_input()))
    await begun.wait()
    env.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await attempt


async def test_a_call_without_an_answer_is_given_up() -> None:
    """The lease of a failed or cancelled call is released, so that the next attempt need not wait it out."""
    bench, begun = Bench(errors.Unavailable("503")), asyncio.Event()
    await bench.failed_plan()

    async def never(_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    bench.engine.script = never
    await cancelled(bench, begun, asyncio.Event())
    assert bench.calls.log == ["begin", "release"] * 2


class Runs:
    """Stands for a client of the server, which says how a run is, or does not answer."""

    def __init__(self, status: WorkflowExecutionStatus | None) -> None:
        self.status = status

    def get_workflow_handle(self, *_: Any, **__: Any) -> "Runs":
        return self

    async def describe(self, **_: Any) -> "Runs":
        if self.status is None:
            raise RPCError("deadline", RPCStatusCode.DEADLINE_EXCEEDED, b"")
        return self


OPEN, ENDED = Runs(WorkflowExecutionStatus.RUNNING), Runs(WorkflowExecutionStatus.CANCELED)


async def test_a_call_of_a_run_that_has_ended_is_cut() -> None:
    """The server answers the heartbeat of a run that is over as it does that of a lost attempt."""
    begun = asyncio.Event()

    async def never(_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    bench, env = Bench(never), environment(client=ENDED)
    attempt = asyncio.create_task(env.run(bench.activities.run, roles.PLANNER, plan_input()))
    await begun.wait()
    env.cancel(ActivityCancellationDetails(not_found=True))
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert bench.calls.log == ["begin", "release"]


@pytest.mark.parametrize(
    ("lost", "runs"),
    [({"timed_out": True}, ENDED), ({"not_found": True}, OPEN), ({"not_found": True}, Runs(None))],
    ids=["timed out", "not found", "not found, and no answer"],
)
async def test_a_call_of_a_lost_attempt_is_finished_for_the_next_one(lost: dict[str, bool], runs: Runs) -> None:
    """An attempt that the server gives up pays for one call, whose answer the next attempt finds (S0-131)."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow_at_first(_: Any) -> Any:
        if not begun.is_set():
            begun.set()
            await go_on.wait()
        return PLAN

    bench, env = Bench(slow_at_first), environment(client=runs)
    attempt = asyncio.create_task(env.run(bench.activities.run, roles.PLANNER, plan_input()))
    await begun.wait()
    env.cancel(ActivityCancellationDetails(**lost))
    await asyncio.sleep(0)
    assert (await bench.failed_plan()).type == failures.CALL_IN_FLIGHT
    go_on.set()
    await asyncio.wait([attempt])
    assert len((await bench.plan()).sub_queries) == 2
    assert len(bench.engine.tasks) == 1
    assert bench.calls.log == ["begin", "finish"]


async def test_a_worker_that_ends_gives_up_the_call_of_a_lost_attempt() -> None:
    """Its second cancellation ends the call, and frees it for another worker at once."""
    begun = asyncio.Event()

    async def never(_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    bench, env = Bench(never), environment()
    attempt = asyncio.create_task(env.run(bench.activities.run, roles.PLANNER, plan_input()))
    await begun.wait()
    env.cancel(ActivityCancellationDetails(timed_out=True))
    await asyncio.sleep(0)
    assert not bench.calls.log[1:]
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert bench.calls.log == ["begin", "release"]


async def test_a_cancellation_while_the_answer_is_written_does_not_lose_it() -> None:
    """A paid answer that is being stored is stored, also when the attempt is cancelled in that moment."""
    bench = Bench(PLAN)
    writing, go_on = asyncio.Event(), asyncio.Event()
    finish = bench.calls.finish

    async def slow_finish(lease: CallLease, answer: str) -> None:
        writing.set()
        await go_on.wait()
        await finish(lease, answer)

    bench.calls.finish = slow_finish  # type: ignore[method-assign]
    await cancelled(bench, writing, go_on)
    assert len(bench.calls.answers) == 1


async def test_an_unusable_answer_is_stored_and_accounted() -> None:
    """An answer that was paid and cannot be used is journalled: a second attempt gives the same failure unpaid."""
    paid = Usage(model_calls=1, input_tokens=9, cost_usd=0.5)
    bench = Bench(errors.InvalidOutput("not of the schema", usage=paid))
    first, second = await bench.failed_plan(), await bench.failed_plan()
    assert len(bench.engine.tasks) == 1
    for failure in (first, second):
        assert (failure.type, failure.non_retryable) == (failures.INVALID_MODEL_OUTPUT, True)
        assert Usage.model_validate(failure.details[0]["usage"]) == paid


# --- a store of calls that is away -----------------------------------------------------------------------------------
class FailingCalls(MemoryCalls):
    """A store that does not reach one of its operations."""

    def __init__(self, failing: str) -> None:
        super().__init__()
        setattr(self, failing, self._fail)

    async def _fail(self, *_: Any) -> None:
        self.log.append("failed")
        if self.log.count("failed") > 1:
            self.renewed.set()
        raise errors.Unavailable("away")


async def test_an_answer_that_cannot_be_stored_is_returned() -> None:
    """With a warning about what a lost attempt would cost."""
    output = await Bench(PLAN, calls=FailingCalls("finish")).plan()
    assert len(output.sub_queries) == 2
    assert output.account.warnings == ["the answer could not be stored: a lost attempt would pay for it again"]


@pytest.mark.parametrize(("calls", "tried"), [(MemoryCalls, "renew"), (lambda: FailingCalls("renew"), "failed")])
async def test_a_lease_is_renewed_while_the_call_runs(calls: Callable[[], MemoryCalls], tried: str) -> None:
    """One that cannot be renewed ends no call: giving it up would lose its answer for certain."""
    store = calls()

    async def until_renewed(_: Any) -> Any:
        await store.renewed.wait()
        return PLAN

    output = await Bench(until_renewed, calls=store, renew_seconds=0.001).plan()
    assert store.log[:2] == ["begin", tried]
    assert len(store.answers) == 1
    assert not store.leased
    assert output.account.warnings == []


# --- the canary ------------------------------------------------------------------------------------------------------
CANARY = "8fbddb3160f16a89af97bab4"
WIDE = "".join(chr(ord(sign) + 0xFEE0) for sign in CANARY)


@pytest.mark.parametrize("form", [CANARY, CANARY.upper(), WIDE])
async def test_an_answer_with_the_canary_is_unusable(form: str) -> None:
    """Whatever its case and form: the answer was paid, its usage is told, and nothing of it is in the failure."""
    gap = roles.ProposedGap(description="what is missing", suggested_queries=["one", f"see {form}."])
    bench = Bench(roles.AnalyzerAnswer(findings=[], gaps=[gap]))
    with pytest.raises(ApplicationError) as caught:
        await environment().run(bench.activities.run, roles.ANALYZER, analyze_input([], canary=CANARY))
    details = caught.value.details[0]
    assert (caught.value.type, details["problem"]) == (failures.INVALID_MODEL_OUTPUT, STEERED)
    assert details["usage"]["model_calls"] == 1
    assert form not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize(
    ("url", "exposed"),
    [
        (f"https://a.test/{CANARY}", True),
        ("https://a.test/?d=heliotrope-memorandum%20stays", True),
        ("https://a.test/?q=how+does+wraparound+prevention", False),
        (f"https://a.test/heliotrope/{CANARY[:12]}", False),
    ],
)
def test_an_address_exposes_the_canary_and_private_text(url: str, exposed: bool) -> None:
    """Twenty letters in a row of a private text count, unless the question, which searches send anyway, has them."""
    public = "How does wraparound prevention work?"
    private = ["The heliotrope memorandum stays among us.", public]
    assert exposes_private_text(url, CANARY, private, [public]) is exposed
