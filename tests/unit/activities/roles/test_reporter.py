"""The reporter: what it is shown of a section, what its answers may do, and what rules put in its place."""

from collections.abc import Sequence
from typing import Any

import pytest

from activities.reporting.drafts import parse_draft
from activities.reporting.updates import LiveText, apply_update, empty_report, measure_reports, write_body
from activities.roles.grounding import RoleWork
from activities.roles.prompt_rendering import render_role
from activities.roles.report_writing import ground_update
from activities.roles.run_role import ground_answer, task_of
from activities.roles.untrusted import label_key, label_of
from contracts.addresses import digest
from contracts.call_sizes import worst_call
from contracts.evidence import DocumentRef
from contracts.outcome import GateIssue
from contracts.report_updates import REPORTER, Operation, OperationKind, ReporterAnswer, ReporterResult, UpdateInput
from contracts.vocabulary import EngineKind, ReportKind
from providers.errors import InvalidCall, InvalidOutput
from providers.extractive.engine import ExtractiveEngine
from providers.interfaces import EngineAnswer
from tests.fakes.model_work import unmarked
from tests.unit.activities.scripted import common, finding, passage, reference, source

TEXT = (
    "Vacuum must visit every table [3]. It takes a while.\n\nOld rows would seem to vanish. Autovacuum runs by itself."
)
A = passage(TEXT, "Vacuum must visit every table [3]. It takes a while.")
B = passage(TEXT, "Old rows would seem to vanish.")
FINDINGS = [finding("Vacuum visits tables.", A), finding("Rows vanish.", B)]
OUTLINE = ["What it is", "Limits"]


def report_with(body: str) -> LiveText:
    return empty_report("What is vacuum?", OUTLINE).with_body(0, write_body(parse_draft(body)))


REPORT = report_with(f"Known before [{B.id}]. Without a source.\n\n- an item")
DOCUMENTS = {reference(TEXT).hash: TEXT, digest(REPORT.text): REPORT.text}


def request(**changes: Any) -> UpdateInput:
    fields = {
        "draft": DocumentRef(hash=digest(REPORT.text)),
        "heading": OUTLINE[0],
        "outline": OUTLINE,
        "findings": FINDINGS,
        "evidence": [A, B],
        "sources": [source(reference(TEXT))],
        "engine": EngineKind.MODEL,
        "canary": "8fbddb3160f16a89af97bab4",
    }
    return UpdateInput(**common(**{**fields, **changes}))


def marker(identity: str) -> str:
    return f"[{label_of(identity, label_key(request()))}]"


def answered(*operations: Operation, omitted: Sequence[int] = (), **changes: Any) -> ReporterResult:
    task = task_of(REPORTER, request(**changes), DOCUMENTS)
    given = ReporterAnswer(operations=list(operations), omitted=list(omitted))
    answer = EngineAnswer(given, EngineKind.MODEL, model="scripted-1")
    result = ground_answer(task, answer)[0]
    assert isinstance(result, ReporterResult)
    return result


async def by_rules(**changes: Any) -> ReporterResult:
    task = task_of(REPORTER, request(engine=EngineKind.EXTRACTIVE, **changes), DOCUMENTS)
    result = ground_answer(task, await ExtractiveEngine().answer(task))[0]
    assert isinstance(result, ReporterResult)
    return result


def test_it_sees_the_section_by_numbers_and_the_notes_with_their_passages() -> None:
    """Sections of other headings are not shown, and ids are labels of this run."""
    prompt = unmarked(render_role(REPORTER, request(purpose="say what it costs"), DOCUMENTS).prompt)
    assert f"1: Known before {marker(B.id)}.\n2: Without a source.\n\n3: - an item" in prompt
    assert "Vacuum must visit every table \\[3\\]. It takes a while." in prompt
    assert "say what it costs" in prompt
    assert B.id not in prompt
    assert "at most 720 characters; markers of passages do not count" in prompt
    assert [line[:10] for line in prompt.splitlines() if ". Finding" in line] == ["1. Finding", "2. Finding"]
    empty = unmarked(render_role(REPORTER, request(draft=None), DOCUMENTS).prompt)
    assert "(nothing yet)" in empty


