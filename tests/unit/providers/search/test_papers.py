"""Papers: read from a PDF that is open, else by their abstract; and what their services may send."""

import time
from typing import Any

import pytest

from contracts.evidence import SearchHit
from providers.errors import InvalidCall, RateLimited, Unavailable
from providers.search.hits import MAX_ABSTRACT_LENGTH, paragraphs
from providers.search.xml_answers import read_xml
from tests.fakes.search_answers import KEYS, PAPERS, atom_entry, atom_feed, pubmed_article, pubmed_set
from tests.fakes.search_apis import SearchApis, asking, open_provider, search

FUTURE = {"date-parts": [[9_000, 1, 1]]}
CC = "https://creativecommons.org/licenses/by/4.0/"
PDF = {"URL": "https://a.example/p.pdf", "content-type": "application/pdf", "intended-application": "text-mining"}


async def first_hit(name: str, answer: Any, **given: Any) -> SearchHit:
    async with SearchApis(answer=answer) as server:
        return (await search(name, server, **given)).hits[0]


@pytest.mark.parametrize("name", PAPERS)
async def test_a_paper_comes_with_all_of_a_citation(name: str) -> None:
    """Its authors, journal, day, identifier and abstract; the open text is read, as a PDF where the service says so."""
    async with SearchApis() as server:
        hit = (await search(name, server, max_results=1)).hits[0]
    assert hit.authors[0] == "Ada Lovelace"
    assert len(hit.authors) == 2
    assert (hit.venue, hit.published_at) == ("arXiv" if name == "arxiv" else "Journal of Examples", "2021-03-04")
    assert hit.doi == ("10.48550/arXiv.2103.00000" if name == "arxiv" else "10.1234/example.0")
    assert "About" in hit.abstract
    assert (hit.abstract_only, hit.expects_pdf) == (False, name != "semantic_scholar")


CROSSREF: dict[str, Any] = {
    "DOI": "10.1234/x",
    "title": ["T"],
    "abstract": "<jats:p>One.</jats:p><jats:p>Two.</jats:p>",
}


@pytest.mark.parametrize(
    ("work", "url"),
    [
        ({"license": [{"URL": CC}], "link": [PDF]}, "https://a.example/p.pdf"),
        ({"link": [PDF]}, ""),
        ({"license": [{"URL": "https://www.elsevier.com/tdm/userlicense/1.0/"}], "link": [PDF]}, ""),
        ({"license": [{"URL": CC, "start": FUTURE}], "link": [PDF]}, ""),
        ({"license": [{"URL": CC}], "link": [PDF | {"intended-application": "similarity-checking"}]}, ""),
        ({"license": [{"URL": CC}], "link": [PDF | {"content-type": "text/html"}]}, ""),
        ({"license": [{"URL": CC}], "link": [7, PDF | {"URL": None}]}, ""),
        ({"license": "x", "link": {}}, ""),
    ],
)
async def test_a_publishers_pdf_is_read_only_under_an_open_licence(work: dict[str, Any], url: str) -> None:
    """A link for text mining says nothing about who may read; a licence that begins later is none yet."""
    hit = await first_hit("crossref", {"message": {"items": [CROSSREF | work]}})
    assert (hit.url, hit.abstract_only) == (url or "https://doi.org/10.1234/x", not url)
    assert hit.abstract == "One.\n\nTwo."


async def test_the_markup_of_abstracts_is_not_their_text() -> None:
    """Sections of an abstract are paragraphs; markup that is cut or nested costs no more time than its length."""
    sections = "<jats:sec><jats:title>Aim</jats:title><jats:p>A &lt; B &amp; C</jats:p></jats:sec>"
    hit = await first_hit("crossref", {"message": {"items": [CROSSREF | {"abstract": sections}]}})
    assert hit.abstract == "Aim\n\nA < B & C"
    began = time.monotonic()
    await first_hit("crossref", {"message": {"items": [CROSSREF | {"abstract": "<jats:p " * 100_000}]}})
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("location", "url"),
    [({"pdf_url": "https://a.example/p.pdf"}, "https://a.example/p.pdf"), ({"pdf_url": None}, ""), (None, "")],
)
async def test_an_abstract_is_put_together_from_its_words(location: Any, url: str) -> None:
    """Without the address of a PDF it is what is read; positions that are none, or far away, are left out."""
    index = {"open": [2], "An": [0], "far": [10**9], "very": [1], "bad": ["x", True, -1, None, 1.5], "worse": {"a": 1}}
    work = {"doi": "https://doi.org/10.1234/x", "display_name": "T", "abstract_inverted_index": index}
    hit = await first_hit("openalex", {"results": [work | {"best_oa_location": location}]})
    assert (hit.abstract, hit.abstract_only) == ("An very open", not url)
    assert (hit.url, hit.doi) == (url or "https://doi.org/10.1234/x", "10.1234/x")


