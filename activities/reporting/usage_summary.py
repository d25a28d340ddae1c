"""What a run used, by role and by phase: for report.json, and in words for the other forms."""

from typing import Any

from activities.reporting.fixed_sentences import counted
from contracts.state import ResearchState
from contracts.usage import Usage

TIMES = {"active_seconds", "queue_seconds"}
"""Of the run as a whole; roles work side by side."""


def usage_document(state: ResearchState) -> dict[str, Any]:
    """The total and, where it is known who used what, `by_role` and `by_phase`, each of which sums up to it."""
    document = state.usage.model_dump(mode="json")
    for name, parts in (("by_role", state.usage_by_role), ("by_phase", state.usage_by_phase)):
        if parts:
            document[name] = {key: part.model_dump(mode="json", exclude=TIMES) for key, part in parts.items()}
    return document


def usage_words(state: ResearchState) -> tuple[str, list[str]] | None:
    """One sentence of the total and one line per role; null for a run that neither asked a model nor paid."""
    if not state.usage.model_calls and state.usage.cost_usd == 0:
        return None
    return f"{_words(state.usage)}.", [f"{role}: {_words(part)}" for role, part in state.usage_by_role.items()]


def _words(usage: Usage) -> str:
    parts = []
    if usage.model_calls:
        share = usage.cached_share
        cached = f", {share:.0%} of the input from a cache" if share else ""
        parts.append(f"{counted(usage.model_calls, 'model call')}, {counted(usage.tokens, 'token')}{cached}")
    if usage.searches:
        parts.append(counted(usage.searches, "search", "searches"))
    if usage.reads:
        parts.append(counted(usage.reads, "read"))
    return ", ".join([*parts, _cost(usage)])


def _cost(usage: Usage) -> str:
    if usage.cost_usd is not None:
        return f"{usage.cost_usd:.4f} USD"
    known = f", {usage.known_cost_usd:.4f} USD of it known" if usage.known_cost_usd else ""
    return f"cost unknown{known}"
