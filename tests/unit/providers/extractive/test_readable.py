"""What a person reads: passages that stand by themselves, whole lists, tables of settings, no empty promises."""

import re

import pytest

from contracts.addresses import digest, gap_id
from contracts.evidence import Gap
from contracts.plan import PlanNode
from contracts.resolved import CorpusSnapshot
from contracts.roles import AnalyzerAnswer, ProposedFinding, Quote
from contracts.vocabulary import GapStatus
from providers.extractive.answer_evidence import AnswerEvidence
from providers.extractive.answer_passages import answer_span
from providers.extractive.answer_search import FoundAnswer
from providers.extractive.asked_form import AnswerForm
from providers.extractive.brief_writer import write
from providers.extractive.passage_analyzer import LINE_OF_CONTENTS, analyze
from providers.extractive.passages import grow, leans, span_of
from providers.extractive.question import split_questions
from providers.extractive.quoted_markdown import escape, quote_lines
from providers.extractive.sentence_places import NUMBERING
from providers.extractive.sources_read import readings
from providers.extractive.text_structure import structure_of
from tests.unit.providers.extractive.samples import analyze_input, extract, write_input

STEPS = """# Opening the house

Before you begin, do the following:

1. Take the key.
2. Switch off the alarm:

```
alarmctl off
```

3. Open the shutters.

It holds 24 boats.
"""
ENTRIES = """# Alarm

entry_delay (integer)

How long the door may stand open before the siren starts. If this value is given without a unit, it is taken as seconds. \
The default is 30. It must be between 10 and 120.

siren_length (integer)

How long the siren sounds. The default is 180 seconds.
"""
CODES = "# Requirements\n\n" + "\n".join(
    f"- R1-{number:03} The pump number {number} stops within five seconds." for number in range(1, 20)
)


def brief(text: str, question: str, *quotes: str, facet: str = "fact", **more: object) -> str:
    """The brief of a question over one page, with these quotes found."""
    page = extract("page", text, title="Page")
    found = [
        ProposedFinding(content="x", quotes=[Quote(source_id=page.id, quote=one, start=text.index(one))])
        for one in quotes
    ]
    task = write_input([(facet, AnalyzerAnswer(findings=found))], question, [page], **more)
    return re.sub(r"\[ev-\w+\]", "[1]", write(task, {digest(text): text}).markdown)


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("A run", "A run"),
        ("SQL Commands", "SQL Commands"),
        ("24 hours of backups", "24 hours of backups"),
        ("41.3. Rules", "Rules"),
        ("E.1 Release 15", "Release 15"),
        ("3 Results", "Results"),
        ("IV. Methods", "Methods"),
    ],
)
def test_only_numbers_of_sections_are_left_out_of_headings(heading: str, shown: str) -> None:
    """A first word is no number."""
    assert NUMBERING.sub("", heading) == shown


@pytest.mark.parametrize(
    "sentence",
    [
        "Each also takes a file of the house in place of a run.",
        "Where that matters, add rules to the firewall of the house.",
        "Without that, the house needs a second key for the door.",
        "Do not rely on it: it knows the usual names of the house.",
        "Opening this takes the guard of the house two minutes.",
        "During this the door of the house stays open all the time.",
    ],
)
def test_openings_that_point_back_lean(sentence: str) -> None:
    """Such a sentence is never quoted without the one before it."""
    document = structure_of(f"The alarm is loud. {sentence}\n", "en")
    assert leans(document, 1)
    assert grow(document, 1, [0.0, 1.0]) == (0, 1)


def test_it_at_the_head_of_a_section_is_what_the_heading_names() -> None:
    """The heading is shown, so the sentence stands; one that names the thing itself speaks of something else."""
    document = structure_of("# Spare parts\n\nThey are kept in the red cupboard of the workshop.\n", "en")
    assert grow(document, 0, [1.0]) == (0, 0)
    assert leans(structure_of("# Spare parts\n\nIt holds the spare parts of the whole workshop.\n", "en"), 0)


def test_a_passage_without_its_term_stands_under_it() -> None:
    """A default is never shown without the name of what it is the default of."""
    made = brief(ENTRIES, "What is the default of siren_length?", "The default is 180 seconds.")
    assert "*Page: `siren_length` (integer)*\n\n> The default is 180 seconds. [1]" in made


