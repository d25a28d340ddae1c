"""Changes of a live report: what an update may do, what is refused, and the way from one text to another."""

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from activities.reporting.drafts import parse_draft
from activities.reporting.references import cited_evidence, without_citations
from activities.reporting.tree import write
from activities.reporting.updates import (
    STALE,
    LiveText,
    UpdateRefused,
    apply_update,
    change_outline,
    describe_live,
    elements_of,
    empty_report,
    fit_to_outline,
    measure_reports,
    read_body,
    read_live,
    shown_section,
    steps_between,
    withdraw,
    write_body,
    write_element,
)
from contracts.addresses import digest
from contracts.evidence import DocumentRef, ReportDraft
from contracts.report_updates import Operation, OperationKind, ReportUpdate
from tests.drawn import draws

OUTLINE = ["What it is", "How *it* works & why", "Limits"]
EMPTY = empty_report("What is vacuum?", OUTLINE)
BOUND = 800


def ev(number: int) -> str:
    return f"ev-{number:032x}"


def report_of(**bodies: str) -> LiveText:
    """A report with these texts in its sections, `a` to `c`."""
    report = EMPTY
    for name, body in bodies.items():
        report = report.with_body("abc".index(name), write_body(parse_draft(body)))
    return report


def update_of(report: LiveText, heading: str, *operations: Operation) -> ReportUpdate:
    return ReportUpdate(
        heading=heading, base=digest(report.sections[report.index_of(heading)][1]), operations=list(operations)
    )


def append(text: str) -> Operation:
    return Operation(text=text)


def after(anchor: int, text: str) -> Operation:
    return Operation(kind=OperationKind.PUT_AFTER, anchor=anchor, text=text)


def without(anchor: int) -> Operation:
    return Operation(kind=OperationKind.REMOVE, anchor=anchor)


def instead(anchor: int, text: str) -> Operation:
    return Operation(kind=OperationKind.REPLACE, anchor=anchor, text=text)


def changed(report: LiveText, *operations: Operation) -> str:
    """The first section after operations on it."""
    return apply_update(report, update_of(report, OUTLINE[0], *operations), BOUND).sections[0][1]


