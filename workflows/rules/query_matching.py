"""Comparison of queries, over iterations and parallel branches. Pure.

Two queries are one if their words are the same in the same order, whatever their case and punctuation. A new question
that is dropped loses an answer, a repeated one costs one search: in doubt they are two.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from contracts.addresses import normalize
from contracts.evidence import QueryOutcome, QueryRecord
from contracts.plan import PlanNode

PUNCTUATION: Final = ".,;:!?¿¡\"'()[]{}<>“”„‘’«»‹›…–—·|/\\*_~`。、「」『』،؛؟।॥"
"""Removed around words, not within: a leading hyphen excludes a word, and `C++`, `C#` and `5%` are words."""


def record_of(query: PlanNode, provider: str, *, found: int | None, source_type: str = "web") -> QueryRecord:
    """Return the record of a query; `found` is the number of hits, None if the search failed."""
    return QueryRecord(
        text=query.text,
        provider=provider,
        source_type=source_type,
        sub_query_id=query.id,
        iteration=query.iteration,
        found=found or 0,
        outcome=QueryOutcome.FAILED if found is None else QueryOutcome.ANSWERED,
    )


def asked_before(
    ledger: Iterable[QueryRecord], text: str, provider: str | None = None, source_type: str | None = None
) -> QueryRecord | None:
    """Return the first answered record of the same query; None if there is none: a failed one may be repeated.

    `provider` and `source_type` restrict the records; None means any.
    """
    for record in ledger:
        is_of_kind = provider in (None, record.provider) and source_type in (None, record.source_type)
        if is_of_kind and record.outcome is QueryOutcome.ANSWERED and same_query(record.text, text):
            return record
    return None


def same_query(one: str, other: str) -> bool:
    """Return true if two queries ask the same."""
    return normalized_query(one) == normalized_query(other)


@lru_cache(maxsize=2_048)
def normalized_query(text: str) -> str:
    """Return the words of a query in order, without case, white space and punctuation."""
    words = (word.rstrip(PUNCTUATION + "-").lstrip(PUNCTUATION) for word in normalize("NFKC", text).casefold().split())
    return " ".join(filter(None, words))