def test_settings_have_default_unit_range_and_meaning() -> None:
    """Each cell is copied from the passage of its number; a column of which nothing is said is left out."""
    first, second = ENTRIES.split("\n\nsiren_length")
    entry = first.split("# Alarm\n\n")[1]
    made = brief(ENTRIES, "What is the default of entry_delay?", entry, f"siren_length{second.rstrip()}")
    assert "| Name | Default | Unit | Range | Meaning (quoted) |" in made
    assert (
        "| `entry_delay` | 30 [1] | seconds [1] | between 10 and 120 [1] | How long the door may stand open before the "
        "siren starts. [1] |"
    ) in made
    assert "| `siren_length` | 180 seconds [1] | seconds [1] |  | How long the siren sounds. [1] |" in made


def test_no_table_of_settings_where_nobody_asks_for_them() -> None:
    """A figure beside a name is no setting of the answer."""
    text = "The wait is long. The default of entry_delay is 30 seconds.\n"
    made = brief(text, "How does the alarm work?", text.strip(), facet="mechanism")
    assert "| Name |" not in made


@pytest.mark.parametrize("seed", ["Take the key.", "Open the shutters.", "Before you begin, do the following:"])
def test_numbered_steps_are_quoted_whole_with_their_code(seed: str) -> None:
    """Whichever step answers, the list is quoted from its announcement to its last step."""
    page = extract("page", STEPS)
    reading = readings([page], {digest(STEPS): STEPS}, "en")[0]
    index = next(place for place, one in enumerate(reading.document.sentences) if reading.document.of(one) == seed)
    span = answer_span(FoundAnswer(reading, index, 1.0, 1.0, AnswerEvidence(1.0), index), AnswerForm.STEPS)
    assert span is not None
    quoted = STEPS[span[0] : span[1]]
    assert quoted.startswith("Before you begin")
    assert quoted.endswith("3. Open the shutters.")


def test_a_line_of_a_catalogue_is_no_answer_unless_its_code_is_asked_for() -> None:
    """Codes with their lines are a poor passage where other pages speak of the same."""
    prose = "# Pumps\n\nA pump stops within five seconds after its switch was pressed by a guard.\n"
    pages = [extract("codes", CODES, title="Requirements"), extract("prose", prose, title="Pumps")]
    texts = {digest(CODES): CODES, digest(prose): prose}

    def first(question: str) -> str:
        draft = analyze(analyze_input(question, facet="fact", sources=pages), texts)
        return draft.findings[0].quotes[0].quote

    assert first("How fast does a pump stop?").startswith("A pump stops")
    assert first("What does R1-007 say of the pump?").startswith("R1-007")


def test_questions_side_by_side_in_one_sentence_are_split() -> None:
    """Each gets a section of its own; a clause that only adds to what stands before it does not."""
    asked = "Nothing may leave. Which settings decide what leaves the machine, and how do I delete a run, and how is it kept?"
    assert split_questions(asked) == [
        "Which settings decide what leaves the machine?",
        "How do I delete a run? How is it kept?",
    ]
    told = "We want to understand how files are removed, which settings keep them, and what we should monitor."
    assert split_questions(told) == []
    assert split_questions("Last week a disk filled. We want to know how files are removed, and why a disk fills.") == [
        "How files are removed?",
        "Why a disk fills?",
    ]
    assert split_questions("How does a checkpoint, which writes pages, work?") == []
    assert split_questions("Wie sichere ich Daten, und warum dauert das Sichern lange?", "de") == [
        "Wie sichere ich Daten?",
        "Warum dauert das Sichern lange?",
    ]


def test_beside_a_fact_nothing_else_is_an_answer() -> None:
    """Of a question for one fact the short answer holds what answers it, and the rest follows the limits."""
    text = "The house was built in 1963 by Karl Lindner.\n\nThe boats of the house are painted green each spring.\n"
    made = brief(text, "Who built the house?", *text.strip().split("\n\n"))
    short = made.split("## Short answer")[1].split("## ")[0]
    assert "Karl Lindner" in short
    assert "boats" not in short
    assert "boats" in made.split("## More passages")[1]


def test_what_does_not_answer_stands_under_no_heading_of_an_answer() -> None:
    """Passages near a question are not called `How to do it`."""
    text = "The house is old and grey.\n\nThe shutters of the house must be opened by hand in spring.\n"
    made = brief(text, "How do I paint the house?", *text.strip().split("\n\n"), facet="steps")
    assert "## Passages near the question" in made
    assert "## How to do it" not in made
    assert "shutters" in made


def gap(text: str) -> Gap:
    """An open gap."""
    return Gap(id=gap_id(text), description=text, status=GapStatus.OPEN)


