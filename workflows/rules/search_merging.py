"""Several providers' answers to one query as one list of hits: pure, and the same whoever answered first."""

from collections.abc import Sequence

from contracts.addresses import canonical_url, doi_of
from contracts.evidence import SearchHit, together
from contracts.messages import SearchResponse


def merge_hits(responses: Sequence[SearchResponse], limit: int) -> list[SearchHit]:
    """At most `limit` hits, ranked 1 to n: the providers take turns, rank by rank, in the order of `responses`.

    Hits of one canonical URL or one DOI become one at the best place, with the richer details of both. `provider` is
    who had it first, `also_found_by` who else.
    """
    kept = _keep_first(responses)
    chosen = [kept[place] for place in sorted(kept)][: max(0, limit)]
    return [hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(chosen, start=1)]


def folded_in(responses: Sequence[SearchResponse]) -> int:
    """How many of the hits become one with another, whether they are within a limit or not."""
    return sum(len(response.hits) for response in responses) - len(_keep_first(responses))


def _keep_first(responses: Sequence[SearchResponse]) -> dict[int, SearchHit]:
    """Each source once, by its place."""
    turns = [sorted(response.hits, key=lambda hit: hit.rank) for response in responses]
    kept: dict[int, SearchHit] = {}
    places: dict[str, int] = {}
    for turn in range(max(map(len, turns), default=0)):
        for hits in turns:
            if turn < len(hits):
                _take(hits[turn], kept, places)
    return kept


def _take(hit: SearchHit, kept: dict[int, SearchHit], places: dict[str, int]) -> None:
    """Add a hit, or make one of it and of those that it is the same as: it may join two that seemed different."""
    found = sorted({places[key] for key in _keys(hit) if key in places})
    if not found:
        found = [max(kept, default=-1) + 1]
        kept[found[0]] = hit
    else:
        kept[found[0]] = together(kept[found[0]], hit)
    for other in found[1:]:
        kept[found[0]] = together(kept[found[0]], kept.pop(other))
        places.update({key: found[0] for key, place in places.items() if place == other})
    places.update(dict.fromkeys(_keys(kept[found[0]]) + _keys(hit), found[0]))


def _keys(hit: SearchHit) -> list[str]:
    doi = doi_of(hit.doi) or doi_of(hit.url)
    return [canonical_url(hit.url), *([f"doi:{doi}"] if doi else [])]