def test_it_sees_paragraphs_and_subheadings() -> None:
    """A sentence that is put after the last one of a paragraph belongs to it; subheadings take no operation."""
    body = f"One [{B.id}]. Two.\n\nThree.\n\n### Costs\n\n- four\n- five"
    written = report_with(body)
    stored = DocumentRef(hash=digest(written.text), size=len(written.text))
    prompt = render_role(REPORTER, request(draft=stored), {**DOCUMENTS, stored.hash: written.text}).prompt
    shown = unmarked(prompt).partition("Its numbered text:")[2].partition("Notes with")[0]
    lines = [line.strip() for line in shown.splitlines()[2:-2]]
    assert lines[-9:] == [
        f"1: One {marker(B.id)}.",
        "2: Two.",
        "",
        "3: Three.",
        "",
        "### Costs",
        "",
        "4: - four",
        "5: - five",
    ]


def test_of_a_long_section_the_end_is_shown_with_its_numbers() -> None:
    """The prompt has a bound, which the ledger knows, however long the section is."""
    long = report_with(" ".join(f"Sentence {number} says little about anything at all." for number in range(900)))
    stored = DocumentRef(hash=digest(long.text), size=len(long.text))
    given = request(draft=stored)
    prompt = render_role(REPORTER, given, {**DOCUMENTS, stored.hash: long.text}).prompt
    assert "900: Sentence 899 says" in prompt
    assert "1: Sentence 0 says" not in unmarked(prompt)
    first = next(line for line in unmarked(prompt).splitlines() if ": Sentence" in line).partition(":")[0]
    assert f"[the parts before {first} are not shown]" in prompt
    assert len(prompt) / 3 < worst_call(REPORTER, given).input_tokens


def test_its_operations_become_an_update_that_cites_passages() -> None:
    """Labels are evidence ids then, and notes that it does not cite wait (S2-028)."""
    result = answered(
        Operation(text=f"Every table is visited {marker(A.id)}."),
        Operation(kind=OperationKind.REPLACE, anchor=1, text=f"Known {marker(B.id)}."),
        findings=[*FINDINGS, finding("More.", passage(TEXT, "Autovacuum runs by itself."))],
    )
    update = result.update
    assert [each.text for each in update.operations] == [f"Every table is visited [{A.id}].", f"Known [{B.id}]."]
    assert (update.heading, update.base, update.kind) == (OUTLINE[0], digest(REPORT.sections[0][1]), ReportKind.REPORT)
    measured = measure_reports(REPORT, apply_update(REPORT, update, 800))
    assert measured == (len("\n\nEvery table is visited."), len(" before"))
    assert len(result.notes_left) == 1


def test_notes_that_it_leaves_out_for_good_are_not_asked_for_again() -> None:
    """By their numbers; one that it cites all the same is written, and without operations all must be named."""
    more = [*FINDINGS, finding("More.", passage(TEXT, "Autovacuum runs by itself."))]
    written = Operation(text=f"Every table is visited {marker(A.id)}.")
    result = answered(written, omitted=[1, 2, 9], findings=more)
    assert (result.notes_omitted, result.notes_left) == ([more[1].id], [more[2].id])
    nothing = answered(omitted=[1, 2])
    assert (nothing.update.operations, nothing.notes_left) == ([], [])
    with pytest.raises(InvalidOutput, match="at least one is needed"):
        answered(omitted=[1])


