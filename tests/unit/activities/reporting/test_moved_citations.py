"""Whole reports over pages that name the ids of other sources: no citation moves, and the audit would see it."""

import copy
import json
import re

import pytest

from activities.reporting.audit import audit
from activities.reporting.citations import ReportMarks
from activities.reporting.tree import parse, parse_words, sentences
from activities.roles.untrusted import label_key, label_of
from contracts.vocabulary import EngineKind
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.memory_store import MemoryStore
from tests.unit.activities.reporting.whole import World

HONEST = "Vacuum must freeze old rows to prevent transaction ID wraparound in every table."
PLAIN = World.of("x", HONEST)
OTHER, OTHER_SOURCE = PLAIN.evidence[1].id, PLAIN.sources[1].id
IMITATIONS = {
    "source in round brackets": f"({OTHER_SOURCE})",
    "source in square brackets": f"[{OTHER_SOURCE}]",
    "evidence": f"[{OTHER}]",
    "evidence in round brackets": f"({OTHER})",
    "evidence in full-width brackets": f"【{OTHER}】",
    "evidence in other full-width brackets": f"［{OTHER}］",
    "escaped evidence": f"\\[{OTHER}\\]",
    "escaped escape": f"\\\\[{OTHER}\\\\]",
    "entities": f"&#91;{OTHER}&#93;",
    "number": "[2]",
    "doubled": f"[[{OTHER}]]",
    "list": f"[{OTHER}, 2]",
    "upper case": f"[{OTHER.upper()}]",
}


def lying(imitation: str) -> World:
    """A world whose first page holds something like a marker of the second one."""
    return World.of(
        f"Vacuum prevents wraparound of transaction IDs {imitation} without any pause in the tables.", HONEST
    )


def marked(world: World, position: int) -> str:
    """The marker that a model is shown for a passage."""
    return f"[{label_of(world.evidence[position].id, label_key(world.request(EngineKind.MODEL)))}]"


def attributed(markdown: str) -> list[tuple[str, set[int]]]:
    """The first words of each quoted or cited line, with its numbers."""
    found = []
    for sentence in sentences(parse(markdown.partition("## Sources")[0], ReportMarks())):
        if sentence.marks:
            found.append((sentence.words[:40], {mark.number for mark in sentence.marks}))
    return found


@pytest.mark.parametrize("name", IMITATIONS)
async def test_words_of_a_page_move_no_citation_of_the_extractive_engine(name: str) -> None:
    """A page that holds another source's id is quoted word for word under its own number, and the audit passes."""
    world = lying(IMITATIONS[name])
    whole = await world.extractive()
    assert whole.audited.problems == []
    assert whole.audited.checked["quotations"] == 2
    of_source = {item["source_id"]: item["number"] for item in whole.document["citations"]}
    own, honest = of_source[world.sources[0].id], of_source[OTHER_SOURCE]
    lines = attributed(whole.rendering.markdown)
    assert {number for words, numbers in lines if words.startswith("Vacuum prevents") for number in numbers} == {own}
    assert {number for words, numbers in lines if words.startswith("Vacuum must") for number in numbers} == {honest}
    assert all(claim["method"] == "verbatim" for claim in whole.document["claims"])
    quoted = next(line for line in whole.rendering.markdown.splitlines() if line.startswith("> Vacuum prevents"))
    assert parse_words(quoted.removeprefix("> ")) == f"{world.words(world.evidence[0])} [{own}]"


@pytest.mark.parametrize("name", IMITATIONS)
@pytest.mark.parametrize("form", ["> {words} {marker}\n", "They say “{words}” {marker}.\n"])
async def test_words_of_a_page_move_no_citation_of_a_model(name: str, form: str) -> None:
    """A model that quotes such a page gets the one citation that it wrote itself, and the audit passes."""
    world = lying(IMITATIONS[name])
    marker = marked(world, 0)
    whole = await world.written("# T\n\n" + form.format(words=world.words(world.evidence[0]), marker=marker))
    assert whole.audited.problems == []
    assert [item["source_id"] for item in whole.document["citations"]] == [world.sources[0].id]
    assert [claim["citation_numbers"] for claim in whole.document["claims"]] == [[1]]


