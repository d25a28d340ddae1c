"""What endpoints can do."""

from providers.models.capabilities import LearntModes, capabilities_of
from providers.models.chat import ChatMode


def test_the_public_api_takes_schemas_and_others_get_a_tool() -> None:
    """Capabilities are data by host, with a default."""
    assert capabilities_of("https://api.anthropic.com").mode is ChatMode.NATIVE
    assert capabilities_of("http://localhost:8080/v1").mode is ChatMode.TOOL
    assert capabilities_of("https://api.anthropic.com.evil.test").mode is ChatMode.TOOL


def test_refusals_lead_down_to_text_and_no_further() -> None:
    """Each refusal weakens the mode of that model once, even if several calls were refused side by side."""
    modes = LearntModes()
    assert modes.weaken("a", ChatMode.NATIVE)
    assert modes.weaken("a", ChatMode.NATIVE)
    assert modes.mode_for("a", ChatMode.NATIVE) is ChatMode.TOOL
    assert modes.mode_for("b", ChatMode.NATIVE) is ChatMode.NATIVE
    assert modes.weaken("a", ChatMode.TOOL)
    assert modes.mode_for("a", ChatMode.NATIVE) is ChatMode.TOOL_OFFERED
    assert modes.weaken("a", ChatMode.TOOL_OFFERED)
    assert modes.weaken("a", ChatMode.TOOL)
    assert modes.mode_for("a", ChatMode.NATIVE) is ChatMode.TEXT
    assert not modes.weaken("a", ChatMode.TEXT)
