"""What the request wants of the form of a report, as roles are told."""

from contracts.roles import ANALYZER, PLANNER, SYNTHESIZER
from contracts.vocabulary import EngineKind
from tests.fakes import states
from workflows.run.role_calls import _language, _wishes

ASKED = states.resolved(
    report_language="de", sections=["Kurz", "Lang"], audience="nurses", region="Austria", language="en"
)


def test_the_writer_is_told_everything_and_the_others_what_concerns_them() -> None:
    """Readers and region matter for planning, too; headings are the writer's business."""
    assert _wishes(PLANNER, ASKED) == ["The region that matters: Austria", "The readers: nurses"]
    assert _wishes(ANALYZER, ASKED) == _wishes(PLANNER, ASKED)
    assert "Kurz; Lang" in _wishes(SYNTHESIZER, ASKED)[-1]
    assert _wishes(SYNTHESIZER, states.resolved()) == []


def test_only_a_model_writes_in_another_language() -> None:
    """Searching goes on in the language of the question, and what is quoted stays as it is."""
    assert _language(SYNTHESIZER, ASKED, EngineKind.MODEL) == "de"
    assert _language(SYNTHESIZER, ASKED, EngineKind.EXTRACTIVE) == "en"
    assert _language(PLANNER, ASKED, EngineKind.MODEL) == "en"
