"""Messages of people: what is checked before one is taken, what the sender learns, and what waiting costs."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reading import ReadingActivities
from activities.searching import SearchingActivities
from contracts import failures
from contracts.messages import CheckProvidersRequest, ReadRequest, SearchRequest
from contracts.outcome import Event
from contracts.plan import APPROVAL_PHRASE, Plan, PlanNode, Waiting, WaitKind
from contracts.request import Approve, Gates
from contracts.state import PeopleState, ResearchState, WorkState
from contracts.vocabulary import NodeStatus, Phase, RunStatus, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.messages import PersonMessages
from workflows.run import inbox
from workflows.run.context import page_after
from workflows.run.inbox import Inbox, Reply
from workflows.run.research_run import ResearchRun


def of_state(state: ResearchState, **inbox: bool) -> PersonMessages:
    made = PersonMessages()
    made._state = state
    for name, value in inbox.items():
        setattr(made._inbox, name, value)
    return made


def approving(approve: Approve = Approve.PLAN) -> PersonMessages:
    nodes = [PlanNode(id=f"sq-{number}", text=f"What about part {number}?") for number in range(2)]
    phrase = APPROVAL_PHRASE if approve is Approve.PHRASE else None
    waiting = Waiting(kind=WaitKind.APPROVAL, plan_version=2, phrase=phrase)
    resolved = states.resolved(gates=Gates(approve=approve))
    return of_state(
        ResearchState(
            work=WorkState(resolved=resolved, plan=Plan(version=2, nodes=nodes)), people=PeopleState(waiting=waiting)
        )
    )


def outlined() -> PersonMessages:
    made = approving()
    texts = {"outline": ["How", "Why"], "questions": ["Which?", "Since when?"], "assumptions": ["The newest."]}
    made._state.work.plan = made._state.work.plan.model_copy(update=texts)
    made._state.people.waiting = made._state.people.waiting.for_plan(made._state.work.plan)
    return made


def over() -> PersonMessages:
    return of_state(ResearchState(work=WorkState(resolved=states.resolved(), status=RunStatus.COMPLETED)))


def approved() -> PersonMessages:
    made = approving()
    made._state.people.waiting, made._state.people.approved_version = None, 2
    return made


def at_work(phase: str = "turn-1", approve: Approve = Approve.PLAN) -> PersonMessages:
    """Works by a plan with an outline, which is approved if it must be."""
    made = outlined()
    state = made._state
    state.work.resolved = states.resolved(gates=Gates(approve=approve))
    state.people.waiting, state.work.phase, state.work.status = None, phase, RunStatus.RUNNING
    state.people.approved_version = None if approve is Approve.NONE else 2
    return made


LARGE = [
    {"brief": "x", **{f"k{number}": 1 for number in range(9_000)}},
    {"sub_queries": [{"query": "a"}] * 9_000},
    {"brief": "x" * 64_000},
    [[["x"] * 30] * 30] * 100,
]


@pytest.mark.parametrize("revision", LARGE)
def test_a_large_message_is_refused_before_it_is_parsed(revision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size alone counts, at any depth and for keys, too: 200,000 unknown keys would hold up the run for seconds."""
    monkeypatch.setattr("workflows.run.inbox.PlanRevision", None)  # would fail if anything were parsed
    with pytest.raises(ApplicationError, match="larger than 64000 characters"):
        approving()._check_revision(revision, 2)


def clarifying() -> PersonMessages:
    waiting = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which?"], round=1)
    return of_state(ResearchState(people=PeopleState(waiting=waiting)))


def writing(phase: Phase, iteration: int) -> PersonMessages:
    return of_state(states.state(phase=phase, iteration=iteration))


PHRASE = approving(Approve.PHRASE)
NOTHING_SAID = "say what to look at, in 1 to 2000 characters"
TOO_LATE = "too late: the report is being written"


