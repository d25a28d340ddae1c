"""Corrupt sentences of whole reports and let `verify: full` and `audit` loose on them.

    python -m benchmarks.truth --whole

The reports are about manuals that Debian packages ship. Their sentences are paraphrases written by hand before they
were judged (`manuals.jsonl`, whose false alarms were then mended, and `manuals_unseen.jsonl`), and sentences of the
manuals themselves; every second one is then changed by a seeded program. Reports are closed as a run closes them:
weighed, checked, corrected, checked again, rendered. At last somebody forges the finished reports, which are audited.
"""

import asyncio
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any, Final

from activities.reporting.audit import audit
from activities.reporting.drafts import describe_draft, parse_draft, store_draft
from benchmarks.truth.corruption import CHANGES, Sentence, names_in
from benchmarks.truth.forgery import forge
from contracts.addresses import digest, evidence_id, source_id
from contracts.evidence import CheckMethod, DocumentRef, Evidence, ReportDraft, Source, Verdict
from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.state import ClockState, ResearchState, WorkState
from contracts.vocabulary import AgentRole, EngineKind, Quality, SourceStatus, StopReason
from providers.reading.documents import extract
from providers.text import sentence_spans
from tests.fakes import checking_work, model_scenarios
from tests.fakes.killers import HereCalls
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_request import ModelRequest
from tests.fakes.model_scenarios import Reply, answered
from tests.fakes.world import World, model_world
from workflows.phases.closing import close
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

MANUALS: Final = Path("/usr/share/doc")
CLAIMS: Final = Path(__file__).with_name("manuals.jsonl")
UNSEEN: Final = Path(__file__).with_name("manuals_unseen.jsonl")
"""Nobody may look at what goes wrong with these while changing the rules."""
PACKAGES: Final = "postfix-doc, bzip2-doc, base-passwd, valgrind, python-django-doc, varnish-doc"
SEEDS: Final = (1, 2, 3, 4, 5, 6)
FLAGGED: Final = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.PARTIAL)
INVENTED: Final = (
    "[99]",
    "[ev-00000000000000000000000000000000]",
    "[src-0000000000]",
    "([proof](https://evil.test/a))",
)
NUMBERS: Final = re.compile(r"\[\d+\]")
SIGN: Final = re.compile(r"\*\([^()]*\)\*$")
WORD: Final = re.compile(r"\w+")
RULES: Final = "no model"
CHECKERS: Final = (RULES, "lying", "believing", "knowing")


@dataclass(frozen=True)
class Told:
    """A true sentence with the passage that it cites."""

    words: str
    passage: str
    file: str
    paraphrase: bool


@dataclass(frozen=True)
class Written:
    """A sentence of a draft."""

    told: Told
    words: str
    marks: str
    change: str
    """What was changed; empty for nothing."""


@dataclass(frozen=True)
class Finished:
    """A finished report with what was written into its draft, and its audit's view of the store."""

    document: dict[str, Any]
    markdown: str
    html: bytes
    written: list[Written]
    world: World

    async def audited(self, document: Mapping[str, Any]) -> list[str]:
        """The kinds of difference that an audit of this document finds."""

        async def text(name: str) -> str:
            return await self.world.content.get_text(DocumentRef(hash=name))

        forged = document is not self.document
        markdown = document["report"]["markdown"] if forged else self.markdown
        data = json.dumps(document).encode()
        result = await audit(
            data, text, None, HereCalls(), version="0.1.0", markdown=markdown, html=None if forged else self.html
        )
        return [problem.kind for problem in result.problems]


# --- what is written --------------------------------------------------------------------------------------------------
def read_manuals(folder: Path = MANUALS, claims: Path = CLAIMS) -> tuple[list[Told], dict[str, tuple[str, str]]]:
    """The sentences with their passages, and title and text of each file. Raises `FileNotFoundError`."""
    told, texts = [], {}
    for line in claims.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        name = item["file"]
        if name not in texts:
            found = extract((folder / name).read_bytes(), name)
            texts[name] = (found.title, found.text)
        passage = _passage(texts[name][1], item["begins"])
        told.append(Told(item["claim"], passage, name, paraphrase=True))
        told.append(Told(" ".join(passage.split()), passage, name, paraphrase=False))
    return told, texts


