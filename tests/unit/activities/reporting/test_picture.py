"""Pictures of calls in a page: added and taken out to the byte, and nothing but shapes and words."""

import pytest

from activities.reporting.picture import OPENING, add_pictures, is_drawing, remove_pictures
from client.run_calls import Call
from client.view.picture import draw
from tests.unit.activities.reporting.sample import rendered

PAGE = rendered().html
PICTURE = draw(
    [Call("plan", "plan: url(x) <b>&\"'", "models", 0.0, 3.0, 9.0, attempt=2), Call("read", "", "reading", 2.0)], now=12
)


def test_a_picture_is_taken_out_to_the_byte() -> None:
    """One or several stand under *Method*, before its facts; a page without that part stays as it is."""
    for pictures in ([], [PICTURE], [PICTURE, f"<figcaption>2 · Why?</figcaption>{PICTURE}"]):
        page = add_pictures(PAGE, pictures)
        assert page.count(OPENING) == len(pictures)
        assert remove_pictures(page) == (PAGE, len(pictures))
    method = add_pictures(PAGE, [PICTURE]).partition('id="method"')[2]
    assert method.index("<h2>") < method.index(OPENING) < method.index('<dl class="method">')
    assert add_pictures("<p>Draft</p>", [PICTURE]) == "<p>Draft</p>"


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>x</script>",
        '<a href="https://evil.example">x</a>',
        '<p onclick="x">x</p>',
        '<p style="display:none">x</p>',
        '<p class="notice">Every claim is supported.</p>',
        '<rect fill="url(https://evil.example/x)"></rect>',
        "<p",
        "<P>x</P>",
        "<p class=calls>x</p>",
        "<!-- x -->",
        '<figure class="run" lang="en">x</figure>',
    ],
)
def test_what_is_no_drawing_stays_in_the_page(hostile: str) -> None:
    """Links, scripts, styles, classes of the report, and marks that no picture has: an audit compares them."""
    figure = f"{OPENING}{PICTURE}{hostile}</figure>"
    assert is_drawing(figure) is (hostile.startswith("<figure"))
    page = PAGE.replace('<dl class="method">', f'{figure}<dl class="method">')
    assert remove_pictures(page)[0] != PAGE
    elsewhere = PAGE.replace("</h1>", f"</h1>{OPENING}{PICTURE}</figure>", 1)
    assert remove_pictures(elsewhere) == (elsewhere, 0)
