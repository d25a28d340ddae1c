"""The money of agents: equal shares, what goes back, what stays for the report, and the calls that a share is worth."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.addresses import sub_query_id
from contracts.agents import AgentShare, AgentTask
from contracts.call_sizes import CallSizes
from contracts.checking_roles import REVIEWER, ReviewInput
from contracts.evidence import Candidate, Gap
from contracts.orchestrator_roles import AGENT, ORCHESTRATOR, OpenArguments, OrchestrateInput, WorkInput
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.recursive_roles import SCANNER, ScanInput
from contracts.resolved import ModelPrice
from contracts.roles import ANALYZER, AnalyzeInput, SourceExtract
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, StopReason
from tests.fakes.states import EMPTY_REF, finding, hit, source
from tests.fakes.world import World, begin
from tests.toy.party import party_declared
from workflows.rules.agents import Room, readings_paid
from workflows.run.agents import FINDINGS_OF_AGENT
from workflows.run.budget import NOTHING
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.run.run_budget import CallRefused, Measured
from workflows.strategies.orchestrator.agent_strategy import AgentPosition, AgentStrategy

PRICES = dict.fromkeys(("simple", "analytical", "complex"), ModelPrice(input=3.0, output=15.0))
TASKS = [AgentTask(id=f"agent-{number}", text=f"task {number} of vacuum", strategy="errand") for number in (1, 2, 3)]
READINGS = {ANALYZER.name: CallSizes(calls=5, input_share=0.3, output_share=0.8, input_tokens=8_000)}
"""As seven agents of a real run read: 8,000 tokens in, 2,400 out."""
MANUAL = AnalyzeInput(sub_query=PlanNode(id="agent-1", text="task"), sources=[], max_findings=16)
PARAGRAPH = AnalyzeInput(sub_query=PlanNode(id="agent-1", text="task"), sources=[], max_findings=5)
"""Readings of pages of different lengths, which ask for as many findings."""


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


def limit(state: ResearchState, **limits: Any) -> None:
    own = state.resolution.limits.with_fields(**limits)
    state.work.resolved = state.resolution.with_fields(limits=own, model_prices=PRICES)


async def run_of(folder: Path, *, task: AgentTask | None = None, **limits: Any) -> ResearchRun:
    world = World(folder)
    state = await begin(world, strategy="party")
    limit(state, **limits)
    if task is not None:
        state.work.task = task
        state.work.resolved = state.resolution.with_fields(strategy="agent")
    return ResearchRun(state, Inbox(), world.host())


async def test_agents_that_wait_get_a_part_of_what_others_gave_back(tmp_path: Path) -> None:
    """Three divide 30 calls; the first used none of its 10, so half of them go to each of the two that waited."""
    run = await run_of(tmp_path, max_model_calls=30)
    free = 30 - run.budget.reserved_for_report(3 * FINDINGS_OF_AGENT).calls
    await run.spawn(TASKS, 1)
    calls = [record.share.model_calls for record in run.state.work.agents if record.share]
    assert [calls[0], calls[-1]] == [-(-free // 3), free]
    assert calls[0] < calls[1] < calls[2]


async def test_agents_leave_what_the_report_of_their_findings_needs(tmp_path: Path) -> None:
    """What is divided among three agents is less by the report and the checks of what they likely bring."""
    run = await run_of(tmp_path, max_cost_usd=2.0)
    of_one, of_all = (run.budget.reserved_for_report(number).cost_usd for number in (0, 3 * FINDINGS_OF_AGENT))
    await run.spawn(TASKS, 3)
    shares = [record.share.cost_usd or 0.0 for record in run.state.work.agents if record.share]
    assert of_all > of_one
    assert sum(shares) == pytest.approx(2.0 - of_all)
    assert max(shares) == pytest.approx(min(shares))


async def test_an_orchestrator_knows_how_many_pages_its_agents_can_have_read(tmp_path: Path) -> None:
    """Of what the report leaves, by what readings of the run cost; without a limit there is no number."""
    run = await run_of(tmp_path, max_cost_usd=2.0)

    def left(turns: int = 1) -> int | None:
        return run.agents.room_for_reading(ORCHESTRATOR, OrchestrateInput(), turns).readings

    assert left() is None  # rules read for nothing
    run.state.work.resolved = run.state.resolution.with_fields(engine=EngineKind.MODEL)
    before = left()
    run.state.accounts.call_sizes = {ANALYZER.name: READINGS[ANALYZER.name].with_fields(usd=0.8)}
    after = left()
    assert before is not None
    assert after is not None
    assert 10 <= before <= 25
    assert before / 3 <= after < before / 2
    assert (left(20) or 0) < after  # what it spends itself, its agents have not
    limit(run.state, max_cost_usd=None)
    assert left() is None


READING = Usage(input_tokens=7_500, output_tokens=2_000)


@pytest.mark.parametrize(
    ("left", "readings", "ended_by"),
    [
        (AgentShare(cost_usd=0.17), 2, StopReason.BUDGET_COST),
        (AgentShare(cost_usd=0.10), 1, StopReason.BUDGET_COST),
        (AgentShare(cost_usd=0.08), 0, StopReason.BUDGET_COST),
        (AgentShare(cost_usd=0.17, model_calls=2), 0, StopReason.BUDGET_CALLS),
        (AgentShare(cost_usd=0.17, tokens=15_000), 1, StopReason.BUDGET_TOKENS),
        (AgentShare(), None, None),
    ],
)
def test_no_reading_is_promised_that_its_reservation_forbids(
    left: AgentShare, readings: int | None, ended_by: StopReason | None
) -> None:
    """The last one needs all that it may cost, those before it what such readings do cost; the turns before them are
    paid first, and the limit that allows the fewest is named.
    """
    turns = Usage(model_calls=1, input_tokens=1_000, cost_usd=0.02)
    assert readings_paid(left, turns, READING, 0.06, 0.04) == Room(readings, ended_by)


@pytest.mark.parametrize(("usd", "is_made"), [(0.050, True), (0.040, False)])
async def test_a_reading_with_room_for_a_finding_or_two_is_not_made(tmp_path: Path, usd: float, is_made: bool) -> None:
    """A prompt of 7,000 tokens leaves 1,500 tokens of output or more of an agent's share, or the agent ends."""
    run = await run_of(tmp_path, task=TASKS[0], max_cost_usd=usd)
    run.state.accounts.call_sizes = READINGS
    least = Measured(7_000, is_least=True)
    if is_made:
        granted = await run.budget.reserve(ANALYZER, MANUAL, least, 0)
        assert granted.size.output_tokens >= ANALYZER.expected_output_tokens / 2
    else:
        with pytest.raises(CallRefused):
            await run.budget.reserve(ANALYZER, MANUAL, least, 0)