def _passage(text: str, beginning: str) -> str:
    """The sentence of a text that begins so, whatever its white space."""
    pattern = r"\s+".join(re.escape(word) for word in beginning.split())
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"no sentence begins with “{beginning}”: the package is of another version")
    first, last = next(iter(sentence_spans(text[found.start() : found.start() + 1_000])))
    return text[found.start() + first : found.start() + last].strip()


def write(told: Sequence[Told], ids: Mapping[str, str], chance: random.Random) -> list[Written]:
    """The sentences of a draft, every second one changed in one of the ways that it allows."""
    names = tuple(names_in([one.passage for one in told], "en"))
    written = []
    for one in told:
        marks, words, change = f"[{ids[one.passage]}]", one.words, ""
        if chance.random() < 0.5:
            ways = {name: way(Sentence(words, "en", names), chance) for name, way in CHANGES.items()}
            possible = [name for name, new in ways.items() if new is not None and new != words]
            change = chance.choice([*possible, *possible, "citation", "source"])
            if change == "citation":
                others = [other.passage for other in told if other.passage != one.passage and other.file != one.file]
                marks = f"[{ids[chance.choice(others or [told[0].passage])]}]"
            elif change == "source":
                marks = chance.choice(INVENTED)
            else:
                words = str(ways[change])
        written.append(Written(one, words, marks, change))
    return written


def as_draft(written: Sequence[Written]) -> str:
    """Title, summary, a section of paraphrases and one of the manual's own words."""
    lines = [_line(one) for one in written]
    free = [line for line, one in zip(lines, written, strict=True) if one.told.paraphrase]
    own = [line for line, one in zip(lines, written, strict=True) if not one.told.paraphrase]
    parts = [
        "# What the manuals say",
        "## Summary",
        " ".join(free[:3]),
        "## Details",
        "\n".join(f"- {x}" for x in free[3:]),
    ]
    return "\n\n".join([*parts, "## In their own words", "\n".join(f"- {line}" for line in own)]) + "\n"


def _line(one: Written) -> str:
    return f"{one.words.removesuffix('.')} {one.marks}." if one.told.paraphrase else f"{one.words} {one.marks}"


# --- how it is closed -------------------------------------------------------------------------------------------------
@asynccontextmanager
async def world_of(folder: Path, checker: str, known: Mapping[str, str]) -> AsyncIterator[World]:
    """A world without a model, or with one whose checker answers so; `known` are the changed sentences."""
    if checker == RULES:
        world = World(folder)
        try:
            yield world
        finally:
            await world.close()
        return
    model_scenarios.SCENARIOS["knowing"] = _knowing(known)
    async with MessagesApi(by_role={"checker": checker}) as api:
        world = model_world(folder, api.base_url)
        try:
            yield world
        finally:
            await world.close()


def _knowing(changed: Mapping[str, str]) -> Callable[[ModelRequest], Reply]:
    """A checker that knows which sentences were changed."""

    def reply(request: ModelRequest) -> Reply:
        asked = checking_work.statements_of(request.prompt)
        given = checking_work.believing(request.prompt)["verdicts"]
        for one, item in zip(asked, given, strict=True):
            if _same(one.text) in changed:
                item["verdict"] = "unsupported"
        return answered(request, json.dumps({"verdicts": given}))

    return reply


def _same(words: str) -> str:
    """A sentence as it is found again: its words alone, without the sign of its verdict."""
    return " ".join(WORD.findall(NUMBERS.sub("", SIGN.sub("", words)))).casefold()


