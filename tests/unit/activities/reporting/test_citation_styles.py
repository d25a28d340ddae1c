"""Citations as numbers and links; the audit follows each of them."""

import json

import pytest

from activities.reporting.audit import audit
from activities.reporting.citation_styles import citation_labels, with_labels
from activities.reporting.citations import number_citations
from activities.reporting.links import Registry, addresses_in_markdown, link_targets
from activities.reporting.render import render
from contracts.evidence import Evidence
from contracts.outcome import Citation
from contracts.request import CitationStyle
from providers.errors import ContentMissing
from tests.unit.activities.reporting.sample import SKIPPED, Sample, make_source

PAREN = make_source("https://en.wiki.test/wiki/Dam_(structure)", "Dam [structure]", "A dam.")
OTHER = make_source("https://www.wiki.test/b", "Dam [structure]", "Another.")
WRITTEN = make_source("https://doi.org/10.1000/182", "On dams", "x", authors=["Zoë Öberg"], published_at="2024-05-01")
FILED = make_source("corpus:manual/a.html", "Routine Vacuuming in full", "y")
SOURCES = {source.id: source for source in (PAREN, OTHER, WRITTEN, FILED)}
CITATIONS = [Citation(number=number, source_id=source) for number, source in enumerate(SOURCES, start=1)]
REGISTRY = Registry.of([source.url for source in SOURCES.values()])


@pytest.mark.parametrize(
    ("style", "labels"),
    [
        (CitationStyle.NUMERIC, ["[1]", "[2]", "[3]", "[4]"]),
        (
            CitationStyle.LINK,
            [
                "[Dam (structure)](https://en.wiki.test/wiki/Dam_(structure))",
                "[Dam (structure)](https://www.wiki.test/b)",
                "[On dams](https://doi.org/10.1000/182)",
                "[4]",
            ],
        ),
    ],
)
def test_each_style_has_one_label_per_source(style: CitationStyle, labels: list[str]) -> None:
    """Two sources of one title or site keep two labels; parentheses and a DOI in an address survive (C.8)."""
    made = citation_labels(style, CITATIONS, SOURCES, REGISTRY)
    assert [made[number].markdown for number in sorted(made)] == labels


def test_title_of_a_page_brings_no_address_into_a_link() -> None:
    """A page that names another site in its title does not get that site into the words of its link."""
    page = make_source("https://good.test/a", "Dam [1] https://evil.test/x | evil.test (y)](https://evil.test)", "z")
    registry = Registry.of([page.url])
    (label,) = citation_labels(
        CitationStyle.LINK, [Citation(number=1, source_id=page.id)], {page.id: page}, registry
    ).values()
    assert "evil.test/" not in label.markdown
    assert link_targets(label.markdown) == ["https://good.test/a"]
    assert addresses_in_markdown(label.markdown.replace("https://good.test/a", "")) == []


def test_what_looks_like_a_citation_and_is_none_loses_its_look() -> None:
    """Words of a page or of the writer that equal a label are escaped; only what the run gave is a citation."""
    evidence = {"ev-a": Evidence(id="ev-a", source_id=WRITTEN.id, start=0, end=1)}
    for style, fake, kept in ((CitationStyle.LINK, "[On dams](https://doi.org/10.1000/182)", r"\[On dams\]"),):
        numbered = number_citations(f"> It says {fake} here.\n\nTrue! [ev-a][ev-a]\n", evidence, [], REGISTRY)
        labels = citation_labels(style, numbered.citations, SOURCES, REGISTRY)
        styled = with_labels(numbered, labels)
        assert len(styled.marks) == 1
        assert styled.text.count(labels[1].markdown) == 1
        (mark,) = styled.marks
        assert (styled.text[mark.start : mark.end], mark.shown) == (labels[1].markdown, labels[1].shown)
        assert styled.text.startswith(f"> It says {kept} here.\n")


@pytest.mark.parametrize("style", list(CitationStyle))
async def test_a_report_in_any_style_passes_its_audit(style: CitationStyle) -> None:
    """Claims stand at their places, every citation resolves, and a label that leads nowhere is found."""
    sample = Sample()
    state = sample.state()
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update={"citation_style": style})
    forms = render(state, sample.draft, sample.texts, SKIPPED, "0.1.0")
    document = json.loads(forms.document)
    for claim in document["claims"]:
        assert forms.markdown[claim["start"] : claim["end"]] == claim["text"]

    async def text_of(digest: str) -> str:
        return sample.texts[digest]

    async def bytes_of(digest: str) -> bytes:
        raise ContentMissing(digest)

    found = await audit(document, text_of, bytes_of, markdown=forms.markdown)
    assert {problem.kind for problem in found.problems} <= {"original_missing"}
    label = document["citations"][0]["label"]
    document["report"]["markdown"] = document["report"]["markdown"].replace(label, "")
    document["claims"] = []
    found = await audit(document, text_of, bytes_of)
    assert "number_unused" in {problem.kind for problem in found.problems}
