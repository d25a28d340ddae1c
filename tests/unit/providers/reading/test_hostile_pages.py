"""Pages that try to steer a run, as they are read: what nobody sees is not read at all."""

import html

import pytest

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Extraction
from providers.reading.html.sheets import MOST_SELECTORS, Sheets
from providers.reading.sniffing import HTML, PDF
from providers.reading.web_page import extract_web_html, read_page
from tests.fakes import hostile_pages as fakes
from tests.fakes.hostile_pages import HostilePage, base_page, hostile_pages, pdf
from tests.fakes.web_world import Site

CASES = hostile_pages()
SEEN_ELSEWHERE = {"I23"}
"""Payloads that are no part of the text."""
WORDS = "Words that are long enough to be looked for."


def read(site: Site) -> Extraction:
    """What is kept of a page."""
    kind = PDF if site.media_type == fakes.PDF else HTML
    return read_page(site.body.encode(), kind, "utf-8", f"http://127.0.0.2{site.path}")


def hides(style: str) -> bool:
    """Whether words with a style are left out."""
    body = f'<p>{"Words that everybody sees. " * 50}</p><p style="{html.escape(style)}">{WORDS}</p>'
    return WORDS not in extract_web_html(f"<html><body>{body}</body></html>", "http://a.test/").text


@pytest.mark.parametrize("case", [case for case in CASES if not case.seen], ids=lambda case: case.name)
def test_what_nobody_sees_is_not_read(case: HostilePage) -> None:
    """All that is kept of the hostile page is what is kept of its clean twin (X-20)."""
    assert "engine" in read(case.clean).text
    assert read(case.hostile) == read(case.clean)


@pytest.mark.parametrize("case", [case for case in CASES if case.seen], ids=lambda case: case.name)
def test_what_everybody_sees_is_read_as_it_stands(case: HostilePage) -> None:
    """A visible payload takes nothing away: the words of the clean page are there, and its own behind them."""
    found = read(case.hostile)
    assert all(block in found.text for block in read(case.clean).text.split("\n\n"))
    assert case.code_word in (found.title if case.name in SEEN_ELSEWHERE else found.text)
    assert "\u200b" not in found.text


@pytest.mark.parametrize(
    "style",
    [
        "display:none", "DISPLAY : NONE !important", "dis/**/play:none;display:/* x */none", "\\64 isplay:none",
        "visibility:collapse", "content-visibility:hidden", "opacity:0.01", "opacity: 0%", "filter:opacity(0)",
        "font-size:.5px", "font-size:1pt", "font: 0/0 a", "font-size:0.1em", "color:transparent",
        "color:rgb(0 0 0 / 0)", "color:#0000", "color:white;background:#fff", "color:rgb(1,2,3);background-color:#010203",
        "text-indent:-9999px", "position:absolute; right: -2000em", "margin-left:-5000px", "clip:rect(1px,1px,1px,1px)",
        "clip-path:circle(0)", "transform:scale(0,0)", "scale:0", "transform:translateX(-9999px)",
        "width:1px;height:1px;overflow:hidden", "max-width:0;overflow-x:clip",
    ],
)  # fmt: skip
def test_styles_that_hide(style: str) -> None:
    """However it is written, what a reader does not see is known for hidden."""
    assert hides(style)


@pytest.mark.parametrize(
    "style",
    [
        "", "none", "display:block", "display:inline-block;opacity:.9", "opacity:0.5", "opacity:10%", "font-size:12px",
        "font-size:10px", "font:12px/0 serif", "color:#000;background:#fff", "color:white;background:#003366",
        "color:rgba(0,0,0,.7)", "left:-10px", "margin:-20px auto", "clip-path:inset(0)", "scale:1.05",
        "transform:scale(0.9)", "height:0", "overflow:hidden", "overflow:hidden;height:20px", "overflow:hidden;width:100%",
        "color:inherit", "filter:opacity(0.8)", "background:#fff",
    ],
)  # fmt: skip
def test_styles_that_hide_nothing(style: str) -> None:
    """Ordinary styles cost no words."""
    assert not hides(style)


