"""Which hits are read: pure, so that the order in which searches return decides nothing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from contracts.addresses import source_id
from contracts.evidence import Candidate, SearchHit

Identity = Callable[[SearchHit], str]
"""Which source a hit is."""


def by_url(hit: SearchHit) -> str:
    """The source of a hit by its address alone."""
    return source_id(hit.url)


@dataclass(frozen=True)
class Allotment:
    """The hits to read, in their final order, and how many were duplicates."""

    chosen: list[Candidate]
    owners: dict[str, list[str]]
    """Source id → every sub-query that found it, the owner (lowest sub-query, rank) first."""
    duplicates: int
    duplicates_by_sub_query: dict[str, int]


def guaranteed_share(budget: int, sub_queries: int, position: int, per_query: int) -> int:
    """How many hits a sub-query may read as soon as its own search returned."""
    if sub_queries == 0 or position >= budget:
        return 0
    return min(max(1, budget // sub_queries), per_query)


def unread(hits: Sequence[SearchHit], known: Collection[str], of: Identity = by_url) -> list[SearchHit]:
    """Hits in rank order whose source is not known yet, each source once."""
    seen = set(known)
    fresh = []
    for hit in sorted(hits, key=lambda hit: hit.rank):
        identity = of(hit)
        if identity not in seen:
            seen.add(identity)
            fresh.append(hit)
    return fresh


def allot(
    hits: Mapping[str, Sequence[SearchHit]],
    known: Collection[str],
    budget: int,
    room: Mapping[str, int],
    of: Identity = by_url,
) -> Allotment:
    """Choose what to read.

    `hits` maps sub-query ids to their hits, in sub-query order; `known` are source ids read before; `room` says how
    many more sources each sub-query may have. First each sub-query's guaranteed share, then what is left of the budget,
    rank by rank in sub-query order. A source found twice belongs to the lowest (sub-query, rank).
    """
    order = list(hits)
    fresh = {query: unread(found, known, of) for query, found in hits.items()}
    chosen: dict[str, Candidate] = {}
    taken = dict.fromkeys(order, 0)
    for position, query in enumerate(order):
        for hit in fresh[query][: guaranteed_share(budget, len(order), position, room[query])]:
            taken[query] += 1
            chosen.setdefault(of(hit), Candidate(sub_query_id=query, hit=hit))
    for rank in range(max((len(found) for found in fresh.values()), default=0)):
        for query in order:
            if len(chosen) >= budget:
                break
            if rank < len(fresh[query]) and taken[query] < room[query]:
                identity = of(fresh[query][rank])
                if identity not in chosen:
                    taken[query] += 1
                    chosen[identity] = Candidate(sub_query_id=query, hit=fresh[query][rank])
    owners = _owners(hits, chosen, of)
    duplicates = {
        query: _duplicates(query, [of(hit) for hit in hits[query][: room[query]]], known, owners) for query in order
    }
    ordered = sorted(chosen.values(), key=lambda choice: _place(choice, order, owners, of))
    final = [_as_owner_found(choice, hits, owners, of) for choice in ordered]
    return Allotment(final, owners, sum(duplicates.values()), duplicates)


def _owners(hits: Mapping[str, Sequence[SearchHit]], chosen: Collection[str], of: Identity) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for query, found in hits.items():
        for hit in found:
            identity = of(hit)
            if identity in chosen and query not in owners.setdefault(identity, []):
                owners[identity].append(query)
    return owners


def _duplicates(query: str, identities: Sequence[str], known: Collection[str], owners: Mapping[str, list[str]]) -> int:
    return sum(
        identity in known or (identity in owners and owners[identity][0] != query) or identity in identities[:place]
        for place, identity in enumerate(identities)
    )


def _place(choice: Candidate, order: Sequence[str], owners: Mapping[str, list[str]], of: Identity) -> tuple[int, int]:
    owner = owners[of(choice.hit)][0]
    return order.index(owner), choice.hit.rank


def _as_owner_found(
    choice: Candidate, hits: Mapping[str, Sequence[SearchHit]], owners: Mapping[str, list[str]], of: Identity
) -> Candidate:
    """The same source as its owner found it, so that who was first to return does not matter."""
    identity = of(choice.hit)
    owner = owners[identity][0]
    hit = next(hit for hit in hits[owner] if of(hit) == identity)
    return Candidate(sub_query_id=owner, hit=hit)
