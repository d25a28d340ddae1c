"""Answers in the form that a question asks for, and none where there is none."""

import pytest

from contracts.addresses import digest
from providers.extractive.answer_evidence import Piece, evidence
from providers.extractive.asked_form import read_asked
from providers.extractive.brief_writer import title_of, write
from providers.extractive.numbered_codes import is_code_line
from providers.extractive.passage_analyzer import analyze
from providers.extractive.sources_read import readings
from tests.unit.providers.extractive.samples import analyze_input, extract, write_input

ENGLISH = """# Skerrow vault

The Skerrow vault was designed by Mara Ellison and opened on 3 May 1994. A vault is a room for things of value. \
Guards write a report asynchronously after each round.

## Limits

| Item | Upper limit |
| --- | --- |
| shelves per vault | 1,600 |
| size of a vault | 32 TB |

## Settings

retention_days (integer)
Sets for how many days a snapshot is kept. The default is 30 days.

## Keys

Keys are kept in the directory /var/lib/vault/keys. To create a key, run `vaultctl key new`. A key must not be copied \
because a copy cannot be revoked. The sweeper runs every six hours.

A closed vault keeps its contents, whereas an open safe loses them when the power fails. The old index was replaced by \
the ledger.

## Questions

Can a vault be moved?

It must first be emptied by two guards.
"""

GERMAN = """# Viadukt von Rohrbach

Den Viadukt entwarf August Wendt. Er wurde am 1. Oktober 1887 eröffnet. Der Eintritt ins Museum kostet 4 Euro. \
Im Wald leben 37 Luchse. Der Schlüssel wird nicht kopiert, weil eine Kopie nicht gesperrt werden kann.
"""

FRENCH = """# Journal

Le journal a été fondé par Anne Lebrun en 1921. Les archives se trouvent dans le répertoire /srv/archives. Le paquet \
contient trois formats : texte, image et son.
"""

SPANISH = """# Consolas

Hay seis consolas virtuales por defecto. El archivo se guarda en el directorio /etc/consolas. Un paginador es un \
programa que muestra un texto página por página.
"""


def answered(text: str, question: str, language: str = "en") -> str | None:
    """The short answer of a brief over one page, or None where the brief says that it has none."""
    source = extract("page", text, title="Page")
    given = {"sources": [source], "language": language}
    found = analyze(analyze_input(question, "fact", **given), {digest(text): text})
    task = write_input([("fact", found)], question, [source], language=language)
    draft = write(task, {digest(text): text})
    if not draft.answers_question:
        return None
    headings = ("Short answer", "Kurze Antwort", "Réponse courte", "Respuesta corta")
    return next(part for heading in headings if (part := draft.markdown.partition(f"## {heading}")[2])).split("\n## ")[
        0
    ]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who designed the Skerrow vault?", "Mara Ellison"),
        ("When was the vault opened?", "1994"),
        ("What is a vault?", "a room for things of value"),
        ("How many shelves can a vault have?", "1,600"),
        ("How large can a vault be?", "32 TB"),
        ("What is the default of retention_days?", "30 days"),
        ("Where are the keys kept?", "/var/lib/vault/keys"),
        ("How do I create a key?", "vaultctl key new"),
        ("Why must a key not be copied?", "cannot be revoked"),
        ("How often does the sweeper run?", "every six hours"),
        ("What replaced the old index?", "ledger"),
        ("What is the difference between a closed vault and an open safe?", "whereas"),
        ("Can a vault be moved?", "emptied by two guards"),
    ],
)
def test_form_is_found(question: str, answer: str) -> None:
    """Each form of answer is found where a passage holds it near the subject."""
    assert answer in (answered(ENGLISH, question) or "")


@pytest.mark.parametrize(
    ("text", "language", "question", "answer"),
    [
        (GERMAN, "de", "Wer entwarf den Viadukt?", "August Wendt"),
        (GERMAN, "de", "Was kostet der Eintritt ins Museum?", "4 Euro"),
        (GERMAN, "de", "Wie viele Luchse leben im Wald?", "37"),
        (GERMAN, "de", "Warum wird der Schlüssel nicht kopiert?", "gesperrt"),
        (FRENCH, "fr", "Qui a fondé le journal ?", "Anne Lebrun"),
        (FRENCH, "fr", "Où se trouvent les archives ?", "/srv/archives"),
        (SPANISH, "es", "¿Cuántas consolas virtuales hay?", "seis"),
        (SPANISH, "es", "¿Qué es un paginador?", "muestra un texto"),
    ],
)
def test_form_is_found_in_other_languages(text: str, language: str, question: str, answer: str) -> None:
    """The words of the question's language decide what an answer is."""
    assert answer in (answered(text, question, language) or "")


