"""Several providers' answers as one list."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.addresses import canonical_url
from contracts.evidence import SearchHit
from contracts.messages import SearchResponse
from workflows.phases.searching import Answers, merge_hits


def response(provider: str, *hits: SearchHit) -> SearchResponse:
    """An answer of a provider, ranks as they come."""
    ranked = [hit.model_copy(update={"rank": rank, "provider": provider}) for rank, hit in enumerate(hits, start=1)]
    return SearchResponse(provider=provider, hits=ranked)


def hit(url: str, **details: object) -> SearchHit:
    """A hit without a place yet."""
    return SearchHit(url=url, title=url, rank=1, provider="x").model_copy(update=details)


HITS = st.lists(
    st.builds(
        hit,
        st.sampled_from([f"https://e.org/{number}" for number in range(6)] + ["https://E.org/1?utm_source=x"]),
        doi=st.sampled_from([None, None, "10.1000/a", "10.1000/B", "doi:10.1000/b"]),
    ),
    max_size=6,
)


@given(st.lists(HITS, max_size=3), st.integers(0, 12))
def test_a_merged_list_has_each_source_once(lists: list[list[SearchHit]], limit: int) -> None:
    """No URL and no DOI twice, ranks 1 to n, nothing beyond the limit, nothing lost below it (X-16)."""
    responses = [response(f"p{number}", *hits) for number, hits in enumerate(lists)]
    found = merge_hits(responses, limit)
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
    assert len(found) <= limit
    urls = [canonical_url(hit.url) for hit in found]
    assert len(set(urls)) == len(urls)
    dois = [hit.doi.lower().removeprefix("doi:") for hit in found if hit.doi]
    assert len(set(dois)) == len(dois)
    everything = merge_hits(responses, 100)
    assert (Answers(responses).folded if len(responses) > 1 else 0) == (
        sum(map(len, lists)) - len(everything) if len(responses) > 1 else 0
    )
    assert found == everything[:limit]


def test_details_that_one_lacks_come_from_the_other() -> None:
    """Of two hits of one source the better-known details survive, at the better place."""
    plain = response("a", hit("https://e.org/x", title="X", snippet="short", published_at="2024"))
    rich = hit(
        "https://e.org/x?fbclid=1", title="Y", snippet="rather longer", doi="10.1000/x", authors=["A"], venue="V",
        published_at="2024-05", source_type="academic",
    )  # fmt: skip
    (found,) = merge_hits([plain, response("b", hit("https://doi.org/10.1000/X"), rich)], 5)
    assert (found.title, found.snippet, found.doi, found.authors) == ("X", "short", "10.1000/x", ["A"])
    assert (found.venue, found.published_at, found.source_type, found.rank) == ("V", "2024", "academic", 1)
