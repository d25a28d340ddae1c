"""Citations: names in drafts, numbers and links in reports, and pages that try to move them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.reporting.audit import audit
from activities.reporting.references import (
    SQUARE_GROUP,
    DraftMarks,
    KnownAddresses,
    ReportMarks,
    citation_labels,
    number_citations,
)
from activities.reporting.tree import Inline, Run, parse, sentences, write
from contracts.addresses import digest
from contracts.evidence import Evidence
from contracts.outcome import Citation
from contracts.request import Output
from tests.drawn import draws
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.page import link_targets
from tests.unit.activities.reporting.sample import SAMPLE, make_resolved, make_source, rendered, store_of
from tests.unit.activities.reporting.whole import World

REGISTRY = KnownAddresses.of(["https://good.test/page", "corpus:manual/a.html"], "How does it work?")
EVIDENCE = {
    key: Evidence(id=key, source_id=source, start=0, end=1, quote_hash=digest("x"))
    for key, source in (("ev-a1", "src-a"), ("ev-a2", "src-a"), ("ev-b1", "src-b"), ("ev-c1", "src-c"))
}


def number(draft: str, given_before: list[Citation] | None = None) -> tuple[str, list[Citation], list[str]]:
    """The draft with numbers, every number of the run, and what was taken out."""
    marks = DraftMarks({key: [key] for key in EVIDENCE})
    blocks = parse(draft, marks, REGISTRY.filter([]))
    numbered, citations = number_citations(blocks, EVIDENCE, given_before or [], {})
    return write(numbered).text.rstrip("\n"), citations, marks.unresolved


@pytest.mark.parametrize(
    ("draft", "text", "unresolved"),
    [
        ("One [ev-b1]. Two [ev-a1].", "One [1]. Two [2].", []),
        ("One [ev-a1, ev-b1].", "One [1][2].", []),
        ("One [ev-a1] [ev-b1], [ev-a2].", "One [1][2].", []),
        ("`One` , two [ev-a1] , and `three` .NET.", "`One`, two [1], and `three` .NET.", []),
        ("> `One` , two [ev-a1]", "> `One` , two [1]", []),
        ("One [ev-a1, 7].", "One [1].", ["7"]),
        ("| x | [ev-a1] |\n|---|---|\n| y | [ev-b1] |", "| x | [1] |\n| --- | --- |\n| y | [2] |", []),
        ("One [ev-a1](https://evil.test/x).", "One [1].", []),
        ("[ev-a1]: yes", "[1]\\: yes", []),
        ("One [ev-a1](see below).", "One [1]\\(see below).", []),
        ("`[ev-a1]` and ``x ` [7] ``", "`[ev-a1]` and ``x ` [7]``", []),
        ("```\n[ev-a1] [7]\n```", "```\n[ev-a1] [7]\n```", []),
        ("- [ ] open\n- [x] done", "- \\[ \\] open\n- \\[x\\] done", []),
        ("In [2024] and [sic] and [a, b] ¹ ① [፩].", "In \\[2024\\] and \\[sic\\] and \\[a, b\\] ¹ ① \\[፩\\].", []),
        ("> See [7], [ev-zz] and [src-a] [ev-a1]", "> See \\[7\\], \\[ev-zz\\] and \\[src-a\\] [1]", []),
        ("Page \\[ev-a1\\] and \\[5\\]: \\\\\\[ev-a1\\].", "Page \\[ev-a1\\] and \\[5\\]: \\\\\\[ev-a1\\].", []),
        ("Page 【ev-a1】, ［ev-a1］, (ev-a1), 【5】.", "Page 【ev-a1】, ［ev-a1］, (ev-a1), 【5】.", []),
        ("Known [7] by hand.", "Known by hand.", ["7"]),
        ("Known [^4] [1-3].", "Known.", ["4", "1-3"]),
        ("Unknown [ev-zz].", "Unknown.", ["ev-zz"]),
        ("[1](https://evil.test) x", "x", ["1"]),
        ("Real [ev-a1]. Invented [1].", "Real [1]. Invented.", ["1"]),
    ],
)
def test_numbers_sources_by_first_appearance(draft: str, text: str, unresolved: list[str]) -> None:
    """A number is that of a source; code and quoted words stay; markers that name nothing are removed, noted (X-7)."""
    found, _, removed = number(draft)
    assert (found, removed) == (text, unresolved)


NAMES = st.sampled_from(["ev-a1", "ev-a2", "ev-b1", "ev-c1", "ev-zz", "7", "1", "src-a"])
GROUPS = st.lists(NAMES, min_size=1, max_size=4).map(lambda items: f"[{', '.join(items)}]")
SCRAPS = st.sampled_from(
    ["word ", "`code` ", "`", "```\n", "\n\n", "> ", "- ", "1. ", "| a | b |\n|---|---|\n", "*", "**", "](", "[", "]",
     "(", ")", "\\", ": ", "End. ", "é🐘 ", "# ", "https://evil.test/x ", "[a](https://good.test/page) ", "<b>", "    "]
)  # fmt: skip


@draws(30)
@given(st.lists(st.one_of(GROUPS, SCRAPS), max_size=40).map("".join))
def test_numbers_are_a_bijection_for_every_draft(draft: str) -> None:
    """Numbers and sources are one to one, a report reads back its own alone; later renderings keep them (X-7)."""
    text, citations, _ = number(draft)
    assert [citation.number for citation in citations] == list(range(1, len(citations) + 1))
    assert len({citation.source_id for citation in citations}) == len(citations)
    unknown: list[str] = []

    def note(inlines: list[Inline], quoted: bool) -> list[Inline]:
        plain = (each.text for each in inlines if isinstance(each, Run) and not each.code)
        unknown.extend(match[0] for words in plain for match in SQUARE_GROUP.finditer(words))
        return inlines

    marks = [mark for each in sentences(parse(text, ReportMarks(), note)) for mark in each.marks]
    assert {mark.number for mark in marks} == {citation.number for citation in citations}
    assert unknown == []
    assert not re.search("evil", text)
    assert number(draft, citations)[:2] == (text, citations)
    assert number(f"First [ev-c1][ev-b1]. {draft}", citations)[1][: len(citations)] == citations


PAREN = make_source("https://en.wiki.test/wiki/Dam_(structure)", "Dam [structure]", "A dam.")
FILED = make_source("corpus:manual/a.html", "Routine Vacuuming in full", "y")
LYING = make_source("https://good.test/a", "Dam [1] https://evil.test/x | evil.test (y)](https://evil.test)", "z")


def test_a_link_cites_by_title() -> None:
    """Each source with an address has its title as label, without addresses; what only looks like one loses its link."""
    sources = {source.id: source for source in (PAREN, FILED, LYING)}
    registry = KnownAddresses.of([source.url for source in sources.values()])
    labels = citation_labels("link", sources, registry)
    assert citation_labels("numeric", sources, registry) == {}
    assert labels.keys() == {PAREN.id, LYING.id}
    evidence = {f"ev-{n}": Evidence(id=f"ev-{n}", source_id=key, start=0, end=1) for n, key in enumerate(sources)}
    draft = f"See [Dam \\[structure\\]](<{PAREN.url}>): so [ev-0][ev-1]. And [ev-2]."
    blocks = parse(draft, DraftMarks({key: [key] for key in evidence}), registry.filter([]))
    text = write(number_citations(blocks, evidence, [], labels)[0]).text
    link = "[Dam \\[structure\\]](https://en.wiki.test/wiki/Dam_(structure))"
    assert text.startswith(f"See Dam \\[structure\\]: so {link} [2]. And [Dam \\[1\\] (link removed)")
    assert link_targets(text) == [PAREN.url, LYING.url]


async def test_a_report_that_cites_by_links_passes_its_audit() -> None:
    """Claims are at their places, and every citation resolves."""
    url = "https://good.test/vacuum"
    source = SAMPLE.sources["routine-vacuuming.html"]
    moved = source.model_copy(update={"url": url, "aliases": [source.url]})
    sources = {each.id: each for each in (*SAMPLE.sources.values(), moved)}
    resolved = make_resolved().model_copy(update={"output": Output(citation_style="link")})
    forms = rendered(sources=sources, resolved=resolved)
    for claim in json.loads(forms.document)["claims"]:
        assert forms.markdown[claim["start"] : claim["end"]] == claim["text"]
    store = await store_of(SAMPLE.texts)
    data = forms.document.encode()
    assert (await audit(data, store.text_by_hash, store.by_hash, HereCalls(), version="0.1.0")).problems == []
    assert f"[{source.title}]({url})" in forms.markdown


# --- whole reports over pages that name the ids of other sources -----------------------------------------------------
HONEST = "Vacuum must freeze old rows to prevent transaction ID wraparound in every table."
PLAIN = World.of("x", HONEST)
OTHER, OTHER_SOURCE = PLAIN.evidence[1].id, PLAIN.sources[1].id
IMITATIONS = {
    "source in round brackets": f"({OTHER_SOURCE})",
    "evidence": f"[{OTHER}]",
    "evidence in full-width brackets": f"【{OTHER}】",
    "escaped evidence": f"\\[{OTHER}\\]",
    "entities": f"&#91;{OTHER}&#93;",
    "number": "[2]",
    "list": f"[{OTHER}, 2]",
    "upper case": f"[{OTHER.upper()}]",
}


def lying(imitation: str) -> World:
    """A world whose first page holds something like a marker of the second one."""
    return World.of(
        f"Vacuum prevents wraparound of transaction IDs {imitation} without any pause in the tables.", HONEST
    )


@pytest.mark.parametrize("name", IMITATIONS)
@pytest.mark.parametrize("form", ["> {words} {marker}\n", "They say “{words}” {marker}.\n"])
async def test_words_of_a_page_move_no_citation_of_a_model(name: str, form: str) -> None:
    """A model that quotes such a page gets the one citation that it wrote itself, and the audit passes."""
    world = lying(IMITATIONS[name])
    whole = await world.written("# T\n\n" + form.format(words=world.words(world.evidence[0]), marker=world.marker(0)))
    assert whole.audited.problems == []
    assert [item["source_id"] for item in whole.document["citations"]] == [world.sources[0].id]
    assert [claim["citation_numbers"] for claim in whole.document["claims"]] == [[1]]


@pytest.mark.parametrize(
    ("words", "cited", "numbers"),
    [
        ("Vacuum must never freeze old rows.", [1], "[1]"),
        ("Vacuum must freeze old rows … in every table.", [1], "[1]"),
        (f"{HONEST} And more.", [1], "[1]"),
        (HONEST, [1, 0], "[1][2]"),
    ],
)
async def test_a_block_quote_that_its_sources_do_not_have_is_plain_text(
    words: str, cited: list[int], numbers: str
) -> None:
    """Other words than those of the passage, or words of one source under the marker of another, are no quotation."""
    world = lying("here")
    quote = f"> {words} {''.join(map(world.marker, cited))}\n\n> {HONEST} {world.marker(1)}\n"
    whole = await world.written(f"# T\n\n{quote}")
    assert f"\n{words} {numbers}" in whole.rendering.markdown
    assert f"\n> {HONEST} [1]\n" in whole.rendering.markdown
    assert whole.warnings == ["quotations that their passages do not have: 1 made plain text"]
    assert whole.audited.problems == []


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("(by default 3 [ev-a]), more", "(by default 3 [ev-a]), more"),
        ("([ev-a], and more) follows", "([ev-a], and more) follows"),
        ("known ([ev-a]) so", "known [ev-a] so"),
        ("known (ev-a) so", "known [ev-a] so"),
    ],
)
def test_a_bracket_of_the_sentence_stays_beside_a_marker(written: str, shown: str) -> None:
    """Only brackets with their other half belong to the marker, whatever form a model chose."""
    marks = DraftMarks({"ev-a": ["ev-a"]}, exact=False)
    assert write(list(parse(written, marks))).text == f"{shown}\n"
