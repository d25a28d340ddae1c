"""Figures of runs that a real language model answered, and what they say about runs that it did not.

`real_runs.json` has a run a line: tokens of each call by role, in order (input, output), or only their sums; searches,
pages read, US dollars, and the calls that waited for each other with the tokens that they wrote. `reads` says what an
analysis was shown: `pages`, as now, or `excerpts`, as by an earlier product, whose calls were a third as large.

Where a strategy has runs that read pages, its likely run is their mean at that depth, and at other depths as many times
what fakes do there. A strategy whose only run read excerpts makes as many calls as that run, of the sizes that calls of
these roles have in the others. Fakes show how depths differ, and which roles a strategy calls.
"""

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from activities.likely_use import CALL_SECONDS, TOKENS_PER_SECOND
from contracts.recursive_roles import EXTRACTOR, SCANNER
from contracts.roles import ANALYZER
from contracts.strategies import declared_roles
from contracts.texts import plural
from contracts.vocabulary import Tier

Sizes = Mapping[str, Sequence[tuple[int, int]]]
"""Input and output tokens of calls in order, by role."""
Table = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Strategy → depth → `few`, `least` and `most`: what runs with fakes used (`benchmarks.likely`)."""

FILE: Final = Path(__file__).with_name("real_runs.json")
PRICES: Final = {Tier.SIMPLE: (1.0, 5.0), Tier.ANALYTICAL: (3.0, 15.0), Tier.COMPLEX: (3.0, 15.0)}
"""US dollars per million tokens of input and output of the models that answered."""
READERS: Final = (EXTRACTOR.name, SCANNER.name)
"""They read pages as an analyzer does."""
TIERS: Final = {role.name: role.tier for role in declared_roles()}


@dataclass(frozen=True)
class RealRun:
    """One run."""

    strategy: str
    depth: str
    reads: str
    usd: float | None = None
    calls: int = 0
    tokens: int = 0
    """0 if unknown."""
    searches: int = 0
    pages: int = 0
    iterations: int = 0
    in_a_row: int = 0
    """Calls that waited for each other; 0 if unknown."""
    row_output_tokens: int = 0
    """What these calls wrote."""
    roles: Sizes = field(default_factory=dict)
    """Empty if only the sums are known."""

    @property
    def reads_pages(self) -> bool:
        """Return true if its analyses were shown pages, as those of the product are."""
        return self.reads == "pages"

    @property
    def seconds(self) -> float:
        """Return the time of its longest chain of calls; 0 if unknown."""
        return self.in_a_row * CALL_SECONDS + self.row_output_tokens / TOKENS_PER_SECOND

    def counts(self) -> dict[str, float]:
        """Return its calls by role."""
        return {name: float(len(calls)) for name, calls in self.roles.items()}


def load_runs() -> list[RealRun]:
    """Return all runs, those that read excerpts first."""
    runs = []
    for stored in json.loads(FILE.read_text("utf-8")):
        roles = {name: [tuple(call) for call in calls] for name, calls in stored.get("roles", {}).items()}
        sums = {}
        if roles:
            calls = [call for each in roles.values() for call in each]
            sums = {"calls": len(calls), "tokens": sum(map(sum, calls))}
        runs.append(RealRun(**stored | sums | {"roles": roles}))
    return runs


REAL_RUNS: Final = load_runs()


def recorded_sizes() -> dict[str, Sizes]:
    """Return the calls of runs by name: that of the strategy, and with `-excerpts` where they read excerpts.

    The calls of several runs of one name stand one after the other.
    """
    recorded = dict[str, dict[str, list[tuple[int, int]]]]()
    for run in REAL_RUNS:
        roles = recorded.setdefault(f"{run.strategy}{'' if run.reads_pages else '-excerpts'}", {}) if run.roles else {}
        for name, calls in run.roles.items():
            roles.setdefault(name, []).extend(calls)
    return {name: dict(roles) for name, roles in recorded.items()}


# --- what they say about other runs -----------------------------------------------------------------------------------
def likely_figures(table: Table, runs: Sequence[RealRun]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return strategy → depth → the likely run over many pages: by role its calls and their sizes, and its source."""
    made = {(name, depth): middle_run(both) for name, depths in table.items() for depth, both in depths.items()}
    sized = [run for run in runs if run.reads_pages and run.roles]
    ratios = _Ratios(made, sized)
    likely = dict[str, dict[str, dict[str, Any]]]()
    for (strategy, depth), fake in made.items():
        own = [run for run in sized if run.strategy == strategy]
        calls_only = [run for run in runs if run.strategy == strategy and run.calls and run not in own]
        here = [run for run in own if run.depth == depth]
        if here:
            figures = _mean_run(here, fake)
            source = f"from {plural(len(here), 'run')} with a real model at this depth{_spread(here)}"
        elif own:
            base = own[0].depth
            same = [run for run in own if run.depth == base]
            figures = _scaled_run(_mean_run(same, made[strategy, base]), made[strategy, base], fake)
            source = f"scaled from {plural(len(same), 'run')} with a real model at {base} depth{_spread(same)}"
        else:
            base = calls_only[0].depth if calls_only else depth
            same = [run for run in calls_only if run.depth == base]
            factor = ratios.calls
            if same:
                factor = _factor(made[strategy, base], statistics.mean(run.calls for run in same))
            figures = ratios.sized_run(fake, factor)
            source = f"scaled from runs of {' and '.join(sorted({run.strategy for run in sized}))} with a real model"
            if same:
                where = "at this depth" if depth == base else f"at {base} depth"
                calls = f"calls scaled from {plural(len(same), 'run')} with a real model {where} of an earlier version"
                source = f"{calls}, sizes from other strategies"
        likely.setdefault(strategy, {})[depth] = _rounded(figures) | {"source": source}
    return likely


