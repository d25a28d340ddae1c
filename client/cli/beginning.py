"""How a run begins: anew, joined, gone on with, or over already and only printed."""

from dataclasses import dataclass

from client.cli import stored
from client.cli.desk import Desk
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError
from client.errors import NoWorker, RunUnknown, WorkerStuck
from client.handle import ResearchClient, ResearchHandle, Reuse, static_summary
from contracts.identity import normalized_text
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import Outcome


@dataclass(frozen=True)
class Beginning:
    """A handle on what goes on."""

    handle: ResearchHandle
    how: str
    """`started`, `joined` or `resumed`."""


async def finished(desk: Desk, request: ResearchRequest, research_id: str) -> ResearchResult | None:
    """The stored result if the run of this id is complete. Raises `CommandError` for another question."""
    state = await desk.stored_state(research_id)
    if state is None or state.resolved is None or state.result is None:
        return None
    _check_question(request.query, state.resolved.query, research_id)
    return state.result if state.result.outcome is Outcome.COMPLETED else None


async def begin(desk: Desk, client: ResearchClient, request: ResearchRequest, research_id: str) -> Beginning:
    """Start, join or resume the run of this id.

    Raises `CommandError` when the id belongs to another question.
    """
    handle = client.handle(research_id)
    state = await desk.stored_state(research_id)
    if await _is_running(handle):
        _check_question(request.query, await _running_question(handle, state), research_id)
        return Beginning(handle, "joined")
    if state is None or state.resolved is None:
        return Beginning(await client.start(request, research_id, reuse=Reuse.AFTER_ANY), "started")
    _check_question(request.query, state.resolved.query, research_id)
    resumed = await client.resume(request, research_id, after=stored.last_outcome(state))
    return Beginning(resumed, "resumed")


def request_again(resolved: ResolvedResearch) -> ResearchRequest:
    """What a resumed run is asked: the same question; everything else is kept in its stored resolution."""
    return ResearchRequest(query=resolved.query, tenant=resolved.tenant, priority=resolved.priority)


async def _is_running(handle: ResearchHandle) -> bool:
    try:
        return await handle.is_running()
    except RunUnknown:
        return False


async def _running_question(handle: ResearchHandle, state: ResearchState | None) -> str | None:
    """The whole question of a running run; only its beginning when no worker answers."""
    if state is not None and state.resolved is not None:
        return state.resolved.query
    try:
        return (await handle.status()).query or await handle.question()
    except (NoWorker, WorkerStuck):
        return await handle.question()


def _check_question(asked: str, known: str | None, research_id: str) -> None:
    if known is None:
        return
    if normalized_text(asked) != normalized_text(known) and static_summary(asked) != known:
        raise CommandError(
            f"the id {research_id} belongs to another question; leave --id out for a new run", ExitCode.USAGE
        )
