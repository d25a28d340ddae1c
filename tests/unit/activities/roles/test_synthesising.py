"""The synthesizer's text as a stored draft."""

import re
from typing import Any

import pytest

from activities.reporting.drafts import parse_draft, summarize
from activities.reporting.references import cited_evidence
from activities.reporting.tree import write
from activities.roles.grounding import RoleWork
from activities.roles.prompt_rendering import render_role
from activities.roles.report_writing import clean_text, ground_report
from activities.roles.untrusted import label_key, label_of
from contracts import addresses, roles
from contracts.evidence import ReportDraft
from contracts.vocabulary import Confidence, EngineKind
from providers.errors import InvalidOutput
from tests.unit.activities.scripted import SOURCE, common, finding, passage, reference, source

TEXT = "Vacuum must visit every table. Old rows would seem to vanish. Autovacuum runs by itself."
WEB = "https://example.org/Foo_(bar)?q=1"
WEB_ID = addresses.source_id(WEB)
A = passage(TEXT, "Vacuum must visit every table.")
B = passage(TEXT, "Old rows would seem to vanish.")
C = passage(TEXT, "Autovacuum runs by itself.", WEB_ID)
LABEL, OTHER_LABEL = (label_of(item.id, label_key(roles.WriteInput(**common()))) for item in (A, B))
FINDINGS = [
    finding("Vacuum visits tables.", A),
    finding("Rows vanish.", B, confidence=Confidence.MEDIUM),
    finding("Autovacuum runs.", C, confidence=Confidence.SPECULATION),
]


def request(**changes: Any) -> roles.WriteInput:
    fields = {
        "findings": FINDINGS,
        "evidence": [A, B, C],
        "sources": [source(reference(TEXT)), source(reference(TEXT), id=WEB_ID, url=WEB)],
    }
    return roles.WriteInput(**common(**{**fields, **changes}))


def work_of(markdown: str, engine: EngineKind, **changes: Any) -> RoleWork[roles.WriteInput, roles.SynthesizerAnswer]:
    return RoleWork(roles.SYNTHESIZER, request(**changes), roles.SynthesizerAnswer(markdown=markdown), {}, engine)


def cleaned(markdown: str) -> str:
    return write(clean_text(work_of(markdown, EngineKind.MODEL), markdown).blocks).text.rstrip("\n")


async def drafted(
    markdown: str, engine: EngineKind = EngineKind.MODEL, **changes: Any
) -> tuple[ReportDraft, str, list[str]]:
    """The draft, its stored text, and the warnings; without a marker in the text there are no findings to cite."""
    if not any(label in markdown for label in (LABEL, OTHER_LABEL)):
        changes = {"findings": [], **changes}
    work = work_of(markdown, engine, **changes)
    return ground_report(work).draft, "".join(work.texts), work.warnings


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (f"Fact [{LABEL}, {OTHER_LABEL}].", f"Fact [{A.id}][{B.id}]."),
        (f"Fact [{A.id}, {OTHER_LABEL}].", f"Fact [{B.id}]."),
        (f"Fact \\[{LABEL}\\].", f"Fact [{A.id}]."),
        (f"Fact [{LABEL.upper()}].", f"Fact [{A.id}]."),
        (f"Fact ({LABEL}; {OTHER_LABEL}).", f"Fact [{A.id}][{B.id}]."),
        (f"Fact ［{LABEL}, {OTHER_LABEL}］.", f"Fact [{A.id}][{B.id}]."),
        (f"Fact ({LABEL}).", f"Fact [{A.id}]."),
        (f"Fact [{WEB_ID}, {LABEL}].", f"Fact [{A.id}]."),
        (f"Fact ({SOURCE}).", "Fact."),
        (f"As {SOURCE} and {LABEL} say, so it is </findings-0a1b2c3d4e>. [{LABEL}]", f"As and say, so it is. [{A.id}]"),
        (f"They say “see {SOURCE}”, in sq-0a1b2c3d4e5f.", "They say “see”, in sq-0a1b2c3d4e5f."),
        (f"Fact [{FINDINGS[1].id}].", "Fact."),
        (f"Fact [ev-0000000000, {OTHER_LABEL}].", f"Fact [{B.id}]."),
        ("Fact [src-0000000000] [gap-12] [1] [2, 3] [^4] 【5】.", "Fact."),
        (f"> Quoted [1] words, [{SOURCE}] [{LABEL}]", f"> Quoted \\[1\\] words, [{A.id}]"),
    ],
)
def test_markers_have_one_form_or_are_removed(written: str, stored: str) -> None:
    """Known markers in any form become `[ev-…]`; numbers and unknown names go; code and quoted words stay (X-7)."""
    assert cleaned(written) == stored


