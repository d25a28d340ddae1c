"""Quotes as Markdown: a reader sees a table, a list or code, and every word is that of the source."""

import pytest

from activities.reporting.citations import CitationMark
from activities.reporting.judged_claims import CitedWords, judge_claims
from activities.reporting.links import Registry, clean_links
from activities.reporting.quotations import Page
from contracts.addresses import digest
from contracts.roles import AnalyzerAnswer, ProposedFinding, Quote
from providers.extractive.brief_writer import shared_endings, title_of, without_site, write
from providers.extractive.question import read_question, split_questions
from providers.extractive.quoted_markdown import escape, quote_lines, quoted_rows
from providers.extractive.text_structure import TextBlockKind, structure_of
from tests.unit.providers.extractive.samples import extract, write_input

TABLE = """| Part | Weight | Length |
| --- | --- | --- |
|  | (kg) | (m) |
| Beam | 40 | 3.5 |
| Pole \\| post | 12 | 2 |
"""
STEPS = """To set the pump up, do this:

1. Open the valve.

2. Start the motor with:

```
pump --start main_motor
```

3. Close the lid.
"""


def quoted(text: str, words: str) -> str:
    """The Markdown of a quote of these words."""
    start = text.index(words)
    return "\n".join(quote_lines(structure_of(text, "en"), start, start + len(words), "[1]"))


def test_a_row_stands_under_its_header_and_its_units() -> None:
    """The header is shown with the row, and is no evidence by itself."""
    document = structure_of(TABLE, "en")
    assert [block.kind for block in document.blocks[:3]] == [TextBlockKind.HEAD, TextBlockKind.HEAD, TextBlockKind.ROW]
    assert [document.of(sentence)[:6] for sentence in document.sentences] == ["| Beam", "| Pole"]
    row = "| Pole \\| post | 12 | 2 |"
    start = TABLE.index(row)
    made = quoted_rows("src-1", document, start, start + len(row), "[1]")
    assert made is not None
    assert made.head == ["| Part | Weight | Length |", "| --- | --- | --- |", "|  | (kg) | (m) |"]
    assert made.rows == ["| Pole \\| post | 12 | 2 [1] |"]


def test_a_list_is_quoted_with_its_numbers_and_its_code() -> None:
    """Each line as the document has it; the words are found again in the source."""
    made = quoted(STEPS, STEPS.strip())
    assert made.splitlines() == [
        "> To set the pump up, do this:", ">", "> 1. Open the valve.", "> 2. Start the motor with:", ">", "> ```",
        "> pump --start main_motor", "> ```", ">", "> 3. Close the lid. [1]",
    ]  # fmt: skip
    assert Page(STEPS, Registry.of([])).has(made.replace(" [1]", ""))
    assert not Page(STEPS.replace("lid", "door"), Registry.of([])).has(made.replace(" [1]", ""))


def test_a_list_that_goes_on_says_so() -> None:
    """Items that are left out leave a sign."""
    made = quoted(
        STEPS.replace("```\npump --start main_motor\n```\n\n", ""), "1. Open the valve.\n\n2. Start the motor with:"
    )
    assert made.splitlines()[-1] == "> - … [1]"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Set max_rows in conf/app.toml or with --rows.", "Set `max_rows` in `conf/app.toml` or with `--rows`."),
        ("Ask help@city.example or read `man ls`.", "Ask `help@city.example` or read `man ls`."),
        ("See /etc/apt/sources.list and main().", "See `/etc/apt/sources.list` and `main()`."),
        ("3. a*b and 4 - 2", "3\\. a\\*b and 4 - 2"),
        ("41.3. Rules", "41.3. Rules"),
        ("`[ev-0123456789]`", "\\`\\[ev-0123456789\\]\\`"),
    ],
)
def test_code_is_code_and_words_are_words(text: str, made: str) -> None:
    """Names that only programs have are code; numbers of sections stay as they are."""
    assert escape(text) == made


def test_a_term_is_bold_and_its_text_follows() -> None:
    """The head word of a definition stands out, and both are still the source's words."""
    text = "max_rows (integer)\nLimits the rows of an answer. The default is 50.\n"
    made = quoted(text, text.strip())
    assert made == "> **`max_rows` (integer)**  \n> Limits the rows of an answer. The default is 50. [1]"
    assert Page(text, Registry.of([])).has(made.replace("[1]", ""))


def test_an_address_of_mail_in_a_quote_stays_and_is_no_link() -> None:
    """One that no quote holds is taken out as before."""
    registry = Registry.of([], "", ["Write to help@city.example about it."])
    text, foreign = clean_links("Write to help@city.example or <help@city.example>, not to evil@x.example.", registry)
    assert text == "Write to `help@city.example` or `help@city.example`, not to (link removed)."
    assert foreign == ["evil@x.example"]


