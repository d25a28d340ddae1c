"""Passages of pages already read, for open gaps, and the sections that are read further."""

from typing import Any

from activities.roles.gap_passages import GapPassages, ground_readings, passages_of
from activities.roles.grounding import RoleWork
from contracts.addresses import digest
from contracts.evidence import DocumentRef, Gap
from contracts.roles import SourceExtract
from contracts.supervisor_roles import REFINER, RefineInput, RefinerAnswer
from contracts.vocabulary import EngineKind
from providers.tokens.lookup import find_passages, section_around

PLANNING = "It is usually wise to create the primary and standby servers so that they are as similar as possible."
ARCHITECTURE = "In any case the hardware architecture of both servers must be the same."
STANDBY = f"# Log shipping\n\nA standby follows.\n\n## Planning\n\n{PLANNING}\n\n{ARCHITECTURE}\n\n## Operation\n\nIt reads WAL."
FLAGS = "# Installation\n\n## SPARC\n\nCompiler flags choose the architecture of the code that is generated.\n"
GAP = Gap(id="gap-1", description="The sources do not say whether both servers need the same hardware architecture.")
TEXTS = {"src-flags": FLAGS, "src-standby": STANDBY}


def request_for(*gaps: Gap) -> RefineInput:
    sources = [
        SourceExtract(id=name, title=name, text=DocumentRef(hash=digest(text), size=len(text)))
        for name, text in TEXTS.items()
    ]
    return RefineInput(gaps=list(gaps), remaining_iterations=1, read_sources=sources)


def found(request: RefineInput) -> GapPassages:
    return passages_of(request, {digest(text): text for text in TEXTS.values()})


def test_the_passage_that_answers_a_gap_comes_first() -> None:
    """Words that no page has, such as those about sources, weigh nothing; rare words weigh more than common ones."""
    best = found(request_for(GAP))
    first = best.passages[0]
    assert TEXTS[first.source_id][first.start : first.end] == ARCHITECTURE
    assert first.path == ("Log shipping", "Planning")
    assert best.numbers["gap-1"][0] == 1
    assert find_passages(TEXTS, [["Do tigers swim?"]], "en", 3) == [[]]


def test_a_section_that_is_named_after_a_gap_comes_first() -> None:
    """Another one may name the subject with more of the gap's words, and only refer to it."""
    answer = "An index has a smaller size with none, and column filters are not known at all."
    page = (
        f"# Engine\n\n## The detail option\n\n{answer}\n\n"
        "## Other matters\n\nThe detail option has a size, and it changes phrase queries, as said elsewhere.\n"
    )
    question = (
        "What does the detail option change for phrase and near queries, column filters and the size of an index?"
    )
    [[first, second]] = find_passages({"src-1": page}, [[question]], "en", 3)
    assert page[first.start : first.end] == answer
    assert second.path == ("Engine", "Other matters")


def test_a_passage_of_two_gaps_is_listed_once() -> None:
    """The best passage of each gap comes before the second one of any, under one number."""
    again = Gap(id="gap-2", description="Need both servers be of one hardware architecture?")
    other = Gap(id="gap-3", description="Which compiler flags are generated?")
    best = found(request_for(GAP, again, other))
    assert best.numbers["gap-1"][0] == best.numbers["gap-2"][0] == 1
    assert best.passages[best.numbers["gap-3"][0] - 1].source_id == "src-flags"
    assert len(set(best.passages)) == len(best.passages)


def test_numbers_become_sections_of_pages() -> None:
    """A listed passage stands for the section around it, with short neighbours; other numbers are ignored."""
    request = request_for(GAP)
    fields: dict[str, Any] = {
        "gap_analysis": [{"gap_id": "gap-1", "read_further": [1, 99], "follow_up_queries": [{"query": "servers"}]}],
        "iteration_recommendation": {"should_iterate": True},
    }
    answer = RefinerAnswer.model_validate(fields)
    documents = {digest(text): text for text in TEXTS.values()}
    work = RoleWork(REFINER, request, answer, documents, EngineKind.MODEL)
    result = ground_readings(work)
    [reading] = result.readings
    [section] = reading.sections
    shown = TEXTS[section.source_id][section.start : section.end]
    assert shown == f"## Planning\n\n{PLANNING}\n\n{ARCHITECTURE}\n\n## Operation\n\nIt reads WAL."
    assert [item.query for item in result.gap_analysis[0].follow_up_queries] == ["servers"]
    assert work.warnings == ["numbers of passages that are not listed were ignored"]


def test_of_a_long_section_what_lies_around_the_passage_is_read() -> None:
    """The part begins and ends at a line, has the passage in it, and stays below the limit."""
    lines = [f"Line {number} of a long section." for number in range(1_000)]
    text = "# Long\n\n" + "\n".join(lines)
    start = text.index("Line 500 ")
    section = section_around(text, "src-1", start, start + 30)
    shown = text[section.start : section.end]
    assert "Line 500 of" in shown
    assert len(shown) <= 6_100
    assert shown.startswith("Line ")
    assert shown.endswith("section.\n")
