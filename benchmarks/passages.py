"""Measure the passages that a run without a model shows: whole runs over real manuals.

    python -m benchmarks.passages [SET …] [--only COLLECTION …] [--home DIR] [--out FILE.json] [--semantic] [--verbose]

Sets are the folders of `short_questions` (each question with patterns of an expected passage) and `facts` (questions
with a list of facts). Printed by set and by collection:

- hit@k: an expected passage, one that has all patterns of the question, is among the first k passages
- empty: unanswerable questions whose run ended `empty`
- facts in the first 200 words, and in the whole brief
- processor time of a question, from the request to the report

With `--semantic` passages are ranked by closeness of meaning, too, where a question is written in Latin letters.

The README names the Debian packages that hold the collections. To measure another commit, run
this file with the interpreter of that commit from its folder: `cd OTHER && .venv/bin/python THIS_FILE`.
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from activities.preparation import ResearchConfiguration
from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.state import ClockState, ResearchState, WorkState
from providers.extractive.semantic import knows_writing
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.folders import CorpusDefinition
from providers.search.corpus.library import CorpusLibrary
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

HERE: Final = Path(__file__).parent
QUESTIONS: Final = HERE / "short_questions"
TUNED: Final = ("development", "half_a", "half_c", "facts")
"""Sets that whoever changes the engine may look at; the others are asked once, at the end."""
HELD_OUT: Final = ("held_out", "half_b", "half_d", "half_e")
OPENING: Final = 200
"""Words after the first heading of a section that most people read."""
PROCESSES: Final = 2


@dataclass(frozen=True)
class Collection:
    """Documents that questions are asked to, and the Debian package that holds them, if one does."""

    folder: Path
    language: str = "en"
    package: str = ""
    include: tuple[str, ...] = ()


def _collections() -> dict[str, Collection]:
    found = {}
    for line in (HERE / "collections.txt").read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, language, folder, package, *include = line.split()
            place = Path(folder) if folder.startswith("/") else QUESTIONS / folder
            found[name] = Collection(place, language, package.strip("-"), tuple(include))
    return found


COLLECTIONS: Final = _collections()


@dataclass(frozen=True)
class Question:
    """A question with what an expected passage contains, or with facts that a brief contains."""

    id: str
    question: str
    collection: str
    language: str = "en"
    type: str = ""
    answer: tuple[str, ...] = ()
    """Patterns that an expected passage contains, all of them."""
    facts: tuple[str, ...] = ()
    """Texts of a fact; `a|b`: either."""
    unanswerable: bool = False

    def place_of(self, passages: Sequence[str]) -> int:
        """Return the place of the first expected passage, from 1; 0 where none is there."""
        hits = (number for number, text in enumerate(passages, start=1) if self._is_expected(text))
        return next(hits, 0)

    def _is_expected(self, text: str) -> bool:
        return bool(self.answer) and all(re.search(pattern, text, re.IGNORECASE) for pattern in self.answer)

    def facts_in(self, text: str) -> int:
        """Count the facts of which one wording is in a folded text."""
        return sum(any(plain(wording).casefold() in text for wording in fact.split("|")) for fact in self.facts)


@dataclass(frozen=True)
class Measured:
    """One question as it came out."""

    id: str
    set: str
    collection: str
    outcome: str
    place: int
    """Of the first expected passage, from 1; 0: none."""
    passages: int
    facts: int
    facts_first: int
    facts_all: int
    seconds: float
    kind: str
    """`passage`, `facts` or `unanswerable`."""
    question: str = ""


def load(name: str) -> list[Question]:
    """Return the questions of a set. Raises OSError, ValueError."""
    if name != "facts":
        files = sorted((QUESTIONS / name).glob("*.json"))
        return [_short(entry, file.stem) for file in files for entry in json.loads(file.read_text("utf-8"))]
    found = []
    for file in sorted(HERE.glob("brief_questions_*.json")):
        collection = file.stem.removeprefix("brief_questions_")
        for number, entry in enumerate(json.loads(file.read_text("utf-8"))["questions"], start=1):
            found.append(
                Question(
                    id=f"{collection}-f{number:02}",
                    question=entry["question"],
                    collection=collection,
                    facts=tuple(entry.get("facts", ())),
                    unanswerable=entry["kind"] == "unanswerable",
                )
            )
    return found


def _short(entry: dict, collection: str) -> Question:
    known = {name: value for name, value in entry.items() if name in Question.__dataclass_fields__}
    known |= {"answer": tuple(entry.get("answer", ())), "unanswerable": bool(entry.get("absent"))}
    return Question(collection=collection, **known)


async def answer(
    library: CorpusLibrary, corpus: str, question: str, *, semantic: bool = False
) -> tuple[str, str, str, float]:
    """Run from the request to the report; Markdown, JSON, outcome and processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        ranking = knows_writing if semantic else lambda _: False
        configuration = ResearchConfiguration(product_version="0.1.0", semantic=ranking)
        world = World(Path(folder), library, configuration=configuration)
        host = world.host()
        request = ResearchRequest(query=question, corpus=corpus)
        prepared = await host.implementations["prepare_research"](
            PrepareRequest(research_id="r-benchmark", request_json=request.model_dump_json())
        )
        state = ResearchState(
            work=WorkState(resolved=prepared.resolved, resolved_entry=prepared.resolved_entry),
            clock=ClockState(started_at=host.now().isoformat()),
        )
        state.clock.clock_started_at = host.now().timestamp()
        state.clock.deadline_at = state.clock.clock_started_at + prepared.resolved.limits.deadline_seconds
        outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
        assert state.work.result is not None
        assert state.work.result.files is not None, outcome
        markdown = await world.content.get_text(state.work.result.files.markdown)
        document = await world.content.get_text(state.work.result.files.json_document)
        await world.close()
    return markdown, document, outcome.value, time.process_time() - begun


