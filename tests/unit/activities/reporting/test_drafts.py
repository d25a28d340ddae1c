"""Drafts made of sections: joined, taken apart, and revised without losing anything silently."""

import pytest

from activities.reporting.drafts import find_losses, join_sections, parse_draft, section_texts
from contracts.messages import Removals

FRAME = (
    "# T\n\n## Summary\n\nIn short.\n\n{{section 1}}\n\nLet us turn to costs.\n\n{{section 2}}\n\n"
    "Prices fell by half.\n\n**{section 3}**\n\n## Conclusion\n\nDone.\n"
)


def joined(frame: str, sections: list[str], headings: list[str]) -> list[str]:
    """The parts of a joined draft."""
    return section_texts(join_sections(parse_draft(frame), [parse_draft(each) for each in sections], headings))


def test_joining_touches_transitions_alone() -> None:
    """Sections stay word for word under one heading each; a lead that asserts something is left out."""
    parts = joined(
        FRAME, ["## Alpha\n\nA is [ev-a].\n\n## Deeper\n\nMore.", "# Beta\nB is.", "C has none."], list("abc")
    )
    assert parts == [
        "# T\n\n",
        "## Summary\n\nIn short.\n\n",
        "## Alpha\n\nA is [ev-a].\n\n### Deeper\n\nMore.\n\n",
        "## Beta\n\nLet us turn to costs.\n\nB is.\n\n",
        "## c\n\nC has none.\n\n",
        "## Conclusion\n\nDone.\n",
    ]


@pytest.mark.parametrize("frame", ["# T\n\n## Summary\n\nIn short.\n\n## Conclusion\n\nDone.\n", "{{section 9}}\n"])
def test_sections_without_places_are_not_lost(frame: str) -> None:
    """They follow the first section of a frame that forgets its marks, or all there is."""
    parts = joined(frame, ["## A\n\nx", "## B\n\ny"], ["a", "b"])
    headings = [part.split("\n")[0] for part in parts]
    assert headings[-3:-1] == ["## A", "## B"] or headings[-2:] == ["## A", "## B"]


@pytest.mark.parametrize(
    ("after", "losses"),
    [
        ("# T\n\n## A\n\nz [ev-a]\n\n## B\n\ny\n", []),
        ("# T\n\n## B\n\ny\n\n## A\n\nx [ev-a]\n", ["the order of its sections"]),
        ("## A\n\nx [ev-a]\n\n## B\n\ny\n", ["the title"]),
        ("# T\n\n## A\n\nx\n", ["the section “b”", "the citation ev-a"]),
    ],
)
def test_losses_of_a_revision_are_named(after: str, losses: list[str]) -> None:
    """Sections, their order, the title and citations; what the revision says it removes is no loss."""
    before = parse_draft("# T\n\n## A\n\nx [ev-a]\n\n## B\n\ny\n")
    assert find_losses(before, parse_draft(after), Removals()) == losses
    removes = Removals(sections=["B"], evidence_ids=["ev-a"], outline=True)
    assert find_losses(before, parse_draft(after), removes) == [each for each in losses if each == "the title"]
