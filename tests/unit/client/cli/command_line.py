"""The `research` command inside a test, and stored runs for it to read."""

import asyncio
import re
from pathlib import Path

from typer.testing import CliRunner, Result

from client.cli.app import app
from contracts.evidence import DocumentRef
from contracts.state import ResearchState
from providers.storage.content import ObstoreContentStore
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import Records


def research(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env=variables)


def save_run(home: Path, research_id: str, state: ResearchState, *, closed: bool) -> None:
    """Store the session of a run, as a worker does."""
    asyncio.run(store_run(home, research_id, state, closed=closed))


async def store_run(home: Path, research_id: str, state: ResearchState, *, closed: bool) -> None:
    """Do the same in a test that has a loop."""
    sessions = RecordSessionStore(Records(home, SESSIONS))
    await sessions.save(research_id, state.model_dump_json(), closed=closed)


def make_old(home: Path, research_id: str) -> None:
    """Let the session of a run be saved long ago."""
    record = home / "sessions" / f"{research_id}.json"
    record.write_text(re.sub('"saved_at": "[0-9]{4}', '"saved_at": "2019', record.read_text(), count=1))


def put_text(home: Path, text: str) -> DocumentRef:
    return asyncio.run(ObstoreContentStore(home / "content").put_text(text))