def plain(text: str) -> str:
    """Return a text for comparing: no signs of quoting or escaping, one space for every gap."""
    return re.sub(r"\s+", " ", re.sub(r"[>\\]", "", text))


def passages_of(markdown: str) -> list[str]:
    """Return the block quotes of a brief in their order, each with the line above that says where it is from."""
    found: list[str] = []
    caption, lines = "", list[str]()
    for line in [*markdown.partition("\n## Sources\n")[0].partition("\n## ")[2].splitlines(), ""]:
        if line.startswith(">"):
            lines.append(line)
        elif lines:
            found.append(plain(" ".join([caption, *lines])))
            lines = []
        if line.strip() and not line.startswith(">"):
            caption = line if not line.startswith("#") else ""
    return found


def measure(question: Question, name: str, markdown: str, outcome: str, seconds: float) -> Measured:
    """Return what a brief has of what is expected; sources and method, which the report adds, do not count."""
    passages = passages_of(markdown)
    body = markdown.partition("\n## Sources\n")[0]
    opening = plain(re.sub(r"\[\d+\]", "", body.partition("\n## ")[2])).casefold().split()[:OPENING]
    kind = "unanswerable" if question.unanswerable else "facts" if question.facts else "passage"
    return Measured(
        id=question.id,
        set=name,
        collection=question.collection,
        outcome=outcome,
        place=question.place_of(passages),
        passages=len(passages),
        facts=len(question.facts),
        facts_first=question.facts_in(" ".join(opening)),
        facts_all=question.facts_in(plain(body).casefold()),
        seconds=seconds,
        kind=kind,
        question=question.question,
    )


def ask(home: Path, name: str, question: Question, *, semantic: bool = False) -> Measured:
    """Ask one question in a process of its own."""

    async def work() -> Measured:
        async with SubprocessPool(1) as pool:
            library = CorpusLibrary(home, pool, definitions())
            markdown, _, outcome, seconds = await answer(
                library, question.collection, question.question, semantic=semantic
            )
            return measure(question, name, markdown, outcome, seconds)

    return asyncio.run(work())


def definitions() -> list[CorpusDefinition]:
    """The collections as corpora."""
    return [
        CorpusDefinition(name=name, path=each.folder, include=each.include, language=each.language)
        for name, each in COLLECTIONS.items()
    ]