@pytest.mark.parametrize(
    "question",
    [
        "Who painted the Skerrow vault?",
        "How much does a vault cost per year?",
        "When was the sweeper born?",
        "What is the default password of a guard?",
        "How many windows does a vault have?",
        "What is a ledger?",
    ],
)
def test_no_form_no_short_answer(question: str) -> None:
    """Words in common are no answer: without the form there is no short answer, and the draft says so."""
    assert answered(ENGLISH, question) is None


def test_brief_without_an_answer_says_what_is_missing() -> None:
    """The section is called otherwise, the reason is told, and nothing says that no gap was recorded."""
    source = extract("page", ENGLISH, title="Page")
    question = "When were the keys of the vault copied?"
    found = analyze(analyze_input(question, "fact", sources=[source]), {digest(ENGLISH): ENGLISH})
    draft = write(write_input([("fact", found)], question, [source]), {digest(ENGLISH): ENGLISH})
    assert draft.answers_question is False
    assert "a date" in draft.unanswered
    assert "## Passages near the question" in draft.markdown
    assert "Short answer" not in draft.markdown
    assert "No gap was recorded" not in draft.markdown


def test_brief_speaks_the_language_of_the_question() -> None:
    """Nothing English is glued to a German question."""
    source = extract("page", GERMAN, title="Viadukt")
    given = {"sources": [source], "language": "de"}
    question = "Wer entwarf den Viadukt?"
    found = analyze(analyze_input(question, "fact", **given), {digest(GERMAN): GERMAN})
    made = write(write_input([("fact", found)], question, [source], language="de"), {digest(GERMAN): GERMAN}).markdown
    assert "## Kurze Antwort" in made
    for english in ("Short answer", "Not covered", "passages", "Evidence", "documents", "quoted"):
        assert english not in made


def test_question_in_another_language_is_said_up_front() -> None:
    """Words of two languages cannot be compared: the reader is told before the first passage."""
    source = extract("page", GERMAN * 3, title="Viadukt")
    texts = {digest(GERMAN * 3): GERMAN * 3}
    question = "Who designed the Viadukt of Rohrbach, August Wendt?"
    found = analyze(analyze_input(question, "fact", sources=[source]), texts)
    made = write(write_input([("fact", found)], question, [source]), texts).markdown
    assert "the documents are in German" in made.partition("\n## ")[0]


def test_title_is_the_question_and_short() -> None:
    """A title has at most 120 characters; of a long text it is the sentence that asks."""
    text = "The office has two vaults and many keys, which nobody has counted for a long time. " * 4
    assert title_of(text + "Who holds the keys?") == "Who holds the keys?"
    assert len(title_of(text)) <= 120


TOWN = """# Orrin otter

The Orrin otter lives in the rivers of the island. It grows to a length of 1.1 metres. A count in 2022 found 610.

# Orrin

Orrin was founded in 1284 by monks. In Orrin there have been trams since 1904. The town hall stands in Brook Street, and \
the chronicle of the town is kept in the museum of Selby.

# Night gate

The night gate (NG) is a door of oak. One in forty is left open.

# Sealing a crate

Close the lid and turn the key.

```
vaultctl seal CRATE
```

# Kinds of lid

## flat

FLAT means that the lid closes by its own weight.

## domed

DOMED lids are held by two bolts.

# Port

Porting the ledger to paper takes a year.

# Lids

Every crate has a lid. The lids are flat, domed and hinged lids.
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many Orrin otters are there?", "610"),
        ("When was Orrin founded?", "1284"),
        ("Where is the chronicle of the town kept?", "Selby"),
        ("What is NG?", "door of oak"),
        ("How do I seal a crate?", "vaultctl seal"),
        ("What is the difference between FLAT and DOMED lids?", "own weight"),
        ("What is the difference between FLAT and DOMED lids?", "two bolts"),
    ],
)
def test_answer_has_the_form_in_its_place(question: str, answer: str) -> None:
    """An early year, a name after brackets, commands behind a paragraph, and each side of a difference are found."""
    short = answered(TOWN, question)
    assert short is not None
    assert answer in short


@pytest.mark.parametrize(
    "question",
    [
        "How many trams are there in Orrin?",
        "How long is the port?",
        "Who is the porter of the port?",
        "Where is the ledger kept?",
        "How many crates are there?",
    ],
)
def test_no_answer_of_another_form_or_word(question: str) -> None:
    """A year counts nothing, a measure is no number of things, and a word that shares a stem is another word."""
    assert answered(TOWN, question) is None


LOOM = """# Questions about the loom

