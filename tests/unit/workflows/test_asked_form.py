"""What the request wants of the form of a report, as roles are told."""

from contracts.roles import ANALYZER, PLANNER, SYNTHESIZER, language_of_call, prompt_preferences
from contracts.vocabulary import EngineKind
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


def test_only_a_model_writes_in_another_language() -> None:
    """Searching goes on in the language of the question, and what is quoted stays as it is."""
    assert language_of_call(SYNTHESIZER, ASKED, EngineKind.MODEL) == "de"
    assert language_of_call(SYNTHESIZER, ASKED, EngineKind.EXTRACTIVE) == "en"
    assert language_of_call(PLANNER, ASKED, EngineKind.MODEL) == "en"