async def index(home: Path, names: Iterable[str]) -> None:
    """Index collections."""
    async with SubprocessPool(PROCESSES) as pool:
        library = CorpusLibrary(home, pool, definitions())
        for name in names:
            await library.refresh(name)


def ask_all(home: Path, questions: Sequence[tuple[str, Question]], *, semantic: bool = False) -> Iterator[Measured]:
    """Ask in two processes; results in the order of the questions."""
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        names, asked = zip(*questions, strict=True)
        yield from pool.map(partial(ask, semantic=semantic), [home] * len(questions), names, asked, chunksize=1)


@dataclass
class Row:
    """The questions of one line of the table."""

    measured: list[Measured] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Return its figures."""
        hits = [each.place for each in self.measured if each.kind == "passage"]
        absent = [each.outcome == "empty" for each in self.measured if each.kind == "unanswerable"]
        facts = [each for each in self.measured if each.kind == "facts"]
        refused = sum(each.outcome == "empty" for each in self.measured if each.kind != "unanswerable")
        known = sum(each.facts for each in facts)
        at = [_share(sum(0 < place <= most for place in hits), len(hits)) for most in (1, 3, 10)]
        return [
            *at,
            _share(sum(absent), len(absent)),
            str(refused),
            _share(sum(each.facts_first for each in facts), known),
            _share(sum(each.facts_all for each in facts), known),
            f"{sum(each.seconds for each in self.measured) / len(self.measured):.2f}",
        ]


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} {part / whole:.2f}" if whole else ""


def table(measured: Sequence[Measured]) -> str:
    """Return the table by set, by collection, and of all."""
    rows: dict[str, Row] = {}
    for each in measured:
        held = "held-out sets" if each.set in HELD_OUT else "tuned sets"
        for name in (f"set {each.set}", held, f"collection {each.collection}", "all"):
            rows.setdefault(name, Row()).measured.append(each)
    head = "| | hit@1 | hit@3 | hit@10 | unanswerable empty | wrongly empty | facts first 200 | facts all | CPU s |"
    lines = [f"| {name} | " + " | ".join(row.cells()) + " |" for name, row in sorted(rows.items())]
    return "\n".join([head, "|" + "---|" * 9, *lines])


def main() -> int:
    """Ask, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", choices=[*TUNED, *HELD_OUT, []], metavar="SET")
    parser.add_argument("--only", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS), metavar="COLLECTION")
    parser.add_argument("--home", type=Path, help="where indexes are kept; a temporary folder by default")
    parser.add_argument("--out", type=Path, help="write every measured question as JSON")
    parser.add_argument("--semantic", action="store_true", help="rank by closeness of meaning, too")
    parser.add_argument("--verbose", action="store_true", help="a line for every question without a hit")
    given = parser.parse_args()
    every = [(name, each) for name in given.sets or (*TUNED, *HELD_OUT) for each in load(name)]
    asked = [(name, each) for name, each in every if each.collection in given.only]
    needed = list(dict.fromkeys(each.collection for _, each in asked))
    lacking = [name for name in needed if not COLLECTIONS[name].folder.is_dir()]
    for name in lacking:
        print(f"{name}: no folder {COLLECTIONS[name].folder}; apt install {COLLECTIONS[name].package}", file=sys.stderr)
    asked = [(name, each) for name, each in asked if each.collection not in lacking]
    with tempfile.TemporaryDirectory() as temporary:
        home = given.home or Path(temporary)
        asyncio.run(index(home, [name for name in needed if name not in lacking]))
        measured = []
        for each in ask_all(home, asked, semantic=given.semantic):
            measured.append(each)
            if given.verbose and (each.kind == "unanswerable") != (each.outcome == "empty" or each.place > 0):
                print(f"  {each.id} {each.kind} {each.outcome} place {each.place}: {each.question}", flush=True)
    if given.out:
        given.out.write_text(json.dumps([asdict(each) for each in measured], indent=1))
    print(f"Python {platform.python_version()}; {len(measured)} questions\n\n{table(measured)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