## 1. How do I thread the loom?

To thread the loom execute the command

```
loomctl thread WARP
```

Wait until the lamp is green.

## 2. Can I sell cloth from it?

Go ahead. Nobody has to be asked.

# Settings

shuttle_timeout (default: 45 s)
After so long a shuttle that is stuck is given up.

### SELVEDGE_AGE

Default: 1800 (half an hour, in seconds)

The age of a selvedge, in seconds.

get_selvedge_age() tells the age. It defaults to SELVEDGE_AGE.

## BobbinField Directive

| Description: | Limits the size of the label of a bobbin |
| Default: | BobbinField 8190 bytes |

## Weights

Each thread has a weight. The following weights are available, from light to heavy:

| Weight | Meaning |
| --- | --- |
| feather | for veils |
| anvil | for sails |

# Signs

There are differences between signs.

# Advice

When you dye the warp, it is recommended to create a note with `loomctl note` first. The bobbin was removed by \
ForeignKey Cascade. Weights, from heavy to light or back, \
are sorted by hand.
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How do I thread the loom?", "loomctl thread WARP"),
        ("Can I sell cloth?", "Go ahead. Nobody has to be asked."),
        ("What is the default of shuttle_timeout?", "default: 45 s"),
        ("What is the default of SELVEDGE_AGE?", "1800"),
        ("How large may the label of a bobbin be by default?", "8190 bytes"),
        ("Which weights are there?", "anvil · for sails"),
    ],
)
def test_answer_is_found_where_manuals_put_it(question: str, answer: str) -> None:
    """Headings that ask, defaults in a term line or below it, properties in rows, and whole tables."""
    short = answered(LOOM, question)
    assert short is not None
    assert answer in short.replace("\\", "").replace("`", "")


@pytest.mark.parametrize(
    "question",
    [
        "How do I dye the warp?",
        "Who removed the bobbin?",
        "What is the difference between $* and $#?",
    ],
)
def test_what_only_looks_like_the_form_is_no_answer(question: str) -> None:
    """What is done besides, a name of a program, and another sign answer nothing."""
    assert answered(LOOM, question) is None


MILL = """# The Tarn mill

## Sails

Joan Mercer built a crane beside the pond.

hoist_pause (integer)
The pause between two loads. By default, hoist speed is 9 and no pause is made.

hoist_rest (integer)
For how long the hoist rests between two loads. The default is 20 minutes.
"""


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (MILL.replace("hoist_rest", "hoist_stop"), "What is the default of speed_hoist?"),
        (MILL, "Who built the Tarn?"),
    ],
)
def test_name_is_there_as_a_whole(text: str, question: str) -> None:
    """The parts of a setting's name are not its name, and a title alone does not say who made what."""
    assert answered(text, question) is None


PRICES = """# Plans

The basic plan is for one office. It cost 3,400 EUR in 2025 and is billed every year.

Large plan
9,900 EUR a year, for ten offices.

## Machines

| Product | Weight (kg) | Price (EUR) |
| --- | --- | --- |
| Lathe | 120 | 900 |
| Drill | 12 | 90 |

## Painting

The museum of Harl stands on the hill. It was founded by Mara Ellison in 1921.
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much does the basic plan cost?", "3,400 EUR"),
        ("Who founded the museum of Harl?", "Mara Ellison"),
        ("How much does the large plan cost?", "9,900 EUR"),
        ("How much does a lathe cost?", "900"),
    ],
)
def test_fact_stands_in_the_next_sentence_under_a_term_or_in_a_cell(question: str, answer: str) -> None:
    """A pronoun is what the sentence before speaks of, a currency is a cost, a header says what its cells are."""
    assert answer in (answered(PRICES, question) or "")


def test_row_of_another_subject_is_no_answer() -> None:
    """A row that lacks a word which another row of the table has speaks of something else."""
    rows = "| Red polished steel lathe | 120 | 900 EUR |\n| Blue polished steel lathe | 12 | 90 EUR |\n"
    table = f"# Machines\n\n| Product | Weight (kg) | Price |\n| --- | --- | --- |\n{rows}"
    found = answered(table, "How much does the red polished steel lathe cost?") or ""
    assert "900 EUR" in found
    assert "Blue" not in found


HELP = """# Help

## Which vault should I buy?

One with a guarantee. The makers take no responsibility.

## How to empty a strongroom