def test_escaped_brackets_of_the_extractive_engine_are_words() -> None:
    """A page that prints something like a marker is not cited by it: the extractive engine has escaped its brackets."""
    text = f"Page says \\[{A.id}\\] and \\[ev-0000000000\\] and \\[1\\] [{B.id}].\n"
    report = clean_text(work_of(text, EngineKind.EXTRACTIVE), text)
    assert (write(report.blocks).text, cited_evidence(report.blocks), report.unresolved) == (text, [B.id], [])


@pytest.mark.parametrize("heading", ["## Sources", "### 7. Works cited", "## Sources used", "## Quellen"])
def test_a_list_of_sources_by_the_model_goes(heading: str) -> None:
    """The list of sources is the renderer's; a section after it stays."""
    text = f"# T\n\n## Summary\n\nFine.\n\n{heading}\n\n- one\n- [2] two\n\n#### deeper\n\nx\n\n## Conclusion\n\nEnd."
    assert cleaned(text) == "# T\n\n## Summary\n\nFine.\n\n## Conclusion\n\nEnd."


async def test_figures_come_from_the_text() -> None:
    """Title, sections, words and characters are counted, not claimed (S0-074, S0-116 to S0-119)."""
    markdown = (
        f"# The Title\n\n> Evidence brief.\n\n"
        f"## Executive summary\n\nFirst, e.g. this one [{LABEL}]. Second **bold** [{OTHER_LABEL}]! Third? Fourth.\n\n"
        f"## Key findings\n\n- A point [{LABEL}].\n\n### Detail\n\nMore here.\n"
    )
    draft, text, _ = await drafted(markdown, iteration=2)
    assert (draft.title, draft.sections) == ("The Title", ["Executive summary", "Key findings"])
    assert draft.summary == "First, e.g. this one. Second bold! Third?"
    assert draft.word_count == 21
    assert draft.characters == len(text.strip())
    assert draft.has_headings
    assert draft.iteration == 2
    assert not draft.empty
    assert draft.document.media_type == "text/markdown"


@pytest.mark.parametrize(
    ("engine", "findings"), [(EngineKind.EXTRACTIVE, []), (EngineKind.EXTRACTIVE, FINDINGS), (EngineKind.MODEL, [])]
)
async def test_an_empty_brief_is_marked(engine: EngineKind, findings: list[Any]) -> None:
    """A report that says that nothing was found cites nothing and says so; a model with findings has no such excuse."""
    draft, _, _ = await drafted("# T\n\n## Not covered\n\nNothing.", engine, findings=findings)
    assert draft.empty
    with pytest.raises(InvalidOutput, match="cites none"):
        await drafted("# T\n\n## Summary\n\nTrust me.", findings=FINDINGS)


@pytest.mark.parametrize("markdown", ["", "  \n ", "## Sources\n\n- x", "```markdown\n\n```"])
async def test_an_empty_report_is_no_report(markdown: str) -> None:
    """Nothing but blanks or a list of sources is an unusable answer (S0-116)."""
    with pytest.raises(InvalidOutput):
        await drafted(markdown)


@pytest.mark.parametrize(
    "written",
    [
        f"Vacuum visits tables `{LABEL}`.",
        f"Vacuum visits tables [`{LABEL}`].",
        f"Vacuum visits tables (`{LABEL}`, `{LABEL}`).",
        f"Vacuum visits tables `[{LABEL}]`.",
        f"Vacuum visits tables ``{LABEL.upper()}``, `{LABEL}`, as known.",
        f"Vacuum visits tables [{LABEL.replace('-', chr(0x2011))}].",
    ],
)
async def test_a_citation_that_is_set_as_code_or_with_another_hyphen_is_one(written: str) -> None:
    """A statement keeps its passage however the writer sets its name, and no empty bracket is left."""
    draft, text, warnings = await drafted(f"# T\n\n{written}")
    assert draft.evidence_ids == [A.id]
    assert (draft.unresolved_markers, warnings) == ([], [])
    assert not re.search(r"`|\[\]|\(\)|[\u2011]", text)


