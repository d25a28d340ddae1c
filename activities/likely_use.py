"""The likely use of a run: real runs of its strategy and depth, fitted to its limits, documents and prices. Pure.

`likely_runs.json` has four runs by strategy and depth (`python -m benchmarks.likely`): the likely one over many pages,
from runs that a real language model answered; and with fakes one over a few short pages, one whose pages leave no gap,
and one whose every analysis leaves gaps. A smaller request lies between the likely run and these. A strategy without
such runs is estimated from the calls that it declares.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contracts.call_sizes import FIXED_INPUT_TOKENS, expected_call
from contracts.outcome import Usage
from contracts.presets import preset
from contracts.resolved import Estimate, ResolvedResearch
from contracts.roles import ANALYZER, RoleSpec
from contracts.strategies import calls_by_role
from contracts.vocabulary import EngineKind

TABLE: Final = Path(__file__).with_name("likely_runs.json")
CALL_SECONDS: Final = 2.0
TOKENS_PER_SECOND: Final = 70.0
"""Time until a model writes, and its speed: strong models write about 60 to 80 tokens a second."""
UNCOUNTED_FILES: Final = 1
"""Of a corpus that is not indexed yet."""
PASSED_BOUND: Final = 1.5
"""Most calls of a role by those that its strategy declares at most: a real run checked half as much again."""
PAGE_BYTES: Final = 15_000
"""Of a page in the runs of the table: analyses of real runs were shown 3,800 tokens of each page that they read."""

LIMITS_ADVICE: Final = "limits."
"""How advice on limits begins."""

CallUsd = Callable[[str, Usage], float | None]


@dataclass(frozen=True)
class LikelyRun:
    """The use of a run, by role: calls, and the mean tokens of a call."""

    roles: Mapping[RoleSpec[Any, Any], tuple[float, Usage]]
    searches: float
    seconds: float

    @property
    def calls(self) -> float:
        """Return the calls of all roles."""
        return sum(count for count, _ in self.roles.values())

    @property
    def tokens(self) -> float:
        """Return the tokens of all calls."""
        return sum(count * size.tokens for count, size in self.roles.values())

    def usd(self, models: Mapping[str, str], call_usd: CallUsd) -> tuple[float, list[str]]:
        """Return what the calls cost, and the models without a known price."""
        total = 0.0
        unpriced: list[str] = []
        for role, (count, size) in self.roles.items():
            model = models[role.tier.value]
            price = call_usd(model, size)
            total += count * (price or 0.0)
            if price is None and count and model not in unpriced:
                unpriced.append(model)
        return total, unpriced


def load_table() -> dict[str, Any]:
    """Return the measured runs: strategy → depth → `few`, `least`, `most` and `likely`."""
    runs: dict[str, Any] = json.loads(TABLE.read_text("utf-8"))["runs"]
    return runs


MEASURED: Final = load_table()


def likely_run(resolved: ResolvedResearch) -> LikelyRun:
    """Return what a run likely uses, whatever its limits of calls, tokens, costs and time are."""
    measured = _measured(resolved)
    if measured is not None:
        return _between(resolved, measured["least"], measured["likely"], _share_of_iterations(resolved))
    least = run_without_gaps(resolved)
    declared = {role: high for role, (_, high) in _possible_calls(resolved).items()}
    roles = {role: (_middle(count, float(declared[role])), size) for role, (count, size) in least.roles.items()}
    return LikelyRun(roles, least.searches, least.seconds)


def likely_source(resolved: ResolvedResearch) -> str:
    """Return a clause that says what the likely figures are built from."""
    measured = _measured(resolved)
    if measured is None:
        return "by what the strategy declares"
    is_less = min(_share_of_pages(resolved), _share_of_text(resolved), _share_of_iterations(resolved)) < 1
    return f"{measured['likely']['source']}{', less for what it searches and may do' if is_less else ''}"


def run_without_gaps(resolved: ResolvedResearch) -> LikelyRun:
    """Return the least that a run of this strategy and depth does: one iteration, and a report."""
    measured = _measured(resolved)
    if measured is not None:
        return _between(resolved, measured["least"], measured["likely"], 0.0)
    shown = {"sources": 5, "findings": 10, "shown_tokens": resolved.limits.analysis_tokens}
    roles = {role: (float(low), expected_call(role, **shown)) for role, (low, _) in _possible_calls(resolved).items()}
    seconds = sum(count * _seconds(size) for count, size in roles.values())
    return LikelyRun(roles, 2.0, seconds)


def _possible_calls(resolved: ResolvedResearch) -> Mapping[RoleSpec[Any, Any], tuple[int, int]]:
    if resolved.engine is not EngineKind.MODEL:
        return {}
    return calls_by_role(resolved)


def _measured(resolved: ResolvedResearch) -> Mapping[str, Any] | None:
    """Return the runs of the table for the strategy and depth; None if there are none."""
    runs: Mapping[str, Any] | None = MEASURED.get(resolved.strategy, {}).get(resolved.depth.value)
    return runs


def _between(
    resolved: ResolvedResearch, least: Mapping[str, Any], likely: Mapping[str, Any], iterations: float
) -> LikelyRun:
    """Return the run at a share of the way from the least to the likely one, fitted to the documents and checks.

    Fewer pages mean fewer calls, and less text means smaller ones, down to those of a run over a few short pages.
    """
    few = MEASURED[resolved.strategy][resolved.depth.value]["few"]
    pages = _share_of_pages(resolved)
    text = _share_of_text(resolved)
    roles = dict[RoleSpec[Any, Any], tuple[float, Usage]]()
    for role, (_, high) in _possible_calls(resolved).items():
        if not high or not any(role.name in run["roles"] for run in (least, likely)):
            continue
        low_count, whole_count, few_count = (run["roles"].get(role.name, (0.0,))[0] for run in (least, likely, few))
        count = _part(few_count, _part(min(low_count, whole_count), whole_count, iterations), pages)
        whole = likely["roles"].get(role.name) or least["roles"][role.name]
        small = few["roles"].get(role.name) or (0, min(whole[1], FIXED_INPUT_TOKENS // 2), whole[2])
        tokens_in, tokens_out = (_part(min(small[place], whole[place]), whole[place], text) for place in (1, 2))
        if role.name == ANALYZER.name:
            tokens_in = min(tokens_in, FIXED_INPUT_TOKENS + resolved.limits.analysis_tokens)
        roles[role] = (
            min(PASSED_BOUND * high, count),
            Usage(input_tokens=round(tokens_in), output_tokens=round(tokens_out)),
        )

    def fitted(name: str) -> float:
        return _part(few[name], _part(min(least[name], likely[name]), likely[name], iterations), pages)

    return LikelyRun(roles, fitted("searches"), fitted("seconds"))


def _share_of_pages(resolved: ResolvedResearch) -> float:
    """Return the pages that there are to read, divided by those that the likely run reads; at most 1."""
    pages = resolved.limits.max_sources
    corpus = resolved.corpus
    is_counted = corpus is not None and (corpus.size_bytes > 0 or corpus.files > UNCOUNTED_FILES)
    if corpus is not None and is_counted and not resolved.web:
        pages = min(pages, corpus.files)
    return min(1.0, pages / max(1, _likely_pages(resolved)))


def _share_of_text(resolved: ResolvedResearch) -> float:
    """Return the bytes that there are to read, divided by those that the likely run reads; at most 1."""
    corpus = resolved.corpus
    if corpus is None or not corpus.size_bytes or resolved.web:
        return 1.0
    return min(1.0, corpus.size_bytes / (PAGE_BYTES * max(1, _likely_pages(resolved))))


def _likely_pages(resolved: ResolvedResearch) -> int:
    """Return the pages of the likely run: a run scaled from another depth reads no more than its own depth allows."""
    measured = _measured(resolved)
    if measured is None:
        return 0
    return min(int(measured["likely"]["pages"]), preset(resolved.strategy, resolved.depth).max_sources)


def _share_of_iterations(resolved: ResolvedResearch) -> float:
    """Return how many iterations after the first a run may make, divided by those of the measured run; at most 1."""
    measured = preset(resolved.strategy, resolved.depth).max_iterations - 1
    if measured <= 0:
        return 1.0
    return min(1.0, (resolved.limits.max_iterations - 1) / measured)


def _middle(low: float, high: float) -> float:
    """Return the geometric mean, or half of the higher amount if the lower one is 0."""
    if low:
        return math.sqrt(low * high)
    return high / 2


def _part(low: float, high: float, share: float) -> float:
    """Return the amount at a share of the way from one to another."""
    return low + share * (high - low)


def _seconds(size: Usage) -> float:
    return CALL_SECONDS + size.output_tokens / TOKENS_PER_SECOND


# --- limits that are too low -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Need:
    limit: str
    allowed: float | None
    least: float
    likely: float
    form: str
    unit: str


def limits_too_low(resolved: ResolvedResearch, estimate: Estimate) -> list[str]:
    """Return a line for each limit below what such runs take, with its remedy; empty without a model."""
    if resolved.engine is not EngineKind.MODEL:
        return []
    limits = resolved.limits
    least = run_without_gaps(resolved)
    needs = [
        _Need("max_model_calls", limits.max_model_calls, least.calls, estimate.likely_calls, ",.0f", "model calls"),
        _Need("max_tokens", limits.max_tokens, least.tokens, estimate.likely_tokens, ",.0f", "tokens"),
    ]
    if estimate.likely_usd is not None:
        needs.append(
            _Need("max_cost_usd", limits.max_cost_usd, estimate.least_usd, estimate.likely_usd, ",.2f", "US dollars")
        )
    lines = []
    for need in needs:
        if need.allowed is None or need.allowed >= need.likely:
            continue
        if need.allowed < need.least:
            taken = f"one iteration takes about {need.least:{need.form}}"
            end = "the report will be partial"
        else:
            taken = f"runs like this take about {need.likely:{need.form}}"
            end = "the report may be partial"
        value = f"{need.likely:{need.form}}".replace(",", "")
        remedy = f"--set limits.{need.limit}={value}"
        lines.append(
            f"{LIMITS_ADVICE}{need.limit} is {need.allowed:{need.form}} {need.unit}, and {taken}: {end} ({remedy})"
        )
    return lines
