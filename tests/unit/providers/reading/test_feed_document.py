"""Feeds are read; other XML is not, and nothing in it is resolved."""

import pytest

from providers.errors import SourceUnreadable
from providers.reading.formats.feed_document import ENTRIES, extract_feed

RSS = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0"><channel><title>News of tables</title><description>What is new</description><language>en-GB</language>
<item><title>Vacuum is faster</title><pubDate>Fri, 17 May 2024 10:00:00 GMT</pubDate>
<description>&lt;p&gt;Dead rows &amp;amp; more go &lt;b&gt;sooner&lt;/b&gt;.&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</description>
</item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Neues</title><updated>2024-05-18T00:00:00Z</updated>
<entry><title>Aufräumen</title><published>2024-05-17</published><content type="html">Zeilen &lt;i&gt;gehen&lt;/i&gt;.</content>
</entry></feed>"""


def test_rss_becomes_headings_with_summaries() -> None:
    """Summaries are HTML inside of XML, and read as such."""
    found = extract_feed(RSS)
    assert (found.title, found.language, found.media_type) == ("News of tables", "en-GB", "application/rss+xml")
    assert found.text == (
        "# News of tables\n\nWhat is new\n\n## Vacuum is faster\n\n2024-05-17\n\nDead rows & more go sooner."
    )


def test_atom_is_read_alike() -> None:
    """With its namespace and its names."""
    found = extract_feed(ATOM)
    assert (found.title, found.language, found.published_at) == ("Neues", "de", "2024-05-18")
    assert found.text == "# Neues\n\n## Aufräumen\n\n2024-05-17\n\nZeilen gehen."


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<!DOCTYPE l [<!ENTITY a "b">]><rss><channel><title>&a;</title></channel></rss>', "malformed"),
        ('<?xml version="1.0"?><!DOCTYPE rss SYSTEM "http://127.0.0.1/x.dtd"><rss/>', "malformed"),
        ("<rss><channel>", "malformed"),
        ("<rss>&unknown;</rss>", "malformed"),
        ("<a>" * 400 + "</a>" * 400, "malformed"),
        ("<urlset><url><loc>http://a.test/</loc></url></urlset>", "wrong_type"),
        ("<rss><channel></channel></rss>", "no_text"),
        ("<rss>" + "<i/>" * 400_001 + "</rss>", "too_large"),
    ],
    ids=lambda value: value[:20],
)
def test_other_xml_is_refused(text: str, kind: str) -> None:
    """No document type, no entities, no depth, no site maps."""
    with pytest.raises(SourceUnreadable) as raised:
        extract_feed(text)
    assert raised.value.kind == kind


def test_includes_are_not_followed() -> None:
    """XInclude is only an element without words."""
    text = ATOM.replace(
        "<title>Neues</title>",
        '<title>Neues</title><x:include xmlns:x="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>',
    )
    assert extract_feed(text).text == extract_feed(ATOM).text


def test_long_feeds_are_cut() -> None:
    """The newest entries, which stand first, are kept."""
    found = extract_feed(
        "<rss><channel><title>T</title>" + "<item><title>x</title></item>" * (ENTRIES + 1) + "</channel></rss>"
    )
    assert found.cut
    assert found.text.count("## x") == ENTRIES
