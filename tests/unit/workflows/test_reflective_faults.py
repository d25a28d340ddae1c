"""The strategy `reflective` where something is lacking: answers, searches, limits, context; and where people speak."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import Turn
from contracts.resolved import ModelPrice
from contracts.state import ResearchState
from contracts.vocabulary import GapStatus, NodeStatus, Outcome, StopReason, Tier
from providers.errors import Unavailable
from tests.comparable import comparable
from tests.fakes import reflective_work
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_request import ModelRequest
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_reflective_strategy import conduct, reflections
from tests.unit.workflows.test_supervisor_strategy import begin, report_of
from workflows.driver import Driver
from workflows.phases.human_gate import WaitHooks
from workflows.run.checkpoints import resume_state
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.plan import ReflectivePosition, is_analysis
from workflows.strategies.reflective.reflective_strategy import ReflectiveStrategy

MEMO = "The heliotrope memorandum stays among the four of us."
WISH = "What is the default of freeze_max_age?"


async def asked_of(folder: Path, api: MessagesApi, **fields: Any) -> tuple[ResearchState, list[ModelRequest], World]:
    """A run with this endpoint: its state, and what the endpoint was asked."""
    async with api:
        world = model_world(folder, api.base_url)
        state, _ = await conduct(world, **fields)
        await world.close()
    return state, api.requests, world


async def resume(world: World, stopped: ResearchState, **fields: Any) -> ResearchState:
    """Go on from what a session stores, under what a fresh request says."""
    fresh = await begin(world, strategy="reflective", **fields)
    assert fresh.resolved is not None
    stored = ResearchState.unpack(stopped.pack())
    later = resume_state(stored, fresh.resolved, fresh.started_at, ReflectiveStrategy().resume)
    later.clock_started_at, later.deadline_at = fresh.clock_started_at, fresh.deadline_at
    await Driver(ResearchRun(later, Inbox(), world.host()), ReflectiveStrategy()).conduct()
    return later


def failing(world: World, *, while_asked: Callable[[str], bool]) -> None:
    """Let searches for some texts fail for good."""
    found = world.corpus.search

    async def search(request: SearchRequest) -> SearchResponse:
        if while_asked(request.text):
            raise Unavailable("no answer")
        return await found(request)

    world.corpus.search = search  # type: ignore[method-assign]


async def test_who_plans_with_words_of_pages_knows_no_earlier_turn(tmp_path: Path) -> None:
    """Earlier turns and instructions reach those alone who see nothing from outside."""
    told = {"context": [Turn(question="What is the heliotrope plan?", answer=MEMO)], "system_prompt": MEMO}
    _, requests, _ = await asked_of(tmp_path, MessagesApi(), depth="light", **told)
    assert {request.role for request in requests if "heliotrope" in request.prompt} == {"coordinator", "investigator"}


async def test_the_planner_hears_the_coordinators_brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier turns add to the question is not lost: the coordinator says it in its own words (S1-008)."""
    classify = reflective_work.classification
    brief = {"brief": "The engine is the one of the manual."}
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: classify(prompt) | brief)
    _, requests, _ = await asked_of(
        tmp_path, MessagesApi(), depth="light", context=[Turn(question="Which?", answer="X")]
    )
    assert brief["brief"] in next(request.prompt for request in requests if request.role == "step_planner")


@pytest.mark.parametrize("role", ["coordinator", "investigator", "step_planner", "researcher", "reflector"])
async def test_a_role_that_answers_nonsense_is_done_by_rules(tmp_path: Path, role: str) -> None:
    """Repaired once, then done without the model: the run goes on, reports, and says what was degraded."""
    state, _, world = await asked_of(tmp_path, MessagesApi(by_role={role: "hopeless"}), depth="light")
    assert state.result is not None
    assert state.result.outcome is Outcome.PARTIAL
    assert state.citations
    assert f"{role}: done without the model, whose answers could not be used" in state.result.degraded
    assert state.engine_by_role[role] == "extractive"
    assert "without the model" in await report_of(world, state)


async def test_an_answer_that_nobody_gives_is_no_answer(tmp_path: Path) -> None:
    """A responder whose answers cannot be used leaves a failed run, not an empty one that is called completed."""
    state, _, _ = await asked_of(tmp_path, MessagesApi(by_role={"responder": "empty"}), mode="direct")
    assert state.result is not None
    assert (state.result.outcome, state.citations) == (Outcome.FAILED, [])