async def test_code_that_is_no_name_of_a_citation_stays() -> None:
    """Neither a commit nor a name that the prompt does not have is a citation because it is code."""
    _, text, _ = await drafted(f"# T\n\nVacuum visits `git-0123456789` and `0123456789` [{LABEL}].")
    assert "`git-0123456789` and `0123456789`" in text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"Vacuum visits tables, as {SOURCE} says [{LABEL}].", "Vacuum visits tables, as says"),
        (f"Vacuum visits tables [{LABEL}]. </findings-0123456789>", "Vacuum visits tables"),
        (
            f"Vacuum visits tables [{LABEL}]. \\</findings-0123456789\\> &lt;findings-0123456789&gt;",
            "Vacuum visits tables",
        ),
        (f"Vacuum “visits {SOURCE} tables” (f-0123456789, {SOURCE}) [{LABEL}].", "Vacuum “visits tables”"),
        (f"> Vacuum visits {SOURCE} tables [{LABEL}]", "Vacuum visits tables"),
        (f"- `{SOURCE}` Vacuum visits tables [{LABEL}]", "- Vacuum visits tables"),
        (f"Vacuum visits tables ({SOURCE.upper()}) [{LABEL}].", "Vacuum visits tables [ev-"),
        (f"Vacuum visits {SOURCE.replace('-', chr(0x2011))} tables [{LABEL}].", "Vacuum visits tables"),
        (f"Vacuum, by step-0123456789 and leaf-0123456789, visits tables [{LABEL}].", "visits tables"),
        (f"Vacuum visits the sub_queries-0123456789 tables [{LABEL}].", "Vacuum visits the tables"),
        (f"Vacuum ＜findings-0123456789＞ visits tables [{LABEL}].", "Vacuum visits tables"),
    ],
)
async def test_prompt_text_in_a_report_is_removed(written: str, shown: str) -> None:
    """Names and tags of the prompt are no words for readers, in any form; the report is not written again for them."""
    draft, text, warnings = await drafted(f"# T\n\n{written}")
    assert shown in text
    assert draft.evidence_ids == [A.id]
    assert not re.search(r"(src|f|step|leaf)[-\u2011][0-9a-f]{10}|findings-|sub_queries|\(\)", text, re.IGNORECASE)
    assert any(line.startswith("names of the prompt were removed") for line in warnings)


def test_words_within_those_of_another_passage_are_shown_once() -> None:
    """Readers of one page quote more or less of it; which passage has the words is said in their place."""
    page = "Vacuum keeps it. It takes a while. Rows vanish."
    long, part, other = (
        passage(page, quote) for quote in ("Vacuum keeps it. It takes a while.", "It takes a while.", "Rows vanish.")
    )
    findings = [finding("It is kept.", long), finding("It is slow.", part), finding("They go.", other)]
    written = request(findings=findings, evidence=[long, part, other], sources=[source(reference(page))])
    prompt = render_role(roles.SYNTHESIZER, written, {reference(page).hash: page}).prompt
    label = label_of(long.id, label_key(request()))
    assert prompt.count("It takes a while.") == 1
    assert f": a part of the words of {label}" in prompt
    assert "Rows vanish." in prompt


def test_a_finding_names_the_one_that_contradicts_it() -> None:
    """A writer who is shown a number of others cannot tell which."""
    first, second = FINDINGS[0], FINDINGS[1]
    contradicted = first.with_fields(contradicts=[second.id, "f-unknown"])
    prompt = render_role(roles.SYNTHESIZER, request(findings=[contradicted, second]), {}).prompt
    assert "contradicted by “Rows vanish.”; contradicted by “a finding that is not shown here”)" in prompt


def test_a_summary_begins_with_a_sentence() -> None:
    """The title above a passage, and a heading within it, are no part of what the passage says; a bold sentence is."""
    shown = "# Q?\n\n## Passages\n\n*Vacuum*\n\n> Vacuum keeps it.\n>\n> **Costs**\n>\n> It takes a while.\n"
    assert summarize(parse_draft(shown)) == "Vacuum keeps it. It takes a while."
    assert summarize(parse_draft("# Q?\n\n**It does.** It is quick.\n")) == "It does. It is quick."
