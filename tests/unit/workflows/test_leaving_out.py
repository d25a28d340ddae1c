"""Exclusions that people and hooks give while a run goes on: whole runs on the in-process host, by both engines."""

from pathlib import Path
from typing import Any

import pytest

from contracts.addresses import source_id
from contracts.exclusions import mentions
from contracts.outcome import Exclusion, Guidance
from contracts.resolved import Hook, pack_words
from contracts.roles import AnalysisOutput, GapDraft, PlanInput, PlanOutput, SubQueryDraft
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, GapStatus, NodeStatus, Outcome
from providers.language_words import guidance_words
from tests.fakes import states
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import QUESTION, begin, report_of
from workflows.driver import Driver
from workflows.phases.analysis import merge
from workflows.rules.endings import find_unanswered
from workflows.rules.guidance_reading import read_guidance
from workflows.rules.leaving_out import LEFT_OUT, why_left_out
from workflows.run.guidance import PERSON
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.run.resumption import resume_state
from workflows.run_status import status_of
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

LOCKS = "corpus:manual/locks.md"
ABOUT_LOCKS = "How long is a table lock held?"
QUERIES = (QUESTION, ABOUT_LOCKS, "What happens if vacuuming is neglected?")


async def plan_with_locks(request: PlanInput) -> PlanOutput:
    """A plan that looks for locks, too."""
    drafts = [
        SubQueryDraft(query=text, priority=place, facet="guidance" if text == ABOUT_LOCKS else "")
        for place, text in enumerate(QUERIES, start=1)
    ]
    return PlanOutput(research_brief="The engine and its locks.", sub_queries=drafts)


async def conduct(
    world: World, state: ResearchState, said: str = "", before: str = "", hook: str = ""
) -> list[tuple[str, str]]:
    """A run to its end; `said` arrives when the activity `before` is first called. What was called after that."""
    host = world.host()
    host.implementations["plan_research"] = plan_with_locks
    run = ResearchRun(state, Inbox(), host)
    arrived: list[int] = []
    if said:
        work = host.implementations[before]

        async def interrupted(request: Any) -> Any:
            if not arrived:
                arrived.append(len(host.calls))
                run.inbox.steering.append(read_guidance(PERSON, said, state))
            return await work(request)

        host.implementations[before] = interrupted
    if hook:

        async def our_hook(*_: object) -> str:
            return hook

        host.implementations["our_hook"] = our_hook
    await Driver(run, SupervisorStrategy()).conduct()
    return host.calls[arrived[0] :] if arrived else host.calls


def check_without_locks(state: ResearchState, report: str) -> None:
    """Nothing of locks is searched, quoted, open or reported but where the report says so."""
    node = next(node for node in state.plan.nodes if node.text == ABOUT_LOCKS)
    assert (node.status, node.status_reason) == (NodeStatus.SKIPPED, "left out, as was asked: locks")
    assert not [one for one in state.findings if source_id(LOCKS) in one.source_ids or mentions(one.statement, "lock")]
    assert not [gap for gap in state.gaps if gap.status is GapStatus.OPEN and mentions(gap.description, "locks")]
    assert source_id(LOCKS) not in [one.source_id for one in state.citations]
    body, _, method = report.partition("## Method")
    assert not mentions(body.replace(QUESTION, ""), "lock")
    assert "left out from here on: “locks”" in method
    assert state.failed_branches == []


async def test_without_guidance_locks_are_quoted(tmp_path: Path) -> None:
    """What the other tests leave out is there."""
    world = World(tmp_path)
    state = await begin(world)
    await conduct(world, state)
    assert [one for one in state.findings if source_id(LOCKS) in one.source_ids]
    assert ABOUT_LOCKS in world.corpus.searches


@pytest.mark.parametrize("before", ["plan_research", "search", "read_source", "analyze_sources"])
async def test_exclusions_exclude_without_a_model(before: str, tmp_path: Path) -> None:
    """Whenever it arrives: no query, no quote, no open gap, and the run completes."""
    world = World(tmp_path)
    state = await begin(world)
    later = await conduct(world, state, "Leave locks out", before)
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, state.limitations
    check_without_locks(state, await report_of(world, state))
    node = next(node for node in state.plan.nodes if node.text == ABOUT_LOCKS)
    assert not [operation for name, operation in later[1:] if name != "read_source" and node.id in operation
                and before != "analyze_sources"]  # fmt: skip
    assert "sub_query_left_out" in [item.action for item in state.decisions]


