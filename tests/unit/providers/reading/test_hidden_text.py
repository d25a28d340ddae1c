"""Hidden text in its rarer forms, and what looks like it but is seen."""

import html

import pytest

from providers.errors import SourceUnreadable
from providers.reading.cleaning import clean
from providers.reading.html.media import applies
from providers.reading.html.page import extract_html
from providers.reading.sniffing import HTML, PDF
from providers.reading.web_page import read_page
from tests.fakes.hostile_pages import pdf

WORDS = "Words that are long enough to be looked for."
BASE = "The worker removes dead rows from its table and leaves their space to others. " * 8


def read(body: str, head: str = "") -> str:
    """The text of a page with much that is seen, and something else."""
    page = f"<html><head><title>T</title>{head}</head><body><main><p>{BASE}</p>{body}</main></body></html>"
    return read_page(page.encode(), HTML, None, "http://a.test/").text


def hides(style: str) -> bool:
    """Whether words with a style are left out."""
    return WORDS not in read(f'<p style="{html.escape(style)}">{WORDS}</p>')


@pytest.mark.parametrize(
    "style",
    [
        "display:none!important;display:block", "display:none;display:nonsense", "display:block;d\\69splay:n\\6fne",
        "font-size:0vw", "font-size:0ex", "font-size:calc(0px)", "font-size:1e-9px", "font-size:.1mm", "zoom:.001",
        "opacity:1e-5", "opacity:calc(0)", "opacity:-1", "height:0em;overflow:hidden", "max-block-size:0;overflow:hidden",
        "height:calc(0px * 5);overflow:clip", "height:0;overflow:auto", "position:absolute;left:99999px", "left:-999px",
        "inset:-9999px auto auto -9999px", "inset-inline-start:-9999px", "margin-inline-start:-9999px", "left:-99em",
        "translate:-9999px", "margin:-9999px 0 0", "-webkit-text-fill-color:transparent", "clip-path:inset(0 100% 0 0)",
        "text-indent:100%;white-space:nowrap;overflow:hidden", "transform:matrix(0,0,0,0,0,0)", "transform:rotateY(90deg)",
        "color:#fefefe;background:#fff", "color:hsl(0,0%,100%);background:#fff", "color:red;" + "--a:b;" * 900 + "display:none",
    ],
)  # fmt: skip
def test_styles_that_hide_in_rarer_ways(style: str) -> None:
    """Whatever unit, place, precedence or padding is used, the words are not read."""
    assert hides(style)


@pytest.mark.parametrize(
    "style",
    [
        "display:none;display:block", "display:block!important;display:none", "background:url(data:x;display:none)",
        "content:';display:none'", "nonsense display:none", "left:50%;margin-left:-480px", "margin-top:-150px",
        "margin-left:-100%", "margin:0 0 -9999px", "margin:-9999px;padding:9999px", "top:12000px", "zoom:0", "zoom:1",
        "transform:translateY(12000px)", "height:0;flex:1;overflow:auto", "width:1px;min-width:100%;overflow:hidden",
        "height:0;padding-bottom:56.25%;overflow:hidden", "color:transparent;background:linear-gradient(red,blue);-webkit-background-clip:text",
        "width:calc(100% - 0px);overflow:hidden",
        "height:calc(50% + 0px);overflow:hidden", "height:0%;overflow:auto",
        "color:#fff;background:#fff url(x)", "clip-path:inset(10% 20%)", "opacity:calc(1 - 0)", "font-size:calc(1px + 1em)",
    ],
)  # fmt: skip
def test_styles_of_what_is_seen(style: str) -> None:
    """Ways in which ordinary pages are arranged hide nothing."""
    assert not hides(style)


@pytest.mark.parametrize(
    "body",
    [
        "<table><tr><th>a<th>b<tr><td>1<td style='display:none'>{}</table>",
        "<table><tr><th>a<th>b<tbody style='display:none'><tr><td>0<td>{}<tbody><tr><td>1<td>2</table>",
        "<table><thead hidden><tr><th>a<th>{}</thead><tr><td>1<td>2</table>",
        "<table><caption hidden>{}</caption><tr><th>a<th>b<tr><td>1<td>2</table>",
        "<div style='background:#000'><p style='color:#000'>{}</p></div>",
        "<table bgcolor=white><tr><th>a<th>b<tr><td>1<td><font color=white>{}</font></table>",
    ],
)
def test_hidden_parts_of_tables_and_words_in_the_colour_of_their_ground(body: str) -> None:
    """They are not read; the rest of a table is, each cell below its head."""
    text = read(body.format(WORDS))
    assert WORDS not in text
    assert "worker removes" in text
    assert "<table" not in body or "| 1 |" in text


