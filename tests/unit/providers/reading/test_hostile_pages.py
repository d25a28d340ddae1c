"""Pages that try to steer a run or to take forever, as they are read."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Extraction
from providers.reading.document_kinds import HTML, PDF
from providers.reading.documents import read_page
from tests.fakes import hostile_pages as fakes
from tests.fakes.hostile_pages import HostilePage, hostile_pages
from tests.fakes.web_world import Site

CASES = hostile_pages()
SEEN_ELSEWHERE = {"I23"}
"""Payloads that are no part of the text."""


def read(site: Site) -> Extraction:
    """A page as it is read."""
    kind = PDF if site.media_type == fakes.PDF else HTML
    return read_page(site.body.encode(), kind, "utf-8", f"http://127.0.0.2{site.path}")


@pytest.mark.parametrize("case", [case for case in CASES if not case.seen], ids=lambda case: case.name)
def test_what_nobody_sees_is_not_read(case: HostilePage) -> None:
    """The hostile page is read as its clean twin (X-20)."""
    assert "engine" in read(case.clean).text
    assert read(case.hostile) == read(case.clean)


@pytest.mark.parametrize("case", [case for case in CASES if case.seen], ids=lambda case: case.name)
def test_what_everybody_sees_is_read(case: HostilePage) -> None:
    """A visible payload removes nothing: the words of the clean page are there, and its own after them."""
    found = read(case.hostile)
    assert all(block in found.text for block in read(case.clean).text.split("\n\n"))
    assert case.code_word in (found.title if case.name in SEEN_ELSEWHERE else found.text)
    assert "\u200b" not in found.text


PUMPS: dict[str, Callable[[int], str]] = {
    "sidebars": lambda size: "<div class=sidebar><a href=/>x</a> y" * (size // 40),
    "nested lists": lambda size: ("<ul><li>x" * 50 + "</ul>" * 50) * (size // 750),
    "tables": lambda size: "<table><tr><th>a<th>b<tr><td>1<td>2</table>" * (size // 44),
    "code": lambda size: "<p><code>`" * (size // 10),
    "signs": lambda size: "<p>" + "[*`_~^\\<" * (size // 8),
    "attributes": lambda size: "<p style='" + "opacity:" * (size // 8) + "'>x",
    "quotes": lambda size: "<p title=\"'" * (size // 11),
    "comments": lambda size: "<!--" * (size // 4),
    "linked data": lambda size: "<script type=application/ld+json>" + "[" * (size - 33),
    "marks": lambda size: "<p>e" + "\u0301" * (size // 2),
    "opening": lambda size: "<!---->" * (size // 7),
    "charset": lambda size: "<meta " * (size // 6),
}
SIZES = (1_000, 50_000, 250_000)
MOST_GROWTH = 2.5
"""Times the growth of the page: a machine that others use adds to it, and caches of a processor are small."""
NOISE_SECONDS = 0.1


@pytest.mark.parametrize("name", PUMPS)
def test_reading_takes_time_in_proportion(name: str) -> None:
    """From 1 kB to 250 kB, the processor time of a whole page grows no faster than the page."""
    seconds = {}
    for size in SIZES:
        body = PUMPS[name](size).encode()[:size]
        seconds[size] = math.inf
        for _ in range(2 if size < SIZES[-1] else 1):
            begun = time.process_time()
            with suppress(SourceUnreadable):
                read_page(body, HTML, None, "https://a.test/x")
            seconds[size] = min(seconds[size], time.process_time() - begun)
    for small, large in pairwise(SIZES):
        assert seconds[large] <= MOST_GROWTH * large / small * seconds[small] + NOISE_SECONDS, seconds