def _spread(runs: Sequence[RealRun]) -> str:
    """Return a clause on how far runs are from their mean, by their tokens; empty for one run."""
    tokens = [run.tokens for run in runs if run.tokens]
    if len(tokens) < 2:
        return ""
    mean = statistics.mean(tokens)
    return f" (each {min(tokens) / mean:.1f} to {max(tokens) / mean:.1f} times that)"


def middle_run(both: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run between one that leaves no gap and one that always does: the geometric mean of each figure."""
    least, most = both["least"], both["most"]
    roles = {}
    for name in dict.fromkeys([*least["roles"], *most["roles"]]):
        sizes = [run["roles"][name] for run in (least, most) if name in run["roles"]]
        counts = [run["roles"].get(name, [0])[0] for run in (least, most)]
        count = math.sqrt(counts[0] * counts[1]) if all(counts) else max(counts) / 2
        roles[name] = [count, *(statistics.mean(size[place] for size in sizes) for place in (1, 2))]
    figures = ("in_a_row", "seconds", "searches", "pages")
    return {name: math.sqrt(least[name] * most[name]) for name in figures} | {"roles": roles}


def cost_of(run: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the calls, tokens and US dollars of a likely run."""
    usd = 0.0
    for name, (count, tokens_in, tokens_out) in run["roles"].items():
        price_in, price_out = PRICES[TIERS[name]]
        usd += count * (tokens_in * price_in + tokens_out * price_out) / 1e6
    return _calls(run), _tokens(run), usd


class _Ratios:
    """By how much calls of real runs differ from those of fakes, over all strategies."""

    def __init__(self, made: Mapping[tuple[str, str], Mapping[str, Any]], runs: Sequence[RealRun]) -> None:
        pairs = [(run, made[run.strategy, run.depth]) for run in runs]
        self.calls = _typical(run.calls / _calls(fake) for run, fake in pairs)
        self._seconds = _typical(run.seconds / fake["seconds"] for run, fake in pairs if run.in_a_row)
        self._input: dict[str, float] = {}
        self._output: dict[str, float] = {}
        names = {name for run in runs for name in run.roles}
        for name in names:
            shared = [(run.roles[name], fake["roles"][name]) for run, fake in pairs if _both_call(run, fake, name)]
            outputs = [tokens_out for run in runs for _, tokens_out in run.roles.get(name, ())]
            self._output[name] = statistics.mean(outputs)
            if shared:
                self._input[name] = _typical(_mean(calls, 0) / size[1] for calls, size in shared)
        for name in READERS:
            self._input.setdefault(name, self._input[ANALYZER.name])
        self._other_input = statistics.median(self._input.values())
        self._counts = {name: statistics.mean(len(run.roles.get(name, ())) for run in runs) for name in names}
        self._closing = {
            name: [
                statistics.mean(len(run.roles.get(name, ())) for run in runs),
                statistics.mean(tokens_in for run in runs for tokens_in, _ in run.roles.get(name, ())),
                self._output[name],
            ]
            for name in names
            if not any(name in fake["roles"] for _, fake in made.items())
        }
        """Roles that fakes give no reason to call: correctors."""

    def sized_run(self, fake: Mapping[str, Any], factor: float) -> dict[str, Any]:
        """Return a run of fakes with so many times its calls, which have the sizes of real ones."""
        roles = {}
        for name, (calls, tokens_in, tokens_out) in fake["roles"].items():
            count = calls if calls <= 1 else calls * factor
            ratio = self._input.get(name, self._other_input)
            if 0 < self._counts.get(name, 0) < count and name not in (ANALYZER.name, *READERS):
                ratio = max(1.0, ratio * self._counts[name] / count)  # more calls share the same findings
            roles[name] = [count, tokens_in * ratio, self._output.get(name, tokens_out)]
        return {**fake, "roles": roles | self._closing, "seconds": fake["seconds"] * self._seconds}


def _mean_run(runs: Sequence[RealRun], fake: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean of runs of one strategy and depth."""
    roles = {}
    for name in dict.fromkeys(name for run in runs for name in run.roles):
        calls = [call for run in runs for call in run.roles.get(name, ())]
        roles[name] = [len(calls) / len(runs), _mean(calls, 0), _mean(calls, 1)]
    timed = [run for run in runs if run.in_a_row]
    return {
        "roles": roles,
        "in_a_row": statistics.mean(run.in_a_row for run in timed) if timed else fake["in_a_row"],
        "seconds": statistics.mean(run.seconds for run in timed) if timed else fake["seconds"],
        "searches": statistics.mean(run.searches for run in runs),
        "pages": statistics.mean(run.pages for run in runs),
    }


def _scaled_run(real: Mapping[str, Any], beside: Mapping[str, Any], fake: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a real run would be at the depth of `fake`, as the runs of fakes at both depths differ."""

    def scaled(name: str, place: int) -> float:
        here, there = (run["roles"].get(name, (1.0, 1.0, 1.0)) for run in (fake, beside))
        return float(real["roles"][name][place] * here[place] / there[place])

    roles = {name: [scaled(name, 0), scaled(name, 1), real["roles"][name][2]] for name in real["roles"]}
    figures = ("in_a_row", "seconds", "searches", "pages")
    return {name: real[name] * fake[name] / beside[name] for name in figures} | {"roles": roles}


def _factor(fake: Mapping[str, Any], calls: float) -> float:
    """Return by how much the calls of roles that are called repeatedly must be more, for so many calls in all."""
    once = sum(count for count, _, _ in fake["roles"].values() if count <= 1)
    return (calls - once) / max(1.0, _calls(fake) - once)


def _rounded(run: Mapping[str, Any]) -> dict[str, Any]:
    roles = {
        name: [round(count, 1), round(tokens_in), round(tokens_out)]
        for name, (count, tokens_in, tokens_out) in sorted(run["roles"].items())
    }
    return {"roles": roles} | {name: round(run[name]) for name in ("in_a_row", "seconds", "searches", "pages")}


def _both_call(run: RealRun, fake: Mapping[str, Any], name: str) -> bool:
    return name in run.roles and name in fake["roles"]


def _calls(run: Mapping[str, Any]) -> float:
    return float(sum(count for count, _, _ in run["roles"].values()))


def _tokens(run: Mapping[str, Any]) -> float:
    return float(sum(count * (tokens_in + tokens_out) for count, tokens_in, tokens_out in run["roles"].values()))


def _mean(calls: Sequence[tuple[int, int]], place: int) -> float:
    return statistics.mean(call[place] for call in calls)


def _typical(ratios: Iterable[float]) -> float:
    return statistics.geometric_mean(ratios)
