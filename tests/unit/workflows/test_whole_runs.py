"""Everything that leaves a run, against recorded files: `python -m tests.unit.workflows.test_whole_runs` records.

A field that is dropped, zeroed or confused on its way from the state to a role, a call, an event or the report changes
one of them. Read the difference before you record.
"""

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from contracts.sources import SearchHit
from contracts.state import ResearchState
from tests.fakes.corpus import MANUAL, MemoryCorpus
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_request import ModelRequest
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.activity_options import CallOptions
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.run.web_ui_details import details_markdown
from workflows.run_status import status_of
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

FOLDER = Path(__file__).parent / "whole_runs"
CANARY = "c0ffee" * 4
MARK = re.compile(r'Below, names of elements of data end in "-(\w+)", and their lines begin with "(\w+)¦"\.')
STYLE = re.compile(r"(?<=<style>).*?(?=</style>)", re.DOTALL)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[:.+\dZ]*(?: UTC)?|20(?:2[6-9]|[3-9]\d)-\d\d-\d\d(?!\.\d)")
"""Also a day alone, on which a source was read, but no version of a prompt."""
FORMS = re.compile(r'("report\.(?:md|html)": )"sha256:[0-9a-f]{64}"')
"""Hashes of files with moments in them."""
WISHES = {
    "system_prompt": "Write for people who run databases.",
    "context": [{"question": "What is a transaction?", "answer": "All or nothing."}],
    "output": {"target_words": 700},
    "limits": {"max_iterations": 2, "max_sub_queries": 2},
}


class DescribedCorpus(MemoryCorpus):
    """Its hits say what they are about."""

    def _hit(self, path: str, rank: int) -> SearchHit:
        hit = super()._hit(path, rank)
        return hit.model_copy(update={"snippet": f"About {hit.title} {MANUAL[path].splitlines()[-1]}"})


class NotingHost(InProcessHost):
    """Keeps how each activity was scheduled."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.note_entry: list[str] = []

    async def _run(self, activity: str, argument: Any, options: CallOptions) -> Any:
        self.note_entry.append(f"{activity}: {options}".replace("datetime.timedelta", ""))
        return await super()._run(activity, argument, options)


def plain_prompt(text: str) -> str:
    """A prompt whose marks are the same whatever is in it, so that a small change makes a small difference."""
    for mark, sign in MARK.findall(text):
        text = text.replace(f"-{mark}", "-mark").replace(f"{sign}¦", "¦")
    return text.rstrip()


def requests_as_text(requests: list[ModelRequest]) -> str:
    """The requests by role; the parts that never differ are shown with a role's first one."""
    parts = []
    for role in sorted({request.role for request in requests}):
        asked = sorted((one for one in requests if one.role == role), key=lambda one: plain_prompt(one.prompt))
        body = {name: value for name, value in asked[0].body.items() if name not in ("system", "messages")}
        parts.append(f"# {role}: {len(asked)} requests\n\n{json.dumps(body, ensure_ascii=False)}\n\n{asked[0].system}")
        parts += [f"## {role}, {number}\n\n{plain_prompt(one.prompt)}" for number, one in enumerate(asked, start=1)]
        assert {one.system for one in asked} == {asked[0].system}
    return "\n\n".join(parts) + "\n"


async def conducted(world: World, wishes: dict[str, Any], api: MessagesApi | None = None) -> dict[str, str]:
    """A run to its end, and everything that left it, by file name."""
    state: ResearchState = await begin(world, **wishes)
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update={"canary": CANARY})
    host = NotingHost(world.host().implementations)
    await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
    assert state.result is not None
    assert state.result.files is not None
    files = state.result.files
    kept = {
        "report.md": await world.content.get_text(files.markdown),
        "report.json": await world.content.get_text(files.json_document),
        "report.html": STYLE.sub("", await world.content.get_text(files.html)),
        # Analyses run side by side, so what they tell has no order; how many checkpoints become one is chance.
        "calls.txt": "\n".join(sorted({call for call in host.note_entry if not call.startswith("save_session")}))
        + "\n",
        "events.txt": "\n".join(sorted(f"{one.type}: {one.text} {json.dumps(one.data)}" for one in state.events))
        + "\n",
        "result.json": state.result.model_dump_json(indent=1, exclude={"report", "report_ref", "files"}) + "\n",
    }
    now = host.now().timestamp()
    kept["status.json"] = status_of(state, now).model_dump_json(indent=1, exclude={"egress"}) + "\n"
    kept["details.md"] = details_markdown(state, now) + "\n"
    if api is not None:
        kept["requests.txt"] = requests_as_text(api.requests)
    return {name: FORMS.sub(r'\1"HASH"', MOMENT.sub("MOMENT", text)) for name, text in kept.items()}


async def demanding(folder: Path) -> dict[str, str]:
    """A model that makes its plan twice, finds a contradiction and wants another round."""
    async with MessagesApi("demanding") as api:
        world = model_world(folder, api.base_url, DescribedCorpus())
        kept = await conducted(world, WISHES, api)
        await world.close()
    return kept


async def extractive(folder: Path) -> dict[str, str]:
    """No model."""
    world = World(folder, DescribedCorpus())
    kept = await conducted(world, {})
    await world.close()
    return kept


RUNS = {"demanding": demanding, "extractive": extractive}


@pytest.mark.parametrize("name", RUNS)
async def test_what_leaves_a_run_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    """Requests, calls, events, result and reports are, word for word, what they were when somebody read them."""
    made = await RUNS[name](tmp_path)
    recorded = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / name).iterdir()}
    assert made.keys() == recorded.keys()
    for file, text in made.items():
        assert text.splitlines() == recorded[file].splitlines(), file


if __name__ == "__main__":
    for run, conduct in RUNS.items():
        with tempfile.TemporaryDirectory() as place:
            produced = asyncio.run(conduct(Path(place)))
        (FOLDER / run).mkdir(parents=True, exist_ok=True)
        for file_name, content in produced.items():
            (FOLDER / run / file_name).write_text(content, encoding="utf-8")