async def test_enough_context_is_believed_only_with_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first plan without steps is refused, whatever it claims; a later one ends the research (S1-019, C1-4)."""
    reflections(monkeypatch, "adjust")
    plans: list[str] = []
    sensible = reflective_work.steps

    def steps(prompt: str) -> dict[str, Any]:
        plans.append(prompt)
        # The first answer is of no use, its repair is; the next plan has found enough.
        return sensible(prompt) if len(plans) == 2 else {"has_enough_context": True, "thought": "enough", "steps": []}

    monkeypatch.setattr(reflective_work, "steps", steps)
    state, _, _ = await asked_of(tmp_path, MessagesApi(), depth="light")
    assert len(plans) == 3
    assert "steps: at least one step" in plans[1]
    assert [step.status for step in state.plan.steps] == [
        NodeStatus.COMPLETED, NodeStatus.SKIPPED, NodeStatus.SKIPPED,
    ]  # fmt: skip
    assert [decision.rationale for decision in state.decisions if decision.action == "enough_context"] == ["enough"]
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert state.result.stop_reason in (StopReason.NO_OPEN_GAPS, StopReason.COVERAGE_SUFFICIENT)


async def test_a_step_without_a_search_searches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its type is called, it is an analysis of what was read (S1-033)."""
    sensible = reflective_work.steps

    def steps(prompt: str) -> dict[str, Any]:
        made = sensible(prompt)
        made["steps"][1]["needs_search"] = False
        return made

    monkeypatch.setattr(reflective_work, "steps", steps)
    state, _, world = await asked_of(tmp_path, MessagesApi(), depth="light")
    research, thought, _ = state.plan.steps
    assert [is_analysis(step) for step in (research, thought)] == [False, True]
    assert thought.expected_contribution not in world.corpus.searches
    assert thought.status is NodeStatus.COMPLETED


async def test_a_step_goes_through_its_states_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending, then executing, then completed; or skipped without having begun (S1-059)."""
    reflections(monkeypatch, "continue", "complete")
    seen: dict[str, list[str]] = {}
    note = ResearchRun.note

    def remember(self: ResearchRun, kind: str, text: str, /, **data: Any) -> None:
        for step in self.state.plan.steps:
            states = seen.setdefault(step.id, [])
            states += [] if states[-1:] == [step.status.value] else [step.status.value]
        note(self, kind, text, **data)

    monkeypatch.setattr(ResearchRun, "note", remember)
    state, _, _ = await asked_of(tmp_path, MessagesApi(), depth="medium", limits={"min_steps": 2})
    done = ["pending", "executing", "completed"]
    assert list(seen.values()) == [done, done, ["pending", "skipped"]]
    assert [made.step for made in ReflectivePosition.of(state).reflections] == [
        step.text for step in state.plan.steps[:2]
    ]
    assert {event.data["phase"] for event in state.events if event.type == "phase.started"} >= {"step-1", "step-2"}
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)


@pytest.mark.parametrize("after", [2, 3, 5, 6, 7])
async def test_what_a_person_asks_for_becomes_the_next_step(tmp_path: Path, after: int) -> None:
    """In whatever unit: once there is a plan it is a step of its own, and no limit of steps is exceeded for it."""
    world, inbox = World(tmp_path), Inbox()
    state = await begin(world, strategy="reflective", depth="light")
    driver = Driver(ResearchRun(state, inbox, world.host()), ReflectiveStrategy())
    reason = None
    for _ in range(after):
        reason = reason or await driver.step()
    done = len([step for step in state.plan.steps if step.status is NodeStatus.COMPLETED])
    inbox.steering.append(WISH)
    await driver.conduct()
    steps = state.plan.steps
    assert len(steps) <= 3
    assert any(WISH in one.text for one in state.guidance)
    wished = [step for step in steps if step.text == WISH]
    assert state.result is not None
    if after < 3 or done >= 3:
        # Before a plan the planner hears it; without a step left it is said that nobody looked for it.
        assert wished == [] or after < 3
        assert after < 3 or any(WISH in line for line in state.result.limitations)
        return
    assert steps.index(wished[0]) == done
    assert wished[0].status is NodeStatus.COMPLETED
    assert [gap.status for gap in state.gaps if gap.origin == "steer"] == [GapStatus.ADDRESSED]
    assert WISH in world.corpus.searches


async def test_no_reflection_leaves_out_what_a_person_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COMPLETE skips what was planned; the wish is carried out, and then the report is written."""
    reflections(monkeypatch, "complete")
    inbox = Inbox()
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state = await begin(world, strategy="reflective", depth="light")
        driver = Driver(ResearchRun(state, inbox, world.host()), ReflectiveStrategy())
        for _ in range(3):
            await driver.step()
        inbox.steering += [WISH, "What does a base backup copy?"]
        await driver.conduct()
        await world.close()
    assert [(step.text == WISH, step.status) for step in state.plan.steps] == [
        (True, NodeStatus.COMPLETED), (False, NodeStatus.COMPLETED), (False, NodeStatus.SKIPPED),
    ]  # fmt: skip