def outline_in(text: str) -> list[str]:
    """The headings of the second level, as another reader of Markdown finds them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    places = [place for place, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    return [re.sub(r"\\([*&])", r"\1", tokens[place + 1].content) for place in places]


# --- the first text --------------------------------------------------------------------------------------------------
def test_a_live_report_begins_as_its_title_and_the_headings_of_its_outline() -> None:
    """Every heading is there before anything is known, and the text can be read again (S2-013, S2-030, X-12)."""
    assert EMPTY.text == "# What is vacuum?\n\n## What it is\n\n## How \\*it\\* works & why\n\n## Limits\n"
    assert read_live(EMPTY.text) == EMPTY
    assert outline_in(EMPTY.text) == OUTLINE
    draft = describe_live(ReportDraft(document=DocumentRef(hash=digest(""))), EMPTY)
    assert (draft.title, draft.sections, draft.empty, draft.evidence_ids) == ("What is vacuum?", OUTLINE, True, [])
    assert draft.words_by_section == dict.fromkeys(OUTLINE, 0)


# --- operations ------------------------------------------------------------------------------------------------------
def test_operations_append_put_behind_and_replace_one_sentence_or_item() -> None:
    """Anchors are the numbers of the text before the update, whatever the others change (S2-028)."""
    report = report_of(a=f"One [{ev(1)}]. Two is here.\n\n- three [{ev(3)}]\n- four")
    assert [each.kind for each in elements_of(read_body(report.sections[0][1]))] == [
        *("paragraph", "paragraph", "list", "list")
    ]
    text = changed(
        report,
        instead(1, f"One, rather [{ev(2)}]."),
        after(2, f"Two and a half [{ev(4)}]."),
        after(3, "- three and a half"),
        append(f"### More\n\n> A quotation. [{ev(5)}]"),
    )
    assert text == (
        f"One, rather [{ev(2)}]. Two is here. Two and a half [{ev(4)}].\n\n"
        f"- three [{ev(3)}]\n- three and a half\n- four\n\n### More\n\n> A quotation. [{ev(5)}]"
    )


@pytest.mark.parametrize("anchor", [1, 2])
def test_a_paragraph_that_is_put_after_an_item_stays_a_paragraph(anchor: int) -> None:
    """It stands below the list, whose items and numbers stay together, before what follows the list."""
    report = report_of(a=f"1. one [{ev(1)}]\n2. two\n\nThe end.")
    text = changed(report, after(anchor, f"It may fail [{ev(2)}]."), after(2, "3. three"))
    assert text == f"1. one [{ev(1)}]\n2. two\n3. three\n\nIt may fail [{ev(2)}].\n\nThe end."
    alone = changed(report, after(anchor, f"It may fail [{ev(2)}]."))
    assert alone == f"1. one [{ev(1)}]\n2. two\n\nIt may fail [{ev(2)}].\n\nThe end."


def extend(anchor: int, text: str) -> Operation:
    return Operation(kind=OperationKind.EXTEND, anchor=anchor, text=text)


def test_an_item_is_extended_without_writing_it_again() -> None:
    """Its words, its number and its citation stay; a sentence is followed, and nothing is both extended and replaced."""
    report = report_of(a=f"One is here [{ev(1)}].\n\n1. two [{ev(2)}].\n2. three [{ev(3)}]")
    text = changed(report, extend(2, f"It may fail [{ev(4)}]."), extend(2, f"And end [{ev(5)}]."), extend(1, "So."))
    assert text == (
        f"One is here [{ev(1)}]. So.\n\n1. two [{ev(2)}]. It may fail [{ev(4)}]. And end [{ev(5)}].\n2. three [{ev(3)}]"
    )
    nested = changed(report, extend(3, f"- a part [{ev(4)}]"))
    assert nested.endswith(f"2. three [{ev(3)}]\n   - a part [{ev(4)}]")
    with pytest.raises(UpdateRefused, match="not extended as well"):
        changed(report, extend(2, "More."), instead(2, f"2. two, rather [{ev(2)}]"))


def test_a_sentence_or_an_item_is_removed_with_its_citation() -> None:
    """The rest stays as it is, a list that loses its only item goes, and more than half of a section is refused."""
    report = report_of(a=f"One is here [{ev(1)}]. Two stays where it is [{ev(2)}].\n\n- three [{ev(3)}]")
    assert changed(report, without(1)) == f"Two stays where it is [{ev(2)}].\n\n- three [{ev(3)}]"
    assert changed(report, without(3)) == f"One is here [{ev(1)}]. Two stays where it is [{ev(2)}]."
    with pytest.raises(UpdateRefused, match="more than half"):
        changed(report, without(1), without(2))
    with pytest.raises(UpdateRefused, match="replaced or removed twice"):
        changed(report, without(1), instead(1, f"One [{ev(1)}]."))


@pytest.mark.parametrize(
    ("body", "more", "text"),
    [("- one", "- two", "- one\n- two"), ("One is here.", "Two is here.", "One is here.\n\nTwo is here.")],
)
def test_an_appended_text_is_joined_as_it_will_be_read(body: str, more: str, text: str) -> None:
    """Two lists would be read as one: they are one, so that their numbers stay; a paragraph stays one of its own."""
    assert changed(report_of(a=body), append(more)) == text


def test_text_of_another_kind_divides_what_it_is_put_into() -> None:
    """A list behind the first of two sentences leaves both whole, in their order."""
    assert changed(report_of(a="One is here. Two is here."), after(1, "- an item")) == (
        "One is here.\n\n- an item\n\nTwo is here."
    )


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (append("## Limits\n\nText."), "level of the outline"),
        (append("# A report\n\n## What it is\n\nText."), "level of the outline"),
        (append("Limits\n------"), "level of the outline"),
        (append("> ### Quoted heading"), "within a list or a quotation"),
        (append("```\nnever closed"), "code fence"),
        (append("~~~\nclosed by another sign\n```"), "code fence"),
        (append("A <b>bold</b> word."), "raw HTML"),
        (append("<!-- hidden -->"), "raw HTML"),
        (append("x" * 801), "at most 720"),
        (append(" \n"), "without words"),
        (after(9, "Text."), "none of the section's numbers, 1 to 3"),
        (instead(0, "Text."), "none of the section's numbers"),
        (instead(1, "No longer cited."), "must cite"),
        (instead(2, "### A heading"), "heading cannot"),
        (instead(3, f"Other words entirely [{ev(9)}]."), "more than half"),
        (instead(2, "Two is here."), "change nothing"),
    ],
)
def test_what_would_break_the_report_is_refused_with_the_reason(operation: Operation, reason: str) -> None:
    """The text stays as it is (S2-013, S2-029, S2-030)."""
    long = "Three goes on for very much longer than the other two sentences of this section do together, on and on"
    report = report_of(a=f"One [{ev(1)}]. Two is here. {long} [{ev(2)}].")
    with pytest.raises(UpdateRefused, match=reason):
        changed(report, operation)
    with pytest.raises(UpdateRefused, match="2 is replaced or removed twice"):
        changed(report, instead(2, "Two."), instead(2, "Too."))
    growing = f"and some more words [{ev(1)}]."
    with pytest.raises(UpdateRefused, match="more than 800 characters"):
        changed(report_of(a="Word " * 100 + growing), instead(1, "Word " * 160 + growing))


def test_words_of_a_page_in_a_quotation_may_look_like_html() -> None:
    """They are shown as words."""
    assert "\\<b>" in changed(EMPTY, append(f"> Use <b> for bold. [{ev(1)}]"))


def test_an_update_is_applied_once() -> None:
    """Its base is another text by then; so it is for one that was written beside another of the same section."""
    update = update_of(EMPTY, "LIMITS", append(f"Slow [{ev(1)}]."))
    report = apply_update(EMPTY, update, BOUND)
    assert measure_reports(EMPTY, report) == (shown_length(report) - shown_length(EMPTY), 0)
    with pytest.raises(UpdateRefused, match=re.escape(STALE)):
        apply_update(report, update, BOUND)
    with pytest.raises(UpdateRefused, match="the outline has none"):
        apply_update(report, update.model_copy(update={"heading": "Summary"}), BOUND)


# --- properties ------------------------------------------------------------------------------------------------------
WORDS = st.sampled_from(
    "vacuum rows 3.5 e.g. `a|b` *very* **bold** under_score [x] x<y a\\b # - + 1. > | ![i](u) [l](u) & &amp; Dr.".split()
)
CITED = st.one_of(st.just(""), st.integers(1, 30).map(lambda number: f" [{ev(number)}]"))
SENTENCES = st.tuples(st.lists(WORDS, min_size=1, max_size=12).map(" ".join), CITED).map("S {0[0]}{0[1]}.".format)
PARAGRAPHS = st.lists(SENTENCES, min_size=1, max_size=5).map(" ".join)
LISTS = st.tuples(st.sampled_from(["- ", "1. "]), st.lists(SENTENCES, min_size=1, max_size=4)).map(
    lambda pair: "\n".join(pair[0] + item for item in pair[1])
)
TABLES = st.lists(CITED, min_size=1, max_size=4).map(
    lambda cells: "| a | b |\n| --- | --- |\n" + "\n".join(f"| S x{cell} | y |" for cell in cells)
)
OTHERS = st.one_of(
    SENTENCES.map("> {}".format), SENTENCES.map("```\n## {}\n\n```".format), SENTENCES.map("### {}".format), TABLES
)
BLOCKS = st.one_of(PARAGRAPHS, LISTS, OTHERS)
BODIES = st.lists(BLOCKS, max_size=5).map("\n\n".join)
REPORTS = st.tuples(BODIES, BODIES, BODIES).map(
    lambda bodies: fit_to_outline(
        "\n\n".join(f"## {name}\n\n{body}" for name, body in zip(("What it is", "x", "Limits"), bodies, strict=True)),
        EMPTY,
    )
)
OPERATIONS = st.lists(
    st.builds(Operation, kind=st.sampled_from(OperationKind), anchor=st.integers(0, 8), text=BLOCKS),
    min_size=1,
    max_size=4,
)


def shown_length(report: LiveText) -> int:
    """The characters of a report without the markers of its passages."""
    return len(without_citations(report.text))


def test_markers_of_passages_take_no_room() -> None:
    """A sentence with ten citations counts as one without any."""
    marks = "".join(f"[{ev(number)}]" for number in range(1, 7))
    sentence = "All of this is so. " * 9
    changed_text = apply_update(EMPTY, update_of(EMPTY, "LIMITS", append(f"{sentence}Slow {marks}.")), 200)
    assert sum(measure_reports(EMPTY, changed_text)) < 200 < len(changed_text.text) - len(EMPTY.text)


def test_items_of_a_numbered_list_are_shown_with_their_numbers() -> None:
    """Each has its own, from the list's first one on; another list begins anew, and other items have none."""
    body = f"Steps:\n\n3. Stop. [{ev(1)}]\n4. Wait.\n5. Start.\n\nOr:\n\n1. Leave.\n\nAlso:\n\n- an item"
    shown = [write_element(each) for each in elements_of(read_body(body))]
    assert [text.split()[0] for text in shown] == ["Steps:", "3.", "4.", "5.", "Or:", "1.", "Also:", "-"]


