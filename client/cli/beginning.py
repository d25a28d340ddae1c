"""How a run begins: anew, joined, gone on with, or over already and only printed."""

from dataclasses import dataclass
from typing import Final

from client.cli import stored
from client.cli.context import CommandContext
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError
from client.errors import NoWorker, RunUnknown, WorkerStuck
from client.handle import ResearchClient, ResearchHandle, Reuse, shown_question
from contracts.identity import normalized_text
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import Outcome

JOINED: Final = "joined"


@dataclass(frozen=True)
class Beginning:
    """A handle on what goes on."""

    handle: ResearchHandle
    how: str
    """`started`, `joined` or `resumed`."""


@dataclass(frozen=True)
class RunStanding:
    """What is known of a run before a command works for it."""

    state: ResearchState | None
    """Its newest checkpoint."""
    going_on: bool
    """Whether the engine has it open."""
    question: str | None
    """As the record or else the engine keeps it."""

    @property
    def resolved(self) -> ResolvedResearch | None:
        """What the run was given, as far as it is stored."""
        return None if self.state is None else self.state.resolved


async def standing(context: CommandContext, research_id: str) -> RunStanding:
    """Look the run up in the record and, if an engine runs, there."""
    state = await context.stored_state(research_id)
    client = await context.client_if_running()
    handle = None if client is None else client.handle(research_id)
    going_on = handle is not None and await _is_running(handle)
    if state is not None and state.resolved is not None:
        return RunStanding(state, going_on, state.resolved.query)
    return RunStanding(state, going_on, await handle.question() if handle is not None and going_on else None)


async def finished(context: CommandContext, request: ResearchRequest, research_id: str) -> ResearchResult | None:
    """The stored result if the run of this id is complete. Raises `CommandError` for another question or tenant."""
    state = await context.stored_state(research_id)
    if state is None or state.resolved is None or state.result is None:
        return None
    check_tenant(request.tenant, state.resolved.tenant, research_id)
    check_question(request.query, state.resolved.query, research_id)
    return state.result if state.result.outcome is Outcome.COMPLETED else None


async def begin(
    context: CommandContext, client: ResearchClient, request: ResearchRequest, research_id: str
) -> Beginning:
    """Start, join or resume the run of this id.

    Raises `CommandError` when the id belongs to another question or another tenant.
    """
    handle = client.handle(research_id)
    state = await context.stored_state(research_id)
    if await _is_running(handle):
        check_tenant(request.tenant, await handle.tenant(), research_id)
        check_question(request.query, await _running_question(handle, state), research_id)
        return Beginning(handle, JOINED)
    if state is None or state.resolved is None:
        return Beginning(await client.start(request, research_id, reuse=Reuse.AFTER_ANY), "started")
    check_tenant(request.tenant, state.resolved.tenant, research_id)
    check_question(request.query, state.resolved.query, research_id)
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
    """The question of a running run; null where nobody can tell it."""
    if state is not None and state.resolved is not None:
        return state.resolved.query
    try:
        return await handle.question() or (await handle.status()).query
    except (NoWorker, WorkerStuck):
        return None


def check_tenant(asking: str, known: str | None, research_id: str) -> None:
    """Raise `CommandError` where an id is known to be another tenant's."""
    if known is not None and known != asking:
        raise CommandError(f"the id {research_id} cannot be used; leave --id out for a new run", ExitCode.USAGE)


def check_question(asked: str, known: str | None, research_id: str) -> None:
    """Raise `CommandError` where an id is known for another question."""
    if known is None:
        return
    if normalized_text(asked) != normalized_text(known) and shown_question(asked) != known:
        raise CommandError(
            f"the id {research_id} belongs to another question; leave --id out for a new run", ExitCode.USAGE
        )
