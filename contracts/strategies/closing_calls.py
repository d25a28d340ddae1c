"""Number of calls of a model the work on a finished report takes, whatever the strategy."""

from typing import Final

from contracts.call_sizes import CLAIMS_PER_CALL, FEWEST_REPORT_SECTIONS, LONG_REPORT_WORDS, MOST_REPORT_SECTIONS
from contracts.checking_roles import CHECKER, CORRECTOR, REVIEWER
from contracts.request import Review, Verify
from contracts.resolved import ResolvedResearch
from contracts.roles import SYNTHESIZER
from contracts.strategies.declared_strategies import declaration

MOST_CLAIMS_PER_SUB_QUERY: Final = 5
"""Statements that a report makes of one sub-query's findings, usually."""


def closing_calls(resolved: ResolvedResearch) -> dict[str, tuple[int, int]]:
    """Fewest and most calls of a model by each role that works on the report of any strategy; for the estimate."""
    checks, full = resolved.checks, resolved.verify is Verify.FULL
    claims = MOST_CLAIMS_PER_SUB_QUERY * resolved.limits.max_sub_queries * resolved.limits.max_iterations
    batches, rounds = -(-claims // CLAIMS_PER_CALL), checks.correct * (1 + checks.strict)
    by_model = checks.review is Review.MODEL
    fewest_parts, most_parts = _section_calls(resolved)
    return {
        REVIEWER.name: (int(by_model), 2 * by_model),
        CHECKER.name: (int(full), full * (batches + 2 * rounds)),
        CORRECTOR.name: (0, full * 2 * rounds),
        SYNTHESIZER.name: (fewest_parts, most_parts + int(checks.review is not Review.OFF)),
    }


def _section_calls(resolved: ResolvedResearch) -> tuple[int, int]:
    """Calls for the sections of a long report, besides the one for its frame, each time that it is written."""
    if (resolved.target_words or 0) < LONG_REPORT_WORDS:
        return 0, 0
    asked = min(len(resolved.sections), MOST_REPORT_SECTIONS)
    fewest = asked or FEWEST_REPORT_SECTIONS
    most = asked or min(MOST_REPORT_SECTIONS, resolved.limits.max_sub_queries * resolved.limits.max_iterations)
    if most < FEWEST_REPORT_SECTIONS:
        return 0, 0
    _, times = declaration(resolved.strategy).expected_calls(resolved.limits, False).get(SYNTHESIZER.name, (1, 1))
    return fewest, most * times