@pytest.mark.parametrize("name", ["openalex", "pubmed"])
async def test_a_search_that_finds_nothing_with_all_words_is_made_with_any(name: str) -> None:
    """Both services want all words of a query, of which a question has many; one word is not asked for twice."""
    async with SearchApis("empty") as server:
        assert (await search(name, server, "backups of databases")).hits == []
        assert [asked.query for asked in server.asked] == ["backups databases", "backups OR databases"]
        await search(name, server, "backups")
    assert len(server.asked) == 3


async def test_papers_of_medicine_come_in_the_order_of_their_identifiers() -> None:
    """Their parts keep their labels, inline markup is no text; identifiers of cited papers are not theirs."""
    labelled = '<AbstractText Label="AIM">H<sub>2</sub>O &lt; D.</AbstractText><AbstractText>More.</AbstractText>'
    cited = '<ArticleId IdType="pmc">PMC666</ArticleId><ArticleId IdType="doi">10.9/cited</ArticleId>'
    papers = pubmed_set(
        pubmed_article("1001", "Second <i>one</i>.", "", pmc="PMC7", doi="10.1234/b"),
        pubmed_article("1000", "First.", labelled, cited=cited),
        pubmed_article("1002", "Odd.", "", "x-y-z", pmc="../evil"),
    )

    class Library(SearchApis):
        def _body(self, asked: Any) -> tuple[str, bytes]:
            self.answer = papers if asked.path.endswith("efetch.fcgi") else None
            return super()._body(asked)

    async with Library(results=4) as server:
        hits = (await search("pubmed", server)).hits
    assert [(hit.rank, hit.title, hit.url) for hit in hits] == [
        (1, "First", "https://pubmed.ncbi.nlm.nih.gov/1000/"),
        (2, "Second one", "https://europepmc.org/articles/PMC7?pdf=render"),
        (3, "Odd", "https://pubmed.ncbi.nlm.nih.gov/1002/"),
    ]
    assert (hits[0].abstract, hits[0].doi) == ("AIM: H2O < D.\n\nMore.", None)
    assert [hit.abstract_only for hit in hits] == [True, False, False]
    assert hits[2].published_at is None


async def test_services_that_ask_for_a_mail_address_get_the_operators() -> None:
    """Crossref and the library of medicine do; a contact that is no mail address stays in the name of the client."""
    for name, parameter in (("crossref", "mailto"), ("pubmed", "email")):
        for contact, sent in (("me@example.org", "me@example.org"), ("https://example.org/bot", None)):
            async with (
                SearchApis() as server,
                open_provider(name, server.url(name), RESEARCH_CONTACT=contact) as provider,
            ):
                await provider.search(asking(name))
            assert server.asked[0].parameters.get(parameter) == sent


async def test_a_key_in_a_form_is_in_no_url() -> None:
    """The library of medicine takes its key in the body of each request."""
    async with SearchApis() as server:
        targets: list[str] = []
        serve = server.serve

        async def noting(request: Any, *rest: Any) -> bool:
            targets.append(request.target)
            return await serve(request, *rest)

        server.serve = noting  # type: ignore[method-assign]
        await search("pubmed", server)
    assert [asked.key for asked in server.asked] == [KEYS["pubmed"]] * 2
    assert not any("key" in target for target in targets)


