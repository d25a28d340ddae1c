"""Drafts made of sections: joined without losing anything."""

from activities.reporting.drafts import join_sections, parse_draft
from activities.reporting.markdown import write


def joined(frame: str, sections: list[str], headings: list[str]) -> str:
    """The text of a joined draft."""
    return write(join_sections(parse_draft(frame), [parse_draft(each) for each in sections], headings)).text


def test_sections_are_put_behind_the_summary_of_their_frame() -> None:
    """They stay word for word, under one heading each."""
    frame = "# T\n\n## Summary\n\nIn short.\n\n## Conclusion\n\nDone.\n"
    sections = ["## Alpha\n\nA is [ev-a].\n\n## Deeper\n\nMore.", "# Beta\nB is.", "C has none."]
    assert joined(frame, sections, list("abc")) == (
        "# T\n\n## Summary\n\nIn short.\n\n## Alpha\n\nA is [ev-a].\n\n### Deeper\n\nMore.\n\n"
        "## Beta\n\nB is.\n\n## c\n\nC has none.\n\n## Conclusion\n\nDone.\n"
    )


def test_sections_of_an_empty_frame_are_not_lost() -> None:
    """They are all that there is."""
    assert joined("", ["## A\n\nx", "## B\n\ny"], ["a", "b"]) == "## A\n\nx\n\n## B\n\ny\n"
