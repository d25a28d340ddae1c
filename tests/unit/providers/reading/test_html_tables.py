"""Tables: every value stands under the heading under which a reader sees it."""

import pytest

from providers.reading.html.page import extract_html
from providers.reading.html.tables import LONGEST_REPEATED, MOST_REPEATED


def rows_of(inner: str) -> list[str]:
    """The lines of a table."""
    return extract_html(f"<body><table>{inner}</table></body>").text.split("\n")


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<tr><th>Region<th>Year<th>Deaths<tr><td rowspan=2>North<td>2022<td>10<tr><td>2023<td>12",
         ["| Region | Year | Deaths |", "| --- | --- | --- |", "| North | 2022 | 10 |", "| North | 2023 | 12 |"]),
        ("<thead><tr><th rowspan=2>Name<th colspan=2>Value<tr><th>min<th>max</thead><tbody><tr><td>a<td>1<td>2",
         ["| Name | Value | Value |", "| --- | --- | --- |", "| Name | min | max |", "| a | 1 | 2 |"]),
        ("<tr><th>a<th>b<th>c<tr><td>1<td>2<td rowspan=3>n<tr><td>x<tr><td>3<td>4",
         ["| a | b | c |", "| --- | --- | --- |", "| 1 | 2 | n |", "| x |  | n |", "| 3 | 4 | n |"]),
        ("<tr><th>a<th>b<tr><td colspan=9>Part<tr><td>1<td colspan=900>2",
         ["| a | b |", "| --- | --- |", "| Part |  |", "| 1 | 2 |"]),
        ("<tbody><tr><td rowspan=0>a<td>1<tr><td>2<tbody><tr><td>b<td>3",
         ["| a | 1 |", "| a | 2 |", "| b | 3 |"]),
        ("<tr><td hidden rowspan=2>no<td>1<tr><td>2<tr><td>b<td>3", ["|  | 1 |", "|  | 2 |", "| b | 3 |"]),
        ("<tr><td rowspan=x colspan=-2>a<td>1<tr><td>b<td>2", ["| a | 1 |", "| b | 2 |"]),
    ],
)  # fmt: skip
def test_cells_stand_in_every_place_that_they_span(inner: str, expected: list[str]) -> None:
    """Downwards to the end of their part, sideways unless they are alone; hidden ones keep their places."""
    assert rows_of(inner) == expected


def test_a_long_cell_is_not_said_again() -> None:
    """It only keeps its places."""
    long = "word " * (LONGEST_REPEATED // 4)
    assert rows_of(f"<tr><td rowspan=2>{long}<td>1<tr><td>2")[1] == "|  | 2 |"


@pytest.mark.parametrize(
    "inner",
    [
        "<tr><td rowspan=99999 colspan=99999>x<td>b" + "<tr><td>y" * 2_000,
        "<tr>" + "<td>c" * 3_000 + "<td rowspan=999>x" + "<tr><td>y" * 2_000,
        ("<tr>" + "<td rowspan=1000>x" * 50) * 300,
    ],
)
def test_spans_are_bounded(inner: str) -> None:
    """Tables that blow up in browsers stay about as large as what they are made of."""
    filled = sum(line.count("x") for line in rows_of(inner))
    assert filled <= MOST_REPEATED + 300 * 50