@pytest.mark.parametrize(
    ("run", "check", "arguments", "problem"),
    [
        (approving(), "approval", ["2"], "version: expected a whole number; the newest plan is version 2"),
        (approving(), "approval", [3], "version: 3 does not exist"),
        (PersonMessages(), "approval", [2], "the run is getting ready: send this again in a moment"),
        (approved(), "approval", [2], "plan: version 2 is approved already"),
        (over(), "approval", [2], "the run asks nothing now, it is completed"),
        (outlined(), "answers", [["a", "b", "c"]], "answers: 3 were given to 2 questions"),
        (outlined(), "revision", [{"outline": []}], "revision.outline: expected at least 1"),
        (approving(), "revision", [{"outline": ["x"]}], "revision.outline: the plan of this run has none"),
        (approved(), "revision", [{"brief": "x"}], "plan: version 2 is approved already; say what else to look for"),
        (at_work(phase=Phase.PLANNING), "revision", [{"brief": "x"}], "plan: a new version is being made"),
        (at_work(), "revision", [{"brief": "x"}, 1], "version: the plan is version 2 by now"),
        (at_work(), "approval", [2], "plan: version 2 is approved already"),
        (at_work(), "reply", ["x"], "the run asks nothing now, it is running"),
        (of_state(states.state(), closing=True), "revision", [{"brief": "x"}], TOO_LATE),
        (approved(), "answers", [["x"]], "the run asks nothing now, it is created"),
        (clarifying(), "answers", [["x" * 3_000]], "answers.0: longer than 2000 characters"),
        (clarifying(), "answers", [["x"], 2], "round: the questions of round 1 are open"),
        (approving(), "rejection", [7], "reason: expected a text"),
        (approving(), "reply", [""], "text: expected 1 to"),
        (approving(), "revision", [{"brief": "x"}, 1], "version: the plan is version 2 by now"),
        (approving(), "revision", [{}], "revision: expected either guidance, or parts of the plan: brief"),
        (approving(), "revision", [{"brief": "x", "plan": "x"}], "revision.plan: unknown key"),
        (approving(), "revision", ["   "], "revision.guidance: the text is empty"),
        (approving(), "revision", [{"sub_queries": []}], "revision.sub_queries: "),
        (approving(), "revision", [{"sub_queries": [{"text": "x"}]}], "revision.sub_queries.0.query: required"),
        (approving(), "revision", [{"sub_queries": ["?"]}], "revision.sub_queries.0.query: there are no words in it"),
        (approving(), "revision", [{"sub_queries": ["Why?", "why"]}], "revision.sub_queries.1.query: it repeats an"),
        (approving(), "revision", [{"sub_queries": list("abcdefghi")}], "revision.sub_queries: 9 were given"),
        (approving(), "steer", ["  \n"], NOTHING_SAID),
        (approving(), "steer", ["a" * 2_001], NOTHING_SAID),
        (writing(Phase.SYNTHESIS, 3), "steer", ["look at locks"], TOO_LATE),
        (of_state(ResearchState(work=WorkState(phase=Phase.SYNTHESIS))), "steer", ["look at locks"], TOO_LATE),
        (of_state(states.state(), closing=True), "steer", ["look at locks"], TOO_LATE),
    ],
)
def test_what_is_wrong_is_refused_at_once(run: PersonMessages, check: str, arguments: list[Any], problem: str) -> None:
    """A failure of the type that clients know: the field, what is wrong with it, and what would be accepted; an approval
    of a run that does not wait, was approved or is over is refused like one of an older version (S2-018, S2-042).
    """
    with pytest.raises(ApplicationError) as refused:
        getattr(run, f"_check_{check}")(*arguments)
    expected = failures.NOT_READY if "getting ready" in problem else failures.INVALID_REQUEST
    assert refused.value.type == expected
    assert refused.value.message.startswith(problem), refused.value.message
    assert run._inbox.replies == []


async def test_what_is_right_is_put_down_and_answered() -> None:
    """Each message of a wait, with what comes next; an edit is approved by the version that it makes."""
    run = approving()
    run._check_revision({"brief": "new"}, 2)
    assert "version 3 now" in await run.revise_plan({"brief": "new"}, 2)
    edited = run._inbox.replies[0].plan
    assert (edited.version, edited.brief, edited.nodes) == (3, "new", run._state.work.plan.nodes)
    run._check_approval(3)
    assert await run.approve_plan(3) == "approved: the run follows plan version 3"
    assert run._inbox.replies[1] == Reply(approved=3)
    with pytest.raises(ApplicationError, match="an earlier message is being taken up"):
        run._check_approval(3)
    other = approving()
    other._check_rejection("no")
    assert "its plan is kept" in await other.reject_plan("no")
    assert other._inbox.replies == [Reply(rejected="no")]
    asked = clarifying()
    asked._check_answers(["the second"], 1)
    assert await asked.answer_clarification(["the second"], 1) == "taken: the run goes on with your answers"
    assert asked._inbox.replies == [Reply(answers=["the second"])]
    PHRASE._check_approval(2, " “authorized to  execute”. ")  # compared as a person would


async def test_a_plan_with_headings_may_change_while_the_run_works_by_it() -> None:
    """What is changed first is what the next change is based on; all of it waits for one yes, which may come at once
    (C2-9).
    """
    run = at_work()
    changed = await run.revise_plan({"outline": ["Why"]}, 2)
    assert changed.startswith("taken: at its next step the run waits for the approval of plan version 3; until then")
    assert "plan version 4" in await run.revise_plan({"brief": "Shorter."}, 3)
    with pytest.raises(ApplicationError, match="version: 3 is older"):
        run._check_approval(3)
    dropped = at_work()
    await dropped.revise_plan({"outline": ["Why"]}, 2)
    assert await dropped.reject_plan("no") == "rejected: the run continues with the plan of before"
    assert "plan version 4" in await run.approve_plan(4)
    first, second, approval = run._inbox.replies
    assert (first.plan.outline, second.plan.outline, second.plan.brief) == (["Why"], ["Why"], "Shorter.")
    assert approval.approved == 4
    with pytest.raises(ApplicationError, match="an earlier message is being taken up"):
        run._check_revision({"brief": "Another."}, 4)
    free = at_work(approve=Approve.NONE)
    said = await free.revise_plan({"outline": ["Why"]}, 2)
    assert said == "taken: from its next step on the run goes by plan version 3"
    with pytest.raises(ApplicationError, match="the run asks nothing now"):
        free._check_approval(3)