def test_a_note_that_the_section_cites_already_is_not_left() -> None:
    """A writer who passes over it has nothing to add; one of which a passage is missing is asked for again."""
    written = Operation(text=f"Every table is visited {marker(A.id)}.")
    assert answered(written).notes_left == []
    other = passage(TEXT, "Autovacuum runs by itself.")
    third = finding("Rows vanish, and it runs by itself.", B, other)
    assert answered(written, findings=[*FINDINGS, third]).notes_left == [third.id]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("As the source says [99].", "names no passage"),
        (f"As the source says [{A.id}].", "names no passage"),
        (f"See https://evil.test/x for more {marker(A.id)}.", "an address that is no source's"),
        (f"See [this](https://evil.test/x) {marker(A.id)}.", "an address that is no source's"),
        (f"# Report\n\n## {OUTLINE[0]}\n\nAll of it {marker(A.id)}.", "level of the outline"),
        (f"8fbddb3160f16a89af97bab4 {marker(A.id)}", "mark that must never be written"),
        ("Something without a source.", "cite none of the notes"),
    ],
)
def test_what_it_must_not_write_is_refused_with_the_reason(text: str, reason: str) -> None:
    """The reason goes into the repair; the report is unchanged (S2-013, S2-029, S2-030)."""
    with pytest.raises(InvalidOutput, match=reason):
        answered(Operation(text=text))


async def test_an_answer_without_operations_is_none_but_to_remarks_of_a_review() -> None:
    """Notes need a text; a section that a review does not concern stays, and rules cannot judge remarks."""
    with pytest.raises(InvalidOutput, match="at least one is needed"):
        answered()
    remarks = {"issues": [GateIssue(code="review", message="shorter")]}
    assert answered(**remarks).update.operations == (await by_rules(**remarks)).update.operations == []


def test_a_sentence_is_removed_for_a_remark_alone() -> None:
    """The citation goes with it; an update of the agent only adds and replaces."""
    gone = Operation(kind=OperationKind.REMOVE, anchor=2, text="whatever")
    with pytest.raises(InvalidOutput, match="without a remark of the review"):
        answered(gone, Operation(text=f"Every table is visited {marker(A.id)}."))
    update = answered(gone, issues=[GateIssue(code="review", message="the second sentence has no source")]).update
    assert "Without a source" not in apply_update(REPORT, update, 800).text


def test_a_heading_that_the_report_lacks_is_an_error_of_the_caller() -> None:
    """No engine is asked again for it."""
    work = RoleWork(REPORTER, request(heading="Other"), ReporterAnswer(operations=[]), DOCUMENTS, EngineKind.EXTRACTIVE)
    with pytest.raises(InvalidCall, match="the outline has none"):
        ground_update(work)


FIRST = "> Vacuum must visit every table \\[3\\]."
WHOLE = f"{FIRST} It takes a while. [{A.id}]"
VANISHED = f"> Old rows would seem to vanish. [{B.id}]"


@pytest.mark.parametrize(
    ("most", "notes", "quoted"),
    [
        (60, 2, []),
        (90, 1, [f"{FIRST} [{A.id}]"]),
        (110, 2, [WHOLE]),
        (200, 2, [WHOLE, VANISHED]),
    ],
)
async def test_rules_quote_the_notes_that_have_room(most: int, notes: int, quoted: list[str]) -> None:
    """Of a passage without room its first sentences are quoted, and none is cut (S2-029)."""
    result = await by_rules(most_characters=most, findings=FINDINGS[:notes])
    assert [each.text for each in result.update.operations] == quoted
    assert sum(len(f"\n\n{each.text}") for each in result.update.operations) <= most
    assert len(result.notes_left) == notes - len(quoted)
    assert result.update.kind is ReportKind.PASSAGES


async def test_rules_cut_no_passage_that_fits_into_the_next_update() -> None:
    """The second one waits whole; cut to what the first has left over, it would count as written."""
    result = await by_rules(most_characters=200, findings=FINDINGS[::-1])
    assert [each.text for each in result.update.operations] == [VANISHED, WHOLE]
    tight = await by_rules(most_characters=len(VANISHED) + len(FIRST) + 60, findings=FINDINGS[::-1])
    assert [each.text for each in tight.update.operations] == [VANISHED]
    assert tight.notes_left == [FINDINGS[0].id]
