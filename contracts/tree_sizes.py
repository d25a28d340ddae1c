"""Work of trees, at least and typically at most, and the run limits that the minimum exceeds. Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from contracts.call_sizes import minimal_call
from contracts.plan import Objection, ObjectionKind, PlanNode
from contracts.recursive_roles import EXECUTOR, EXTRACTOR, LIBRARIAN, MANAGER, SCANNED_TOGETHER, SCANNER, TREE_PLANNER
from contracts.resolved import EffectiveLimits, ModelPrice
from contracts.roles import SYNTHESIZER, RoleSpec

GAPS_PER_CORRECTION: Final = 2
"""Gaps addressed by one correction of an executor."""
SEQUENTIAL_CALLS: Final = 6
"""Shortest sequence: scope, search, examination, tree, leaf, report."""
SECONDS_PER_CALL: Final = 2.0
"""Response time of a fast model."""
MIN_PARTS: Final = 5
"""Parts from which a text counts as an enumeration; fewer are a sentence with commas."""
SEPARATORS: Final = re.compile(r"[,;،؛、，；·|\n]+|\s[-•*]\s")
QUESTION_MARKS: Final = re.compile(r"[?？؟]+")

Calls = Mapping[str, tuple[int, int]]


def tree_calls(limits: EffectiveLimits, queries: int | None = None) -> Calls:
    """Return the fewest and typical most calls by role for a number of queries; None: from one to the limit."""
    low, high = (1, limits.max_sub_queries) if queries is None else (queries, queries)
    nodes = high * limits.max_nodes
    corrections = nodes * limits.max_corrections
    gaps = corrections * GAPS_PER_CORRECTION
    return {
        MANAGER.name: (1, 2),
        LIBRARIAN.name: (low, high + gaps),
        SCANNER.name: (low, high + gaps + math.ceil(limits.max_sources / SCANNED_TOGETHER)),
        TREE_PLANNER.name: (low, high + gaps),
        EXTRACTOR.name: (low, nodes * limits.max_leaves + gaps),
        EXECUTOR.name: (0, nodes + corrections),  # rules check a report without findings
        SYNTHESIZER.name: (1, 2 + nodes + corrections),
    }


NOUNS: Final = {
    "max_sources": "sources",
    "deadline_seconds": "seconds",
    "max_model_calls": "model calls",
    "max_tokens": "tokens",
    "max_cost_usd": "US dollars",
}
"""Limits that the work may exceed, with their units."""


def estimate_trees(
    queries: Sequence[str],
    calls: Mapping[RoleSpec[Any, Any], tuple[int, int]],
    prices: Mapping[str, ModelPrice],
) -> dict[str, float | None]:
    """Return the least work for the queries, by limit; None for a cost without a known price.

    `calls` are those of the whole run by role, empty without a model.
    """
    counts = {role: minimum for role, (minimum, _) in calls.items() if minimum}
    if EXTRACTOR in counts:  # one leaf per part of a query
        counts[EXTRACTOR] = max(counts[EXTRACTOR], sum(map(count_parts, queries)))
    sizes = {role: minimal_call(role) for role in counts}
    costs = [sizes[role].max_usd(prices.get(role.tier.value)) for role in counts]
    usd = [cost * count for cost, count in zip(costs, counts.values(), strict=True) if cost is not None]
    return {
        "max_sources": len(queries),
        "deadline_seconds": SEQUENTIAL_CALLS * SECONDS_PER_CALL if counts else 0.0,
        "max_model_calls": sum(counts.values()),
        "max_tokens": sum(sizes[role].tokens * count for role, count in counts.items()),
        "max_cost_usd": round(sum(usd), 4) if len(usd) == len(counts) else None,
    }


def count_parts(query: str) -> int:
    """Return the number of items that a query enumerates or asks, each of which needs its own leaf."""
    enumerated = sum(bool(part.strip()) for part in SEPARATORS.split(query))
    asked = sum(any(map(str.isalnum, part)) for part in QUESTION_MARKS.split(query))
    return max((count for count in (enumerated, asked) if count >= MIN_PARTS), default=1)


def max_leaves(limits: EffectiveLimits) -> int:
    """Return the most leaves of one query's tree."""
    return limits.max_leaves * (limits.max_nodes if limits.max_levels > 1 else 1)


def structural_objections(
    estimate: Mapping[str, float | None], limits: EffectiveLimits, queries: Sequence[PlanNode]
) -> list[Objection]:
    """Return objections to queries too wide for a tree, and to all queries if their least work exceeds a limit."""
    room = max_leaves(limits)
    objections = [_too_wide(query, parts, room) for query in queries if (parts := count_parts(query.text)) > room]
    for name, amount in estimate.items():
        limit = getattr(limits, name)
        if amount is not None and limit is not None and amount > limit:
            several = len(queries) > 1
            remedy = f"ask fewer queries, or raise limits.{name}" if several else f"raise limits.{name}"
            subject = "they take" if several else "it takes"
            text = f"{subject} at least {_shown(amount)} {NOUNS[name]}, and limits.{name} is {_shown(limit)}: {remedy}"
            figures = {name: (float(amount), float(limit))}
            query_fields = {}
            if queries and not several:
                query_fields = {"query_id": queries[0].id, "query": queries[0].text}
            objections.append(Objection(kind=ObjectionKind.STRUCTURAL, text=text, figures=figures, **query_fields))
    return objections


def _shown(amount: float) -> str:
    return f"{amount:,.4f}".rstrip("0").rstrip(".")


def _too_wide(query: PlanNode, parts: int, room: int) -> Objection:
    """Return the objection to a query with more parts than a tree has leaves."""
    pieces = math.ceil(parts / room)
    return Objection(
        query_id=query.id,
        query=query.text,
        kind=ObjectionKind.STRUCTURAL,
        text=(
            f"it names {parts} things, and a tree within the limits has room for {room}: "
            f"split it into {pieces} queries of at most {room} things each"
        ),
        figures={"max_leaves": (float(parts), float(room))},
    )
