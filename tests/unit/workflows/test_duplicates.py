"""Which hits and sources are one."""

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
    identities = Identities({}, {})
    for one in hits:
        identities.add(one)
    assert identities.identity_of(hits[1]) == identities.identity_of(hits[2]) == source_id("https://b.org/2")


def test_a_redirect_to_a_known_source_is_a_duplicate() -> None:
    """Its sub-query becomes a co-owner and its address an alias (S0-050, S0-052)."""
    known = read("https://e.org/final", sub_query_ids=["sq-a"])
    # Pages that change from one visit to the next have other bytes each time.
    found = read("https://e.org/final", "later", id=source_id("https://e.org/go"), sub_query_ids=["sq-b"])
    sources, aliases, dropped = register_sources(states.sources(known), {}, [(hit("https://e.org/go"), found)])
    assert list(sources) == [known.id]
    assert dropped == {found.id: known.id}
    assert sources[known.id].sub_query_ids == ["sq-a", "sq-b"]
    assert sources[known.id].aliases == ["https://e.org/go"]
    assert aliases["https://e.org/go"] == known.id
    assert Identities(sources, aliases).identity_of(hit("https://e.org/go")) == known.id


def test_equal_content_is_a_duplicate() -> None:
    """The first in order stays, the second is dropped and counted (S0-050, S0-058)."""
    one, two, three = read("https://a.org/1", "same"), read("https://b.org/2", "same"), read("https://c.org/3")
    sources, _, dropped = register_sources({}, {}, [(hit(source.url), source) for source in (one, two, three)])
    assert list(sources) == [one.id, three.id]
    assert dropped == {two.id: one.id}
    assert sources[one.id].aliases == ["https://b.org/2"]
