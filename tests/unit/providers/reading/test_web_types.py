"""What kind of document a server sends."""

import pytest

from providers.errors import SourceUnreadable
from providers.reading.web_types import Declared, as_utf8, declared_type, judge


def test_a_content_type_is_read_in_all_its_forms() -> None:
    """Case, spaces, quotes and other parameters do not matter; what is unclear is refused."""
    assert declared_type(None) == declared_type(" ") == Declared()
    assert declared_type("Text/HTML") == Declared("text/html")
    assert declared_type('text/html; boundary=x; Charset="Windows-1251"') == Declared("text/html", "windows-1251")
    for unclear in ("html", "text/html, text/plain", "text /html"):
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


def test_the_character_set_of_the_server_counts_unless_the_text_has_a_mark() -> None:
    """The text becomes UTF-8; names that are no character set, and codecs that are none, change nothing."""
    assert as_utf8("Привет".encode("cp1251"), "windows-1251") == "Привет".encode()
    assert as_utf8("“x”".encode("cp1252"), "iso-8859-1") == "“x”".encode()
    assert as_utf8("日本".encode("shift_jis"), "Shift_JIS") == "日本".encode()
    assert as_utf8("ab".encode("utf-16-le"), "utf-16") == b"ab"
    marked = b"\xef\xbb\xbf\xc3\xa9"
    assert as_utf8(marked, "iso-8859-1") == marked
    for name in (None, "utf-8", "nonsense", "base64", "rot13", "idna", "punycode", "unicode_escape", "utf-7", "zlib"):
        assert as_utf8(b"\\x41 +AGE-", name) == b"\\x41 +AGE-"