@pytest.mark.parametrize("before", ["search", "analyze_sources"])
async def test_exclusions_exclude_with_a_model(before: str, tmp_path: Path) -> None:
    """The model is told, and what it finds of them all the same is dropped."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state = await begin(world, limits={"max_iterations": 1})
        await conduct(world, state, "Leave locks out", before)
        await world.close()
    check_without_locks(state, await report_of(world, state))
    written = [request.prompt for request in api.requests if request.role == "synthesizer"]
    assert written
    assert all("Leave out, do not report on: locks" in prompt for prompt in written)
    assert not [prompt for prompt in written if "table lock" in prompt]


async def test_a_hook_leaves_out_as_a_person_does(tmp_path: Path) -> None:
    """Its guidance is read by the same rules."""
    world = World(tmp_path)
    state = await begin(world)
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(
        update={"hook": Hook(name="ours", activity="our_hook", task_queue="ours")}
    )
    await conduct(world, state, hook="Leave locks out")
    check_without_locks(state, await report_of(world, state))
    assert {one.origin for one in state.exclusions} == {"hook"}


async def test_sources_from_elsewhere_are_not_used(tmp_path: Path) -> None:
    """`only from` narrows what is read and what was read already."""
    world = World(tmp_path)
    state = await begin(world)
    await conduct(world, state, "only from vacuum.md", "analyze_sources")
    assert {state.sources[one.source_id].url for one in state.citations} == {"corpus:manual/vacuum.md"}


async def test_emphasis_is_searched_for_beside_an_exclusion(tmp_path: Path) -> None:
    """One message may do both; only the emphasis becomes a query."""
    world = World(tmp_path)
    state = await begin(world)
    await conduct(world, state, "Leave locks out and look at base backups", "analyze_sources")
    (gap,) = [gap for gap in state.gaps if gap.origin == "steer"]
    assert gap.suggested_queries == ["base backups"]
    assert "base backups" in world.corpus.searches
    assert not [text for text in world.corpus.searches if text != ABOUT_LOCKS and mentions(text, "locks")]


async def test_a_resumed_run_still_leaves_out(tmp_path: Path) -> None:
    """What was skipped because nobody wants it is not taken up again."""
    world = World(tmp_path)
    state = await begin(world)
    await conduct(world, state, "Leave locks out", "search")
    again = resume_state(ResearchState.unpack(state.pack()), state.resolved, "2026-11-22", SupervisorStrategy().resumed)
    node = next(node for node in again.plan.nodes if node.text == ABOUT_LOCKS)
    assert node.status is NodeStatus.SKIPPED
    assert find_unanswered(QUESTION, again) == []


def test_status_shows_what_was_done() -> None:
    """Each message with its answer, also what cannot be obeyed."""
    state = states.state(resolved=states.resolved(guidance_words=pack_words(guidance_words("en"))))
    run = ResearchRun(state, Inbox(), InProcessHost({}))
    run.steer("Write it as a poem.")
    (said,) = status_of(state, 0.0).guidance
    assert said.answer.startswith("not obeyed: “Write it as a poem”")
    assert state.gaps == []


def test_the_answer_names_each_part() -> None:
    """Left out, searched for, refused: by engine, by what is left to do."""

    def answer(text: str, **changes: object) -> str:
        resolved = states.resolved(guidance_words=pack_words(guidance_words("en")), **changes)
        return read_guidance(PERSON, text, states.state(resolved=resolved, **planned)).answer

    planned: dict[str, Any] = {}
    assert answer("leave locks out") == "left out from here on: “locks”"
    assert answer("look at backups") == "searched for in the next phase: “backups”"
    assert answer("be nicer").startswith("not obeyed: “be nicer”: without a model")
    assert answer("...").startswith("not obeyed: nothing is understood of it: without a model")
    assert answer("be nicer", engine=EngineKind.MODEL) == "told to the model: “be nicer”"
    planned = {"plan": states.plan(states.sub_query("x" * 12)), "iteration": 3}
    assert "no iteration is left" in answer("look at backups")
    planned = {"plan": states.plan(states.sub_query("x" * 12)), "iteration": 1}
    assert answer("look at backups") == "searched for in the next iteration: “backups”"


def test_what_the_question_asks_for_is_not_left_out() -> None:
    """An exclusion of everything that is asked would leave nothing: it is refused at once."""
    resolved = states.resolved(guidance_words=pack_words(guidance_words("en")), question_words=["locks"])
    said = read_guidance(PERSON, "leave locks out", states.state(resolved=resolved))
    assert said.left_out == []
    assert said.answer == "not left out, since the question itself asks for it: “locks”"


def test_old_histories_search_for_guidance_as_it_is() -> None:
    """A run that began before rules read guidance goes on as it began."""
    state = states.state(plan=states.plan(states.sub_query("a first long question")))
    ResearchRun(state, Inbox(), InProcessHost({})).steer("Leave locks out")
    assert [gap.suggested_queries for gap in state.gaps] == [["Leave locks out"]]
    assert state.guidance == [Guidance(origin=PERSON, text="Leave locks out")]


def test_exclusions_are_bounded() -> None:
    """Messages without end cannot make a state without end."""
    state = states.state(resolved=states.resolved(guidance_words=pack_words(guidance_words("en"))))
    run = ResearchRun(state, Inbox(), InProcessHost({}))
    for number in range(12):
        run.steer("leave out " + ", ".join(f"topic{chr(97 + number)}{chr(97 + part)}" for part in range(10)))
    assert len(state.exclusions) == 50
    assert "50 exclusions are the most" in state.guidance[-1].answer


async def test_the_prompt_of_a_request_is_read_where_no_model_reads_it(tmp_path: Path) -> None:
    """An operator's `Leave locks out.` is no search for locks, and what it cannot have is said."""
    world = World(tmp_path)
    state = await begin(world, system_prompt="Write for people who run databases. Leave locks out.")
    await conduct(world, state)
    check_without_locks(state, await report_of(world, state))
    assert "not obeyed: “Write for people who run databases”" in state.guidance[0].answer
    assert len([said for said in state.guidance if said.origin == "request"]) == 1