async def finish(
    world: World, written: Sequence[Written], texts: Mapping[str, tuple[str, str]], ids: Mapping[str, str]
) -> Finished:
    """A run that has just written this draft, to its end."""
    host = world.host()
    request = ResearchRequest(query="What do the manuals say?", corpus="manual", verify="full")
    prepared = await host.implementations["prepare_research"](
        PrepareRequest(research_id="r-whole", request_json=request.model_dump_json(exclude_unset=True))
    )
    state = ResearchState(
        work=WorkState(resolved=prepared.resolved, resolved_entry=prepared.resolved_entry),
        clock=ClockState(started_at=host.now().isoformat()),
    )
    state.clock.clock_started_at = host.now().timestamp()
    state.clock.deadline_at = state.clock.clock_started_at + prepared.resolved.limits.deadline_seconds
    state.accounts.engine_by_role[AgentRole.SYNTHESIZER.value] = EngineKind.MODEL.value
    state.accounts.usage = state.accounts.usage.model_copy(update={"input_tokens": 60_000})
    for name, (title, text) in texts.items():
        state.evidence.sources[source_id(_url(name))] = await _source(world, name, title, text)
    for passage, identity in ids.items():
        name = next(one.told.file for one in written if one.told.passage == passage)
        start = texts[name][1].index(passage)
        state.evidence.passages[identity] = Evidence(
            id=identity,
            source_id=source_id(_url(name)),
            start=start,
            end=start + len(passage),
            quote_hash=digest(passage),
        )
    text = as_draft(written)
    draft, parts = describe_draft(ReportDraft(document=DocumentRef(hash=digest(text))), parse_draft(text))
    state.evidence.draft = await store_draft(world.content, draft, parts)
    await close(ResearchRun(state, Inbox(), host), StopReason.NO_OPEN_GAPS)
    assert state.work.result is not None
    assert state.work.result.files is not None
    files = state.work.result.files
    return Finished(
        json.loads(await world.content.get_text(files.json_document)),
        await world.content.get_text(files.markdown),
        await world.content.get(files.html),
        list(written),
        world,
    )


def _url(name: str) -> str:
    return f"corpus:manual/{name}"


async def _source(world: World, name: str, title: str, text: str) -> Source:
    stored = await world.content.put_text(text)
    raw = await world.content.put(text.encode(), "text/html")
    return Source(
        id=source_id(_url(name)),
        url=_url(name),
        title=title,
        provider="corpus",
        source_type="file",
        status=SourceStatus.FULL,
        quality=Quality.HIGH,
        content_hash=raw.hash,
        raw=raw,
        text=stored,
        analyzed=True,
    )


# --- what is found ----------------------------------------------------------------------------------------------------
def outcomes(finished: Finished) -> Iterator[tuple[Written, str]]:
    """What became of each sentence of the draft.

    Its verdict; `verbatim`; `gone` where it does not stand so any more; `mended` where it cites its own passage again.
    """
    stands = {_same(claim["text"]): claim for claim in finished.document["claims"]}
    for one in finished.written:
        claim = stands.get(_same(one.words))
        if claim is None:
            yield one, "gone"
        elif one.change in ("citation", "source") and _cites(finished.document, claim, one.told.passage):
            yield one, "mended"
        elif claim["method"] == CheckMethod.VERBATIM:
            yield one, str(CheckMethod.VERBATIM)
        else:
            yield one, claim["verdict"]


def _cites(document: Mapping[str, Any], claim: Mapping[str, Any], passage: str) -> bool:
    """Whether a claim cites a passage that has all words of this one, or a part of them."""
    quotes = (item["quote"] for item in document["evidence"] if item["id"] in claim["evidence_ids"])
    return any(passage in quote or quote in passage for quote in quotes)


async def forgeries(finished: Finished, chance: random.Random) -> AsyncIterator[tuple[bool, bool]]:
    """Claims of a finished report, changed and called supported: with an id made anew or not, and found or not."""
    document = finished.document
    names = tuple(names_in([item["quote"] for item in document["evidence"]], "en"))
    for number, claim in enumerate(document["claims"]):
        if not claim["evidence_ids"]:
            continue
        for change in CHANGES.values():
            words = change(Sentence(claim["text"], "en", names), chance)
            if words is None or words == claim["text"] or NUMBERS.findall(words) != NUMBERS.findall(claim["text"]):
                continue
            method = claim["method"] if claim["method"] != CheckMethod.NONE else CheckMethod.MODEL
            for new_id in (False, True):
                forged = forge(document, number, words, Verdict.SUPPORTED, method, new_id=new_id)
                yield new_id, bool(await finished.audited(forged))


