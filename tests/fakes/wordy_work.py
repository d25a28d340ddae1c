"""Sensible answers that are far too long: every text goes on and on, every list has many entries."""

from typing import Any, Final

WORD: Final = "word "
TAIL: Final = " and " + WORD * 600
MANY: Final = 45
SOME: Final = 8
"""Entries of a list within a list."""
AS_THEY_ARE: Final = {
    *("quote", "source_id", "confidence", "kind", "claim", "verdict", "action", "quality", "severity", "gap_id"),
    *("decision", "route", "complexity", "follow_up_type", "recommended_depth", "step_type", "index"),
}
"""Fields whose values are no free words."""
ONCE: Final = {
    "quotes",
    "passages",
    "priority_gaps",
    "verdicts",
    "proposals",
    "gap_analysis",
    "quality_updates",
    "steps",
}
"""Lists that stay as long as they are."""


def at_length(value: Any, name: str = "", number: int = 0, *, inside: bool = False) -> Any:
    """The same at length; a copy of an entry begins with its number."""
    if name in AS_THEY_ARE:
        return value
    if isinstance(value, str):
        return (f"{number}. {value}" if number else value) + TAIL
    if isinstance(value, dict):
        return {key: at_length(item, key, number, inside=inside) for key, item in value.items()}
    if isinstance(value, list):
        most = SOME if inside else MANY
        copies = range(1 if name in ONCE or not value else max(1, most // len(value)))
        return [at_length(item, name, copy or number, inside=True) for copy in copies for item in value]
    return value


def block_at_length(block: dict[str, Any]) -> dict[str, Any]:
    """Words and thoughts at length; what is to be searched for would be refused."""
    given = block.get("input", {})
    longer = {name: at_length(given[name], name) for name in ("reasoning", "open_questions") if name in given}
    return block | ({"input": given | longer} if given else {"text": block["text"] + TAIL} if "text" in block else {})
