"""What any client of the server can send to a run that is under way, and what becomes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.service import RPCError

from client.cli.context import list_runs
from client.handle import ResearchClient
from contracts import names
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until

pytestmark = pytest.mark.integration

WAITING = {"query": QUESTION, "corpus": "manual", "gates": {"approve": "plan"}}
LONGEST_ANSWER = 60.0
SHOWN_SECONDS = 60.0
"""Until the server lists a run that was started."""


def raw(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    """A payload in bytes, such as no client library would write it."""
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


MALFORMED: dict[str, list[Any]] = {
    "no JSON": [raw(b"{")],
    "no text": [raw(b"\xff\xfe")],
    "an unknown encoding": [raw(b"x", b"binary/encrypted")],
    "no encoding": [RawValue(Payload(data=b"x"))],
    "half a character": [raw(b'"\\ud800"')],
    "no number": [raw(b"NaN")],
    "endless digits": [raw(b"9" * 10_000)],
    "a huge number": [raw(b"1e400")],
    "a number": [3],
    "bytes": [b"\x00\xff"],
    "a list without end": [raw(b"[" * 50_000 + b"]" * 50_000)],
    "a deep list": [raw(b"[" * 150 + b"]" * 150)],
    "fifty arguments": list(range(50)),
    "names of Python": [{"__class__": "os.system", "sub_queries": [{"query": "x", "__dict__": {}}]}, 1],
    "a million characters": ["x" * 1_000_000],
    "sixty thousand sub-queries": [raw(b'{"sub_queries": [' + b'{"query": "x"},' * 60_000 + b'{"query": "y"}]}'), 1],
}
UPDATES = (
    *(names.STEER, names.ANSWER_CLARIFICATION, names.REPLY, names.REVISE_PLAN, names.APPROVE_PLAN, names.REJECT_PLAN),
    *("no such update", "__init__", "_take", "\x1b[2J" * 100),
)
QUERIES = (
    names.STATUS,
    names.PLAN,
    names.EVENTS,
    names.SESSION,
    names.SOURCES,
    names.DECISIONS,
    names.REPORT,
    "nothing",
)


async def failed_tasks(handle: WorkflowHandle[Any, Any]) -> int:
    kind = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    return sum([event.event_type == kind async for event in handle.fetch_history_events()])


async def goes_on(handle: WorkflowHandle[Any, ResearchResult]) -> ResearchResult:
    """Approve the plan of the beginning and wait for the report."""
    status = await until(handle, lambda status: True)
    assert status.waiting is not None
    await handle.execute_update(names.APPROVE_PLAN, 1)
    return await handle.result()


@pytest.mark.soak
async def test_malformed_updates_are_refused_and_change_nothing(client: Client, tmp_path: Path) -> None:
    """Each is answered with a refusal in some seconds, no workflow task fails, and the plan that waits is the same."""
    async with running_workers(client, World(tmp_path)):
        handle = await start(client, WAITING)
        await until(handle, lambda status: status.waiting is not None)
        for update in UPDATES:
            for kind, arguments in MALFORMED.items():
                work = handle.execute_update(update, args=arguments)
                (refusal,) = await asyncio.gather(asyncio.wait_for(work, LONGEST_ANSWER), return_exceptions=True)
                assert isinstance(refusal, (WorkflowUpdateFailedError, RPCError)), (update, kind, refusal)
        failed = await failed_tasks(handle)
        result = await goes_on(handle)
    assert failed == 0
    assert result.outcome is Outcome.COMPLETED


async def test_malformed_queries_and_unknown_signals_do_no_harm(client: Client, tmp_path: Path) -> None:
    """A query is answered or fails, a signal is ignored; no workflow task fails, and the run goes on."""
    async with running_workers(client, World(tmp_path)):
        handle = await start(client, WAITING)
        await until(handle, lambda status: status.waiting is not None)
        failures = dict.fromkeys(QUERIES, 0)
        for query in QUERIES:
            for arguments in MALFORMED.values():
                try:
                    await asyncio.wait_for(handle.query(query, args=arguments), LONGEST_ANSWER)
                except (WorkflowQueryFailedError, RPCError):
                    failures[query] += 1
        for signal in ("nothing", names.STEER):
            for arguments in MALFORMED.values():
                await handle.signal(signal, args=arguments)
        failed = await failed_tasks(handle)
        result = await goes_on(handle)
    assert failures["nothing"] == len(MALFORMED)
    assert failures[names.EVENTS] >= len(MALFORMED) - 2, "a number or several are understood"
    assert failed == 0
    assert result.outcome is Outcome.COMPLETED


FORGED_MEMOS: dict[str, dict[str, Any]] = {
    "signs": {names.QUESTION_MEMO: "\x1b]0;owned\x07\x1b[2J", names.OUTCOME_MEMO: "\x1b[31m"},
    "kinds": {names.QUESTION_MEMO: 17, names.OUTCOME_MEMO: {"a": [1]}},
    "lists": {names.QUESTION_MEMO: [[["x"]]], names.OUTCOME_MEMO: None, "more": b"\xff"},
    "size": {names.QUESTION_MEMO: "x" * 200_000},
}
FORGED_IDS = ("two\nlines", "\x1b[31mred", "\u202egnp", "../../x", "x" * 999)


async def test_a_list_of_forged_runs_has_its_ids_and_short_questions(client: Client) -> None:
    """Memos of any kind and size are read as far as they are questions; an id that is none is not listed."""
    handles = [
        await start(client, {"query": "q" * 50_000}, id=f"forged-{kind}", memo=memo)
        for kind, memo in FORGED_MEMOS.items()
    ]
    handles += [await start(client, {"query": "x"}, id=forged) for forged in FORGED_IDS]
    try:
        async with asyncio.timeout(SHOWN_SECONDS):
            while (
                len(
                    listed := [
                        run for run in (await list_runs(ResearchClient(client))).runs if "forged" in run.research_id
                    ]
                )
                < 4
            ):
                await asyncio.sleep(0.1)
        ids = {run.research_id for run in (await list_runs(ResearchClient(client))).runs}
        questions = [await ResearchClient(client).handle(run.research_id).question() for run in listed]
    finally:
        for handle in handles:
            await handle.terminate()
    assert ids.isdisjoint(FORGED_IDS)
    assert max(len(run.question) for run in listed) == names.MEMO_CHARACTERS
    assert questions == [None] * len(FORGED_MEMOS)
