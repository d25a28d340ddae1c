"""Corrupt sentences of real reports, one at a time, and see what the rules say."""

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from activities.reporting.claims import Claim
from activities.reporting.inputs import CitedPassage, judge
from activities.reporting.references import KnownAddresses
from benchmarks.passages import answer, index, load
from benchmarks.truth.corruption import CHANGES, Sentence, names_in
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.library import CorpusLibrary
from providers.text import sentence_spans

SEED: Final = 43
NO_ADDRESSES: Final = KnownAddresses({})
COLLECTED: Final = ("halvern", "lindenau")
QUESTIONS: Final = 15
"""How many of the short questions to each collection are asked."""


@dataclass(frozen=True)
class Cited:
    """A claim of a report with the passages that it cites."""

    words: str
    passages: tuple[CitedPassage, ...]
    language: str
    names: tuple[str, ...]

    def judged(self) -> ClaimVerdict:
        """What the report would say of it."""
        claim = Claim(id="", text=self.words, section="", evidence_ids=[], sentences=())
        return judge(claim, self.passages, NO_ADDRESSES, self.language)


async def write_reports() -> list[Cited]:
    """Claims of whole runs without a model over the articles of the short questions."""
    found: list[Cited] = []
    with tempfile.TemporaryDirectory() as folder:
        await index(Path(folder), COLLECTED)
        async with SubprocessPool(1) as pool:
            for name in COLLECTED:
                questions = [question for question in load("development") if question.collection == name]
                for question in questions[:QUESTIONS]:
                    _, document, *_ = await answer(CorpusLibrary(Path(folder), pool), name, question.question)
                    found += claims_of(json.loads(document))
    return list({(each.words, each.passages): each for each in found}.values())


def claims_of(document: dict[str, object]) -> Iterator[Cited]:
    """The passages that a report cites, as a whole and sentence by sentence."""
    evidence = {item["id"]: item for item in document["evidence"]}  # type: ignore[attr-defined]
    titles = {item["id"]: item["title"] for item in document["sources"]}  # type: ignore[attr-defined]
    language = str(document["language"])
    names = tuple(names_in([item["quote"] for item in evidence.values()], language))
    for claim in document["claims"]:  # type: ignore[attr-defined]
        items = [evidence[identity] for identity in claim["evidence_ids"]]
        passages = tuple(CitedPassage(item["quote"], item["heading"], titles[item["source_id"]]) for item in items)
        # The engine writes word for word what it cites: the passage itself is the sentence, without marks and escapes.
        for passage in passages:
            spans = list(sentence_spans(passage.quote))
            for start, end in ((0, len(passage.quote)), *(spans if len(spans) > 1 else ())):
                yield Cited(passage.quote[start:end].strip(), (passage,), language, names)


def corrupt(claims: Sequence[Cited]) -> Iterator[tuple[str, Cited, Cited]]:
    """Each claim changed in each way that it allows: what was changed, before, and after."""
    chance = random.Random(SEED)
    for claim in claims:
        for name, change in CHANGES.items():
            words = change(Sentence(claim.words, claim.language, claim.names), chance)
            if words is not None and words != claim.words:
                yield name, claim, replace(claim, words=words)
        others = [
            other
            for other in claims
            if other.language == claim.language
            and other.passages != claim.passages
            and not any(claim.words in passage.quote for passage in other.passages)
        ]
        if others:
            yield "citation", claim, replace(claim, passages=chance.choice(others).passages)


def measure(name: str, claims: Sequence[Cited], *, failures: bool) -> None:
    """Print what is caught by kind of change."""
    before = Counter(claim.judged().method for claim in claims)
    supported = sum(claim.judged().verdict == Verdict.SUPPORTED for claim in claims)
    print(f"\n== {name}: {len(claims)}, {supported} of them supported before any change, by {dict(before)}")
    made, caught, flagged, verbatim = Counter[str](), Counter[str](), Counter[str](), 0
    for kind, old, new in corrupt(claims):
        judged = new.judged()
        made[kind] += 1
        caught[kind] += judged.verdict != Verdict.SUPPORTED
        flagged[kind] += judged.verdict not in (Verdict.SUPPORTED, Verdict.NOT_ENOUGH_INFORMATION)
        verbatim += judged.method == CheckMethod.VERBATIM
        if failures and judged.verdict == Verdict.SUPPORTED:
            print(f"  {kind}: {new.words}\n      {old.words}")
    for kind in (*made, "all"):
        count = made.total() if kind == "all" else made[kind]
        one, two = (group.total() if kind == "all" else group[kind] for group in (caught, flagged))
        print(f"  {kind:10} {count:4} changed, caught {100 * one / count:5.1f} %, flagged {100 * two / count:5.1f} %")
    print(f"  called word for word after a change: {verbatim}")


def measure_reports(*, failures: bool) -> None:
    """Run, corrupt and print."""
    measure("sentences of reports", asyncio.run(write_reports()), failures=failures)
