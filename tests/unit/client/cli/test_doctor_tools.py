"""What `doctor` says of models that have to call tools."""

import pytest

from client.cli.doctor import Grade, tool_calls
from workers.settings.loading import Settings


def settings(tools: str) -> Settings:
    """One model at one endpoint, of which an operator says whether tools can be called there."""
    there = {"base_url": "http://127.0.0.1:9", "tools": tools}
    tiers = {"simple": "a:m", "analytical": "a:m", "complex": "a:m"}
    return Settings.model_validate({"models": {**tiers, "endpoints": {"a": there}}})


@pytest.mark.parametrize("tools", ["forced", "offered"])
def test_models_that_take_tools_are_said_to(tools: str) -> None:
    """The strategy that needs them is named."""
    check = tool_calls(settings(tools))
    assert (check.grade, check.remedy) == (Grade.OK, "")
    assert "orchestrator" in check.found


def test_a_strategy_that_lacks_tools_is_named_with_what_can_be_done() -> None:
    """As a run of it would be refused: the models, who takes their place, and the setting."""
    check = tool_calls(settings("none"))
    assert check.grade is Grade.WARN
    assert check.found.startswith("strategy: orchestrator calls tools, and none can be called with a:m")
    assert "ask with strategy supervisor or reflective" in check.found
    assert "models.endpoints.NAME.tools" in check.remedy
