"""What `research report` gives of a run that ended before its report was finished."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client.cli.command_context import result_of
from client.cli.command_errors import CommandError
from client.cli.show import _documents
from contracts.state import ResearchState
from contracts.vocabulary import RunStatus
from providers.storage.content import ObstoreContentStore
from tests.fakes import states


def context_of(state: ResearchState, content: ObstoreContentStore) -> Any:
    """What the command reads, with no server running."""

    async def nothing(*_: object) -> None:
        return None

    async def no_documents(*_: object) -> dict[str, bytes]:
        return {}

    async def stored(*_: object) -> ResearchState:
        return state

    async def stored_result(research_id: str) -> object:
        return result_of(research_id, state)

    return SimpleNamespace(
        client_if_running=nothing,
        stored_result=stored_result,
        stored_state=stored,
        report_documents=no_documents,
        stores=SimpleNamespace(content=content),
    )


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.TIMED_OUT, RunStatus.RUNNING])
async def test_the_last_draft_is_given_and_marked_as_what_it_is(tmp_path: Path, status: RunStatus) -> None:
    """Cancelled, aborted or interrupted: the text is there, its first line says what it is and how to finish it."""
    content = ObstoreContentStore(tmp_path)
    document = await content.put_text("# Answer\n\nSo it is.\n", "text/markdown")
    state = states.state(status=status, draft=states.draft(document=document))
    text = (await _documents(context_of(state, content), "r-1"))["md"].decode()
    first, _, rest = text.partition("\n\n")
    assert first.startswith("> **Draft:** the run ")
    assert "`research resume r-1 --now`" in first
    assert rest == "# Answer\n\nSo it is.\n"


async def test_without_a_draft_the_command_says_how_to_go_on(tmp_path: Path) -> None:
    """There is nothing to give out."""
    state = states.state(status=RunStatus.CANCELLED)
    with pytest.raises(CommandError, match="research resume r-1"):
        await _documents(context_of(state, ObstoreContentStore(tmp_path)), "r-1")
