"""Which hits and sources are one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.addresses import digest, source_id
from contracts.evidence import DocumentRef, SearchHit, Source
from tests.fakes import states
from workflows.rules.duplicates import Identities, register_sources

DOI = "10.1000/x"


def hit(url: str, doi: str | None = None) -> SearchHit:
    """A hit, perhaps of a work with an identifier."""
    return states.hit(url, 1).model_copy(update={"doi": doi})


def read(url: str, text: str = "", **changes: object) -> Source:
    """A source as read; `text` stands for its content."""
    content = DocumentRef(hash=digest(text or url), size=1_000)
    return states.source(url, text=content, content_hash=digest("raw" + (text or url)), **changes)


def test_a_known_address_is_a_known_source() -> None:
    """A URL, its spellings and the addresses that led to it are one source (S0-050)."""
    known = states.source("https://e.org/final", aliases=["https://e.org/short"])
    identities = Identities(states.sources(known), {"https://e.org/older": known.id})
    for url in ("https://E.org/final#x", "https://e.org/short?utm_source=x", "https://e.org/older"):
        assert identities.identity_of(hit(url)) == known.id
    assert identities.identity_of(hit("https://e.org/new")) == source_id("https://e.org/new")


def test_one_work_is_one_source() -> None:
    """The same DOI is the same source, whichever site shows it; the first hit names it (ID rules of the domain)."""
    hits = [hit("https://a.org/1"), hit("https://b.org/2", DOI), hit("https://doi.org/10.1000/X")]
    identities = Identities({}, {}, hits)
    assert identities.identity_of(hits[1]) == identities.identity_of(hits[2]) == source_id("https://b.org/2")
    joined = Identities({}, {}, [*hits, hit("https://a.org/1", DOI)])
    assert {joined.identity_of(found) for found in hits} == {source_id("https://a.org/1")}


HITS = st.lists(
    st.builds(
        hit,
        st.sampled_from([f"https://e.org/{n}" for n in range(5)]),
        st.sampled_from([None, "10.1000/a", "10.1000/b"]),
    )
)


@given(HITS, st.lists(st.sampled_from([f"https://e.org/{n}" for n in range(5)]), max_size=2, unique=True))
def test_equal_keys_give_equal_identities(hits: list[SearchHit], known_urls: list[str]) -> None:
    """Hits of one URL or of one DOI have one identity, which is a known source's or one of the hits'."""
    known = states.sources(*(states.source(url) for url in known_urls))
    identities = Identities(known, {}, hits)
    found = [identities.identity_of(each) for each in hits]
    for one, first in zip(hits, found, strict=True):
        assert first in known or first in {source_id(each.url) for each in hits}
        for other, second in zip(hits, found, strict=True):
            if one.url == other.url or (one.doi == other.doi is not None and not {first, second} <= set(known)):
                assert first == second


def test_a_redirect_to_a_known_source_is_a_duplicate() -> None:
    """Its sub-query becomes a co-owner and its address an alias (S0-050, S0-052)."""
    known = read("https://e.org/final", sub_query_ids=["sq-a"])
    # Pages that change from one visit to the next have other bytes each time.
    found = read("https://e.org/final", "later", id=source_id("https://e.org/go"), sub_query_ids=["sq-b"])
    result = register_sources(states.sources(known), {}, [(hit("https://e.org/go"), found)])
    assert list(result.sources) == [known.id]
    assert result.dropped == {found.id: known.id}
    assert result.sources[known.id].sub_query_ids == ["sq-a", "sq-b"]
    assert result.sources[known.id].aliases == ["https://e.org/go"]
    assert result.aliases["https://e.org/go"] == known.id
    assert Identities(result.sources, result.aliases).identity_of(hit("https://e.org/go")) == known.id


def test_equal_content_is_a_duplicate() -> None:
    """The first in order stays, the second is dropped and counted (S0-050, S0-058)."""
    one, two, three = read("https://a.org/1", "same"), read("https://b.org/2", "same"), read("https://c.org/3")
    result = register_sources({}, {}, [(hit(source.url), source) for source in (one, two, three)])
    assert list(result.sources) == [one.id, three.id]
    assert result.dropped == {two.id: one.id}
    assert result.sources[one.id].aliases == ["https://b.org/2"]


def test_two_pages_never_share_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages whose addresses hash to one id stay two sources, among hits and beside what was read before."""
    monkeypatch.setattr(
        "workflows.rules.duplicates.source_id", lambda url: "src-1" if url.startswith("http") else f"src-{url}"
    )
    first, second = hit("https://a.org/1"), hit("https://b.org/2")
    identities = Identities({}, {}, [first, second])
    assert identities.identity_of(first) == "src-1"
    assert identities.identity_of(second) not in ("", "src-1")
    assert identities.leader_of(second) == second
    known = states.source("https://a.org/1", id="src-1")
    assert Identities(states.sources(known), {}).identity_of(second) != "src-1"
