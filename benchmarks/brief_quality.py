"""How good are evidence briefs? Questions with known facts, over a real folder of documents, by whole runs.

    python -m benchmarks.brief_quality DIR QUESTIONS.json [--home DIR] [--show TEXT] [--verbose]

Each fact is a text that the brief must hold ("a|b": either). Printed: the share of facts in the whole brief, in the
brief proper (before "More passages"), in its first 200 words and in the short answer; the share of
unanswerable questions that are admitted; the share of false premises that the short answer corrects.
"""

import argparse
import asyncio
import json
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.answering import Answer, answer, plain
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusLibrary

CORPUS = "benchmark"
OPENING = 200
"""Words after the first heading of a section that most people read, marks of citation left out."""


@dataclass
class Score:
    """Sums over all questions."""

    facts: int = 0
    found: int = 0
    proper: int = 0
    opening: int = 0
    short: int = 0
    unanswerable: int = 0
    admitted: int = 0
    premises: int = 0
    corrected: int = 0
    refused: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Processor time."""


def holds(text: str, fact: str) -> bool:
    """Whether a text holds one of the wordings of a fact."""
    return any(plain(wording).casefold() in text for wording in fact.split("|"))


def opening(markdown: str) -> str:
    """The first words of a brief from its first section on, plain and folded."""
    body = re.sub(r"\[\d+\]", "", markdown.partition("\n## ")[2])
    return " ".join(plain(body).casefold().split()[:OPENING])


def count(score: Score, entry: dict, given: Answer, *, verbose: bool) -> None:
    """Add one brief to the score; what the report adds below it, sources and method, does not count."""
    score.seconds += given.seconds
    text = plain(given.markdown.partition("\n## Sources\n")[0]).casefold()
    short = given.short.casefold()
    proper = text.partition("## more passages")[0]
    first = opening(given.markdown)
    if entry["kind"] == "unanswerable":
        score.unanswerable += 1
        right = not given.findings and all(name.casefold() in text for name in entry["names"])
        score.admitted += right
        if not right:
            print(f"  not admitted: {entry['question']}")
        return
    if not given.findings:
        score.refused.append(entry["question"])
    facts = entry["facts"]
    missing = [fact for fact in facts if not holds(text, fact)]
    score.facts += len(facts)
    score.found += len(facts) - len(missing)
    score.proper += sum(holds(proper, fact) for fact in facts)
    score.opening += sum(holds(first, fact) for fact in facts)
    score.short += sum(holds(short, fact) for fact in facts)
    if entry["kind"] == "premise":
        score.premises += 1
        score.corrected += any(holds(short, fact) for fact in facts)
    if verbose:
        inside = sum(holds(short, fact) for fact in facts)
        print(
            f"  {len(facts) - len(missing)}/{len(facts)} short {inside}  {entry['question'][:66]}  missing: {missing}"
        )


async def main() -> None:
    """Run all questions of one file against one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--home", type=Path, help="where the index is kept; a temporary folder by default")
    parser.add_argument("--show", help="print the briefs of the questions that hold this text")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    entries = json.loads(options.questions.read_text())["questions"]
    if options.show:
        entries = [entry for entry in entries if options.show.casefold() in entry["question"].casefold()] or [
            {"question": options.show, "kind": "answerable", "facts": []}
        ]
    with tempfile.TemporaryDirectory() as temporary:
        home = options.home or Path(temporary)
        async with SubprocessPool(2) as pool:
            library = CorpusLibrary(home, pool)
            library.add(CORPUS, options.folder)
            await library.refresh(CORPUS)
            score = Score()
            for entry in entries:
                given = await answer(library, CORPUS, entry["question"])
                if options.show:
                    print(given.markdown)
                count(score, entry, given, verbose=options.verbose)
            report(score, len(entries))


def report(score: Score, questions: int) -> None:
    """Print the shares."""
    facts = max(1, score.facts)
    print(f"facts found {score.found}/{score.facts} = {score.found / facts:.2f}")
    print(
        f"  in the brief proper {score.proper / facts:.2f}, in its first {OPENING} words {score.opening / facts:.2f}, "
        f"in the short answer {score.short / facts:.2f}"
    )
    print(f"unanswerable admitted {score.admitted}/{score.unanswerable}; wrongly refused {score.refused}")
    print(f"false premises corrected in the short answer {score.corrected}/{score.premises}")
    print(f"{score.seconds / max(1, questions):.2f} s of processor time a question")


if __name__ == "__main__":
    asyncio.run(main())