def test_searches_that_nobody_asked_for_leave_no_gap() -> None:
    """A silent search in other words is no gap of the answer; the question itself is, and the same is said once."""
    words = "house author developer creator"
    question = "Who built the tower?"
    nothing = [gap(f"Nothing in the sources answers “{text}”.") for text in (words, question)]
    low = [gap(f"No passage speaks of enough of the question: the best one holds {share}.") for share in ("27%", "18%")]
    task = write_input([], question, gaps=[*nothing, *low], sub_queries=[PlanNode(id="q", text=words, facet="fact")])
    made = write(task, {}).markdown.split("## What was searched")[0]
    assert words not in made
    assert f"“{question}”" in made
    assert made.count("No passage speaks of enough") == 1


def test_support_by_one_collection_is_said_in_words_that_are_true() -> None:
    """Pages of one collection are one voice; nothing is counted that cannot be."""
    text = "The house was built in 1963 by Karl Lindner.\n"
    made = brief(text, "Who built the house?", text.strip(), corpus=CorpusSnapshot(name="club"))
    assert "Support: every quoted passage is from one collection (club: 1 page). Its pages count as one voice" in made
    assert "0 of the statements" not in made


def test_where_nothing_was_found_the_language_may_be_another() -> None:
    """Nothing was read, so the language of the documents is not known: the advice names it."""
    nothing = write(write_input([], "Wie öffne ich das Haus?", [], language="de"), {}).markdown
    assert "In der Sprache der Dokumente fragen" in nothing
    read = write(write_input([], "Wie öffne ich das Haus?", [], language="de", source_count=3), {}).markdown
    assert "In der Sprache der Dokumente fragen" not in read


def test_a_bracket_is_closed_or_the_cut_is_shown() -> None:
    """A passage that ends inside a bracket takes the rest along, or says that it is cut."""
    text = "The siren is loud. (It is tested on Mondays, e.g. at noon. The neighbours know.) Then it is quiet.\n"
    document = structure_of(text, "en")
    opening = next(place for place, one in enumerate(document.sentences) if document.of(one).startswith("(It"))
    start, end = span_of(document, opening, opening)
    assert text[start:end].count("(") == text[start:end].count(")")
    cut = quote_lines(document, text.index("(It"), text.index(" The neighbours"), "[1]")
    assert cut[-1].endswith("… [1]")


def test_dots_in_a_command_end_no_sentence() -> None:
    """`ALTER TABLE ... SET STORAGE` is one command."""
    document = structure_of("The strategy can be altered with ALTER TABLE ... SET STORAGE. It is simple.\n", "en")
    assert document.of(document.sentences[0]).endswith("SET STORAGE.")


def test_names_with_dots_are_code() -> None:
    """A name of a setting is code also where its first part has no underscore."""
    assert escape("After limits.max_wait_seconds (three days).") == "After `limits.max_wait_seconds` (three days)."


def test_a_title_in_a_paragraph_is_quoted_with_what_follows() -> None:
    """A few words that open a paragraph say nothing by themselves."""
    document = structure_of("Embeddings, measured and not taken. They add one question to two hundred.\n", "en")
    assert grow(document, 0, [1.0, 0.0], spare=True) == (0, 1)


def test_a_sentence_that_says_what_follows_takes_its_list_along() -> None:
    """Not only a colon announces a list."""
    text = (
        "To open the house the following keys are needed.\n\n- the brass key of the door\n- the small key of the rack\n"
    )
    document = structure_of(text, "en")
    assert grow(document, 0, [1.0, 0.0, 0.0]) == (0, 2)


def test_code_in_two_pieces_is_quoted_as_one() -> None:
    """`or` between two commands is no end of the answer."""
    text = "# Log\n\nTo read the log of the house, use one of two commands:\n\n```\nlog read\n```\n\nor\n\n```\nlog show\n```\n\nBye.\n"
    page = extract("page", text)
    reading = readings([page], {digest(text): text}, "en")[0]
    span = answer_span(FoundAnswer(reading, 0, 1.0, 1.0, AnswerEvidence(1.0), 0), AnswerForm.STEPS)
    assert span is not None
    assert "log show" in text[span[0] : span[1]]
    assert "Bye" not in text[span[0] : span[1]]


def test_marks_of_code_of_other_text_formats_are_code() -> None:
    """Two backticks mark code, too; nothing of them is left in the text."""
    assert escape("The ``Depends`` field names it.") == "The `Depends` field names it."


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("7.5. Working with the pump of the house", True),
        ("7.5 metres of pipe are needed.", False),
        ("Version 7.5 of the pump", False),
    ],
)
def test_a_line_of_contents_is_no_answer(text: str, contents: bool) -> None:
    """The number and the heading of a section say where an answer stands, not what it is."""
    assert bool(LINE_OF_CONTENTS.match(text)) is contents
