"""The entry workflow without a server: what it takes as words to go by, and what it says of a failed beginning."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from contracts import failures
from contracts.outcome import Event
from contracts.vocabulary import Phase
from tests.fakes import states
from tests.fakes.host import activity_error
from workflows.deep_research import DeepResearchWorkflow
from workflows.run.calls import describe_unstarted, explain, is_cancelled, is_given_up, is_outage, reason_of
from workflows.run.context import page_after


def workflow_in(phase: Phase | None, iteration: int = 1, *, resolved: bool = True, closing: bool = False) -> Any:
    """A run of three iterations at most that stands somewhere."""
    entry = DeepResearchWorkflow()
    entry._state = states.state(phase=phase, iteration=iteration, **({} if resolved else {"resolved": None}))
    entry._inbox.closing = closing
    return entry


@pytest.mark.parametrize("words", ["", "  \n", "a" * 2_001, b"look", 5, None])
def test_words_that_are_none_are_refused(words: object) -> None:
    """Nothing, too much, or no text: refused, with what would be taken."""
    with pytest.raises(ApplicationError) as caught:
        workflow_in(Phase.GATHERING)._check_steer(words)
    assert (caught.value.message, caught.value.type) == (
        "say what to look at, in 1 to 2000 characters",
        failures.INVALID_REQUEST,
    )


async def test_words_are_taken_without_the_space_around_them() -> None:
    """Up to the last character; the answer says who will hear them."""
    entry = workflow_in(Phase.GATHERING)
    entry._check_steer("a" * 2_000)
    assert (await entry.steer("  look at locks ")).startswith("taken")
    assert entry._inbox.steering == ["look at locks"]


@pytest.mark.parametrize(
    ("entry", "late"),
    [
        (workflow_in(Phase.SYNTHESIS, 3), True),
        (workflow_in(Phase.SYNTHESIS, 2), False),
        (workflow_in(Phase.ANALYSIS, 3), False),
        (workflow_in(Phase.GATHERING, closing=True), True),
        (workflow_in(None, resolved=False), False),
        (workflow_in(Phase.SYNTHESIS, resolved=False), True),
    ],
    ids=["last report", "another report", "last analysis", "closing", "not begun", "unresolved"],
)
def test_words_come_too_late_for_the_last_report(entry: Any, late: bool) -> None:
    """Once the last report is being written nothing can go by them."""
    entry._state = entry._state if entry._state.resolved is None else with_iterations(entry._state, 3)
    if not late:
        entry._check_steer("look at locks")
        return
    with pytest.raises(ApplicationError, match="too late: the report is being written") as caught:
        entry._check_steer("look at locks")
    assert caught.value.type == failures.INVALID_REQUEST


def with_iterations(state: Any, most: int) -> Any:
    """The state of a run of so many iterations at most."""
    limits = state.resolved.limits.model_copy(update={"max_iterations": most})
    state.resolved = state.resolved.model_copy(update={"limits": limits})
    return state


@pytest.mark.parametrize(
    ("activity", "kind", "pool"),
    [
        ("prepare_research", TimeoutType.SCHEDULE_TO_START, "records"),
        ("prepare_research", TimeoutType.SCHEDULE_TO_CLOSE, "records"),
        ("check_providers", TimeoutType.SCHEDULE_TO_CLOSE, "search"),
        ("check_providers", TimeoutType.START_TO_CLOSE, None),
    ],
)
def test_a_pool_without_workers_is_named(activity: str, kind: TimeoutType, pool: str | None) -> None:
    """What nobody took names the pool and both ways to start it; other timeouts are told as they are."""
    cause = ActivityTimeout("too late", type=kind, last_heartbeat_details=[])
    told = describe_unstarted(activity_error(activity, cause))
    if pool is None:
        assert told == "too late"
        return
    assert told == (
        f"no worker of the pool {pool} took the run's first work before its deadline: start one with "
        f"`research serve` (this machine) or `research worker --pool {pool}` (a cluster), and ask again"
    )


@pytest.mark.parametrize(
    ("cause", "reason", "outage", "given_up"),
    [
        (ApplicationError("x", {"kind": "not_found"}, type="SourceUnreadable"), "not_found", False, False),
        (ApplicationError("x", type=failures.STORAGE_FULL), failures.STORAGE_FULL, True, False),
        (ApplicationError("x", "words", type=failures.WORKER_LOST), failures.WORKER_LOST, False, True),
        (ApplicationError("x"), "failed", False, False),
        (ActivityTimeout("x", type=None, last_heartbeat_details=[]), "TimeoutError", True, False),
    ],
)
def test_a_failure_has_a_short_reason(cause: Any, reason: str, outage: bool, given_up: bool) -> None:
    """The kind of an unreadable source, else the type of the failure."""
    error = activity_error("any", cause)
    assert (reason_of(error), is_outage(error), is_given_up(error)) == (reason, outage, given_up)
    assert not is_cancelled(error)


def test_a_failure_is_explained_in_words() -> None:
    """No type name of the code where there are words for it."""
    rejected = activity_error("any", ApplicationError("401", type=failures.MODEL_REJECTED))
    assert explain(rejected) == "the model's endpoint refused the call"
    assert explain(activity_error("any", ApplicationError("x", {"kind": "not_found"}, type="Odd"))) == "not_found"


def test_events_come_in_pages() -> None:
    """What comes after a number, at most a page, with the number to ask on from."""
    events = [Event(seq=number, type="status", text=str(number), time="2026-11-21T12:00:00Z") for number in (3, 4, 5)]
    state = states.state(events=events)
    assert [(event.seq, page_after(state, 3).next) for event in page_after(state, 3).events] == [(4, 5), (5, 5)]
    assert (page_after(state, 5).events, page_after(state, 5).next) == ([], 5)
    assert (page_after(states.state(), -2).next, page_after(states.state(), 0).next) == (0, 0)
    many = states.state(events=[events[0].model_copy(update={"seq": number}) for number in range(1, 2_000)])
    page = page_after(many, 0)
    assert page.next == len(page.events) < 1_999
