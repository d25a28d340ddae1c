"""What stands beside a passage when a checker sees it."""

import pytest

from activities.reporting.passages import show_passage
from contracts.evidence import Evidence
from providers.tokens.surroundings import AFTER_CHARACTERS, BEFORE_CHARACTERS, LEAD_CHARACTERS, OMISSION, surroundings

PAGE = """# Patterns

The rights have exceptions. A user may want to limit them.

This can be done in three ways, of which the following are examples:

- Remove the path. Only whole names are found.
- Leave the path and grant rights. All users share it. However, this is never secure. It suits one user.
- Write whole names.

In both cases a restart is needed. It takes a second.

MIN_DESCRIPTOR=N

The library never uses a number below N.

Low numbers are a danger. The protection can be turned off by setting this option to 0.

It is set when it is built:

```
make MIN_DESCRIPTOR=0
```

## Costs

They are low.
"""

LEAD = "This can be done in three ways, of which the following are examples:"


def beside(quote: str, page: str = PAGE) -> tuple[str, str]:
    """The text before and after a passage on one line each."""
    start = page.index(quote)
    before, after = surroundings(page, start, start + len(quote))
    return " ".join(before.split()), " ".join(after.split())


@pytest.mark.parametrize(
    ("quote", "before", "after"),
    [
        (
            "However, this is never secure.",
            f"{LEAD}{OMISSION}- Leave the path and grant rights. All users share it.",
            "It suits one user.",
        ),
        ("In both cases a restart is needed.", f"{LEAD}{OMISSION}- Write whole names.", "It takes a second."),
        ("This can be done in three ways", "A user may want to limit them.", ", of which the following are examples:"),
        (
            "The protection can be turned off by setting this option to 0.",
            "MIN_DESCRIPTOR=N The library never uses a number below N. Low numbers are a danger.",
            "",
        ),
        ("MIN_DESCRIPTOR=N\n\nThe library", "", "never uses a number below N."),
        (
            "It is set when it is built:",
            f"MIN_DESCRIPTOR=N{OMISSION}The protection can be turned off by setting this option to 0.",
            "``` make MIN_DESCRIPTOR=0 ```",
        ),
        ("They are low.", "", ""),
    ],
)
def test_a_passage_comes_with_what_it_refers_to(quote: str, before: str, after: str) -> None:
    """Its item with the list's introduction, the sentence before its paragraph, the line that labels it, what it
    announces; nothing of another section.
    """
    assert beside(quote) == (before, after)


def test_the_text_beside_a_passage_is_bounded() -> None:
    """Of a long paragraph the nearest whole sentences are shown, also of one in a list with a long introduction."""
    many = "".join(f"Sentence {number} says that much. " for number in range(60))
    page = f"{many}These are all:\n\n- {many}This is it. {many}\n"
    before, after = beside("This is it.", page)
    assert len(before) <= BEFORE_CHARACTERS + LEAD_CHARACTERS + len(OMISSION)
    assert before.startswith("Sentence 5")
    assert "These are all: … Sentence" in before
    assert before.endswith("Sentence 59 says that much.")
    assert len(after) <= AFTER_CHARACTERS
    assert after.startswith("Sentence 0 says")
    assert after.endswith("that much.")
    endless = f"{'word ' * 400}This is it. {'word ' * 400}"
    assert [len(part) <= BEFORE_CHARACTERS for part in beside("This is it.", endless)] == [True, True]


def test_a_passage_is_contiguous_with_the_text_beside_it() -> None:
    """What is quoted across the edge of a passage is found; the mark of an omission is never between them."""
    for quote in ("However, this is never secure.", "by setting this option to 0."):
        start = PAGE.index(quote)
        item = Evidence(id="ev-1", source_id="src-1", start=start, end=start + len(quote))
        shown = show_passage(item, "Manual", PAGE)
        assert shown.before.rpartition(OMISSION)[2] + quote in PAGE


OPTIONS = """# Options

default

Same as the last.

--words

-e
--edit
Edit the words of it.

The editor is that of the system.

--amend
Replace the tip of the branch by a new commit.

It may be a merge.

It is a rough equivalent of the others.
"""


