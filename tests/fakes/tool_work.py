"""What a sensible model would do with tools, turn by turn: pure functions of the conversation."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes import orchestrator_work
from tests.fakes.conversation import blocks_of, signed

Blocks = list[dict[str, Any]]


def answers_so_far(body: Mapping[str, Any]) -> list[str]:
    """What its calls were answered, in order."""
    said = (block for message in body["messages"] for block in blocks_of(message))
    return [block["content"] for block in said if block["type"] == "tool_result"]


def called_so_far(body: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Its calls, in order."""
    said = (block for message in body["messages"] for block in blocks_of(message))
    return [(block["name"], block["input"]) for block in said if block["type"] == "tool_use"]


def turns_so_far(body: Mapping[str, Any]) -> int:
    """How often it has spoken."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def calls(body: Mapping[str, Any], *wanted: tuple[str, dict[str, Any]], thought: str = "") -> Blocks:
    """Blocks that call tools, under ids that are new in the conversation."""
    turn = turns_so_far(body)
    blocks = [
        {"type": "tool_use", "id": f"toolu_{turn}_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(wanted)
    ]
    return [*([signed(thought)] if thought else []), *blocks]


def ask_glossary(body: Mapping[str, Any]) -> Blocks:
    """Look the word up, then what its answer refers to, then hand over."""
    answers, called = answers_so_far(body), called_so_far(body)
    thought = f"Turn {turns_so_far(body)}: {{what}} next? \u2014 I have {len(answers)} answers."
    if not called:
        opening = "".join(block["text"] for block in blocks_of(body["messages"][0]))
        word = re.findall(r"Look up (\w+) first", opening)[-1]
        return calls(body, ("look_up", {"word": word}), thought=thought)
    further = re.search(r"See also: (\w+)", answers[-1])
    if further and not any(given.get("word") == further[1] for _, given in called):
        return calls(body, ("look_up", {"word": further[1]}), thought=thought)
    words = [given["word"] for name, given in called if name == "look_up" and given]
    return calls(body, ("hand_over", {"text": "Found.", "words": words}), thought=thought)


TOOL_WORK: dict[str, Callable[[Mapping[str, Any]], Blocks]] = {"asker": ask_glossary, **orchestrator_work.TOOL_WORK}
"""By role."""