def test_a_quoted_cell_is_a_claim_of_its_own() -> None:
    """Each side of a comparison is compared with its own passage; another word is seen."""
    text = "| a | b |\n| --- | --- |\n| “One thing.” [1] | “Another thing.” [2] |\n"
    marks = [CitationMark(text.index(sign), text.index(sign) + 3, number, (f"ev-{number}",))
             for number, sign in ((1, "[1]"), (2, "[2]"))]  # fmt: skip
    passages = {"ev-1": CitedWords("One thing.", "", ""), "ev-2": CitedWords("Another\nthing.", "", "")}
    found = judge_claims(text, marks, passages, Registry.of([]))
    assert [(claim.method, claim.evidence_ids) for claim in found] == [("verbatim", ["ev-1"]), ("verbatim", ["ev-2"])]
    passages["ev-2"] = CitedWords("Quite another thing.", "", "")
    assert judge_claims(text, marks, passages, Registry.of([]))[1].method != "verbatim"


@pytest.mark.parametrize(
    ("text", "language", "sides"),
    [
        ("What is the difference between a cat and a dog?", "en", ("cat", "dog")),
        ("Was ist der Unterschied zwischen Hund und Katze?", "de", ("Hund", "Katze")),
        ("Quelle est la différence entre chien et chat ?", "fr", ("chien", "chat")),
        ("¿Cuál es la diferencia entre perro y gato?", "es", ("perro", "gato")),
        ("Qual è la differenza tra cane e gatto?", "it", ("cane", "gatto")),
        ("Wat is het verschil tussen hond en kat?", "nl", ("hond", "kat")),
    ],
)
def test_sides_are_found_in_each_language(text: str, language: str, sides: tuple[str, str]) -> None:
    """A comparison names its sides."""
    assert read_question(text, language).entities == sides


def test_a_comparison_is_a_table_with_a_quoted_cell_for_each_side() -> None:
    """Both sides stand side by side, each with its own number."""
    text = "A cat is a small animal that hunts mice.\n\nA dog is a loyal animal that guards the house.\n"
    page = extract("page", text, title="Animals")

    def found(words: str) -> AnalyzerAnswer:
        quote = Quote(source_id=page.id, quote=words, start=text.index(words))
        return AnalyzerAnswer(findings=[ProposedFinding(content=words, quotes=[quote])])

    drafts = [("entity:cat", found("A cat is a small animal that hunts mice.")),
              ("entity:dog", found("A dog is a loyal animal that guards the house."))]  # fmt: skip
    task = write_input(drafts, "What is the difference between a cat and a dog?", [page])
    lines = write(task, {digest(text): text}).markdown.splitlines()
    row = lines.index("| cat | dog |") + 2
    cells = lines[row].split(" | ")
    assert cells[0].startswith("| “A cat is a small animal that hunts mice.” [ev-")
    assert cells[1].startswith("“A dog is a loyal animal that guards the house.” [ev-")


def test_several_questions_are_split_and_answered_one_by_one() -> None:
    """Each has a section of its own; one that only points back belongs to the one before."""
    asked = "We have a new house. Who built the Aldmoor bridge? When was it opened? What is a weir?"
    assert split_questions(asked) == ["Who built the Aldmoor bridge? When was it opened?", "What is a weir?"]
    assert split_questions("What is a weir?") == []
    text = "A weir is a low dam across a river that raises its level.\n"
    page = extract("page", text, title="Rivers")
    quote = Quote(source_id=page.id, quote=text.strip(), start=0)
    draft = AnalyzerAnswer(findings=[ProposedFinding(content="x", quotes=[quote])])
    made = write(write_input([("question:2", draft)], asked, [page]), {digest(text): text})
    headings = [line for line in made.markdown.splitlines() if line.startswith("## ")]
    assert headings[:2] == ["## Who built the Aldmoor bridge? When was it opened?", "## What is a weir?"]
    assert not made.answers_question
    assert "Aldmoor" in made.unanswered
    assert "weir" not in made.unanswered


def test_titles_are_short_and_the_name_of_the_site_is_said_once() -> None:
    """At most 120 characters; what all titles end with is left out."""
    assert len(title_of("word " * 80)) <= 120
    endings = shared_endings(["One — The manual", "Two — The manual", "Three"])
    assert [without_site(title, endings) for title in ("One — The manual", "Three — else")] == ["One", "Three — else"]
    assert shared_endings(["One — The manual", "Two"]) == frozenset()