@pytest.mark.parametrize("seen", [{}, READINGS])
async def test_a_reading_reserves_what_it_asks_for(tmp_path: Path, seen: dict[str, CallSizes]) -> None:
    """A page with a paragraph or two reserves a third of what a manual does, whatever was written before: with more,
    the readings beside it would be shortened or wait.
    """
    run = await run_of(tmp_path, max_cost_usd=2.0)
    run.state.work.resolved = run.state.resolution.with_fields(reasoning_tokens=0)
    run.state.accounts.call_sizes = seen
    sizes = [
        (await run.budget.reserve(ANALYZER, request, Measured(5_000, is_least=False), 0)).size.output_tokens
        for request in (MANUAL, PARAGRAPH)
    ]
    assert sizes == [MANUAL.asked_output_tokens, PARAGRAPH.asked_output_tokens]
    assert sizes[0] > 2 * sizes[1]


async def test_a_role_that_assesses_sources_gets_what_it_may_write(tmp_path: Path) -> None:
    """What is asked of it are sentences, no findings: with no more than that, its first answer was cut."""
    run = await run_of(tmp_path, max_cost_usd=2.0)
    request = ScanInput(sub_query=MANUAL.sub_query, sources=[SourceExtract(id="src-1")])
    granted = await run.budget.reserve(SCANNER, request, Measured(5_000, is_least=False), 0)
    assert granted.size.output_tokens >= SCANNER.output_tokens > request.asked_output_tokens