Two guards carry the boxes out. Then they sign the book.

## Question 3

Can a vault be painted?

### Answer

Only in grey, and by a guard.

## Why are vault doors so heavy?

They are filled with concrete.
"""


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (HELP, "Which vault should I buy?", "One with a guarantee"),
        (HELP, "How do I empty a strongroom?", "Two guards carry"),
        (HELP, "Can a vault be painted?", "Only in grey"),
        (HELP, "Why are the doors so heavy?", "filled with concrete"),
        ("# Why does the sweeper stop?\n\nIt has no dust left to carry.\n", "Why does the sweeper stop?", "no dust"),
    ],
)
def test_heading_that_asks_the_question_is_answered_by_what_follows(text: str, question: str, answer: str) -> None:
    """Also of a page with one heading, without a question mark, or where a heading only numbers."""
    assert answer in (answered(text, question) or "")


def test_essay_under_a_question_is_no_reply() -> None:
    """A long page that opens with the question goes on about it; a short one answers it."""
    text = "# What is a ledger?\n\nYou would think that this was asked often enough.\n"
    longer = text + "\nThe guards argue about such things at night, and about much else besides.\n" * 40
    assert "often enough" in (answered(text, "What is a ledger?") or "")
    assert answered(longer, "What is a ledger?") is None


def test_this_may_mean_all_that_was_said() -> None:
    """Only a personal pronoun stands for what the sentence before opens with."""
    text = "# Notes\n\nThe museum of Harl closed late in autumn. {} was ordered by Mara Ellison in 1921.\n"
    assert answered(text.format("It"), "When was the museum of Harl ordered?") is not None
    assert answered(text.format("This"), "When was the museum of Harl ordered?") is None


OTHERS = """# Notes on Postbox

Mark Huizer wrote the original Postbox relay patch. Postbox sends letters at night, and its settings never change.

SEE ALSO pickup(8), post a letter qmgr(8), queue sendmail(1), use it to flush the letter queue postqueue(1), control.

A letter is not copied when the Postbox runs its daemons in a locked room.
"""


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote Postbox?",
        "How do I flush the letter queue?",
        "Why does Postbox run its daemons in a locked room?",
    ],
)
def test_what_speaks_of_something_else_completes_nothing(question: str) -> None:
    """The author of a part, names of manual pages, a denial that gives no reason."""
    assert answered(OTHERS, question) is None


def test_figure_of_a_formula_counts_nothing() -> None:
    """What a formula adds or divides by is no number of what it names."""
    text = "# Limits\n\nThe limit must be at least (guard_limit + sweeper processes + 6) / 16.\n"
    assert answered(text, "How many sweeper processes are allowed?") is None


def test_line_of_a_catalogue_with_short_codes_is_no_answer() -> None:
    """Codes without a hyphen make a catalogue, too, if they are more than there are function keys."""

    def is_catalogued(count: int) -> bool:
        text = "\n".join(f"- F{number}: the pump stops within {number} seconds." for number in range(1, count + 1))
        (reading,) = readings([extract("codes", text)], {digest(text): text}, "en")
        return is_code_line("F7: the pump stops within 7 seconds.", reading)

    assert is_catalogued(13)
    assert not is_catalogued(12)


def test_doing_is_no_finding_out() -> None:
    """Where something is to be found out, a sentence of steps answers if it says what shows it."""
    asked = read_asked("How do I find out which version is installed?", "en")
    assert evidence(asked, Piece.of("Run `postbox install` to replace the version.")).strength < 0.5
    assert evidence(asked, Piece.of("Run `postbox -v`, which shows the version.")).strength == 1.0


def test_sentence_of_an_asker_is_no_answer() -> None:
    """Who says `I` tells what happened, in a question of the page or a memory."""
    text = "# Help\n\nI run `vaultctl copy` to copy a key and it fails with an error.\n"
    assert answered(text, "How do I copy a key?") is None
    assert answered(text.replace("I run", "Operators run"), "How do I copy a key?") is not None


SIDES = """# Safes

A closed vault keeps its contents, whereas an open safe loses them when the power fails.

## Doors

A closed vault is painted grey by the guards of the town every year.

## Keys

An open safe stands in the cellar of the town hall since last year.
"""


def test_beside_the_answer_to_a_difference_stand_only_quotes_that_count() -> None:
    """A table of sides is made of answers and definitions; without one for each side there is none."""
    found = answered(SIDES, "What is the difference between a closed vault and an open safe?") or ""
    assert "whereas" in found
    assert "painted grey" not in found
