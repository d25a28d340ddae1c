"""The evidence brief."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from activities.reporting.quotations import bare_words
from contracts.addresses import digest
from contracts.roles import AnalyzerAnswer, ProposedFinding, Quote, WriteInput
from providers.extractive.brief_writer import write
from providers.extractive.passage_analyzer import analyze
from providers.extractive.quoted_markdown import one_line, quote_lines
from providers.extractive.text_structure import structure_of
from tests.unit.providers.extractive.samples import (
    QUESTION,
    analyze_input,
    documents,
    extract,
    sources,
    write_input,
)

MARKER = re.compile(r"(?<!\\)\[(ev-[^\]]*)\]")


def shown(markdown: str) -> str:
    """The text that a reader sees."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(markdown)
    parts = []
    for token in tokens:
        parts.append(f"{token.info}{token.markup} " if token.type == "list_item_open" and token.info else "")
        parts.append(token.content if token.type == "fence" else "")
        for child in token.children or []:
            parts.append("\n" if child.type in ("softbreak", "hardbreak") else child.content)
        parts.append(" ")
    return "".join(parts)


def sample(question: str = QUESTION, facet: str = "mechanism", **more: object) -> WriteInput:
    """The synthesizer's input for a question over the sample pages."""
    draft = analyze(analyze_input(question, facet=facet), documents())
    return write_input([(facet, draft)], question, **more)


def test_brief_has_its_shape() -> None:
    """The brief opens with the question and the admission, answers first and ends with its limits."""
    task = sample(documents_searched=12)
    made = write(task, documents()).markdown
    assert made.startswith(f"# {QUESTION}\n\n> Evidence brief, written without a language model")
    assert "12 documents searched" in made
    assert made.index("## Short answer") < made.index("## Not covered, and limits")
    assert "## Sources" not in made
    assert "## Method" not in made


def test_every_quote_is_followed_by_a_known_marker() -> None:
    """Each indented passage carries its marker, and no marker is unknown (invariant 4)."""
    task = sample()
    made = write(task, documents()).markdown
    known = {piece.id for piece in task.evidence}
    assert set(MARKER.findall(made)) <= known
    body = made.split("## Short answer")[1]
    for block in re.findall(r"(?:^ *>.*\n)+", body, re.MULTILINE):
        assert len(MARKER.findall(block)) == 1


def test_no_sentence_stands_outside_quotes_but_fixed_words() -> None:
    """Everything that the pages say is quoted: outside blockquotes and tables no word of a page's prose appears."""
    made = write(sample(), documents()).markdown
    own = "\n".join(line for line in made.splitlines() if not line.lstrip().startswith((">", "|")))
    assert "writes each snapshot" not in own
    assert "compressed" not in own


def test_settings_are_copied_from_one_passage() -> None:
    """A row of the table exists only if name and value stand in the same passage; its cells are copied."""
    made = write(sample("What is the default of retention_days?", facet="settings"), documents()).markdown
    row = next(line for line in made.splitlines() if line.startswith("| `retention_days`"))
    assert re.sub(r" \[ev-\w+\]", "", row) == (
        "| `retention_days` | 30 days | days | Sets for how many days a snapshot of the vault is kept. |"
    )
    assert len(set(MARKER.findall(row))) == 1


def test_denied_premise_comes_first() -> None:
    """A passage that denies the premise comes first and is announced; it gives no reason, so it does not answer."""
    draft = write(sample("Why is encryption of a volume enabled by default?", facet="reason"), documents())
    opening = draft.markdown.split("## Passages near the question")[1][:500]
    assert draft.answers_question is False
    assert "The documents qualify the question" in opening
    assert "disabled by default" in opening


def test_empty_brief_admits_and_cites_nothing() -> None:
    """Without findings the brief says so, names what is missing and what to try, and cites nothing (C0-24)."""
    task = write_input(
        [("mechanism", analyze(analyze_input("What is CockroachDB?"), documents()))], "What is CockroachDB?"
    )
    made = write(task, documents()).markdown
    assert len(made) >= 100
    assert made.count("\n## ") >= 2
    assert "'CockroachDB' occurs in none of" in made
    assert "ev-" not in made


def test_gaps_confidence_and_independence_are_stated() -> None:
    """Gaps, how well things are supported and how many voices there are stand in the brief (S0-070, S0-071)."""
    made = write(sample(), documents()).markdown
    limits = made.split("## Not covered, and limits")[1]
    assert "Support: 0 of the statements rest on several independent publishers" in limits
    assert "Independence:" in limits