def test_what_was_searched_stays_in_a_changed_plan() -> None:
    """Whether the person names it or not, and beyond the limit of queries, which counts those to search alone (C2-9)."""
    run = at_work()
    limit = run._state.resolution.limits.max_sub_queries
    done = [PlanNode(id=f"sq-{n}", text=f"Done {n}", status=NodeStatus.COMPLETED) for n in range(limit)]
    nodes = [*done, PlanNode(id="sq-p", text="Not yet")]
    run._state.work.plan = run._state.work.plan.model_copy(update={"nodes": nodes})
    queries = [*(node.text for node in done[1:]), *(f"New {n}" for n in range(limit))]
    changed = inbox.read_revision(run._state, [], {"sub_queries": queries}).plan
    assert [node.text for node in changed.nodes] == [done[0].text, *queries]
    assert [node.status for node in changed.nodes[:limit]] == [NodeStatus.COMPLETED] * limit
    with pytest.raises(inbox.Unacceptable, match=f"{limit + 1} were given; at most {limit}"):
        inbox.read_revision(run._state, [], {"sub_queries": [*queries, "One more"]})


async def test_words_are_taken_until_the_last_report_is_written() -> None:
    """Without the space around them; they are for the next phase, also while an earlier report is being written."""
    for run in (writing(Phase.SYNTHESIS, 2), writing(Phase.ANALYSIS, 3), of_state(ResearchState())):
        run._check_steer("a" * 2_000)
        assert (await run.steer("  look at locks ")).startswith("taken")
        assert run._inbox.steering == ["look at locks"]


async def test_a_word_while_a_plan_waits_makes_another_plan() -> None:
    """Steering and replying are guidance for the planner then; while a question waits a reply answers it."""
    for send in (PersonMessages.steer, PersonMessages.reply):
        run = approving()
        assert "the planner makes version 3" in await send(run, "look at locks")
        assert (run._inbox.replies, run._inbox.steering) == ([Reply(guidance="look at locks")], [])
    asked = clarifying()
    await asked.reply("the second")
    await asked.steer("look at locks")
    assert (asked._inbox.replies, asked._inbox.steering) == ([Reply(answers=["the second"])], ["look at locks"])


async def test_activities_refuse_what_has_no_permission() -> None:
    """Search, reading and a look at providers: refused before anything is asked, and not tried again (X-2)."""

    async def asked(*_: object) -> Any:
        raise AssertionError("somebody was asked")

    searching = SearchingActivities({}, asked, None, None)  # type: ignore[arg-type]
    reading = ReadingActivities(None, None, asked, None)  # type: ignore[arg-type]
    for work, argument in (
        (searching.search, SearchRequest(research_id="r", operation="o", provider="p", text="x")),
        (reading.read_source, ReadRequest(source_id="s", url="https://a.test/")),
        (searching.check_providers, CheckProvidersRequest(research_id="r", providers=["p"])),
    ):
        with pytest.raises(ApplicationError) as refused:
            await ActivityEnvironment().run(work, argument)  # type: ignore[arg-type]
        assert (refused.value.type, refused.value.non_retryable) == (failures.NOT_PERMITTED, True)


async def test_the_alarm_of_the_deadline_moves_with_new_limits_once() -> None:
    """Limits are fixed once, and the alarm is set again for them."""
    state, host, inbox = ResearchState(work=WorkState(resolved=states.resolved())), InProcessHost({}), Inbox()
    limits = state.resolution.limits
    state.clock.clock_started_at = host.now().timestamp()
    state.clock.deadline_at = state.clock.clock_started_at + limits.deadline_seconds
    run = ResearchRun(state, inbox, host)
    run.clock.set_alarm()
    work = limits.deadline_seconds - limits.reserve_seconds
    assert run.clock.remaining_work_seconds() == work
    longer = limits.model_copy(update={"deadline_seconds": limits.deadline_seconds + 100})
    state.work.resolved = run.resolved.model_copy(update={"choices": {"extended": longer}})
    run.choose_limits("extended")
    run.choose_limits("extended")
    assert run.clock.remaining_work_seconds() == work + 100
    await host.advance(0)  # the alarm sleeps
    await host.advance(work)
    assert inbox.interruption is None
    await host.advance(100)
    assert inbox.interruption is StopReason.BUDGET_TIME
    run.clock.cancel_alarm()


def test_events_come_in_pages() -> None:
    """What comes after a number, at most a page, with the number to ask on from."""
    events = [Event(seq=seq, type="status", text=str(seq), time="2026-11-21T12:00:00Z") for seq in range(3, 2_000)]
    state = states.state(events=events)
    assert [event.seq for event in page_after(state, 1_997).events] == [1_998, 1_999]
    assert [page_after(state, after).next for after in (1_997, 1_999)] == [1_999, 1_999]
    assert [page_after(states.state(), after).next for after in (-2, 0)] == [0, 0]
    page = page_after(state, 0)
    assert page.next == page.events[-1].seq < 1_999