def citations_of(body: str, but: set[int]) -> list[str]:
    """The citations of a section without those of some of its elements."""
    elements = enumerate(elements_of(read_body(body)), start=1)
    return [key for number, each in elements if number not in but for key in cited_evidence((each,))]


@draws(20)
@given(REPORTS, OPERATIONS, st.sampled_from([200, 800]))
def test_any_update_is_refused_or_leaves_a_whole_report_within_the_bound(
    report: LiveText, operations: list[Operation], most: int
) -> None:
    """Bound, outline, citations, validity, and the same update twice (S2-009, S2-013, S2-029, S2-030, C2-2)."""
    update = update_of(report, OUTLINE[0], *operations)
    try:
        new = apply_update(report, update, most)
    except UpdateRefused:
        return
    inserted, removed = measure_reports(report, new)
    assert inserted + removed <= most
    assert shown_length(new) - shown_length(report) == inserted - removed
    assert outline_in(new.text) == OUTLINE
    assert read_live(new.text) == new
    assert write_body(read_body(new.sections[0][1])) == new.sections[0][1]
    assert new.sections[1:] == report.sections[1:]
    replaced = {each.anchor for each in operations if each.kind in (OperationKind.REPLACE, OperationKind.REMOVE)}
    kept = citations_of(report.sections[0][1], replaced)
    assert set(kept) <= set(cited_evidence(read_body(new.sections[0][1])))
    with pytest.raises(UpdateRefused):
        apply_update(new, update, most)