async def test_what_is_left_out_meanwhile_is_not_taken_up_at_the_next_unit(tmp_path: Path) -> None:
    """A search that goes on is not used: neither its hits nor its sources enter the record."""
    world = World(tmp_path)
    state = await begin(world, limits={"max_iterations": 1})
    await conduct(world, state, "Leave locks out", "search")
    node = next(node for node in state.plan.nodes if node.text == ABOUT_LOCKS)
    assert source_id(LOCKS) not in state.sources
    assert not [source for source in state.sources.values() if node.id in source.sub_query_ids]


async def test_the_analyzer_is_not_given_a_source_that_is_left_out(tmp_path: Path) -> None:
    """What was read before the message came is not analyzed after it."""
    world = World(tmp_path)
    state = await begin(world)
    host = world.host()
    given: list[str] = []
    analyze = host.implementations["analyze_sources"]

    async def noting(request: Any) -> Any:
        given.extend(source.entry or source.url for source in request.sources)
        return await analyze(request)

    host.implementations["analyze_sources"] = noting
    run = ResearchRun(state, Inbox(), host)
    driver = Driver(run, SupervisorStrategy())
    await driver.step()
    await driver.step()
    known = state.sources[source_id(LOCKS)]
    run.steer("Leave locks out")
    await driver.step()
    assert given
    assert not {known.entry, known.url} & set(given)


def test_an_analyzers_gap_about_what_is_left_out_is_not_opened() -> None:
    """A model may miss it all the same: nobody wants to read that it is missing."""
    state = states.state(resolved=states.resolved(guidance_words=pack_words(guidance_words("en"))))
    node = states.sub_query("How old may a row be?", finding_count=0)
    state.plan = states.plan(node)
    run = ResearchRun(state, Inbox(), InProcessHost({}))
    run.steer("Leave locks out")
    drafts = [GapDraft(description="Nothing is said of locks."), GapDraft(description="Nothing is said of rows.")]
    merge(run, node, AnalysisOutput(gaps=drafts))
    assert [gap.description for gap in state.gaps] == ["Nothing is said of rows."]


def test_what_the_question_itself_asks_for_is_left_out_only_where_nothing_else_is_asked() -> None:
    """Of a query that asks for most of the question, naming the subject is no reason to leave it out."""
    state = states.state(exclusions=[Exclusion(subject="table locks", origin=PERSON)])
    words = ["vacuum", "freezing", "table", "locks"]
    state.resolved = states.resolved(question_words=words)
    assert why_left_out(state, "vacuum freezing and table locks") is None
    assert why_left_out(state, "table locks") == f"{LEFT_OUT}: table locks"
    assert why_left_out(state, "vacuum freezing") is None
    state.resolved = states.resolved(question_words=["vacuum", "freezing"])
    assert why_left_out(state, "vacuum freezing and table locks") == f"{LEFT_OUT}: table locks"
