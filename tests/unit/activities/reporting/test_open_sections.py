"""What stays open, and the tree of agents, in every form of a report."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from docx import Document

from activities.reporting.audit import audit
from activities.reporting.render import RenderedForms
from activities.reporting.report_messages import ReportMessages
from client.exchange.documents import to_docx
from contracts.addresses import gap_id
from contracts.agents import AgentRecord, AgentTask, NodeEnd, NodeSummary, TaskResult
from contracts.evidence import Gap
from contracts.outcome import Usage
from contracts.plan import Plan, PlanNode
from contracts.report import Report
from contracts.vocabulary import GapKind, GapStatus, NodeKind, NodeStatus, StopReason
from providers.text import KNOWN_LANGUAGES
from tests.fakes.killers import HereCalls
from tests.toy.nest import nest_declared
from tests.unit.activities.reporting.sample import SAMPLE, make_resolved, rendered, store_of

VACUUM = SAMPLE.sources["routine-vacuuming.html"]
NODES = [
    PlanNode(id="node-a", text="how freezing works", kind=NodeKind.TASK, needs_search=False),
    PlanNode(
        id="leaf-x", text="facts", parent="node-a", kind=NodeKind.LEAF, needs_search=False, source_id=VACUUM.id
    ),
]  # fmt: skip


def gap(description: str, kind: GapKind, origin: str = "leaf-x", status: GapStatus = GapStatus.OPEN) -> Gap:
    return Gap(
        id=gap_id(description), description=description, kind=kind, status=status, origin=f"sub_query:{origin}"
    )  # fmt: skip


GAPS = [
    gap("Who chose two billion?", GapKind.QUESTION),
    gap("Costs are not covered.", GapKind.LIMITATION),
    gap("Nobody measured it.", GapKind.MISSING, "node-a", GapStatus.UNADDRESSABLE),
    gap("Is it safe?", GapKind.QUESTION, status=GapStatus.ADDRESSED),
]


def record(node: NodeSummary | None) -> AgentRecord:
    task = AgentTask(id="node-a", text="how freezing works", strategy="nest")
    result = TaskResult(stop_reason=StopReason.NO_OPEN_GAPS, node=node, usage=Usage(model_calls=2))
    return AgentRecord(task=task, result=result)


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with nest_declared():
        yield


def forms(words: str | None = None, /, language: str = "en", **changes: Any) -> RenderedForms:
    """The forms of a run whose strategy declares both sections."""
    fields = {"resolved": make_resolved(strategy="nest", language=language), "gaps": GAPS}
    plan = Plan(version=1, nodes=[node.model_copy(update={"status": NodeStatus.COMPLETED}) for node in NODES])
    return rendered(words, **({"plan": plan} | fields | changes))


def section(markdown: str, title: str) -> str:
    """The newest section of a title."""
    return markdown.rpartition(f"## {title}\n")[2].partition("\n## ")[0]


async def problems_of(made: RenderedForms) -> list[Any]:
    store = await store_of(SAMPLE.texts)
    data, page = made.document.encode(), made.html.encode()
    stores = (store.text_by_hash, store.by_hash, HereCalls())
    return (await audit(data, *stores, version="0.1.0", markdown=made.markdown, html=page)).problems


@pytest.mark.one_in(3)
@pytest.mark.parametrize("language", sorted(KNOWN_LANGUAGES))
async def test_both_sections_are_in_every_form_and_language(language: str) -> None:
    """Made from the state, in the report's language, after the text and as no claims; the audit finds them (S4-037)."""
    made, say = forms(language=language), ReportMessages(language)
    titles = [say("section_open_questions"), say("section_knowledge_gaps")]
    report = Report.model_validate_json(made.document)
    assert report.report.sections[-4:] == [*titles, say("sources"), say("method")]
    word = "\n".join(each.text for each in Document(io.BytesIO(to_docx(report))).paragraphs)
    for text in (made.markdown, made.html, word):
        places = [text.rindex(each) for each in (*titles, "Who chose two billion?", "Costs are not covered.")]
        assert places[0] < places[2] < places[1] < places[3]
    assert not {claim.text for claim in report.claims} & {one.description for one in GAPS}
    assert len(report.claims) == len(json.loads(rendered().document)["claims"])
    assert await problems_of(made) == []


def test_each_open_question_and_gap_is_named_once_with_its_source_and_goal() -> None:
    """With its leaf and its node; closed ones are in neither section, and an empty one says so (S4-037, S4-041)."""
    empty = forms(gaps=[]).markdown
    assert section(empty, "Open Questions for Further Research").strip() == "No question was left open."
    assert section(empty, "Identified Knowledge Gaps").strip() == "No gap is known."
    made = forms().markdown
    questions = section(made, "Open Questions for Further Research")
    holes = section(made, "Identified Knowledge Gaps")
    assert questions.strip() == (
        "- Who chose two billion? – from “25.1. Routine Vacuuming”, while working on “how freezing works”"
    )
    assert holes.strip().splitlines() == [
        "- Costs are not covered. – from “25.1. Routine Vacuuming”, while working on “how freezing works”",
        "- Nobody measured it. – while working on “how freezing works”",
    ]
    method = section(made, "Method and limits")
    assert "**Gaps:** 4 gaps, 2 open." in method
    assert "Is it safe?" in method
    assert made.count("Who chose two billion?") == 1


async def test_a_writer_that_writes_such_a_section_itself_changes_nothing() -> None:
    """The section of the text stays text, ours follows the state, and the audit tells them apart (S4-037)."""
    own = f"\n## Open Questions for Further Research\n\nIt is all known. [{SAMPLE.rule.id}]\n"
    made = forms(SAMPLE.draft + own)
    assert "Who chose two billion?" in section(made.markdown, "Open Questions for Further Research")
    assert any("It is all known." in claim["text"] for claim in json.loads(made.document)["claims"])
    assert await problems_of(made) == []


async def test_method_shows_each_node_of_the_tree() -> None:
    """Goal, level, sources and corrections of a node, and why it ended; nodes below it have longer numbers."""
    lower = NodeSummary(id="node-b", goal="what it costs", level=2, end=NodeEnd.TIME)
    top = NodeSummary(
        id="node-a", goal="how freezing works", source_ids=[VACUUM.id], corrections=2, end=NodeEnd.NO_PROGRESS,
        below=[lower],
    )  # fmt: skip
    made = forms(agents=[record(top)], calls={"executor": {"extractor": 3}})
    method = section(made.markdown, "Method and limits")
    assert "**Tree:** Each node has an agent of its own: 2 nodes." in method
    shown = "1 how freezing works – level 1; sources: 25.1. Routine Vacuuming; corrections: 2; a correction brought nothing new"
    assert shown in method.replace("\\", "")
    assert "1.1 what it costs – level 2; sources: –; corrections: 0; its time was over" in method.replace("\\", "")
    assert "Agents:" not in method
    assert json.loads(made.document)["calls"] == {"executor": {"extractor": 3}}
    assert await problems_of(made) == []


def test_a_strategy_that_declares_no_section_has_none() -> None:
    """Nothing changes for the reports of other strategies."""
    made = rendered(gaps=GAPS).markdown
    assert "Open Questions" not in made
    assert "Who chose two billion?" in section(made, "Method and limits")
