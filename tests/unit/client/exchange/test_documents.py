"""Documents for people: Word and PDF, read back with libraries."""

import ctypes
import io
import re

import pypdfium2
import pytest
from docx import Document
from docx.oxml.ns import qn
from pypdfium2 import raw

from activities.reporting.report_messages import ReportMessages
from activities.reporting.tree import one_line
from client.exchange.documents import to_docx, to_pdf
from contracts.report import VERDICT_SIGNS, Report, read_report
from tests.unit.activities.reporting.sample import SAMPLE, rendered
from tests.unit.client.exchange.hostile_report import TITLES, report_of


def sample_report() -> Report:
    report = read_report(rendered().document.encode())
    assert isinstance(report, Report)
    return report


def words_of_pdf(data: bytes) -> str:
    """The text of all pages, without white space and hyphens, which lines bring in."""
    document = pypdfium2.PdfDocument(data)
    text = "".join(page.get_textpage().get_text_range() for page in document)
    return squeezed(text)


def links_of_pdf(data: bytes) -> list[str | int]:
    """The addresses and the numbers of pages that the first page links to."""
    document = pypdfium2.PdfDocument(data)
    place, link, found = ctypes.c_int(0), raw.FPDF_LINK(), list[str | int]()
    while raw.FPDFLink_Enumerate(document[0], place, link):
        action = raw.FPDFLink_GetAction(link)
        address = ctypes.create_string_buffer(raw.FPDFAction_GetURIPath(document, action, None, 0))
        raw.FPDFAction_GetURIPath(document, action, address, len(address))
        inner = raw.FPDFDest_GetDestPageIndex(document, raw.FPDFLink_GetDest(document, link))
        found.append(address.value.decode() or inner)
    return found


def squeezed(text: str) -> str:
    """The text without white space, and without the hyphens and marks of line breaks."""
    return re.sub("[\\s\ufffe\u00ad-]", "", text)


def words_of_docx(data: bytes) -> list[str]:
    document = Document(io.BytesIO(data))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return [paragraph.text for paragraph in document.paragraphs] + cells


@pytest.mark.parametrize("form", ["docx", "pdf"])
def test_documents_say_what_the_report_says(form: str) -> None:
    """Text, quotes, tables and sources, each once; the same report gives the same PDF."""
    report = sample_report()
    data = to_docx(report) if form == "docx" else to_pdf(report)
    words = squeezed("".join(words_of_docx(data))) if form == "docx" else words_of_pdf(data)
    question = "How does PostgreSQL prevent transaction ID wraparound?"
    parts = (question, "200 million transactions", "Method and limits", "[1] 25.1. Routine Vacuuming")
    assert all(squeezed(part) in words for part in parts)
    assert words.count(squeezed(SAMPLE.quote(SAMPLE.rule))) == 1
    if form == "pdf":
        assert data == to_pdf(report)
    else:
        opened = Document(io.BytesIO(data))
        assert opened.core_properties.title == question
        assert "Quote" in {paragraph.style.name for paragraph in opened.paragraphs if paragraph.style}


@pytest.mark.parametrize("title", TITLES[:2] + TITLES[4:5])
def test_hostile_words_are_only_words(title: str) -> None:
    """Nothing in a text is read as Typst's or Word's markup; only what is Markdown's is taken as that."""
    shown = re.sub("[*`]", "", one_line(title)).replace("\\\\", "\\")
    assert squeezed(shown) in words_of_pdf(to_pdf(report_of()))
    assert any(shown in line for line in words_of_docx(to_docx(report_of())))


def test_links_lead_to_sources_alone() -> None:
    """An address that no source has is no link in any document."""
    url = "https://source1.test/a_(b)?q=1"
    report = report_of(
        sources=[{"id": "src-1", "url": url}], report={"markdown": f"# T\n\n[in]({url}) [out](https://evil.test/)\n"}
    )
    opened = Document(io.BytesIO(to_docx(report)))
    outer = [part.target_ref for part in opened.part.rels.values() if part.is_external]
    assert outer == [url]
    assert links_of_pdf(to_pdf(report)) == [url]


@pytest.mark.parametrize(
    "markdown",
    [
        *("", "> > > 1. - a\n", "|a|\n|-|\n", "# \n", "- \n- \n", "1000000000. x\n", "```\n\n```\n"),
        "# T\n\no" + "\u0301" * 100_000 + " ¹ ² ⁹ ① ፩ [፩]\n",
    ],
)
def test_any_text_gives_documents(markdown: str) -> None:
    """Also one that is empty, nothing but signs, in no language, or a letter with thousands of combining characters."""
    report = report_of(report={"markdown": markdown}, claims=[], language='"><script>')
    assert to_pdf(report).startswith(b"%PDF")
    assert to_docx(report).startswith(b"PK")


CITED = (
    "# T\n\nIt is so [1]. And so [2][1], and [9].\n\n3. a\n\n   - b\n4. c\n\n## Sources\n\n- [1] A · x\n- [2] B · y\n"
)


def test_citations_link_to_the_entry_of_their_source() -> None:
    """In both documents a number leads to its source; one that no source has is a word."""
    report = report_of(report={"markdown": CITED}, claims=[])
    body = Document(io.BytesIO(to_docx(report))).element.body
    places = [each.get(qn("w:name")) for each in body.iter(qn("w:bookmarkStart"))]
    leading = [each.get(qn("w:anchor")) for each in body.iter(qn("w:hyperlink"))]
    assert (places, leading) == (["source-1", "source-2"], ["source-1", "source-2", "source-1"])
    assert links_of_pdf(to_pdf(report)) == [0, 0, 0]


def test_a_document_is_in_the_language_that_its_model_was_asked_for() -> None:
    """Citations lead to the list of sources under its own heading, and Word checks the spelling of that language."""
    asked = {"language": "en", "effective_request": {"output": {"language": "de"}}, "claims": []}
    markdown = CITED.replace("## Sources", "## Quellen")
    for engine, language, count in (("model", "de", 2), ("extractive", "en", 0)):
        report = report_of(report={"markdown": markdown}, engine_by_role={"synthesizer": engine}, **asked)
        opened = Document(io.BytesIO(to_docx(report)))
        assert opened.core_properties.language == language
        assert len(list(opened.element.body.iter(qn("w:bookmarkStart")))) == count


def test_signs_of_verdicts_are_in_both_documents() -> None:
    """What Markdown says behind a sentence stands there in PDF and Word, too, in letters that the fonts have."""
    signs = [f"({ReportMessages('en').sign(verdict)})" for verdict in VERDICT_SIGNS]
    text = "\n\n".join(f"It is so [1]. *{sign}*" for sign in signs)
    report = report_of(report={"markdown": f"# T\n\n{text}\n"}, claims=[])
    lines = words_of_docx(to_docx(report))
    words = words_of_pdf(to_pdf(report))
    for sign in signs:
        assert f"It is so [1]. {sign}" in lines
        assert squeezed(sign) in words