def test_cut_short_is_said() -> None:
    """A run that had to stop early says so."""
    assert "the time limit was reached" in write(sample(cut_short="budget_time"), documents()).markdown


def test_unstemmed_language_is_said() -> None:
    """Where no stemmer fits the language, the brief says so."""
    assert "No word stems are known for the language 'pl'" in write(sample(language="pl"), documents()).markdown


def test_same_input_gives_the_same_bytes_in_any_order() -> None:
    """The order of findings, evidence and sources changes nothing."""
    task = sample()
    turned = task.model_copy(
        update={name: list(reversed(getattr(task, name))) for name in ("findings", "evidence", "sources", "gaps")}
    )
    assert write(task, documents()).markdown == write(turned, documents()).markdown


def test_long_material_goes_under_more_passages() -> None:
    """What does not fit the length of the brief stands under "More passages"."""
    text = "\n\n".join(
        f"The vault of kind{number} protects snapshot class{number} from loss by means of copy{number} on disk{number}. "
        + " ".join(f"Word{number}x{other} belongs to rule{number}y{other} of the snapshot." for other in range(8))
        for number in range(12)
    )
    page = extract("long", text, title="Long")
    found = [
        ProposedFinding(
            content=part[:500],
            confidence="medium",
            quotes=[Quote(source_id=page.id, quote=part, start=text.index(part))],
        )
        for part in text.split("\n\n")
    ]
    task = write_input([("mechanism", AnalyzerAnswer(findings=found))], given=[page])
    made = write(task, {digest(text): text}).markdown
    assert made.index("## Not covered, and limits") < made.index("## More passages")


HOSTILE = [
    "# not a heading", "- not an item", "1. not numbered", "> not nested", "[a](http://x)", "![i](x)", "<b>bold</b>",
    "*stars* and _edges_ and __dunder__", "`code`", "| a | b |", "&lt; entity", "[ev-0123456789]", "\\[ev-1\\]", "~~gone~~",
    "+ plus", "===", "---", "a\n\n    indented", "```", "[x]: http://y", "snake_case_name", "a\\", "$x$", "![ev-1]",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_does_nothing(text: str) -> None:
    """Page text is data: what a renderer shows is the quote itself, and no marker comes out of it."""
    made = "\n".join(quote_lines(structure_of(text, "en"), 0, len(text), "[ev-aaaaaaaaaa]"))
    assert MARKER.findall(made) == ["ev-aaaaaaaaaa"]
    assert bare_words(shown(made).replace("[ev-aaaaaaaaaa]", "")) == bare_words(text)
    assert not re.search(r"<(?:a|img|h\d|b|em|table)\b", MarkdownIt().render(made))


@settings(max_examples=150, deadline=None)
@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=80)
)
def test_any_line_is_shown_as_it_is(text: str) -> None:
    """Escaping changes what is written, never what is read."""
    made = one_line(text)
    assert shown(made).replace("`", "").split() == text.replace("`", "").split()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40)), min_size=1, max_size=12), st.data())
def test_no_brief_holds_an_unknown_marker(lines: list[str], data: st.DataObject) -> None:
    """Whatever is quoted from whatever page, the brief holds only markers of the evidence it was given."""
    text = "\n".join(["The vault prevents loss of a snapshot.", *lines])
    page = extract("page", text, title=data.draw(st.sampled_from(HOSTILE)))
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = ProposedFinding(content="x", quotes=[Quote(source_id=page.id, quote=text[start:end], start=start)])
    task = write_input([("mechanism", AnalyzerAnswer(findings=[found]))], given=[page])
    made = write(task, {digest(text): text}).markdown
    assert set(MARKER.findall(made)) <= {piece.id for piece in task.evidence}


def test_evidence_of_a_missing_text_is_left_out() -> None:
    """What cannot be read back is not quoted."""
    made = write(sample(), {}).markdown
    assert "ev-" not in made
    assert sources()


def test_the_number_of_documents_read_is_the_real_one() -> None:
    """Documents that were read but not cited count: the input names how many there were, not only those it carries."""
    assert "> 11 read · " in write(sample(source_count=11), documents()).markdown
    empty = sample(source_count=11, findings=[], evidence=[], sources=[])
    assert "11 documents read." in write(empty, documents()).markdown
