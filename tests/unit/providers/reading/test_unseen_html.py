"""Words of web pages that no reader sees, by class, and words that look like such but are seen."""

import pytest

from providers.reading.sniffing import HTML
from providers.reading.web_page import read_page
from tests.fakes.unseen_html import SEEN, WORDS, seen_pages, unseen_pages

WORD = WORDS.split()[0]
CASES = [
    pytest.param(page, id=f"{name} {number}")
    for name, all_of_it in unseen_pages().items()
    for number, page in enumerate(all_of_it)
]


@pytest.mark.parametrize("page", CASES)
def test_words_that_nobody_sees_are_not_read(page: str) -> None:
    """Nothing that is kept of the page holds them, and all around them is there."""
    found = read_page(page.encode(), HTML, None, "http://a.test/")
    assert WORD not in repr(found)
    assert found.text.count(SEEN) == 15


@pytest.mark.parametrize("page", seen_pages())
def test_words_that_are_seen_are_read(page: str) -> None:
    """Faint, small, moved, or turned back to be seen: readers have them before their eyes."""
    assert WORDS in read_page(page.encode(), HTML, None, "http://a.test/").text
