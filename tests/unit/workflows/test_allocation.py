"""Which hits are read: order of arrival must not matter."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.addresses import source_id
from tests.fakes.states import hit
from workflows.rules.allocation import allot, guaranteed_share, unread

URLS = [f"https://example.org/{number}" for number in range(12)]
HITS = st.lists(st.sampled_from(URLS), max_size=10, unique=True).map(
    lambda urls: [hit(url, rank) for rank, url in enumerate(urls, start=1)]
)
SEARCHES = st.dictionaries(st.sampled_from(["sq-a", "sq-b", "sq-c", "sq-d"]), HITS, min_size=1)


@given(SEARCHES, st.integers(0, 15), st.integers(1, 6), st.sets(st.sampled_from(URLS)))
def test_the_allotment_keeps_its_promises(searches, budget, per_query, known_urls) -> None:
    """Never over budget, never a known source, each source once, owner = lowest (sub-query, rank) (S0-050, S0-051)."""
    known = {source_id(url) for url in known_urls}
    allotment = allot(searches, known, budget, dict.fromkeys(searches, per_query))
    chosen = [source_id(choice.hit.url) for choice in allotment.chosen]
    assert len(chosen) <= budget
    assert len(set(chosen)) == len(chosen)
    assert not set(chosen) & known
    order = list(searches)
    for choice in allotment.chosen:
        finders = [query for query in order if any(found.url == choice.hit.url for found in searches[query])]
        assert choice.sub_query_id == finders[0]
        assert allotment.owners[source_id(choice.hit.url)] == finders


@given(SEARCHES, st.integers(0, 15), st.integers(1, 6))
def test_early_reads_are_always_part_of_the_allotment(searches, budget, per_query) -> None:
    """What a pipeline starts to read before the other searches return is never read in vain (order rules)."""
    chosen = {
        source_id(choice.hit.url)
        for choice in allot(searches, set(), budget, dict.fromkeys(searches, per_query)).chosen
    }
    for position, (_, hits) in enumerate(searches.items()):
        share = guaranteed_share(budget, len(searches), position, per_query)
        early = {source_id(found.url) for found in unread(hits, set())[:share]}
        assert early <= chosen


def test_the_rest_goes_rank_by_rank_in_sub_query_order() -> None:
    """After the guaranteed shares the next rank of the first sub-query comes first."""
    searches = {
        "sq-a": [hit(URLS[number], number + 1) for number in range(4)],
        "sq-b": [hit(URLS[number + 6], number + 1) for number in range(4)],
    }
    chosen = [choice.hit.url for choice in allot(searches, set(), 3, dict.fromkeys(searches, 5)).chosen]
    assert sorted(chosen) == sorted([URLS[0], URLS[6], URLS[1]])


def test_duplicates_are_counted_for_the_later_sub_query() -> None:
    """A URL that an earlier sub-query found is a duplicate of the later one (S0-050, S0-058)."""
    searches = {"sq-a": [hit(URLS[0], 1)], "sq-b": [hit(URLS[0] + "?utm_source=x", 1), hit(URLS[1], 2)]}
    allotment = allot(searches, set(), 5, dict.fromkeys(searches, 5))
    assert allotment.duplicates_by_sub_query == {"sq-a": 0, "sq-b": 1}
    assert len(allotment.chosen) == 2


def test_a_failed_search_keeps_its_place() -> None:
    """A sub-query without hits does not move the others' shares about."""
    searches = {"sq-a": [], "sq-b": [hit(URLS[0], 1), hit(URLS[1], 2)]}
    assert [choice.hit.url for choice in allot(searches, set(), 2, dict.fromkeys(searches, 5)).chosen] == [
        URLS[0],
        URLS[1],
    ]