def test_a_model_is_shown_no_marker_but_those_of_its_call() -> None:
    """Words of pages that look like markers are escaped in the prompt, and no full id is in it."""
    prompt = lying(f"[{OTHER}] [3]").prompt()
    genuine = {marked(lying(f"[{OTHER}] [3]"), position) for position in (0, 1)}
    assert set(re.findall(r"(?<!\\)\[ev-[^\]]*\]", prompt)) == genuine
    assert f"\\[{OTHER}\\]" in prompt
    assert "\\[3\\]" in prompt


async def test_names_of_another_call_count_for_nothing() -> None:
    """A label of an earlier call names nothing, nor does the id of evidence that no finding of this call rests on."""
    world = lying("here")
    stale = label_of(world.evidence[1].id, "another mark")
    whole = await world.written(f"# T\n\nOne {marked(world, 0)}. Two [{stale}]. Three [ev-{'0' * 32}].\n")
    assert [item["source_id"] for item in whole.document["citations"]] == [world.sources[0].id]
    assert whole.unresolved == [stale, f"ev-{'0' * 32}"]


@pytest.mark.parametrize(
    "words",
    [
        "Vacuum must never freeze old rows.",
        "Vacuum must freeze old rows … in every table.",
        f"{HONEST} And more.",
    ],
)
async def test_a_block_quote_with_other_words_is_plain_text(words: str) -> None:
    """What a model puts into a block quote and its source does not have is not shown as a quotation."""
    whole = await PLAIN.written(f"# T\n\n> {words} {marked(PLAIN, 1)}\n\n> {HONEST} {marked(PLAIN, 1)}\n")
    assert f"\n{words} [1]" in whole.rendering.markdown
    assert f"\n> {HONEST} [1]\n" in whole.rendering.markdown
    assert whole.warnings == ["quotations that their passages do not have: 1 made plain text"]
    assert whole.audited.problems == []


async def test_a_quote_of_one_source_under_the_marker_of_another_is_plain_text() -> None:
    """A block quote stands under the sources that have its words, and no others."""
    world = lying("here")
    whole = await world.written(f"# T\n\n> {HONEST} {marked(world, 1)}{marked(world, 0)}\n")
    assert f"\n{HONEST} [1][2]\n" in whole.rendering.markdown
    assert whole.audited.problems == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("> Vacuum prevents", "> Vacuum always prevents"),
        ("transaction IDs here", "transaction IDs [2] here"),
        ("pause in the tables. [1]", "pause in the tables. [1] Invented."),
        ("pause in the tables. [1]", "pause in the tables. [2]"),
    ],
)
async def test_the_audit_names_a_quotation_that_its_source_does_not_have(old: str, new: str) -> None:
    """A report in which a citation moved to another source, or a quoted word is another, fails with the place."""
    world = lying("here")
    whole = await world.written(
        f"# T\n\n> {world.words(world.evidence[0])} {marked(world, 0)}\n\n> {HONEST} {marked(world, 1)}\n"
    )
    report = copy.deepcopy(whole.document)
    assert old in report["report"]["markdown"]
    report["report"]["markdown"] = report["report"]["markdown"].replace(old, new)
    store = MemoryStore()
    for text in world.texts.values():
        await store.put_text(text)
        await store.put(("raw " + text).encode(), "text/html")
    result = await audit(json.dumps(report).encode(), store.text_by_hash, store.by_hash, HereCalls())
    found = [problem for problem in result.problems if problem.kind == "quotation_differs"]
    assert found
    assert found[0].message.startswith("“Vacuum")


async def test_a_passage_with_a_heading_and_a_table_is_shown_as_a_quotation() -> None:
    """Neither a sign of layout nor the rule below a table's header makes other words of it."""
    page = (
        "Vacuum prevents wraparound of ids.\n\n## Settings\n\nVacuum prevents wraparound by these settings:\n\n"
        "| name | value |\n| --- | --- |\n| age | 200 |\n"
    )
    whole = await World.of(page, "Ferries cross the lake on weekday mornings.\n").extractive()
    assert "> **Settings**\n" in whole.rendering.markdown
    assert "> name · value\\\n> age · 200 [" in whole.rendering.markdown
    assert {claim["method"] for claim in whole.document["claims"]} == {"verbatim"}
    assert whole.audited.problems == []