@draws(12)
@given(REPORTS, REPORTS, st.sampled_from([200, 800]))
def test_any_new_text_is_reached_by_whole_reports_within_the_bound(
    before: LiveText, target: LiveText, most: int
) -> None:
    """Each step is a valid report; parts beyond the bound alone are missing (S2-013, S2-029, S2-030, X-12, C2-2)."""
    steps, unreached = steps_between(before, target, most)
    report = before
    for step in steps:
        assert sum(measure_reports(report, step)) <= most
        assert outline_in(step.text) == OUTLINE
        assert read_live(step.text) == step
        report = step
    assert report == target or (unreached and most < BOUND)


@draws(12)
@given(REPORTS, REPORTS)
def test_what_is_counted_is_the_difference_of_the_whole_texts(before: LiveText, target: LiveText) -> None:
    """What goes and what comes explains the lengths without markers, and nothing is counted where nothing else differs
    (C2-2).
    """
    inserted, removed = measure_reports(before, target)
    assert inserted - removed == shown_length(target) - shown_length(before)
    assert (inserted + removed == 0) is (without_citations(before.text) == without_citations(target.text))


def test_an_agent_is_shown_a_long_section_from_its_beginning() -> None:
    """The beginning and the end, in whole lines, with the length of what is between; a short one is whole."""
    items = "\n".join(f"- Item {number} of the long list of the section" for number in range(120))
    shown = shown_section(report_of(a=f"It begins here.\n\n{items}"), OUTLINE[0])
    assert shown.startswith("It begins here.\n\n- Item 0 of the long list of the section\n")
    assert shown.endswith("- Item 119 of the long list of the section")
    hidden = re.search(r"section\n\[(\d+) characters that are not shown\]\n- Item", shown)
    assert hidden
    assert len(shown) <= 3_060
    assert shown_section(report_of(a="Short."), OUTLINE[0]) == "Short."


