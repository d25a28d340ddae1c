"""How well do rules judge claims? Labelled pairs of a claim and a passage.

    python -m benchmarks.truth [--pairs-only] [--failures] [--whole]

A corruption is a pair whose label is not *supported*. It is caught if the verdict is not *supported* either, flagged
if it is *unsupported*, *contradicted* or *partial*. A false alarm is a flagged pair that is labelled *supported*.
`--failures` lists what goes wrong in the development half; the other half is held out, by a hash of its identity.
"""

import argparse
import json
import math
import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from activities.reporting.inputs import CitedPassage
from benchmarks.truth.corruption import names_in
from benchmarks.truth.reports import Cited, measure, measure_reports
from benchmarks.truth.whole_reports import measure_whole_reports
from contracts.evidence import Verdict
from providers.verification.rules import check

PAIRS: Final = Path(__file__).with_name("pairs.jsonl")
VERDICTS: Final = tuple(verdict for verdict in Verdict if verdict is not Verdict.UNVERIFIED)
FLAGGED: Final = frozenset((Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.PARTIAL))
ROUNDS: Final = 3


@dataclass(frozen=True)
class Pair:
    """A claim, the passage that it cites, and what a reader says of them."""

    id: str
    language: str
    passage: str
    title: str
    claim: str
    label: str
    kind: str

    @property
    def held_out(self) -> bool:
        """Whether nobody may look at it while changing the rules."""
        return sha256(self.id.encode()).digest()[0] % 2 == 1


@dataclass(frozen=True)
class Judged:
    """A pair with the verdict of the rules."""

    pair: Pair
    verdict: Verdict
    reason: str

    @property
    def wrong(self) -> bool:
        """A corruption called supported, or a true claim flagged."""
        true = self.pair.label == Verdict.SUPPORTED
        return self.verdict in FLAGGED if true else self.verdict is Verdict.SUPPORTED


def read_pairs() -> list[Pair]:
    """All pairs, in order of their identities."""
    return [Pair(**json.loads(line)) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def judge_pairs(pairs: Sequence[Pair]) -> list[Judged]:
    """The verdict of each pair."""
    judged = []
    for pair in pairs:
        found = check(pair.claim, [pair.passage], [pair.title], pair.language)
        judged.append(Judged(pair, found.verdict, found.reason))
    return judged


def share(part: int, whole: int) -> str:
    """A share with the counts behind it."""
    return f"{100 * part / whole:5.1f} % ({part} of {whole})" if whole else "-"


def report(name: str, judged: Sequence[Judged]) -> None:
    """Print everything about one half."""
    true = [each for each in judged if each.pair.label == Verdict.SUPPORTED]
    false = [each for each in judged if each.pair.label != Verdict.SUPPORTED]
    print(f"\n== {name}: {len(judged)} pairs")
    print("corruptions caught (not supported)  ", share(sum(not each.wrong for each in false), len(false)))
    print("corruptions flagged                 ", share(sum(each.verdict in FLAGGED for each in false), len(false)))
    print("false alarms on supported claims    ", share(sum(each.wrong for each in true), len(true)))
    undecided = sum(each.verdict is Verdict.NOT_ENOUGH_INFORMATION for each in true)
    print("supported claims left undecided     ", share(undecided, len(true)))
    print_table(judged)
    print_classes(judged)
    print("right by language: ", end="")
    for language in sorted({each.pair.language for each in judged}):
        some = [each for each in judged if each.pair.language == language]
        print(f" {language} {share(sum(not each.wrong for each in some), len(some))}", end=";")
    print()


def interval(part: int, whole: int) -> str:
    """A share in per cent with its 95 % interval (Wilson)."""
    if not whole:
        return "-"
    share, z = part / whole, 1.96
    middle = (share + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return f"{100 * share:.0f} ({100 * max(0.0, middle - half):.0f}–{100 * min(1.0, middle + half):.0f})"


def print_classes(judged: Sequence[Judged]) -> None:
    """What is flagged by class of change, of distinct sentences, as a table of Markdown; then the false alarms."""
    distinct = list({(each.pair.claim, each.pair.passage): each for each in judged}.values())
    print("\n| change | sentences | flagged % (95 %) | not called supported % |\n|---|---|---|---|")
    false = [each for each in distinct if each.pair.label != Verdict.SUPPORTED]
    for kind, _ in [*Counter(each.pair.kind for each in false).most_common(), ("all", 0)]:
        some = [each for each in false if kind in ("all", each.pair.kind)]
        flagged = interval(sum(each.verdict in FLAGGED for each in some), len(some))
        caught = interval(sum(not each.wrong for each in some), len(some))
        print(f"| {kind} | {len(some)} | {flagged} | {caught} |")
    true = [each for each in distinct if each.pair.label == Verdict.SUPPORTED]
    print(f"false alarms: {interval(sum(each.wrong for each in true), len(true))} of {len(true)} true sentences")


def print_table(judged: Sequence[Judged]) -> None:
    """Labels against verdicts, then precision and recall of each class."""
    counts = Counter((each.pair.label, each.verdict.value) for each in judged)
    print(f"\n{'label':14}" + "".join(f"{verdict.value[:12]:>14}" for verdict in VERDICTS) + "   precision  recall")
    for label in VERDICTS[:-1]:
        row = [counts[label.value, verdict.value] for verdict in VERDICTS]
        said = sum(counts[other.value, label.value] for other in VERDICTS)
        right = counts[label.value, label.value]
        figures = f"{right / said if said else 0:12.2f}{right / sum(row) if sum(row) else 0:8.2f}"
        print(f"{label.value:14}" + "".join(f"{number:14}" for number in row) + figures)


def time_claims(pairs: Sequence[Pair]) -> float:
    """Microseconds per claim, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        judge_pairs(pairs)
        best = min(best, time.process_time() - begun)
    return 1e6 * best / len(pairs)


def failures(judged: Sequence[Judged]) -> Iterator[str]:
    """What goes wrong, one block each."""
    for each in judged:
        if each.wrong:
            pair = each.pair
            yield (
                f"{pair.id} {pair.language} {pair.kind}: {pair.label} called {each.verdict.value}\n"
                f"    {pair.claim}\n    {pair.passage}\n    {each.reason}"
            )


def paraphrases(pairs: Sequence[Pair]) -> list[Cited]:
    """The true paraphrases, to be corrupted as the sentences of reports are."""
    names = tuple(names_in([pair.passage for pair in pairs if pair.language == "en"], "en"))
    return [
        Cited(pair.claim, (CitedPassage(pair.passage, "", pair.title),), pair.language, names)
        for pair in pairs
        if pair.label == Verdict.SUPPORTED
    ]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--pairs-only", action="store_true", help="leave out the corrupted reports")
    parser.add_argument("--failures", action="store_true", help="list what goes wrong in the development half")
    parser.add_argument("--whole", action="store_true", help="only whole reports, checked, corrected and audited")
    arguments = parser.parse_args()
    if arguments.whole:
        measure_whole_reports(failures=arguments.failures)
        return
    pairs = read_pairs()
    development = judge_pairs([pair for pair in pairs if not pair.held_out])
    report("development", development)
    report("held out", judge_pairs([pair for pair in pairs if pair.held_out]))
    print(f"\n{time_claims(pairs):.0f} microseconds per claim, Python {platform.python_version()}")
    if arguments.failures:
        print("\n" + "\n".join(failures(development)))
    measure("paraphrases", paraphrases(pairs), failures=False)
    if not arguments.pairs_only:
        measure_reports(failures=arguments.failures)


if __name__ == "__main__":
    main()
