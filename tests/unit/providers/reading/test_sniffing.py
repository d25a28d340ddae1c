"""What kind of document a server sends."""

import pytest

from providers.errors import SourceUnreadable
from providers.reading.sniffing import Declared, declared_type, kind_of_body, provisional_kind


def judge(declared: str | None, opening: bytes) -> str:
    """What the fetching process and the reading one make of a document together."""
    return kind_of_body(provisional_kind(declared, opening), opening)


def test_a_content_type_is_read_in_all_its_forms() -> None:
    """Case, spaces, quotes, other parameters and repetition do not matter; what is unclear is refused."""
    assert declared_type(None) == declared_type(" ") == Declared()
    assert declared_type("Text/HTML") == Declared("text/html")
    assert declared_type('text/html; boundary=x; Charset="Windows-1251"') == Declared("text/html", "windows-1251")
    assert declared_type("text/html, text/html; charset=utf-8") == Declared("text/html", "utf-8")
    assert declared_type("text/html charset=UTF-8") == Declared("text/html", "utf-8")
    assert declared_type('text/html; profile="a,b"; charset=koi8-r') == Declared("text/html", "koi8-r")
    for unclear in ("text", "html, text/html", "text/html charset", "html", "text/html, text/plain", "text /html"):
        with pytest.raises(SourceUnreadable):
            declared_type(unclear)


def test_kinds_that_are_read_as_others() -> None:
    """XHTML is read as HTML, however it is labelled; feeds as XML; a page may tell of PDF."""
    assert judge("application/ld+json", b"{}") == "application/json"
    assert judge("application/rss+xml", b"<?xml version='1.0'?><rss>") == "application/xml"
    assert judge("application/xml", b"<?xml version='1.0'?><html>") == "text/html"
    assert judge("application/xhtml+xml", b"<?xml version='1.0'?><html>") == "text/html"
    assert judge("text/html", b"<html>how files begin: %PDF-1.7") == "text/html"
    assert judge("application/pdf", b"\n\n%PDF-1.7") == "application/pdf"


def test_a_document_without_a_type_is_known_by_its_beginning() -> None:
    """A server that states nothing is not punished for it, whatever the page speaks of."""
    assert judge(None, b"<html>how files begin: %PDF-1.7") == "text/html"
    assert judge(None, b"%PDF-1.7") == "application/pdf"
    assert judge(None, b"words") == "text/plain"


@pytest.mark.parametrize("declared", ["text/html", "text/plain", "application/json"])
def test_a_wrong_label_is_no_way_around_what_is_read(declared: str) -> None:
    """What is no page, yet said to be one, is refused where it is read."""
    with pytest.raises(SourceUnreadable, match="not of the type"):
        judge(declared, b"%PDF-1.7 ...")