def test_words_on_grounds_that_are_not_certain_are_read() -> None:
    """What has a name may have another ground by style sheets elsewhere; what holds other colours is seen in part."""
    badge = f"<div style='background:#fff'><span class=badge style='color:#fff'>{WORDS}</span></div>"
    assert WORDS in read(badge, "<link rel=stylesheet href=badges.css>")
    assert WORDS not in read(badge)
    inside = f"<i style='color:#000'>{WORDS}</i>"
    assert WORDS in read(f"<div style='background:#fff'><p style='color:#fff'>{inside}</p></div>")


@pytest.mark.parametrize(
    "sheet",
    [
        "*.z{{{}}}", "main .z{{{}}}", "html body .z{{{}}}", ".q p{{{}}}", ".q > .z{{{}}}", "ins{{{}}}", ".a\\:b{{{}}}",
        ".zé{{{}}}", "<!-- .z{{{}}} -->", "@media screen and (min-width:1px){{.z{{{}}}}}", "@media only screen{{.z{{{}}}}}",
        "@media screen, print{{.z{{{}}}}}", "@supports (display:grid){{.z{{{}}}}}", ".q{{color:red;.z{{{}}}}}",
        ".z{{{}!important}} .q .z{{display:block}}", ".z{{content:'}}';{}}}", ".x{{overflow:hidden}} .z{{{}}}",
    ],
)  # fmt: skip
def test_sheets_that_hide_in_rarer_ways(sheet: str) -> None:
    """Descendants, elements, media of a screen, escapes and precedence are taken as a browser takes them."""
    body = f"<div class=q><p class='z x a:b zé'><ins>{WORDS}</ins></p></div>"
    assert WORDS not in read(body, f"<style media='screen, print'>{sheet.format('display:none')}</style>")


@pytest.mark.parametrize(
    "sheet",
    [
        "nav .z{display:none}", ".q > ins{display:none}", ".r p{display:none}", "@supports not (a:b){.z{display:none}}",
        "@media (max-width:600px){.z{display:none}}", ".z{display:none} @media (min-width:768px){.z{display:block}}",
        ".z{display:none} @media (width >= 48rem){.z{display:block}}", ".z{display:none} .q .z{display:block}",
        "@keyframes a{from{display:none} .z{display:none}}", ".r{.z{display:none}}", ".y{display:none}",
        ".q{font-size:0} .q p{font-size:12px}", ".q{visibility:hidden} .z{visibility:visible}", "p + .z{display:none}",
        ".z{display:none!important} .z{display:block!important}",
    ],
)  # fmt: skip
def test_sheets_that_hide_other_things(sheet: str) -> None:
    """What is seen on a usual screen is read, also where something around it has hidden letters."""
    body = f"<div class=q>gone<p class='z y' style='display:block'>{WORDS}</p></div>"
    plain = body.replace(" y' style='display:block'", "'")
    text = read(body if ".y" in sheet else plain, f"<style>{sheet}</style>")
    assert WORDS in text
    assert ("gone" in text) is (".q{" not in sheet)


@pytest.mark.parametrize("sheet", ["x" * 99_000, "/*" * 49_000, "{" * 99_000, ".z:" + "(" * 99_000])
def test_sheets_without_end_cost_time_in_proportion(sheet: str) -> None:
    """Sheets made to be slow take no minutes: each character is looked at a few times."""
    assert WORDS in read(f"<p class=z>{WORDS}</p>", f"<style>{sheet}</style>" * 2)


@pytest.mark.parametrize(
    "sheet",
    [":is(" * 300 + ".z" + ")" * 300 + "{display:none}", "a{" * 49_000, "@media (" + "(" * 9_999 + "{.z{top:0}}"],
)
def test_sheets_that_nobody_can_follow_make_a_page_unreadable(sheet: str) -> None:
    """Whoever nests deeper than is looked at must not get his words through by that."""
    with pytest.raises(SourceUnreadable, match="style sheets"):
        extract_html(f"<p>{BASE}</p><style>{sheet}</style><p class=z>{WORDS}</p>")


