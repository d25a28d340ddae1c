"""What the request wants of the form of a report, as roles are told."""

from contracts.roles import ANALYZER, PLANNER, SYNTHESIZER, prompt_preferences
from tests.fakes import states

ASKED = states.resolved(
    report_language="de", sections=["Kurz", "Lang"], audience="nurses", region="Austria", language="en"
)


def test_the_writer_is_told_everything_and_the_others_what_concerns_them() -> None:
    """Readers and region matter for planning, too; headings are the writer's business."""
    assert prompt_preferences(PLANNER, ASKED) == ["The region that matters: Austria", "The readers: nurses"]
    assert prompt_preferences(ANALYZER, ASKED) == prompt_preferences(PLANNER, ASKED)
    assert "Kurz; Lang" in prompt_preferences(SYNTHESIZER, ASKED)[-1]
    assert prompt_preferences(SYNTHESIZER, states.resolved()) == []
