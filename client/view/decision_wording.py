"""What a decision says to a person; shared by the live view and the plain lines."""

from collections.abc import Sequence
from typing import Final

from contracts.outcome import AgentDecision, Event
from contracts.resolved import ProviderChoice, ResolvedResearch
from contracts.vocabulary import EngineKind

TOLD_DECISIONS: Final = {
    "retry",
    "iterate",
    "complete",
    "decide_iteration",
    "gap_opened",
    "gap_pursued",
    "think_pause_hook",
}
"""Decisions that change where the run goes; dispatching a role or evaluating a phase is what phases and gates tell."""
SPEAKS_FOR_ITSELF: Final = {"decide_iteration"}
"""Actions whose reason needs no name in front of it."""


def text_of(event: Event, key: str) -> str:
    """A text of the event's data, or nothing."""
    value = event.data.get(key)
    return value if isinstance(value, str) else ""


def decision_words(event: Event) -> str:
    """The decision without its agent; nothing for one that tells a person nothing."""
    agent, action = text_of(event, "agent"), text_of(event, "action")
    if action not in TOLD_DECISIONS:
        return ""
    reason = event.text.removeprefix(f"{agent}: {action}").strip()
    name = action.replace("_", " ")
    if not reason:
        return name
    return reason if action in SPEAKS_FOR_ITSELF else f"{name}: {reason}"


def opinion_words(decision: AgentDecision) -> str:
    """The score, strengths and weaknesses that a reflection found; nothing for another decision."""
    said = decision.outputs or {}
    if decision.action != "reflect" or "score" not in said:
        return ""
    parts = [f"score {said['score']:g}"]
    parts += [f"{name}: {'; '.join(said[name])}" for name in ("strengths", "weaknesses") if said.get(name)]
    return ", ".join(parts)


def providers_line(providers: Sequence[ProviderChoice]) -> str:
    """The providers that are asked, and those that cannot be and why, as one line."""
    asked = ", ".join(choice.name for choice in providers if choice.available)
    others = [f"{choice.name} ({choice.reason})" for choice in providers if not choice.available]
    return f"with {asked}" + (f"; not with {', '.join(others)}" if others else "")


def searching_words(resolved: ResolvedResearch) -> str:
    """Which providers of the web are asked and which cannot be; nothing where the web was not meant to be searched."""
    meant = resolved.web or any(not choice.available for choice in resolved.providers)
    return f"searching {providers_line(resolved.providers)}" if meant else ""


def engine_words(resolved: ResolvedResearch) -> str:
    """What writes the report: `model NAME`, or that there is none."""
    if resolved.engine is EngineKind.MODEL:
        return f"model {', '.join(sorted(set(resolved.models.values())))}"
    return f"{resolved.engine.value}, no model: passages are quoted word for word"
