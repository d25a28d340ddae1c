"""Citations: names in drafts, numbers and links in reports."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.addresses import KnownAddresses
from activities.reporting.audit import audit
from activities.reporting.citations import DraftMarks, ReportMarks, citation_labels, number_citations
from activities.reporting.markdown import write
from activities.reporting.render import render
from activities.reporting.tree import parse, sentences
from contracts.addresses import digest
from contracts.evidence import Evidence
from contracts.outcome import Citation
from contracts.request import CitationStyle, Output
from providers.errors import ContentMissing
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.page import link_targets
from tests.unit.activities.reporting.sample import SKIPPED, Sample, make_source

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
    ("draft", "text"),
    [
        ("One [ev-b1]. Two [ev-a1].", "One [1]. Two [2]."),
        ("One [ev-a1, ev-b1].", "One [1][2]."),
        ("One [ev-a1; ev-a2].", "One [1]."),
        ("One [ev-a1] [ev-b1], [ev-a2].", "One [1][2]."),
        ("One [[ev-a1]].", "One [1]."),
        ("One [^ev-a1].", "One [1]."),
        ("One [ev-a1, 7].", "One [1]."),
        ("| x | [ev-a1] |\n|---|---|\n| y | [ev-b1] |", "| x | [1] |\n| --- | --- |\n| y | [2] |"),
        ("One [ev-a1](https://evil.test/x).", "One [1]."),
        ("One [ev-a1](note).", "One [1]."),
        ("[ev-a1]: yes", "[1]\\: yes"),
        ("One [ev-a1](see below).", "One [1]\\(see below)."),
        ("Wow![ev-a1](x y)", "Wow\\![1]\\(x y)"),
        ("`[ev-a1]` and ``x ` [7] ``", "`[ev-a1]` and ``x ` [7]``"),
        ("```\n[ev-a1] [7]\n```", "```\n[ev-a1] [7]\n```"),
        ("- [ ] open\n- [x] done", "- \\[ \\] open\n- \\[x\\] done"),
        ("In [2024] and [sic] and [a, b] ¹ ① [፩].", "In \\[2024\\] and \\[sic\\] and \\[a, b\\] ¹ ① \\[፩\\]."),
        ("> See [7], [ev-zz] and [src-a] [ev-a1]", "> See \\[7\\], \\[ev-zz\\] and \\[src-a\\] [1]"),
        ("Page \\[ev-a1\\] and \\[5\\]: \\\\\\[ev-a1\\].", "Page \\[ev-a1\\] and \\[5\\]: \\\\\\[ev-a1\\]."),
        ("Page 【ev-a1】, ［ev-a1］, (ev-a1), 【5】.", "Page 【ev-a1】, ［ev-a1］, (ev-a1), 【5】."),
    ],
)
def test_numbers_sources_by_first_appearance(draft: str, text: str) -> None:
    """A number stands for a source; neighbours of one source are one; code, escaped and quoted words stay (X-7)."""
    assert number(draft)[0] == text


@pytest.mark.parametrize(
    ("draft", "text", "unresolved"),
    [
        ("Known [7] by hand.", "Known by hand.", ["7"]),
        ("Known [1, 2].", "Known.", ["1", "2"]),
        ("Known [^4] [1-3].", "Known.", ["4", "1-3"]),
        ("Unknown [ev-zz].", "Unknown.", ["ev-zz"]),
        ("Source [src-a].", "Source.", ["src-a"]),
        ("[7] first.", "first.", ["7"]),
        ("[1](https://evil.test) x", "x", ["1"]),
        ("Real [ev-a1]. Invented [1].", "Real [1]. Invented.", ["1"]),
    ],
)
def test_removes_and_reports_what_does_not_resolve(draft: str, text: str, unresolved: list[str]) -> None:
    """A marker that names nothing, and a number that somebody wrote by hand, is removed and reported (X-7)."""
    found, _, removed = number(draft)
    assert (found, removed) == (text, unresolved)


def test_keeps_numbers_that_were_given_before() -> None:
    """A number never changes; a new source takes the next one, although the order is another (invariant 4, X-7)."""
    before = [Citation(number=1, source_id="src-c"), Citation(number=2, source_id="src-b")]
    text, citations, _ = number("First [ev-a1], then [ev-b1], then [ev-c1].", before)
    assert text == "First [3], then [2], then [1]."
    assert citations == [*before, Citation(number=3, source_id="src-a")]


NAMES = st.sampled_from(["ev-a1", "ev-a2", "ev-b1", "ev-c1", "ev-zz", "7", "1", "src-a"])
GROUPS = st.lists(NAMES, min_size=1, max_size=4).map(lambda items: f"[{', '.join(items)}]")
SCRAPS = st.sampled_from(
    ["word ", "`code` ", "`", "```\n", "\n\n", "> ", "- ", "1. ", "| a | b |\n|---|---|\n", "*", "**", "](", "[", "]",
     "(", ")", "\\", ": ", "End. ", "é🐘 ", "# ", "https://evil.test/x ", "[a](https://good.test/page) ", "<b>", "    "]
)  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.one_of(GROUPS, SCRAPS), max_size=40).map("".join))
def test_numbers_are_a_bijection_for_every_draft(draft: str) -> None:
    """Numbers and sources are one to one, a report reads back its own numbers alone, no foreign address is left, and a
    second rendering changes none (invariant 4).
    """
    text, citations, _ = number(draft)
    assert [citation.number for citation in citations] == list(range(1, len(citations) + 1))
    assert len({citation.source_id for citation in citations}) == len(citations)
    read = ReportMarks()
    marks = [mark for each in sentences(parse(text, read)) for mark in each.marks]
    assert {mark.number for mark in marks} == {citation.number for citation in citations}
    assert read.unknown == []
    assert not re.search("evil", text)
    assert number(draft, citations)[:2] == (text, citations)


PAREN = make_source("https://en.wiki.test/wiki/Dam_(structure)", "Dam [structure]", "A dam.")
FILED = make_source("corpus:manual/a.html", "Routine Vacuuming in full", "y")
LYING = make_source("https://good.test/a", "Dam [1] https://evil.test/x | evil.test (y)](https://evil.test)", "z")


def test_a_link_cites_by_title() -> None:
    """Each source with an address has its title as label, without addresses; what only looks like one loses its link."""
    sources = {source.id: source for source in (PAREN, FILED, LYING)}
    registry = KnownAddresses.of([source.url for source in sources.values()])
    labels = citation_labels(CitationStyle.LINK, sources, registry)
    assert citation_labels(CitationStyle.NUMERIC, sources, registry) == {}
    assert labels.keys() == {PAREN.id, LYING.id}
    evidence = {f"ev-{n}": Evidence(id=f"ev-{n}", source_id=key, start=0, end=1) for n, key in enumerate(sources)}
    draft = f"See [Dam \\[structure\\]](<{PAREN.url}>): so [ev-0][ev-1]. And [ev-2]."
    blocks = parse(draft, DraftMarks({key: [key] for key in evidence}), registry.filter([]))
    text = write(number_citations(blocks, evidence, [], labels)[0]).text
    link = "[Dam \\[structure\\]](https://en.wiki.test/wiki/Dam_(structure))"
    assert text.startswith(f"See Dam \\[structure\\]: so {link} [2]. And [Dam \\[1\\] (link removed)")
    assert link_targets(text) == [PAREN.url, LYING.url]


@pytest.mark.parametrize("style", list(CitationStyle))
async def test_a_report_in_any_style_passes_its_audit(style: CitationStyle) -> None:
    """Claims are at their places, every citation resolves, and a citation that leads nowhere is found."""
    sample = Sample()
    url = "https://good.test/vacuum"
    source = sample.sources["routine-vacuuming.html"]
    state = sample.state(
        sources={each.id: each for each in sample.sources.values()}
        | {source.id: source.model_copy(update={"url": url, "aliases": [source.url]})}
    )
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update={"output": Output(citation_style=style)})
    forms = render(state, sample.draft, sample.texts, SKIPPED, "0.1.0")
    document = json.loads(forms.document)
    for claim in document["claims"]:
        assert forms.markdown[claim["start"] : claim["end"]] == claim["text"]

    async def text_of(key: str) -> str:
        return sample.texts[key]

    async def bytes_of(key: str) -> bytes:
        raise ContentMissing(key)

    found = await audit(json.dumps(document).encode(), text_of, bytes_of, HereCalls(), markdown=forms.markdown)
    assert {problem.kind for problem in found.problems} <= {"original_missing"}
    label = f"[{source.title.replace('.', chr(92) + '.', 0)}]({url})" if style is CitationStyle.LINK else "[1]"
    assert label in forms.markdown
    document["report"]["markdown"] = document["report"]["markdown"].replace(label, "")
    document["claims"] = []
    found = await audit(json.dumps(document).encode(), text_of, bytes_of, HereCalls())
    assert "field_differs" in {problem.kind for problem in found.problems}
