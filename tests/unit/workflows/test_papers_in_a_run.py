"""Papers in a run: found by two services, read once, from the open PDF or by the abstract, and marked so everywhere."""

import json
from pathlib import Path
from typing import Any

from activities.preparation import ResearchConfiguration
from activities.reporting.audit import AuditResult, audit
from activities.verifying.material import Material, show_passages
from contracts.checking import ClaimsEntry
from contracts.evidence import DocumentRef, SearchHit, join_hits
from contracts.messages import ExtractClaimsRequest, SearchResponse, StateChange
from contracts.resolved import ProviderChoice
from contracts.state_changes import change_between, json_digest, pack_json
from contracts.vocabulary import Outcome, SourceStatus
from providers.errors import SourceUnreadable
from providers.interfaces import ExtractedDocument
from providers.reading.documents import read_page
from tests.fakes.hostile_pages import pdf
from tests.fakes.killers import HereCalls
from tests.fakes.search_answers import atom_entry, atom_feed
from tests.fakes.search_apis import SearchApis, open_provider
from tests.fakes.world import World, begin
from workflows.driver import Driver
from workflows.phases.searching import merge_hits
from workflows.rules.duplicates import Identities
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

QUESTION = "How do freezing limits prevent transaction wraparound?"
OPEN = "https://papers.example/open.pdf"
BROKEN = "https://papers.example/gone.pdf"
ABSTRACT = "Freezing limits prevent transaction wraparound in {where}. We measure the cost of freezing there."