@pytest.mark.parametrize(
    ("name", "status", "answer", "kind"),
    [
        ("arxiv", 200, atom_feed("<entry><id>http://arxiv.org/api/errors#x</id><title>Error</title></entry>"), InvalidCall),
        ("arxiv", 429, "Rate exceeded.", RateLimited),
        ("arxiv", 200, "Rate exceeded.", Unavailable),
        ("arxiv", 200, "<?xml version='1.0'?><html/>", Unavailable),
        ("openalex", 403, {"error": "Rate limit exceeded", "message": "slow down"}, RateLimited),
        ("pubmed", 429, {"error": "API rate limit exceeded", "count": "4", "limit": "3"}, RateLimited),
        ("pubmed", 200, {"esearchresult": {"ERROR": "Search Backend failed"}}, Unavailable),
        ("pubmed", 200, {"esearchresult": {"idlist": ["1", "2 OR 3"]}}, Unavailable),
    ],
)  # fmt: skip
async def test_each_service_has_its_own_way_of_refusing(name: str, status: int, answer: Any, kind: type) -> None:
    """None of them is an empty list."""
    async with SearchApis(answer=answer, status=status) as server:
        with pytest.raises(kind):
            await search(name, server)


BOMB = "".join(f'<!ENTITY a{n} "{"&a" + str(n - 1) + ";"}{"&a" + str(n - 1) + ";"}">' for n in range(1, 30))
DECLARED = f'<!DOCTYPE feed [<!ENTITY a0 "x">{BOMB}]>'


@pytest.mark.parametrize(
    "body",
    [
        f"{DECLARED}<feed>&a29;</feed>",
        f'{DECLARED}<feed b="&a29;"/>',
        '<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed>&x;</feed>',
        '<!DOCTYPE feed [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x">%x;]><feed/>',
        "<a>" * 100_000,
        "<feed>\0</feed>",
        "",
    ],
)
def test_a_hostile_document_is_no_answer(body: str) -> None:
    """Entities that grow, files and other servers, endless depth: refused at once, and nothing is opened."""
    began = time.monotonic()
    assert read_xml(body.encode()) is None
    assert time.monotonic() - began < 2


def test_an_outer_declaration_is_never_fetched() -> None:
    """The library of medicine names the definition of its documents; reading them needs no network."""
    root = read_xml(pubmed_set(pubmed_article("1", "T", "")).encode())
    assert root is not None
    assert root.find("PubmedArticle/MedlineCitation/PMID").text == "1"


async def test_hostile_papers_cost_at_most_themselves() -> None:
    """Another address than a paper's gives no hit; text of any length is bounded, and markup in it is text."""
    feed = atom_feed(
        atom_entry(1, "Good", "Fine. <script>alert(1)</script> " + "word " * 50_000, doi="10.1234/x"),
        "<entry><id>javascript:alert(1)</id><title>Bad</title></entry>",
        "<entry/>",
        atom_entry(2, "<b>Bold</b> \u202e title", ""),
    )
    async with SearchApis(answer=feed) as server:
        hits = (await search("arxiv", server)).hits
    assert [(hit.rank, hit.title, hit.url) for hit in hits] == [
        (1, "Good", "https://arxiv.org/pdf/2103.00001v2"),
        (4, "Bold title", "https://arxiv.org/pdf/2103.00002v2"),
    ]
    assert hits[0].doi == "10.1234/x"
    assert hits[0].abstract.startswith("Fine. <script>alert(1)</script> word")
    assert len(hits[0].abstract) <= MAX_ABSTRACT_LENGTH + 2
    assert hits[1].abstract_only is False


def test_an_abstract_has_paragraphs() -> None:
    """White space, invisible characters and empty lines are not part of it; a cut ends at a word."""
    assert paragraphs(" One\u200b \x00two\n \n\nThree\t four ", 100) == "One two\n\nThree four"
    assert paragraphs("one two three", 9) == "one two …"
    assert paragraphs(None, 9) == ""


async def test_the_price_of_a_search_is_that_of_the_answer() -> None:
    """Exa states it; a figure that is none leaves it unknown."""
    rows = [{"url": "https://a.example/", "title": "A"}]
    for costs, price in (({"total": 0.005}, 0.005), ({"total": "x"}, None), (None, None), ({"total": -1}, None)):
        async with SearchApis(answer={"results": rows, "costDollars": costs}) as server:
            assert (await search("exa", server)).cost_usd == price


async def test_serper_gets_no_operator_in_a_query() -> None:
    """A word is never excluded, and no condition set, by the words of a question."""
    text = 'set -v "now" site:x.example or intitle:y a-b https://z.example'
    async with SearchApis() as server:
        await search("serper", server, text)
    assert server.asked[0].query == "set v now site :x.example or intitle :y a-b https://z.example"