async def test_a_step_whose_searches_failed_is_done_by_a_resumed_run(tmp_path: Path) -> None:
    """It counts as failed, is named, and the later run makes its searches again: then nothing is lacking."""
    world, down = World(tmp_path), [True]
    texts: list[str] = []

    def second_step(text: str) -> bool:
        texts.append(text)
        return down[0] and bool(steps) and text == steps[0].expected_contribution

    steps: list[Any] = []
    state = await begin(world, strategy="reflective", depth="light")
    failing(world, while_asked=second_step)
    driver = Driver(ResearchRun(state, Inbox(), world.host()), ReflectiveStrategy())
    for _ in range(3):
        await driver.step()
    steps.append(state.plan.steps[1])
    await driver.conduct()
    assert state.plan.steps[1].status is NodeStatus.FAILED
    assert state.result is not None
    assert state.result.outcome is Outcome.PARTIAL
    assert any(steps[0].text[:60] in line for line in state.result.limitations)
    down[0] = False
    later = await resume(world, state, depth="light")
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    assert {step.status for step in later.plan.steps} == {NodeStatus.COMPLETED}


async def test_one_failed_search_of_a_step_is_made_again(tmp_path: Path) -> None:
    """A step that found something is completed; the later run makes the search that failed, and no other."""
    down, limits = [True], {"min_steps": 1, "max_steps": 1}
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        failing(world, while_asked=lambda text: down[0] and text.endswith("in detail"))
        state, _ = await conduct(world, depth="medium", limits=limits)
        assert state.result is not None
        assert state.result.outcome is Outcome.PARTIAL
        assert [node.status.value for node in state.plan.nodes] == ["completed", "completed", "failed"]
        down[0], before = False, len(world.corpus.searches)
        later = await resume(world, state, depth="medium", limits=limits)
        await world.close()
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    assert [node.status.value for node in later.plan.nodes] == ["completed"] * 3
    assert [text[-9:] for text in world.corpus.searches[before:]] == ["in detail"]


async def test_a_background_that_fails_costs_nothing_but_its_titles(tmp_path: Path) -> None:
    """The planner plans without it, and the run is complete."""
    world, planned = World(tmp_path), [False]
    state = await begin(world, strategy="reflective", depth="light")
    failing(world, while_asked=lambda _: not planned[0])
    driver = Driver(ResearchRun(state, Inbox(), world.host()), ReflectiveStrategy())
    for _ in range(3):
        await driver.step()
    planned[0] = True
    await driver.conduct()
    assert ReflectivePosition.of(state).background == []
    assert any("background search failed" in event.text for event in state.events)
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)


async def test_an_outage_of_all_searches_is_no_empty_answer(tmp_path: Path) -> None:
    """Every step fails: the run fails as an outage and cites nothing (S0-097)."""
    world = World(tmp_path)
    failing(world, while_asked=lambda _: True)
    state, _ = await conduct(world, depth="light")
    assert state.result is not None
    assert (state.result.outcome, state.result.stop_reason) == (Outcome.FAILED, StopReason.PROVIDER_OUTAGE)
    assert {step.status for step in state.plan.steps} == {NodeStatus.FAILED}


async def test_a_model_that_is_out_of_reach_from_the_start_ends_the_run(tmp_path: Path) -> None:
    """The first role that finds it so ends the run as an outage; no other one waits for it in vain."""
    state, requests, _ = await asked_of(tmp_path, MessagesApi("no_credit"), depth="light")
    assert state.result is not None
    assert (state.result.outcome, state.result.stop_reason) == (Outcome.FAILED, StopReason.PROVIDER_OUTAGE)
    assert {request.role for request in requests} == {"coordinator"}