@pytest.mark.parametrize(
    ("sheet", "hidden"),
    [
        (".x{display:none}", True),
        ("p.x, .y { color: red } #i.x{visibility:hidden}", True),
        ("@media screen { .x{display:none} }", True),
        ("@import 'a.css'; .x{display:none}", True),
        ("@media print { .x{display:none} }", False),
        ("@media (max-width: 600px) { .x { display: none } } .y{}", False),
        (".x:not(.open){display:none}", True),
        (".x:not(.shown){display:none}", False),
        (".tabs .x{display:none}", False),
        (".x{display:none} .x{display:block}", False),
        (".x{display:none} .x.shown{display:block}", False),
        (".x.shown{display:none} .x{display:block}", True),
        ("div.x{display:none}", False),
        ("</style>", False),
        (".x{display:none", True),
        ("@media print { .x{display:none", False),
    ],
)
def test_style_sheets_hide_by_class_and_id(sheet: str, hidden: bool) -> None:
    """Rules that name an element alone are followed, the more exact and the later one winning."""
    head = f"<head><title>t</title><style>{sheet}</style></head>"
    body = f"<main>{'<p>Words of the page that everybody reads.</p>' * 8}<p class='x shown' id=i>{WORDS}</p></main>"
    found = extract_web_html(f"<html>{head}<body>{body}</body></html>", "http://a.test/")
    assert (WORDS not in found.text) is hidden


def test_a_style_sheet_cannot_hide_most_of_a_page() -> None:
    """Sites hide all of their content until their scripts run: such a rule is not followed."""
    markup = f"<script>show()</script><style>.all{{opacity:0}}</style><body><div class=all><p>{WORDS * 9}</p></div><p>short</p></body>"
    assert WORDS in extract_web_html(markup, "http://a.test/").text
    assert WORDS not in extract_web_html(markup.replace("script", "i"), "http://a.test/").text


def test_sheets_for_print_hide_nothing() -> None:
    """A sheet says by itself what it is for; one that is never closed ends with its element."""
    head = "<style media=print>.x{display:none}</style><style>.y{color:red</style><style>.z{display:none}</style>"
    body = f"<body><p>{'Much to read here. ' * 20}</p><p class=x>{WORDS}</p><p class=z>Not to be seen.</p></body>"
    text = extract_web_html(head + body, "http://a.test/").text
    assert WORDS in text
    assert "Not to be seen" not in text


def test_rules_are_bounded() -> None:
    """A page whose sheets have more rules than can be followed is not read: nobody could tell what is seen."""
    with pytest.raises(SourceUnreadable, match="style sheets"):
        Sheets(["".join(f".x:nth-child({number}){{top:0}}" for number in range(MOST_SELECTORS + 2))], {"x"})
    assert Sheets([".x{top:0}" * (MOST_SELECTORS + 2)], {"x"}).selectors == 1
    assert Sheets([".y{top:0}" * (MOST_SELECTORS + 2)], {"x"}).selectors == 0


def test_recognized_words_of_a_scan_are_kept() -> None:
    """A PDF that has no other words keeps its invisible ones."""
    printed = " ".join(f"{40 + 6 * step} 60 3 8 re f" for step in range(40))
    assert (
        WORDS
        in read_page(
            pdf([], unseen=WORDS, before=printed, inside="3 Tr").encode(), PDF, None, "http://a.test/x.pdf"
        ).text
    )


def test_white_words_on_a_painted_ground_are_kept() -> None:
    """The head of a table, white on blue, is read; white on nothing is not."""
    lines = [base_page(1)[0]]
    painted = pdf(lines, unseen=WORDS, before="0 0 1 rg 30 50 500 30 re f", inside="1 1 1 rg")
    assert WORDS in read_page(painted.encode(), PDF, None, "http://a.test/x.pdf").text
    bare = pdf(lines, unseen=WORDS, before="1 1 1 rg 30 50 500 30 re f", inside="1 1 1 rg")
    assert WORDS not in read_page(bare.encode(), PDF, None, "http://a.test/x.pdf").text
