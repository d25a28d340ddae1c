"""A process that takes tool turns and is killed in one of them: paid and in the journal, and nobody heard of it.

`python -m tests.fakes.turn_taker FOLDER ADDRESS DIES_AT` goes on with the run whose state is in `FOLDER/state`.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from contracts import strategies
from contracts.evidence import DocumentRef
from contracts.state import ResearchState
from contracts.tool_turns import TurnResult
from providers.storage.content import ObstoreContentStore
from tests.fakes.world import World, model_world
from tests.toy.asker import ASKER, ASKING, HAND_OVER, AskerInput, answer
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

STATE = "state"


async def converse(run: ResearchRun, most: int = 6) -> list[TurnResult]:
    """Turn after turn until it hands over."""
    turns = [await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))]
    while len(turns) < most and not any(call.name == HAND_OVER.name for call in turns[-1].calls):
        request = AskerInput(transcript=turns[-1].transcript, answers=[answer(call) for call in turns[-1].calls])
        turns.append(await run.turn(ASKER, f"ask/{len(turns) + 1}", request))
    return turns


class Deadly(ObstoreContentStore):
    """A content store in which the process dies when it is to keep the transcript of one turn."""

    dies_at = 0

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        if text.startswith('{"opening"'):
            self.dies_at -= 1
            if not self.dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return await super().put_text(text, media_type)


async def go_on(world: World, folder: Path) -> list[TurnResult]:
    """The turns of the stored run, from the beginning: what is answered already is taken from the journal."""
    state = ResearchState.unpack((folder / STATE).read_text(encoding="utf-8"))
    return await converse(ResearchRun(state, Inbox(), world.host()))


async def _main(folder: Path, address: str, dies_at: int) -> None:
    strategies.declare(ASKING)
    world = model_world(folder, address)
    world.content = Deadly(folder / "content")
    world.content.dies_at = dies_at
    await go_on(world, folder)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