async def test_a_model_that_writes_beyond_what_a_reading_asks_for_gets_that_too(tmp_path: Path) -> None:
    """Reasoning before an answer is no part of what is asked for: a reservation without it would cut each answer."""
    run = await run_of(tmp_path, max_cost_usd=2.0)
    asked = MANUAL.asked_output_tokens
    used = Usage(model_calls=1, input_tokens=5_000, output_tokens=asked + 900)
    sizes = CallSizes().with_call(ANALYZER, used, 5_000, used, None, asked)
    run.state.accounts.call_sizes = {ANALYZER.name: sizes, AGENT.name: CallSizes(calls=1, output_share=0.1)}
    granted = await run.budget.reserve(ANALYZER, MANUAL, Measured(5_000, is_least=False), 0)
    assert granted.size.output_tokens == asked + 900


@pytest.mark.parametrize(("usd", "is_whole"), [(0.085, True), (0.060, False)])
async def test_the_rest_of_a_share_shows_a_whole_page_to_a_briefer_reader(
    tmp_path: Path, usd: float, is_whole: bool
) -> None:
    """A page shown in part is read twice; only where an answer would have hardly any room is it shortened."""
    run = await run_of(tmp_path, task=TASKS[0], max_cost_usd=usd)
    run.state.accounts.call_sizes = READINGS
    granted = await run.budget.reserve(ANALYZER, MANUAL, Measured(12_000, is_least=False), 0)
    assert (granted.size.input_tokens == 12_000) is is_whole
    assert granted.size.output_tokens < MANUAL.asked_output_tokens


@pytest.mark.parametrize(("for_gaps", "is_made"), [(True, True), (False, False)])
async def test_a_last_look_may_use_the_margins_of_the_reports_reserve(
    tmp_path: Path, for_gaps: bool, is_made: bool
) -> None:
    """Where the reserve of the report is all that is left, no other reading is made, and the look asks for a brief
    answer.
    """
    run = await run_of(tmp_path, max_cost_usd=2.0)
    run.state.accounts.call_sizes = READINGS
    reserved = run.budget.reserved_for_report().cost_usd
    run.state.accounts.usage = Usage(cost_usd=2.0 - reserved, model_calls=1)
    gaps = [Gap(id="gap-1", description="What it costs")]
    request = AnalyzeInput(sub_query=PlanNode(id="sq-1", text="it"), sources=[], gaps=gaps, for_gaps=for_gaps)
    call = run.budget.reserve(ANALYZER, request, Measured(3_000, is_least=False), 0)
    if is_made:
        granted = await call
        assert 0 < granted.reservation.cost_usd <= 0.25 * reserved
        assert granted.size.output_tokens <= request.asked_output_tokens
    else:
        with pytest.raises(CallRefused):
            await call


@pytest.mark.parametrize(
    ("usd", "cost", "is_made"), [(0.10, 0.0, True), (0.055, 0.0, False), (0.055, 0.15, True), (0.055, 0.3, False)]
)
async def test_no_turn_is_paid_for_pages_that_cannot_be_read_then(
    tmp_path: Path, usd: float, cost: float, is_made: bool
) -> None:
    """A turn of an agent leaves four fifths of the largest reading, or what readings cost in the mean if that is less:
    else it ends with the notes that it has.
    """
    run = await run_of(tmp_path, task=TASKS[0], max_cost_usd=usd)
    run.state.accounts.call_sizes = {ANALYZER.name: READINGS[ANALYZER.name].with_fields(usd=cost)}
    call = run.budget.reserve(AGENT, WorkInput(), Measured(5_000, is_least=False), 0)
    if is_made:
        assert (await call).reservation != NOTHING
    else:
        with pytest.raises(CallRefused):
            await call