@pytest.mark.parametrize(
    ("quote", "label"),
    [
        ("Edit the words of it.", "--words -e --edit"),
        ("The editor is that of the system.", "--words -e --edit"),
        ("It is a rough equivalent of the others.", "--amend"),
        ("Same as the last.", "default"),
    ],
)
def test_a_passage_is_labelled_by_the_nearest_term(quote: str, label: str) -> None:
    """A list of options has its terms above their texts, in the same block; a line further above labels others."""
    before, _ = beside(quote, OPTIONS)
    assert before.startswith(label)
    assert "default" not in before.removeprefix(label)


CHANGES = """# Changes

Introduction.

- Refuse generated columns in keys (A. B.)

It was refused before.

Some cases were missed.

- Fix pruning of default parts (C. D.)

Rows were missing.

## Steps

1. Create the table with a key.

```
CREATE TABLE t (day date)
    PARTITION BY RANGE (day);
```

2. Create its parts.

The last one may be open.
"""


@pytest.mark.parametrize(
    ("quote", "before"),
    [
        ("It was refused before.", "- Refuse generated columns in keys (A. B.)"),
        ("Some cases were missed.", "- Refuse generated columns in keys (A. B.) …"),
        ("Rows were missing.", "- Fix pruning of default parts (C. D.)"),
        ("The last one may be open.", "2. Create its parts."),
    ],
)
def test_a_paragraph_between_or_below_items_comes_with_the_one_above(quote: str, before: str) -> None:
    """It says what an entry means that names the matter, or goes on from the last one of a list."""
    assert beside(quote, CHANGES)[0] == before


def test_the_listing_below_a_passage_belongs_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows what the sentence speaks of; of a long one the first lines are shown."""
    _, after = beside("Create the table with a key.", CHANGES)
    assert after.startswith("``` CREATE TABLE")
    assert after.endswith("RANGE (day); ```")
    monkeypatch.setattr("providers.tokens.surroundings.LISTING_CHARACTERS", 40)
    assert beside("Create the table with a key.", CHANGES)[1].endswith("(day date)")


def test_a_paragraph_below_a_listing_comes_with_it_and_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from what the listing shows: "this" is the command in it; of a long listing the last lines are shown."""
    page = (
        "# Old data\n\nIt grows. Drop the part:\n\n```\nDROP TABLE a;\nDROP TABLE b;\n```\n\nThis is fast. It locks.\n"
    )
    assert beside("This is fast.", page)[0] == "It grows. Drop the part: ``` DROP TABLE a; DROP TABLE b; ```"
    assert beside("It locks.", page)[0].endswith("``` This is fast.")
    monkeypatch.setattr("providers.tokens.surroundings.LISTING_CHARACTERS", 20)
    assert beside("This is fast.", page)[0] == "It grows. Drop the part: … DROP TABLE b; ```"


def test_a_sentence_before_a_passage_begins_where_it_begins() -> None:
    """A long one is shown whole up to twice the room of the sentences before a passage, as its subject stands first."""
    long = f"The limit holds {'and so on ' * 50}for all. "
    assert len(long) > BEFORE_CHARACTERS
    before, _ = beside("This is it.", f"First. {long}This is it.\n")
    assert before.startswith("The limit holds")


def test_a_passage_in_a_row_of_a_table_comes_with_the_whole_row() -> None:
    """Its example stands behind it, and other rows speak of other things."""
    rows = f"| `a` | Takes one. {'More of it. ' * 12}`a(1)` |\n| `b` | Takes two. |\n"
    page = f"# Functions\n\n| Name | Meaning |\n| --- | --- |\n{rows}"
    start = page.index("Takes one.")
    item = Evidence(id="ev-1", source_id="src-1", start=start, end=start + len("Takes one."))
    shown = show_passage(item, "Manual", page)
    assert shown.before.endswith("\n| `a` | ")
    assert shown.after.endswith("`a(1)` |")
    endless = show_passage(item, "Manual", page.replace("More", "More " * 400))
    assert len(endless.after) <= 400
