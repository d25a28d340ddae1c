"""Drafts made of sections: joined, taken apart, and revised without losing anything silently."""

import pytest

from activities.reporting.drafts import join_sections, parse_draft
from activities.reporting.markdown import write

FRAME = (
    "# T\n\n## Summary\n\nIn short.\n\n{{section 1}}\n\nLet us turn to costs.\n\n{{section 2}}\n\n"
    "Prices fell by half.\n\n**{section 3}**\n\n## Conclusion\n\nDone.\n"
)


def joined(frame: str, sections: list[str], headings: list[str]) -> str:
    """The text of a joined draft."""
    return write(join_sections(parse_draft(frame), [parse_draft(each) for each in sections], headings)).text


def test_joining_touches_transitions_alone() -> None:
    """Sections stay word for word under one heading each; a lead that asserts something is left out."""
    text = joined(
        FRAME, ["## Alpha\n\nA is [ev-a].\n\n## Deeper\n\nMore.", "# Beta\nB is.", "C has none."], list("abc")
    )
    assert text == (
        "# T\n\n## Summary\n\nIn short.\n\n## Alpha\n\nA is [ev-a].\n\n### Deeper\n\nMore.\n\n"
        "## Beta\n\nLet us turn to costs.\n\nB is.\n\n## c\n\nC has none.\n\n## Conclusion\n\nDone.\n"
    )


@pytest.mark.parametrize("frame", ["# T\n\n## Summary\n\nIn short.\n\n## Conclusion\n\nDone.\n", "{{section 9}}\n"])
def test_sections_without_places_are_not_lost(frame: str) -> None:
    """They follow the first section of a frame that forgets its marks, or all there is."""
    text = joined(frame, ["## A\n\nx", "## B\n\ny"], ["a", "b"])
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[-3:-1] == ["## A", "## B"] or headings[-2:] == ["## A", "## B"]
