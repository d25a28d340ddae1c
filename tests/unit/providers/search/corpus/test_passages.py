"""Sections and passages of a document."""

from providers.reading.documents import extract
from providers.search.corpus.indexed_passages import index_text, passages_of, sections_of, word_keys
from providers.search.corpus.section_ranking import is_copy, searched_keys, section_factor


def test_sections_cover_the_text_and_know_their_heading_path():
    """Sections follow one another without a gap; the path names every heading above."""
    page = extract(b"<p>intro</p><h1>A</h1><p>a</p><h2>B</h2><p>b</p><h1>C</h1><p>c</p>", "page.html")
    sections = sections_of(page)
    assert [section.heading for section in sections] == ["", "A", "A › B", "C"]
    assert [section.start for section in sections[1:]] == [section.end for section in sections[:-1]]
    assert (sections[0].start, sections[-1].end) == (0, len(page.text))


def test_a_definition_is_one_passage_under_its_term():
    """The term goes with its first paragraph and is the heading of all of them."""
    page = extract(b"<h1>S</h1><dl><dt>max_age</dt><dd><p>One.</p><p>Two.</p></dd></dl><p>After.</p>", "page.html")
    passages = passages_of(page, sections_of(page))
    assert [(page.text[one.start : one.end], one.heading) for one in passages] == [
        ("max_age\nOne.", "S › max_age"),
        ("Two.", "S › max_age"),
        ("After.", "S"),
    ]


def test_small_items_and_rows_make_one_passage():
    """Neighbouring items are ranked together, code and links are not ranked at all."""
    page = extract(b"<ul><li>one</li><li>two</li></ul><pre>code</pre><p><a href=x>elsewhere</a></p>", "page.html")
    passages = passages_of(page, sections_of(page))
    assert [page.text[one.start : one.end] for one in passages] == ["one\n- two"]


def test_compounds_are_found_by_their_parts():
    """An identifier counts as a whole and by its words."""
    assert word_keys("write-ahead", "en") == ["write-ahead", "write", "ahead"]
    assert index_text("Vacuuming tables", "en") == "vacuum tabl"


def test_a_fitting_heading_and_an_ordinary_length_raise_a_section() -> None:
    """A heading about the question weighs more than a stray word, and a dump of everything less than a page."""
    assert section_factor(1.0, 5_000) > section_factor(0.2, 5_000) > section_factor(0.2, 1_000_000)


def test_a_copy_is_told_from_short_notes_that_say_the_same() -> None:
    """Most of several equal passages make a copy; one equal note is chance."""
    texts = [frozenset({f"word{number}", "same"}) for number in range(5)]
    assert is_copy(texts, texts)
    assert not is_copy(texts[:1], texts)
    assert not is_copy([*texts[:2], frozenset("a"), frozenset("b")], texts)


def test_words_written_as_one_are_found() -> None:
    """`data types` also looks for `datatypes`."""
    assert "datatyp" in searched_keys("Which data types are there?", ["data", "type"], "en")