@pytest.mark.parametrize(
    "style",
    ["font-size:" + "calc(" * 3_000 + "0px" + ")" * 3_000, "display:" + "var(--q," * 300 + "none" + ")" * 300,
     "font-size:calc(0px" + " + 0px" * 400 + ")"],
)  # fmt: skip
def test_values_that_nobody_can_follow_are_taken_to_hide(style: str) -> None:
    """What cannot be kind_of_body is not shown."""
    assert hides(style)


def test_rules_times_elements_are_bounded() -> None:
    """Many rules for many elements with the same names are kind_of_body together; those that ask around, up to a limit."""
    elements = f"<p class='z y'>{WORDS}</p>" * 5_000
    assert WORDS in read(elements, f"<style>{'.z{display:none}.z{display:block}' * 2_500}</style>")
    assert WORDS in read(elements, f"<style>{'.q .z{display:none}' * 5_000}</style>")


def test_marks_without_end_are_cut() -> None:
    """A letter keeps as many marks as any script has; the rest would take a time that grows with its square."""
    text = read("<p>Words e" + "\u0301\u0323" * 700_000 + " end</p>")
    assert "end" in text
    assert len(text) < len(BASE) + 100
    marks = "e" + "\u0344" * 100
    assert clean(clean(marks)) == clean(marks)


def test_an_article_may_be_hidden_and_a_page_that_waits_for_its_scripts_is_read() -> None:
    """Rules that hold for more than half of what is said are not followed, however many elements they name."""
    sheet = "<style>.z{opacity:0}</style>"
    assert WORDS not in read(f"<article class=z><p>{WORDS}</p></article>", sheet)
    assert WORDS in read(f"<p class=z>{WORDS}</p>" * 60 + f"<script>{'x' * 50_000}</script>", sheet)
    assert WORDS not in read(f"<p class=z style='display:none'>{WORDS}</p>" * 60, sheet)


@pytest.mark.parametrize("outside", ["<main style='display:none'>{}</main>", "<div hidden><main>{}</main></div>"])
def test_a_hidden_main_part_is_not_taken_for_the_content(outside: str) -> None:
    """What is seen around it is."""
    page = outside.format(f"<p>{WORDS * 9}</p>") + f"<p>{BASE}</p>"
    assert extract_html(f"<html><body>{page}</body></html>").text == BASE.strip()


def test_parts_of_sheets_that_hold_on_a_screen() -> None:
    """Unknown conditions hold nowhere."""
    assert all(
        map(applies, ("all", "Screen, print", "only screen and (min-width: 40em)", "@layer a", "@media(width>1px)"))
    )
    assert not any(
        map(
            applies,
            ("print", "@container (style:x)", "@media not screen", "(max-width:1000px)", "@page", "(nonsense:1px)"),
        )
    )


@pytest.mark.parametrize(
    "drawn",
    [{"inside": "0.1 Tz"}, {"before": "0 0 0 0 re W n"}, {"before": "0 0 1 1 re W n"}, {"inside": "1 Tr 1 1 1 RG"},
     {"inside": "/F1 1 Tf"}],
)  # fmt: skip
def test_words_of_a_pdf_that_are_drawn_for_nobody(drawn: dict[str, str]) -> None:
    """Letters without width, clipped away, or outlined in white are not read."""
    lines = ["The worker removes dead rows from its table."]
    text = read_page(pdf(lines, unseen=WORDS, **drawn).encode(), PDF, None, "http://a.test/x.pdf").text
    assert WORDS not in text
    assert "worker removes" in text


@pytest.mark.parametrize("drawn", [{"inside": "60 Tz"}, {"before": "0 0 612 792 re W n"}, {"inside": "1 Tr 0 0 1 RG"}])
def test_words_of_a_pdf_that_are_drawn_narrow_clipped_and_outlined_are_read(drawn: dict[str, str]) -> None:
    """Ordinary ways of drawing cost nothing."""
    lines = ["The worker removes dead rows from its table."]
    assert WORDS in read_page(pdf(lines, unseen=WORDS, **drawn).encode(), PDF, None, "http://a.test/x.pdf").text
