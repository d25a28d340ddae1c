"""The activity `read_source` for papers: the open text, else the abstract with its reason; what roles learn of it."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.roles.prompt_rendering import render_role
from contracts import failures
from contracts.checking import AskedClaim, ShownPassage
from contracts.checking_roles import CHECKER, CheckInput
from contracts.evidence import SearchHit
from contracts.messages import ReadRecord
from contracts.notebooks import HitsEntry, SourceEntry
from contracts.roles import ANALYZER, SYNTHESIZER, WriteInput
from contracts.sentences import Message
from providers import errors
from providers.storage.stored_notebooks import Notebooks
from tests.fakes import states
from tests.unit.activities.roles.test_prompts import WRITING
from tests.unit.activities.scripted import MemoryStore, analyze_input, common, reference, source
from tests.unit.activities.test_searching_and_reading import Shelf, document, read

PDF_URL = "https://papers.example/p.pdf"
ABSTRACT = "Vacuum prevents wraparound in all of the systems that we measured."
PAPER = SearchHit(url=PDF_URL, title="A paper", abstract=ABSTRACT, venue="Journal", authors=["A. B."], doi="10.1234/x")
PDF = document(url=PDF_URL, text="The whole paper.", raw=b"%PDF", media_type="application/pdf")
PAGE = document(url=PDF_URL, text="Please prove that you are human.")
BUSY = errors.RateLimited("two requests to the site are under way", retry_after=1.0)
AWAY = errors.Unavailable("the server answered 503")


async def read_paper(given: Any, hit: SearchHit, **fields: Any) -> tuple[ReadRecord, SourceEntry]:
    """What a read of this hit gives."""
    content = MemoryStore()
    notebooks = Notebooks(content)
    resolved_entry = await notebooks.write(states.resolved())
    entry = await notebooks.write(HitsEntry(hits=[hit], date="2026-11-21", resolved_entry=resolved_entry))
    return await read(given, content, url=hit.url, hit_entries=[entry], **fields)


@pytest.mark.parametrize(
    ("given", "hit", "why"),
    [
        (AssertionError("it must not be opened"), {"abstract_only": True}, Message("abstract_closed")),
        (errors.SourceUnreadable("robots", "the site asks robots not to read this page"), {},
         Message("abstract_instead", why="the site asks robots not to read this page")),
        (errors.SourceUnreadable("no_text", Message("skip_document")), {},
         Message("abstract_instead", why=Message("skip_document"))),
        (PAGE, {"expects_pdf": True}, Message("abstract_instead", why=Message("abstract_no_pdf"))),
    ],
)  # fmt: skip
async def test_a_paper_that_cannot_be_read_is_its_abstract_with_the_reason(
    given: Any, hit: dict[str, Any], why: Message
) -> None:
    """A text that is not open is not looked for; one that fails, or a page in its place, never passes for the paper."""
    record, entry = await read_paper(given, PAPER.with_fields(**hit))
    assert (record.abstract_only, entry.abstract_only) == (True, True)
    assert entry.text is not None
    assert entry.text.size == len(ABSTRACT)
    assert [warning.data() for warning in entry.warnings if isinstance(warning, Message)] == [why.data()]
    assert (entry.title, entry.publisher, entry.authors, entry.doi) == ("A paper", "Journal", ["A. B."], "10.1234/x")


@pytest.mark.parametrize(("given", "hit"), [(PDF, {"expects_pdf": True}), (PAGE, {})])
async def test_an_open_text_is_read(given: Any, hit: dict[str, Any]) -> None:
    """The PDF, or whatever a service calls an open copy."""
    record, entry = await read_paper(given, PAPER.with_fields(**hit))
    assert (record.abstract_only, entry.abstract_only, entry.warnings) == (False, False, [])
    assert record.media_type == given.media_type


@pytest.mark.parametrize(
    ("given", "patience", "failure"),
    [
        (AWAY, 10.0, failures.SOURCE_UNAVAILABLE),
        (BUSY, 0.0, failures.RATE_LIMITED),
        (errors.StoreUnavailable("the store does not answer"), 0.0, failures.STORE_UNAVAILABLE),
    ],
)
async def test_a_site_that_may_answer_later_is_asked_again(given: Any, patience: float, failure: str) -> None:
    """The abstract is for what stays unreadable: first come the attempts that any page has."""
    with pytest.raises(ApplicationError) as raised:
        await read_paper(given, PAPER, patience_seconds=patience)
    assert (raised.value.type, raised.value.non_retryable) == (failure, False)


async def test_after_the_last_attempt_the_abstract_is_read() -> None:
    """With no time left for another one; a hit without an abstract fails as any page does."""
    _, entry = await read_paper(AWAY, PAPER, patience_seconds=0.0)
    assert entry.abstract_only
    assert entry.warnings == [Message("abstract_instead", why="the server answered 503")]
    with pytest.raises(ApplicationError) as raised:
        await read_paper(AWAY, PAPER.with_fields(abstract=""), patience_seconds=0.0)
    assert raised.value.type == failures.SOURCE_UNAVAILABLE


async def test_an_abstract_is_not_looked_for_at_the_address_of_its_paper() -> None:
    """When sources are read again, it stays: the page there is another text."""
    content = MemoryStore()
    notebooks = Notebooks(content)
    entry = HitsEntry(
        hits=[PAPER.with_fields(abstract_only=True)], resolved_entry=await notebooks.write(states.resolved())
    )
    first, _ = await read(None, content, url=PDF_URL, hit_entries=[await notebooks.write(entry)])
    shelf = Shelf(AssertionError("it must not be opened"))
    again, _ = await read(None, content, shelf, url=PDF_URL, known_entry=first.entry)
    assert (again.entry, again.text, again.abstract_only) == (first.entry, first.text, True)


def test_roles_learn_that_a_source_is_an_abstract() -> None:
    """The reader at the source, the writer at the quote, the checker at the passage; of other sources nothing is said."""
    note = "abstract only, not the paper"
    whole = source(reference(ABSTRACT))
    for extract, count in ((whole, 0), (whole.with_fields(abstract_only=True), 1)):
        documents = {reference(ABSTRACT).hash: ABSTRACT}
        reader = render_role(ANALYZER, analyze_input([extract]), documents).prompt
        assert reader.count(f'part="{note}"') == count
    sources = [one.with_fields(abstract_only=True) for one in WRITING["sources"]]
    texts = {one.text.hash: "Vacuum must visit every table to prevent wraparound failures. " * 9 for one in sources}
    writer = render_role(SYNTHESIZER, WriteInput(**common(**WRITING | {"sources": sources})), texts).prompt
    assert f" ({note}) says: “" in writer
    passage = ShownPassage(evidence_id="ev-1", title="A paper", quote=ABSTRACT, abstract_only=True)
    claims = [AskedClaim(fingerprint="c-1", text="Vacuum prevents it.", passages=[passage])]
    assert f"(A paper; {note}): " in render_role(CHECKER, CheckInput(**common(claims=claims)), {}).prompt
