"""A role with tools from outside the product: it looks words up, thinks, and hands over what it found."""

from collections.abc import Mapping

from durable_research.contracts.base import Contract
from durable_research.contracts.request import Depth
from durable_research.contracts.roles import RoleSpec
from durable_research.contracts.strategies import StrategyDeclaration
from durable_research.contracts.tool_turns import ToolTurnInput, TurnAnswer, TurnResult
from durable_research.contracts.tools import ToolAnswer, ToolCall, ToolSpec
from durable_research.contracts.vocabulary import Tier
from pydantic import Field

from tests.toy.roles import LIMITS


class AskerInput(ToolTurnInput):
    """What the asker is told besides the question."""

    word: str = ""


class Word(Contract):
    """What is looked up."""

    word: str = Field(min_length=1, max_length=60, description="one word")


class Thought(Contract):
    """What is thought aloud."""

    reasoning: str


class Handover(Contract):
    """What was found."""

    text: str
    words: list[str] = []


LOOK_UP = ToolSpec("look_up", "Says what the glossary tells of a word.", Word)
THINK = ToolSpec("think_tool", "Writes a thought down; nothing comes of it.", Thought)
HAND_OVER = ToolSpec("hand_over", "Hands over what was found.", Handover)
ASKER = RoleSpec(
    "asker", "ask_glossary", Tier.ANALYTICAL, AskerInput, TurnAnswer, TurnResult,
    output_tokens=1_000, expected_output_tokens=200, module="tests.toy.asker", tools=(LOOK_UP, THINK, HAND_OVER),
)  # fmt: skip

ASKING = StrategyDeclaration(
    name="asking",
    implementation="tests.toy.strategy:ToyStrategy",
    roles=(ASKER,),
    presets=dict.fromkeys((Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED), LIMITS),
    expected_calls=lambda _limits, _: {"asker": (1, 8)},
)
GLOSSARY: Mapping[str, str] = {
    "vacuum": "Vacuum removes dead rows. See also: freeze.",
    "freeze": "Freezing marks old rows as visible to everybody.",
}


def answer(call: ToolCall) -> ToolAnswer:
    """What a workflow makes of a call."""
    if call.problem:
        return ToolAnswer(call_id=call.id, text=call.problem, is_error=True)
    if call.name == THINK.name:
        return ToolAnswer(call_id=call.id, text="Acknowledged, please continue.")
    word = LOOK_UP.read(call).word.lower()
    known = GLOSSARY.get(word)
    return ToolAnswer(call_id=call.id, text=known or f"the glossary has no entry {word}", is_error=known is None)