@dataclass
class Tally:
    """What one way of checking makes of reports."""

    changed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind of change and outcome."""
    unchanged: Counter[tuple[bool, str]] = field(default_factory=Counter)
    """By whether it is a paraphrase, and outcome."""
    forged: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """By whether the id was made anew, and whether the audit found it."""
    audits: Counter[bool] = field(default_factory=Counter)
    """Of the reports as they are: whether they pass."""
    corrections: Counter[str] = field(default_factory=Counter)
    addresses: int = 0
    """Invented ones in finished reports."""
    missed: list[Written] = field(default_factory=list)


async def tally(
    checker: str, told: Sequence[Told], texts: Mapping[str, tuple[str, str]], seeds: Sequence[int] = SEEDS
) -> Tally:
    """Write, change, check, correct, render, audit and forge reports: one for each collection of manuals and seed."""
    found = Tally()
    by_manual = [list(group) for _, group in groupby(told, key=lambda one: one.file.split("/")[0])]
    for seed, group in product(seeds, by_manual):
        chance = random.Random(seed)
        some = {one.file: texts[one.file] for one in group}
        ids = {one.passage: _id_of(one, some) for one in group}
        written = write(group, ids, chance)
        changed = {_same(one.words): one.change for one in written if one.change}
        with tempfile.TemporaryDirectory() as folder:
            async with world_of(Path(folder), checker, changed) as world:
                finished = await finish(world, written, some, ids)
                for one, outcome in outcomes(finished):
                    if one.change:
                        found.changed[one.change, outcome] += 1
                    else:
                        found.unchanged[one.told.paraphrase, outcome] += 1
                    if one.change and outcome in (Verdict.SUPPORTED, CheckMethod.VERBATIM):
                        found.missed.append(one)
                found.addresses += (finished.markdown + finished.html.decode()).count("evil.test")
                found.corrections.update(finished.document["verification"]["correction_counts"])
                found.audits[not await finished.audited(finished.document)] += 1
                if seed == seeds[0]:
                    async for pair in forgeries(finished, chance):
                        found.forged[pair] += 1
    return found


def show(found: Tally, *, failures: bool) -> None:
    """Print it."""
    if failures:
        print("".join(f"  {one.change}: {one.words}\n      {one.told.passage}\n" for one in found.missed), end="")
    corrections = dict(found.corrections)
    print(f"  {found.audits.total()} reports, {found.audits[True]} pass their audit, corrections {corrections}")
    _print_changed(found.changed)
    for paraphrase in (True, False):
        mine = Counter({outcome: count for (kind, outcome), count in found.unchanged.items() if kind is paraphrase})
        wrong = sum(mine[verdict] for verdict in (*FLAGGED, "gone"))
        print(
            f"  unchanged {'paraphrases' if paraphrase else 'sentences of manuals'}: {mine.total()}, "
            f"flagged or gone {_share(wrong, mine.total())}, {dict(mine)}"
        )
    print(f"  addresses outside of the registry: {found.addresses}")
    for new_id in (False, True):
        count = found.forged[new_id, True] + found.forged[new_id, False]
        how = "id made anew" if new_id else "id kept"
        print(f"  forged afterwards, {how}: found {_share(found.forged[new_id, True], count)}")


def _print_changed(false: Counter[tuple[str, str]]) -> None:
    for kind in (*sorted({kind for kind, _ in false}), "all"):
        mine = Counter[str]()
        for (name, outcome), count in false.items():
            if kind in (name, "all"):
                mine[outcome] += count
        missed = mine[Verdict.SUPPORTED] + mine[CheckMethod.VERBATIM]
        print(
            f"  {kind:9} {mine.total():4} changed, caught {_share(mine.total() - missed, mine.total())}, {dict(mine)}"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part} of {whole})" if whole else "-"


def _id_of(one: Told, texts: Mapping[str, tuple[str, str]]) -> str:
    start = texts[one.file][1].index(one.passage)
    return evidence_id(source_id(_url(one.file)), start, start + len(one.passage))


def measure_whole_reports(*, failures: bool) -> None:
    """All ways of checking, in turn; failures of the set that rules were tuned on alone."""
    for claims in (CLAIMS, UNSEEN):
        told, texts = read_manuals(claims=claims)
        for checker in CHECKERS:
            print(f"\n== {claims.name}, {checker}")
            show(asyncio.run(tally(checker, told, texts)), failures=failures and claims is CLAIMS)
