"""One question to one folder, by a whole run without a model: all units and real activities, but no server."""

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.state import ResearchState
from contracts.vocabulary import Outcome
from providers.extractive.brief_text import BriefWords
from providers.language_words import KNOWN_LANGUAGES
from providers.search.corpus import CorpusLibrary
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

HEADINGS = "|".join(re.escape(BriefWords(language)["short_answer"]) for language in KNOWN_LANGUAGES)
"""The heading of the short answer in every language that has one."""


@dataclass(frozen=True)
class Answer:
    """What a person gets."""

    markdown: str
    outcome: Outcome
    findings: int
    seconds: float
    """Processor time."""
    document: str = ""
    """The report as JSON."""

    @property
    def short(self) -> str:
        """The section "Short answer", plain; empty where there is none."""
        return short_answer(self.markdown)


async def answer(library: CorpusLibrary, corpus: str, question: str) -> Answer:
    """Run from the request to the report, in a world of its own: nothing is left over from another question."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        world = World(Path(folder), library)
        host = world.host()
        request = ResearchRequest(query=question, corpus=corpus)
        prepared = await host.implementations["prepare_research"](
            PrepareRequest(research_id="r-benchmark", request_json=request.model_dump_json())
        )
        state = ResearchState(
            resolved=prepared.resolved, resolved_entry=prepared.resolved_entry, started_at=host.now().isoformat()
        )
        state.clock_started_at = host.now().timestamp()
        state.deadline_at = state.clock_started_at + prepared.resolved.limits.deadline_seconds
        outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
        assert state.result is not None
        assert state.result.files is not None, outcome
        markdown = await world.content.get_text(state.result.files.markdown)
        document = await world.content.get_text(state.result.files.json_document)
        await world.close()
    return Answer(markdown, outcome, len(state.findings), time.process_time() - begun, document)


def plain(text: str) -> str:
    """A text for comparing: no signs of quoting or escaping, and one space for every gap."""
    return re.sub(r"\s+", " ", re.sub(r"[>\\]", "", text))


def short_answer(markdown: str) -> str:
    """The section "Short answer" of a report, plain; empty where there is none."""
    section = re.search(rf"^## (?:{HEADINGS})$(.*?)(?=^## |\Z)", markdown, re.DOTALL | re.MULTILINE)
    return plain(section[1]).strip() if section else ""