# --- other texts -----------------------------------------------------------------------------------------------------
def test_a_text_of_another_shape_is_fitted_into_the_outline() -> None:
    """What is before the first heading comes first, and unknown sections become parts of the one before."""
    text = (
        "# Other title\n\n> Note.\n\n## limits\n\nSlow.\n\n# Sources of power\n\nMuch.\n\n## Extra\n\n### Deep\n\nMore."
    )
    fitted = fit_to_outline(text, EMPTY)
    assert fitted.title == EMPTY.title
    assert fitted.headings == OUTLINE
    assert fitted.sections[0][1] == "> Note."
    assert fitted.sections[2][1].startswith("Slow.\n\n### Sources of power\n\nMuch.\n\n### Extra\n\n### Deep")


def test_a_sentence_longer_than_the_bound_is_not_cut() -> None:
    """It is the only thing that the way lacks."""
    target = report_of(a=f"Short [{ev(1)}]. {'long ' * 60}[{ev(2)}]. Last [{ev(3)}].")
    steps, unreached = steps_between(EMPTY, target, 200)
    assert unreached == 1
    assert steps[-1].sections[0][1] == f"Short [{ev(1)}]. Last [{ev(3)}]."


def test_an_update_of_a_long_report_costs_little_processor_time() -> None:
    """A report of 30 kB takes at most 30 ms an update, once its sections were read."""
    words = "This sentence about the vacuum of tables has a number of words in it"
    body = "\n\n".join(" ".join(f"{words}, {a}-{b} [{ev(a)}]." for b in range(4)) for a in range(22))
    report = report_of(a=body, b=body, c=body)
    assert len(report.text) > 30_000
    draft = ReportDraft(document=DocumentRef(hash=digest("")))
    spent = []
    for number in range(5):
        start = process_time()
        update = update_of(report, OUTLINE[0], append(f"{words}, at last {number} [{ev(1)}]."), after(3, "Indeed."))
        report = apply_update(report, update, BOUND)
        describe_live(draft, report)
        spent.append(process_time() - start)
    assert min(spent) < 0.03


@draws(12)
@given(REPORTS, st.sets(st.integers(1, 6)), st.sampled_from([200, 800]))
def test_withdrawn_passages_leave_by_whole_reports_within_the_bound(
    report: LiveText, numbers: set[int], most: int
) -> None:
    """Whatever cites one of them goes and nothing else does; each step keeps the outline and can be read again."""
    keys, earlier = {ev(number) for number in numbers}, report
    bodies = [read_body(body) for _, body in report.sections]
    parts = [write_element(each) for blocks in bodies for each in elements_of(blocks)]
    parts += [write([block]).text for blocks in bodies for block in blocks if block.kind == "heading"]
    citing = [part for part in parts if keys.intersection(cited_evidence(read_body(part)))]
    steps = withdraw(report, keys, most)
    for step in steps:
        longest = max(map(len, citing))
        assert sum(measure_reports(earlier, step)) <= max(most, 2 * longest + 8)
        assert outline_in(step.text) == OUTLINE
        assert read_live(step.text) == step
        earlier = step
    assert bool(steps) == bool(citing)
    left = [key for _, body in earlier.sections for key in cited_evidence(read_body(body))]
    assert keys.isdisjoint(left)
    before = [key for part in parts if part not in citing for key in cited_evidence(read_body(part))]
    assert sorted(set(left)) == sorted(set(before))


OTHER_OUTLINES = st.lists(st.sampled_from([*OUTLINE, "Prices", "History"]), min_size=1, max_size=5, unique=True)


@draws(12)
@given(REPORTS, OTHER_OUTLINES, st.sampled_from([200, 800]))
def test_a_report_gets_other_headings_by_whole_reports_within_the_bound(
    report: LiveText, outline: list[str], most: int
) -> None:
    """Sections whose heading stays keep their text; the others lose it step by step before the headings change (C2-9)."""
    steps, earlier = change_outline(report, outline, most), report
    bodies = dict(report.sections)
    for step in steps:
        assert read_live(step.text) == step
        removed = [body for name, body in report.sections if name not in outline]
        longest = max((len(write_element(part)) for body in removed for part in read_body(body)), default=0)
        assert sum(measure_reports(earlier, step)) <= max(most, 2 * longest + 8)
        earlier = step
    assert bool(steps) == (outline != report.headings)
    assert earlier.headings == outline
    assert [body for _, body in earlier.sections] == [bodies.get(name, "") for name in outline]
    assert all(step.headings == report.headings for step in steps[:-1])