class Archive:
    """The site of the papers: one PDF, and nothing else that a program may read."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def read(self, url: str, **_: Any) -> ExtractedDocument:
        self.asked.append(url)
        if url != OPEN:
            raise SourceUnreadable("permission_denied", "the server answered 403")
        lines = ["Freezing limits prevent transaction wraparound when vacuum runs often enough to freeze old rows."]
        raw = pdf([*lines, "A limit of two billion transactions is the end of what the counter holds."]).encode()
        extraction = read_page(raw, "application/pdf", None, url)
        return ExtractedDocument(url=url, text=extraction.text, raw=raw, **extraction.facts())


def work(number: int, title: str, where: str, pdf_url: str | None) -> dict[str, Any]:
    words = ABSTRACT.format(where=where).split()
    return {
        "id": f"https://openalex.org/W{number}",
        "doi": f"https://doi.org/10.1234/paper.{number}",
        "display_name": title,
        "publication_date": "2024-03-01",
        "authorships": [{"author": {"display_name": "Ada Lovelace"}}],
        "primary_location": {"source": {"display_name": f"Journal {number}"}},
        "best_oa_location": {"pdf_url": pdf_url} if pdf_url else None,
        "abstract_inverted_index": {word: [n for n, one in enumerate(words) if one == word] for word in words},
    }


async def test_a_run_reads_the_open_pdf_and_cites_the_others_by_their_abstract(tmp_path: Path) -> None:
    """Of one paper at two services, which only one has open, the open text is read; each report marks the abstracts."""
    preprints = atom_feed(
        atom_entry(9, "Preprint on freezing", ABSTRACT.format(where="a preprint"), doi="10.1234/other")
    )
    works = [
        work(1, "Closed twin", "closed storage", None),
        work(1, "Open twin", "open storage", OPEN),
        work(2, "Closed study", "clinics of storage", None),
        work(3, "Broken copy", "broken storage", BROKEN),
    ]
    choices = [ProviderChoice(name=name, available=True, source_types=["academic"]) for name in ("arxiv", "openalex")]
    configuration = ResearchConfiguration(product_version="0.1.0", choose_providers=lambda *_: choices)
    archive = Archive()
    async with (
        SearchApis(answer=preprints) as arxiv_server,
        SearchApis(answer={"results": works}) as openalex_server,
        open_provider("arxiv", arxiv_server.url("arxiv")) as arxiv,
        open_provider("openalex", openalex_server.url("openalex")) as openalex,
    ):
        providers = {"arxiv": arxiv, "openalex": openalex}
        world = World(tmp_path, configuration=configuration, providers=providers, web=archive)  # type: ignore[arg-type]
        state = await begin(world, query=QUESTION, corpus=None, web=True, search={"source_types": ["academic"]})
        run = ResearchRun(state, Inbox(), world.host())
        assert await Driver(run, SupervisorStrategy()).conduct() is Outcome.COMPLETED, state.work.limitations
    extents = {source.title: source.abstract_only for source in state.evidence.readable_sources()}
    expected = {"Preprint on freezing": True, "Closed study": True, "Broken copy": True}
    assert {title: extents.get(title) for title in expected} == expected
    (opened,) = [source for source in state.evidence.readable_sources() if source.url == OPEN]
    assert not opened.abstract_only
    assert not any("doi.org" in url for url in archive.asked), "the page of a closed paper is not opened"
    assert not any(source.status is SourceStatus.FAILED for source in state.evidence.sources.values())

    whole = json.loads(state.model_dump_json())
    change = StateChange(digest=json_digest(whole), packed=pack_json(change_between({}, whole)))
    asked = ExtractClaimsRequest(research_id="r-unit", change=change)
    extracted = await world.host().implementations["extract_claims"](asked)
    claims = await world.notebooks.read(extracted.claims_entry, ClaimsEntry)
    material = Material(claims, {one.text.hash: "word " * 9_000 for one in claims.sources}, by_model=True)
    shown = {item.source_id: show_passages([item.id], material)[0].abstract_only for item in claims.evidence}
    assert shown == {source.id: source.abstract_only for source in state.evidence.readable_sources()}
    assert True in shown.values()

    files = state.work.result.files  # type: ignore[union-attr]
    report = json.loads(await world.content.get_text(files.json_document))
    listed = {source["title"]: source for source in report["sources"]}
    cited = [source for source in report["sources"] if source["cited"]]
    assert {True, False} == {source["abstract_only"] for source in cited}
    assert listed["Closed study"]["warnings"] == [
        "only the abstract of this paper was read: the search named no open text"
    ]
    assert listed["Broken copy"]["warnings"] == [
        "only the abstract of this paper was read, as its open text could not be: the server answered 403"
    ]
    assert listed["Closed study"]["publisher"] == "Journal 2"
    markdown = await world.content.get_text(files.markdown)
    lines = [line for line in markdown.splitlines() if " · " in line]
    for source in cited:
        marks = [" · abstract only · " in line for line in lines if source["title"] in line and source["url"] in line]
        assert marks == [source["abstract_only"]], source["title"]
    assert "abstract only" in await world.content.get_text(files.html)
    assert "the server answered 403" in markdown

    async def audited(document: bytes) -> AuditResult:
        return await audit(
            document,
            lambda name: world.content.get_text(DocumentRef(hash=name)),
            lambda name: world.content.get(DocumentRef(hash=name)),
            HereCalls(),
            version="0.1.0",
            markdown=markdown,
        )

    stored = await world.content.get(files.json_document)
    assert (await audited(stored)).problems == []
    forged = stored.replace(b'"abstract_only": true', b'"abstract_only": false')
    assert forged != stored
    assert not (await audited(forged)).passed, "an abstract that is passed off as the paper is found out"
    await world.close()


def test_the_open_text_of_a_paper_wins() -> None:
    """By its identifier in any spelling, or that of its preprint; the better rank and all details stay."""
    closed = SearchHit(url="https://doi.org/10.1234/X", doi="10.1234/x", rank=1, abstract="A", abstract_only=True)
    preprint = SearchHit(url="https://arxiv.org/pdf/2103.00001v2", doi="10.1234/X", rank=1, expects_pdf=True)
    again = SearchHit(url="https://arxiv.org/abs/2103.00001", rank=2, title="Page")
    other = SearchHit(url="https://doi.org/10.1234/y", rank=3, abstract_only=True)
    lists = [
        SearchResponse(provider="one", hits=[closed, other]),
        SearchResponse(provider="two", hits=[preprint, again]),
    ]
    merged, last = merge_hits(lists, 10)
    assert (merged.url, merged.rank, merged.abstract_only) == (preprint.url, 1, False)
    assert (merged.abstract, merged.expects_pdf, merged.title) == ("A", True, "Page")
    assert (last.url, last.abstract_only) == (other.url, True)
    assert join_hits(preprint, closed).abstract == "A"
    identities = Identities({}, {})
    for hit in (closed, preprint, again):
        identities.add(hit)
    assert len({identities.identity_of(hit) for hit in (closed, preprint, again)}) == 1
    assert identities.leader_of(closed).url == preprint.url