async def test_nothing_found_is_admitted(tmp_path: Path) -> None:
    """No step finds anything: the outcome is empty, and the report says so (C0-13)."""
    world = World(tmp_path)
    state = await begin(
        world, query="What does CockroachDB charge for quantum replication?", strategy="reflective", depth="light"
    )
    await Driver(ResearchRun(state, Inbox(), world.host()), ReflectiveStrategy()).conduct()
    assert state.result is not None
    assert (state.result.outcome, state.citations) == (Outcome.EMPTY, [])
    assert "CockroachDB" in await report_of(world, state)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_model_calls": 6}, StopReason.BUDGET_CALLS),
        ({"max_tokens": 40_000}, StopReason.BUDGET_TOKENS),
        ({"max_cost_usd": 0.6}, StopReason.BUDGET_COST),
    ],
)
async def test_a_limit_ends_in_a_partial_report_and_more_of_it_in_a_whole_one(
    tmp_path: Path, limits: dict[str, float], reason: StopReason
) -> None:
    """What was found is reported, the limit is named and held; resumed without it, every step has its reflection (X-4)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        prices = {tier.value: ModelPrice(input=5.0, output=25.0) for tier in Tier}
        state = await begin(world, strategy="reflective", depth="light", limits=limits)
        assert state.resolved is not None
        state.resolved = state.resolved.model_copy(update={"model_prices": prices})
        await Driver(ResearchRun(state, Inbox(), world.host()), ReflectiveStrategy()).conduct()
        assert state.result is not None
        assert (state.result.outcome, state.result.stop_reason) == (Outcome.PARTIAL, reason)
        assert len(api.calls) <= limits.get("max_model_calls", 100)
        assert state.usage.tokens <= limits.get("max_tokens", 1e9)
        assert state.usage.known_cost_usd <= limits.get("max_cost_usd", 1e9)
        later = await resume(world, state, depth="light")
        await world.close()
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    reflected = [made.step for made in ReflectivePosition.of(later).reflections]
    assert reflected == [step.text for step in later.plan.steps]


@pytest.mark.parametrize("activity", ["classify_question", "plan_steps", "read_source", "reflect_on_step"])
async def test_cancelled_in_any_unit_it_goes_on_later(tmp_path: Path, activity: str) -> None:
    """The state is kept, and a resumed run has the findings of an undisturbed one, each step reflected on."""
    world = World(tmp_path)
    state, host = await begin(world, strategy="reflective", depth="light"), world.host()
    work = host.implementations[activity]

    async def begin_and_hang(argument: Any) -> Any:
        running.cancel()
        return await work(argument)

    host.implementations[activity] = begin_and_hang
    driver = Driver(ResearchRun(state, Inbox(), host), ReflectiveStrategy())
    running = asyncio.ensure_future(driver.conduct())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert state.result is None
    later = await resume(world, state, depth="light")
    undisturbed, _ = await conduct(World(tmp_path / "undisturbed"), depth="light")
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    assert {finding.id for finding in later.findings} == {finding.id for finding in undisturbed.findings}
    assert [made.step for made in ReflectivePosition.of(later).reflections] == [step.text for step in later.plan.steps]


class NewHistory(Exception):
    """The history begins anew here."""


async def test_a_history_may_begin_anew_after_every_step(tmp_path: Path) -> None:
    """The boundary comes after steps; limits that the run chose hold beyond it, and the report is the same."""
    world = World(tmp_path / "pieces")
    state, fresh = await begin(world, strategy="reflective"), await begin(world, strategy="reflective")
    boundaries: list[str] = []

    async def boundary() -> None:
        boundaries.append(state.phase or "")
        raise NewHistory

    while state.result is None:
        try:
            await Driver(ResearchRun(state, Inbox(), world.host()), ReflectiveStrategy(), WaitHooks(boundary)).conduct()
        except NewHistory:
            state = ResearchState.unpack(state.pack())
            state.resolved = fresh.resolved  # as it is prepared for the new history
    whole = World(tmp_path / "whole")
    undisturbed, _ = await conduct(whole)
    assert boundaries == [f"step-{number}" for number in range(1, len(state.plan.steps))]
    assert state.resolved is not None
    assert undisturbed.resolved is not None
    assert state.resolved.limits == undisturbed.resolved.limits
    assert comparable(await report_of(world, state)) == comparable(await report_of(whole, undisturbed))


async def test_sources_never_exceed_their_limit(tmp_path: Path) -> None:
    """The limit holds over all steps together."""
    world = World(tmp_path)
    state, _ = await conduct(world, depth="light", limits={"max_sources": 1})
    assert len(state.readable_sources()) == 1
    assert state.citations


async def test_what_is_left_open_is_said_after_resuming_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How an ambiguous question was taken stands in the report of every run of the session (C1-9)."""
    classify = reflective_work.classification
    unclear = {"is_ambiguous": True, "clarifying_questions": ["Which engine?"]}
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: classify(prompt) | unclear)
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, inbox = await begin(world, strategy="reflective", depth="light"), Inbox()
        driver = Driver(ResearchRun(state, inbox, world.host()), ReflectiveStrategy())
        for _ in range(4):
            await driver.step()
        inbox.interrupt(StopReason.USER_STOPPED)
        await driver.conduct()
        later = await resume(world, state, depth="light")
        for one in (state, later):
            assert "leaves open: Which engine?" in await report_of(world, one)
        await world.close()
