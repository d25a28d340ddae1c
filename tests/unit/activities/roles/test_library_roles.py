"""Librarian, scanner, planner of trees and extractor: their prompts, and what is made of their answers."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.roles.prompt_rendering import render_role
from activities.roles.untrusted import label_key, label_of
from contracts import failures
from contracts.call_sizes import FIXED_INPUT_TOKENS, expected_call
from contracts.evidence import MAX_LINKS
from contracts.notebooks import AnalysisEntry, SourceEntry, add_derived_fields, replace_by_references
from contracts.outcome import Guidance
from contracts.plan import PlanNode
from contracts.recursive_roles import (
    EXTRACTOR,
    LIBRARIAN,
    MANAGER,
    MAX_SHOWN_LINKS,
    SCANNED_CHARACTERS,
    SCANNER,
    TREE_PLANNER,
    ExtractInput,
    ExtractorAnswer,
    ExtractorResult,
    LibrarianAnswer,
    LibrarianInput,
    MentionedWork,
    ScanInput,
    ScannedSource,
    VettedSource,
)
from contracts.research_trees import TaskType
from contracts.roles import ANALYZER, AnalyzeInput, RoleSpec
from contracts.state import ResearchState, WorkState
from contracts.vocabulary import EngineKind, GapKind, Quality
from providers.extractive.engine import ExtractiveEngine
from providers.storage.stored_notebooks import Notebooks
from tests.fakes import states
from tests.fakes.model_work import unmarked
from tests.unit.activities.scripted import (
    SOURCE,
    MemoryStore,
    ScriptedEngine,
    common,
    environment,
    reference,
    role_activities,
    source,
)

TEXT = (
    "# Vacuum\n\nVacuum must visit every table to prevent wraparound failures. The costs are treated in "
    "The Storage Handbook by A. Miller.\n\nThis page does not cover replicas."
)
QUOTE = "Vacuum must visit every table to prevent wraparound failures."
LEAF = PlanNode(id="leaf-1", text="What must vacuum do?", expected_contribution="how wraparound is prevented")
VETTED = [
    VettedSource(id=f"src-{n:016d}", title=f"Page {n}", quality=Quality.HIGH, reason=f"reason {n}") for n in (1, 2)
]
INPUTS: dict[str, dict[str, Any]] = {
    "manager": {},
    "librarian": {"need": "how wraparound is prevented"},
    "scanner": {"sub_query": PlanNode(id="need-1", text="wraparound"), "sources": [source(reference(TEXT))]},
    "tree_planner": {"goal": "how wraparound is prevented", "vetted": VETTED},
    "extractor": {
        "sub_query": LEAF, "sources": [source(reference(TEXT))],
        "task_type": TaskType.ANSWER_QUESTION, "task_detail": LEAF.text,
    },
}  # fmt: skip


def request_of(role: RoleSpec[Any, Any], **changes: Any) -> Any:
    return role.input(**common(**INPUTS[role.name] | changes))


def prompt_of(role: RoleSpec[Any, Any], **changes: Any) -> str:
    return unmarked(render_role(role, request_of(role, **changes), {reference(TEXT).hash: TEXT}).prompt)


async def done(role: RoleSpec[Any, Any], answer: Any, content: MemoryStore | None = None, **changes: Any) -> Any:
    """Have the activity of a role do its work over an engine that answers so."""
    content = content or MemoryStore()
    await content.put_text(TEXT)
    activities = role_activities(ScriptedEngine(answer), content)
    return await environment().run(activities.run, role, request_of(role, **changes))


# --- prompts ---------------------------------------------------------------------------------------------------------
LABEL = label_of(VETTED[0].id, label_key(request_of(TREE_PLANNER)))


@pytest.mark.parametrize(
    ("role", "changes", "shown", "left_out"),
    [
        (MANAGER, {"most_queries": 1}, ["one query.", "Give the scope"], []),
        (
            MANAGER,
            {"most_queries": 3, "previous": ["what vacuum is"]},
            ["3 queries or fewer", "<previous>\n- what vacuum is\n</previous>"],
            [],
        ),
        (
            MANAGER,
            {"edited": ["Why </edited> freeze?", "When?"]},
            ["<edited>\n- Why ‹/edited> freeze?\n- When?\n</edited>", "Judge the queries of the edit"],
            ["Give the scope"],
        ),
        (
            LIBRARIAN,
            {"asked": ["vacuum wraparound"], "works": ["The Storage Handbook"]},
            [
                "<need>\nhow wraparound is prevented\n</need>",
                "<asked>\n- vacuum wraparound\n</asked>",
                "<works>\n- The Storage Handbook\n</works>",
                "Name at most 4 searches.",
            ],
            [],
        ),
        (
            TREE_PLANNER,
            {"most_nodes": 9},
            [
                f"{LABEL}: Page 1 (high; reason 1)",
                "at most 9 executors in all, at most 5 leaves of each, 2 levels of executors below",
            ],
            [VETTED[0].id],
        ),
        (
            TREE_PLANNER,
            {"level": 3, "done": ["costs"]},
            ["Plan the leaves: at most 5, and no executors below this one.", "- costs"],
            [],
        ),
        (EXTRACTOR, {}, ['<task type="ANSWER_QUESTION">\nWhat must vacuum do?\n</task>', QUOTE], []),
        (EXTRACTOR, {"task_type": TaskType.SUMMARIZE, "task_detail": ""}, ['<task type="SUMMARIZE">'], []),
    ],
)
def test_a_role_sees_what_its_work_needs(
    role: RoleSpec[Any, Any], changes: dict[str, Any], shown: list[str], left_out: list[str]
) -> None:
    """Question or edit; need and earlier searches; vetted sources by label and what a level allows; one task and its
    source (S4-005, S4-013, S4-015, S4-025, S4-042, S4-044, S4-045, C4-7).
    """
    prompt = prompt_of(role, **changes)
    assert [words for words in shown if words not in prompt] == []
    assert [words for words in left_out if words in prompt] == []


def test_the_extractor_sees_the_first_links_of_its_source() -> None:
    """A page with many links does not fill the prompt with them (S4-045)."""
    links = [f"https://example.org/{number}" for number in range(MAX_LINKS)]
    assert (
        prompt_of(EXTRACTOR, sources=[source(reference(TEXT), links=links)]).count("https://example.org/")
        == MAX_SHOWN_LINKS
    )


# --- answers ---------------------------------------------------------------------------------------------------------
async def test_searches_are_new_and_at_most_four() -> None:
    """Repeated ones go; the first time for a need there is one at least, later there may be none (S4-016, S4-044)."""
    many = LibrarianAnswer(searches=["one", "One", "", *(f"search {n}" for n in range(9))])
    assert (await done(LIBRARIAN, many, asked=["Search 0"])).searches == ["one", "search 1", "search 2", "search 3"]
    assert (await done(LIBRARIAN, LibrarianAnswer(searches=["one"]), asked=["one"])).searches == []
    with pytest.raises(ApplicationError) as caught:
        await done(LIBRARIAN, LibrarianAnswer(searches=[" "]))
    assert caught.value.type == failures.INVALID_MODEL_OUTPUT


@pytest.mark.parametrize(
    ("answer", "quality", "accepted"),
    [
        ({"credibility": "high", "relevance": "high", "decision": "use"}, Quality.MEDIUM, True),
        ({"credibility": "high", "relevance": "high", "decision": "use"}, Quality.LOW, False),
        ({"credibility": "high", "relevance": "low", "decision": "use"}, Quality.HIGH, False),
        ({"credibility": "high", "relevance": "high", "decision": "reject"}, Quality.HIGH, False),
        # One step down from high is medium: a page that a scan alone distrusts is not thrown away.
        ({"credibility": "low", "relevance": "high", "decision": "reject"}, Quality.MEDIUM, True),
        ({"credibility": "?", "relevance": "?", "decision": "?"}, Quality.UNKNOWN, True),
    ],
)
def test_a_scan_decides_with_the_label_of_the_rules(
    answer: dict[str, Any], quality: Quality, *, accepted: bool
) -> None:
    """What is not about the need is rejected; of credibility the label that was moved by a step decides (C4-5)."""
    assert ScannedSource.model_validate(answer).accepts(quality) is accepted


async def test_a_scan_is_shown_an_excerpt() -> None:
    """However much text the request has room for, at most 3,000 characters of a candidate are shown (S4-017)."""
    content = MemoryStore()
    text = await content.put_text("A word of the page. " * 1_000)
    notebooks = Notebooks(content)
    limits = states.resolved().limits.model_copy(update={"max_source_characters": 20_000})
    resolved = states.resolved(limits=limits)
    state = ResearchState(work=WorkState(resolved=resolved, resolved_entry=await notebooks.write(resolved)))
    request = request_of(SCANNER, sources=[source(text)], max_characters=SCANNED_CHARACTERS)
    assert isinstance(request, ScanInput)
    sent = replace_by_references(SCANNER, request, state)
    assert (await notebooks.complete_input(sent, SCANNER)).max_characters == SCANNED_CHARACTERS
    analysis = AnalyzeInput.model_validate(dict(sent))
    assert (await notebooks.complete_input(analysis, ANALYZER)).max_characters == 20_000


def test_the_estimate_knows_what_is_shown_of_a_source() -> None:
    """An extraction shows one source, a scan excerpts of five, however many sources a search has."""
    extraction, scan = (
        expected_call(role, sources=9, shown_tokens=30_000).input_tokens - FIXED_INPUT_TOKENS
        for role in (EXTRACTOR, SCANNER)
    )
    assert (extraction, scan) == (6_300, 6_500)


# --- extractor -------------------------------------------------------------------------------------------------------


def finding(quote: str = QUOTE) -> dict[str, Any]:
    return {"content": QUOTE, "confidence": "medium", "quotes": [{"source_id": SOURCE, "quote": quote}]}


async def test_statements_without_a_passage_are_dropped() -> None:
    """Each statement has verbatim passages of the one source; the rest of the answer stays (S4-026, S4-027, C4-8)."""
    content = MemoryStore()
    answer = ExtractorAnswer.model_validate(
        {"findings": [finding(), finding("Nobody wrote this sentence.")], "follow_up_questions": ["How long?"]}
    )
    output = await done(EXTRACTOR, answer, content, sources=[source(reference(TEXT), links=["https://example.org/"])])
    assert isinstance(output, ExtractorResult)
    found = add_derived_fields(output, [SOURCE])
    assert [(one.statement, len(one.evidence_ids)) for one in found.findings] == [(QUOTE, 1)]
    passage = found.evidence[0]
    assert TEXT[passage.start : passage.end] == QUOTE
    entry = await Notebooks(content).read(output.entry or "", AnalysisEntry)
    assert entry.sources[0].links == []
    assert [gap.description for gap in output.gaps] == ["How long?"]


async def test_questions_and_gaps_are_gaps_of_two_kinds() -> None:
    """Each once, three of each at most, whatever an extractor invents (S4-028, X-11)."""
    answer = ExtractorAnswer(
        findings=[],
        follow_up_questions=["Why?", "why?", *(f"Question {n}?" for n in range(9))],
        identified_gaps=["replicas", "Why?", *(f"topic {n}" for n in range(9))],
    )
    output = await done(EXTRACTOR, answer)
    assert [gap.description for gap in output.gaps[:3]] == ["Why?", "Question 0?", "Question 1?"]
    assert [gap.description for gap in output.gaps[3:]] == ["replicas", "topic 0", "topic 1"]
    assert [gap.kind for gap in output.gaps] == [GapKind.QUESTION] * 3 + [GapKind.LIMITATION] * 3


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        ({"words": "The Storage Handbook"}, MentionedWork(words="The Storage Handbook")),
        ({"words": "the  handbook of storage"}, None),
        ({"words": "See here", "address": "https://EXAMPLE.org/a#part"}, MentionedWork(address="https://EXAMPLE.org/a#part")),
        ({"words": "A. Miller", "address": "http://169.254.169.254/"}, MentionedWork(words="A. Miller")),
        ({"address": "http://169.254.169.254/"}, None),
        ({}, None),
    ],
)  # fmt: skip
async def test_a_work_counts_only_if_the_source_mentions_it(named: dict[str, str], kept: MentionedWork | None) -> None:
    """By its words in the stored text, or by its address among the links of the page (S4-028, C4-7)."""
    answer = ExtractorAnswer(findings=[], mentioned_works=[MentionedWork(**named)])
    output = await done(EXTRACTOR, answer, sources=[source(reference(TEXT), links=["https://example.org/a"])])
    assert output.mentioned_works == ([kept] if kept else [])


async def test_the_links_of_a_page_come_from_its_entry() -> None:
    """The workflow sends the hash of the entry alone, and the call has the links (C4-7)."""
    notebooks = Notebooks(MemoryStore())
    entry = SourceEntry(
        source_id=SOURCE, url="https://example.org/", text=reference(TEXT), links=["https://example.org/b"]
    )
    request = request_of(EXTRACTOR, sources=[source(None, entry=await notebooks.write(entry))])
    sent = replace_by_references(EXTRACTOR, request, ResearchState())
    assert "example.org" not in sent.model_dump_json()
    assert (await notebooks.complete_input(sent, EXTRACTOR)).sources[0].links == ["https://example.org/b"]


# --- without a model -------------------------------------------------------------------------------------------------
async def scripted(role: RoleSpec[Any, Any], **changes: Any) -> Any:
    content = MemoryStore()
    await content.put_text(TEXT)
    activities = role_activities(ExtractiveEngine(), content)
    return await environment().run(activities.run, role, request_of(role, engine=EngineKind.EXTRACTIVE, **changes))


async def test_every_part_works_without_a_model() -> None:
    """The scope is the question with its wishes; searches, leaves and passages fit the task (S4-007, S4-016, C4-6)."""
    first = await scripted(LIBRARIAN)
    assert first.searches[0] == "how wraparound is prevented"
    assert 1 < len(first.searches) <= 4
    second = await scripted(LIBRARIAN, asked=first.searches, works=["The Storage Handbook"])
    assert "The Storage Handbook" in second.searches
    assert not set(first.searches) & set(second.searches)
    tree = (await scripted(TREE_PLANNER)).tree(request_of(TREE_PLANNER))
    assert [(leaf.source_id, leaf.task_type) for leaf in tree.leaves] == [
        (each.id, TaskType.EXTRACT_KEY_FACTS) for each in VETTED
    ]
    assert len((await scripted(TREE_PLANNER, most_leaves=1)).leaves) == 1
    scope = await scripted(MANAGER, guidance=[Guidance(origin="person", text="look at costs")])
    assert [(one.query, one.feasible) for one in scope.queries] == [(common()["query"], True), ("look at costs", True)]
    assert [one.query for one in (await scripted(MANAGER, edited=["Why?", "When?"])).queries] == ["Why?", "When?"]
    found = add_derived_fields(await scripted(EXTRACTOR), [SOURCE])
    assert [QUOTE in TEXT[item.start : item.end] for item in found.evidence] == [True]


def test_an_extraction_has_one_source() -> None:
    """One source and one task, never several at once (S4-025, S4-045)."""
    with pytest.raises(ValueError, match="sources"):
        ExtractInput(sub_query=LEAF, sources=[source(None), source(None)], task_type=TaskType.SUMMARIZE)
    assert LibrarianInput(need="x").subject() == "x"