async def test_what_an_agent_had_asked_of_pages_when_its_share_ended_stays_open(tmp_path: Path) -> None:
    """The purposes of an interrupted turn that no reading served are gaps of the agent, and served ones are none."""
    run = await run_of(tmp_path, task=TASKS[0])
    state = run.state
    state.evidence.candidates = [Candidate(sub_query_id="sq-1", hit=hit("https://manual.example", 1))]
    page = source("https://manual.example", text=EMPTY_REF, analyzed=True)
    state.evidence.sources = {page.id: page}
    read, unread = "which tables are vacuumed", "which types are not supported"
    position = AgentPosition.of(state)
    position.wanted = [OpenArguments(index=1, focus=read), OpenArguments(index=1, focus=unread, section=5)]
    position.purposes = {page.id: ["0 which tables are vacuumed"]}
    await AgentStrategy().conclude(run)
    assert [gap.description for gap in state.evidence.gaps] == [unread]
    assert state.accounts.usage == Usage()


async def test_a_search_that_an_agent_did_not_make_is_named_and_is_no_gap(tmp_path: Path) -> None:
    """Whoever sent it learns of the search, which says nothing of what is missing; an agent that reports decided so."""
    task = TASKS[0].with_fields(given={"searches": ["lock_timeout", "statement_timeout"]})
    run = await run_of(tmp_path, task=task)
    state = run.state
    made = PlanNode(id=sub_query_id("lock_timeout"), text="lock_timeout")
    state.work.plan = state.work.plan.with_nodes(made)
    assert "(not searched for: statement_timeout)" in await AgentStrategy().conclude(run)
    assert state.evidence.gaps == []
    AgentPosition.of(state).open_questions = []
    assert "not searched for" not in await AgentStrategy().conclude(run)


@pytest.mark.parametrize(("left", "may_look"), [(0.9, False), (1.3, True)])
async def test_a_last_look_at_gaps_leaves_what_the_text_of_the_report_needs(
    left: float, may_look: bool, tmp_path: Path
) -> None:
    """Where calls cost a small part of what they might, nothing but the report is reserved, and a look takes none of it."""
    run = await run_of(tmp_path, max_cost_usd=2.0)
    state = run.state
    state.evidence.findings = [finding(f"Fact {number}") for number in range(200)]
    state.accounts.call_sizes = {ANALYZER.name: READINGS[ANALYZER.name].with_fields(usd=0.1, most_usd=2.0)}
    reserved = run.budget.reserved_for_report().cost_usd
    state.accounts.usage = Usage(cost_usd=2.0 - left * reserved, input_tokens=1, output_tokens=1, model_calls=1)
    look = MANUAL.with_fields(for_gaps=True)
    measured = Measured(2_000, is_least=False)
    if may_look:
        assert (await run.budget.reserve(ANALYZER, look, measured, 0)).reservation.cost_usd <= (left - 0.9) * reserved
    else:
        with pytest.raises(CallRefused):
            await run.budget.reserve(ANALYZER, look, measured, 0)


@pytest.mark.parametrize(("left", "is_made"), [(0.9, False), (1.2, False), (2.5, True)])
async def test_a_review_leaves_what_a_revision_and_its_checks_need(left: float, is_made: bool, tmp_path: Path) -> None:
    """Also at the end of a run: else nobody could act on it; and it is made of the whole draft or not at all."""
    run = await run_of(tmp_path, max_cost_usd=2.0)
    run.inbox.closing = True
    state = run.state
    state.evidence.findings = [finding(f"Fact {number}") for number in range(20)]
    reserved = run.budget.reserved_for_report().cost_usd
    state.accounts.usage = Usage(cost_usd=2.0 - left * reserved, input_tokens=1, output_tokens=1, model_calls=1)
    review = ReviewInput(draft=EMPTY_REF)
    measured = Measured(math.ceil(0.25 * reserved * 1_000_000 / 3), is_least=False)
    if is_made:
        granted = await run.budget.reserve(REVIEWER, review, measured, 0)
        assert granted.size.input_tokens == measured.input_tokens
    else:
        with pytest.raises(CallRefused):
            await run.budget.reserve(REVIEWER, review, measured, 0)
