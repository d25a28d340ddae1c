"""Candidates of a librarian: which hits are examined for a need, and what the rules say about them. Pure."""

from collections.abc import Collection, Sequence
from itertools import zip_longest

from contracts.evidence import SearchHit, Source
from contracts.recursive_roles import MentionedWork
from contracts.state import ResearchState
from contracts.vetting import ExaminedSource
from contracts.vocabulary import Quality, SourceStatus
from workflows.rules.duplicates import Identities


def hits_of(state: ResearchState, searches: Sequence[str], works: Sequence[MentionedWork]) -> list[SearchHit]:
    """Return the hits of searches, rank by rank in the order of the searches; mentioned works come first."""
    by_search = [
        sorted((one.hit for one in state.candidates if one.sub_query_id == name), key=lambda hit: hit.rank)
        for name in searches
    ]
    hits = [hit for rank in zip_longest(*by_search) for hit in rank if hit is not None]
    return sorted(hits, key=lambda hit: not any(work.is_at(hit.url, hit.title) for work in works))


def choose_candidates(
    state: ResearchState, hits: Sequence[SearchHit], examined: Collection[str], most: int
) -> list[SearchHit]:
    """Return the first hits of different sources that were not examined for this need, `most` at most."""
    known, chosen = Identities(state.sources, state.aliases), dict[str, SearchHit]()
    for hit in hits:
        known.add(hit)
        identity = known.identity_of(hit)
        if identity not in examined and len(chosen) < most:
            chosen.setdefault(identity, known.leader_of(hit))
    return list(chosen.values())


def assess_by_rules(source: Source, *, is_named: bool) -> ExaminedSource:
    """Return the word of the rules on a candidate: it is rejected if it could not be read, or if they call it low.

    One that the request names is vetted by the person.
    """
    is_read, quality = source.status is SourceStatus.FULL, source.quality
    reason = f"by the rules its quality is {quality.value}"
    if is_named:
        reason = "the request names it"
    if not is_read:
        reason = f"it could not be read: {source.status_reason}"
    accepted = is_read and (is_named or quality is not Quality.LOW)
    return ExaminedSource(source_id=source.id, accepted=accepted, quality=quality, reason=reason)
