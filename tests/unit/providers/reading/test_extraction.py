"""Extraction of any file: the kind by its bytes, the text, or a typed reason."""

import gzip
import io
import zipfile

import docx
import pytest

from providers.errors import SourceUnreadable
from providers.reading.extraction import extract
from tests.fakes.documents import one_page_pdf


def kind_of_refusal(raw: bytes, name: str) -> str:
    with pytest.raises(SourceUnreadable) as caught:
        extract(raw, name)
    return caught.value.kind


def word_document() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Plan"
    document.add_heading("Goals", 1)
    paragraph = document.add_paragraph("Up to 2")
    paragraph.add_run("32").font.superscript = True
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("raw", "name", "media_type", "text"),
    [
        (b"<!DOCTYPE html><html><body><p>Real type.</p>", "page.txt", "text/html", "Real type."),
        (b"<p>Short &amp; sweet</p>", "page.html", "text/html", "Short & sweet"),
        (b"# Head\n\nSome *emphasis* and [a link](x).\n", "a.md", "text/markdown", "# Head\n\nSome emphasis and a link."),
        (b"| a | b |\n|---|---|\n| 1 | 2 |\n", "t.md", "text/markdown", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (b"wrapped\r\nline\r\n\r\nnext", "a.txt", "text/plain", "wrapped line\n\nnext"),
        (b"Title\n=====\n\nbody", "README", "text/plain", "# Title\n\nbody"),
        (b"- one\n  more\n- two", "a.txt", "text/plain", "- one more\n- two"),
        ("\ufeffh\u00e9".encode("utf-16-le"), "a.txt", "text/plain", "h\u00e9"),
        (gzip.compress(b"packed words", mtime=0), "log.txt.gz", "application/gzip", "packed words"),
        ("<meta charset=iso-8859-1><p>Caf\u00e9</p>".encode("latin-1"), "a.html", "text/html", "Caf\u00e9"),
        (one_page_pdf("Hello page."), "scan.html", "application/pdf", "Hello page."),
    ],
)  # fmt: skip
def test_each_kind_is_read_by_what_it_is(raw, name, media_type, text):
    """The bytes decide, whatever the name says; the text is canonical."""
    found = extract(raw, name)
    assert (found.media_type, found.text) == (media_type, text)


def test_word_documents_keep_headings_superscripts_and_tables():
    """A Word document gives the same canonical forms as a page."""
    found = extract(word_document(), "plan.docx")
    assert found.title == "Plan"
    assert found.text == "# Goals\n\nUp to 2^32\n\n| a | b |\n| --- | --- |"


@pytest.mark.parametrize(
    ("raw", "name", "kind"),
    [
        (b"", "a.txt", "empty"),
        (b" \n\t\n", "a.txt", "empty"),
        (bytes(range(256)) * 8, "a.md", "binary"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 50, "a.md", "binary"),
        (b"\x7fELF" + b"x" * 50, "README", "binary"),
        (b"body { color: red }", "a.css", "wrong_type"),
        (b"PK\x03\x04 and no more", "a.docx", "malformed"),
        (b"%PDF-1.4 and no more", "a.pdf", "malformed"),
        (one_page_pdf(""), "scan.pdf", "no_text"),
        (gzip.compress(b"x", mtime=0)[:-6], "a.gz", "malformed"),
        (gzip.compress(b"x" * 30_000_000, mtime=0), "bomb.gz", "too_large"),
        (gzip.compress(one_page_pdf("x"), mtime=0), "a.pdf.gz", "wrong_type"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "a.docx", "encrypted"),
    ],
)
def test_what_cannot_be_read_has_a_typed_reason(raw, name, kind):
    """No file is skipped without saying why."""
    assert kind_of_refusal(raw, name) == kind


def test_other_archives_are_no_documents():
    """A zip file without a Word document in it is refused."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "x")
    assert kind_of_refusal(buffer.getvalue(), "a.docx") == "wrong_type"


def test_a_document_without_title_is_named_after_its_file():
    """There is always something to call a source."""
    assert extract(b"<p>x</p>", "some-page.html").title == "some-page"


def test_front_matter_of_markdown_is_metadata():
    """Title, author and date of a front matter are no text."""
    found = extract(b"---\ntitle: 'My notes'\nauthor: Ada, Bob\ndate: 2024-01-02\n---\n\nText.\n", "a.md")
    assert (found.title, found.authors, found.published_at) == ("My notes", ["Ada", "Bob"], "2024-01-02")
    assert found.text == "Text."


def test_an_overlong_text_is_cut_at_a_block_and_says_so():
    """What exceeds the limit is left out in whole blocks."""
    found = extract(b"word " * 3_000_000, "a.txt")
    assert found.cut
    assert len(found.text) <= 2_000_000
