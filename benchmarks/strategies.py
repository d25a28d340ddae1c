"""The same ten questions through every strategy: `python -m benchmarks.strategies [--call 2] [--questions 10]`.

Real processes: the dev server with its file, one worker process with all pools, a fake model that answers after a fixed
time, four pages about one subject as the corpus; without a model, the same questions once more. *In a row*: model
calls on the longest chain, from the history. A quick run is made with calls of 5 s against its deadline of 15 s.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowFailureError

from benchmarks.runs import MODEL_ACTIVITIES, Measured, deployed, measure
from contracts.outcome import ResearchResult
from contracts.strategies import list_selectable
from tests.acceptance.topology import Topology, topology
from tests.integration.runs import start

QUESTIONS: Final = (
    "How does the engine prevent transaction ID wraparound?",
    "What does vacuum do with old rows?",
    "Which setting forces a vacuum, and what is its default?",
    "What happens if vacuuming is neglected?",
    "How are transaction IDs compared?",
    "When does the engine refuse to start new transactions?",
    "What does it mean that a row is frozen?",
    "Which tables must be vacuumed, and how often?",
    "How large is the default of freeze_max_age?",
    "What are the limits of the protection against wraparound?",
)
QUICK_CALL: Final = 5.0


@dataclass(frozen=True)
class Answered:
    """One run with its history."""

    result: ResearchResult
    history: Measured

    @property
    def in_a_row(self) -> int:
        """Model calls on the longest chain; roles without a model are activities of the same name."""
        return sum(step.name in MODEL_ACTIVITIES for step in self.history.path)


async def ask(made: Topology, question: str, request: dict[str, Any]) -> Answered | None:
    """One run to its end; None for one that failed, as without any evidence."""
    client = await made.client()
    handle = await start(client, request | {"query": question, "corpus": "documents"})
    try:
        result = await handle.result()
    except WorkflowFailureError as failure:
        print(f"{question} {failure.cause}", file=sys.stderr, flush=True)
        return None
    return Answered(result, await measure(handle, client))


def line(name: str, asked: list[Answered | None], *, by_model: bool) -> str:
    """One row: medians over the questions whose runs have a report."""
    runs = [run for run in asked if run is not None]

    def median(values: list[float]) -> float:
        return statistics.median(values)

    completed = sum(run.result.outcome.value == "completed" for run in runs)
    figures = [
        f"{completed} of {len(asked)}",
        f"{median([run.result.counts.sources for run in runs]):g}",
        f"{median([run.result.counts.findings for run in runs]):g}",
        f"{median([run.result.usage.model_calls for run in runs]):g}" if by_model else "–",
        f"{median([run.in_a_row for run in runs]):g}" if by_model else "–",
        f"{median([run.result.usage.tokens for run in runs]) / 1_000:.0f} k" if by_model else "–",
        f"{median([run.history.wall for run in runs]):.1f} s",
        f"{median([run.history.bytes for run in runs]) / 1_000:.0f} kB",
    ]
    return f"| {name} | {' | '.join(figures)} |"


async def compare(call: float, questions: list[str], only: str | None) -> None:
    """Every strategy, or one, with and without the model."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), call) as made:
            await deployed(made)
            for strategy in list_selectable():
                for engine in ("model", "extractive"):
                    if only not in (None, strategy.name):
                        continue
                    request = {"strategy": strategy.name, "engine": engine, "gates": {"approve": "none"}}
                    runs = [await ask(made, question, request) for question in questions]
                    name = strategy.name if engine == "model" else f"{strategy.name}, without a model"
                    print(line(name, runs, by_model=engine == "model"), flush=True)


async def quick() -> None:
    """A quick run whose every call takes five seconds."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), QUICK_CALL) as made:
            await deployed(made)
            run = await ask(made, QUESTIONS[0], {"strategy": "reflective", "mode": "quick"})
            assert run is not None
            print(f"\nquick, calls of {QUICK_CALL:g} s: {run.history.wall:.1f} s, {run.result.outcome.value}")


async def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--call", type=float, default=2.0, help="seconds that a model call takes")
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    parser.add_argument("--strategy", help="this one alone, and no quick run")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}, dev server: one SQLite file, calls of {given.call:g} s\n")
    print("| strategy | completed | pages read | findings | calls | in a row | tokens | wall | history |")
    print("|---|---|---|---|---|---|---|---|---|")
    await compare(given.call, list(QUESTIONS[: given.questions]), given.strategy)
    if given.strategy is None:
        await quick()


if __name__ == "__main__":
    asyncio.run(main())
