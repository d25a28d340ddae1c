"""What a run likely uses: measured runs of its strategy and depth, fitted to its limits and prices. Pure.

`likely_runs.json` has two runs by strategy and depth (`python -m benchmarks.likely`): one whose pages leave no gap, and
one whose every analysis leaves gaps. The likely run is in the middle of both, as their numbers of calls differ by a
factor. A strategy that was not measured is estimated from the calls that it declares.
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
from contracts.recursive_roles import EXTRACTOR, SCANNER
from contracts.report_updates import REPORTER
from contracts.resolved import Estimate, ResolvedResearch
from contracts.roles import ANALYZER, RoleSpec
from contracts.strategies import calls_by_role
from contracts.vocabulary import EngineKind

TABLE: Final = Path(__file__).with_name("likely_runs.json")
CALL_SECONDS: Final = 2.0
TOKENS_PER_SECOND: Final = 55.0
"""Time until a model writes, and its speed: a recorded call of 30,500 tokens wrote 1,850 tokens within 35 s."""
BY_PAGE: Final = frozenset(role.name for role in (ANALYZER, EXTRACTOR, SCANNER, REPORTER))
"""Roles whose number of calls follows the number of pages."""
UNCOUNTED_FILES: Final = 1
"""Of a corpus that is not indexed yet."""

LIMITS_ADVICE: Final = "limits."
"""How advice on limits begins."""

CallUsd = Callable[[str, Usage], float | None]


@dataclass(frozen=True)
class LikelyRun:
    """What a run uses, by role: calls, and the mean tokens of a call."""

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
        total, unpriced = 0.0, list[str]()
        for role, (count, size) in self.roles.items():
            model = models[role.tier.value]
            price = call_usd(model, size)
            total += count * (price or 0.0)
            if price is None and count and model not in unpriced:
                unpriced.append(model)
        return total, unpriced


def load_table() -> Mapping[str, Any]:
    """Return the measured runs: strategy → depth → `least` and `most`."""
    runs: Mapping[str, Any] = json.loads(TABLE.read_text("utf-8"))["runs"]
    return runs


MEASURED: Final = load_table()


def likely_run(resolved: ResolvedResearch) -> LikelyRun:
    """Return what a run likely uses, whatever its limits of calls, tokens, costs and time are."""
    least, most = run_without_gaps(resolved), _measured(resolved, "most")
    if most is None:
        declared = {role: high for role, (_, high) in _possible_calls(resolved).items()}
        most = LikelyRun(
            {role: (declared[role], size) for role, (_, size) in least.roles.items()}, least.searches, least.seconds
        )
    share = _share_of_iterations(resolved)
    if (measured := MEASURED.get(resolved.strategy, {}).get(resolved.depth.value)) is not None:
        share *= _share_of_pages(resolved, measured["most"]["pages"])  # where all is read, nothing is left to ask for
    roles = dict[RoleSpec[Any, Any], tuple[float, Usage]]()
    for role in dict.fromkeys([*least.roles, *most.roles]):
        (low, small), (high, large) = (run.roles.get(role, (0.0, None)) for run in (least, most))
        count = _middle(low, low + share * (high - low))
        roles[role] = count, _mean_size([size for size in (small, large) if size is not None])
    searches = _middle(least.searches, least.searches + share * (most.searches - least.searches))
    return LikelyRun(roles, searches, _middle(least.seconds, least.seconds + share * (most.seconds - least.seconds)))


def run_without_gaps(resolved: ResolvedResearch) -> LikelyRun:
    """Return the least that a run of this strategy and depth does: one iteration, and a report."""
    measured = _measured(resolved, "least")
    if measured is not None:
        return measured
    shown = {"sources": 5, "findings": 10, "shown_tokens": resolved.limits.analysis_tokens}
    roles = {role: (float(low), expected_call(role, **shown)) for role, (low, _) in _possible_calls(resolved).items()}
    seconds = sum(count * _seconds(size) for count, size in roles.values())
    return LikelyRun(roles, 2.0, seconds)


def _possible_calls(resolved: ResolvedResearch) -> Mapping[RoleSpec[Any, Any], tuple[int, int]]:
    return calls_by_role(resolved) if resolved.engine is EngineKind.MODEL else {}


def _measured(resolved: ResolvedResearch, which: str) -> LikelyRun | None:
    """Return a measured run, fitted to the pages and checks of the request; None if there is none."""
    run = MEASURED.get(resolved.strategy, {}).get(resolved.depth.value, {}).get(which)
    if run is None:
        return None
    pages, roles = _share_of_pages(resolved, run["pages"]), dict[RoleSpec[Any, Any], tuple[float, Usage]]()
    for role, (_, high) in _possible_calls(resolved).items():
        if role.name not in run["roles"] or not high:
            continue
        count, tokens_in, tokens_out = run["roles"][role.name]
        if role.name in BY_PAGE:
            count = max(1.0, count * pages)
        if role.name == ANALYZER.name:
            tokens_in = min(tokens_in, FIXED_INPUT_TOKENS + resolved.limits.analysis_tokens)
        roles[role] = min(float(high), count), Usage(input_tokens=tokens_in, output_tokens=tokens_out)
    return LikelyRun(roles, run["searches"], run["seconds"])


def _share_of_pages(resolved: ResolvedResearch, measured: int) -> float:
    """Return the pages that there are to read, divided by those of the measured run; at most 1."""
    pages, corpus = resolved.limits.max_sources, resolved.corpus
    if corpus is not None and corpus.files > UNCOUNTED_FILES and not resolved.web:
        pages = min(pages, corpus.files)
    return min(1.0, pages / max(1, measured))


def _share_of_iterations(resolved: ResolvedResearch) -> float:
    """Return how many iterations after the first a run may make, divided by those of the measured run; at most 1."""
    measured = preset(resolved.strategy, resolved.depth).max_iterations - 1
    return 1.0 if measured <= 0 else min(1.0, (resolved.limits.max_iterations - 1) / measured)


def _middle(low: float, high: float) -> float:
    """Return the geometric mean, or half of the higher amount if the lower one is 0."""
    return math.sqrt(low * high) if low else high / 2


def _mean_size(sizes: list[Usage]) -> Usage:
    return Usage(
        input_tokens=round(sum(size.input_tokens for size in sizes) / len(sizes)),
        output_tokens=round(sum(size.output_tokens for size in sizes) / len(sizes)),
    )


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
    limits, least = resolved.limits, run_without_gaps(resolved)
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
        is_below = need.allowed < need.least
        taken = f"one iteration takes about {need.least:{need.form}}" if is_below else (
            f"runs like this take about {need.likely:{need.form}}"
        )  # fmt: skip
        end = "the report will be partial" if is_below else "the report may be partial"
        value = f"{need.likely:{need.form}}".replace(",", "")
        remedy = f"--set limits.{need.limit}={value}"
        lines.append(
            f"{LIMITS_ADVICE}{need.limit} is {need.allowed:{need.form}} {need.unit}, and {taken}: {end} ({remedy})"
        )
    return lines
