"""Allotment of a window's room to the items of a call: the level at which each item is shown. Pure.

`available_tokens` is the room of a window, `allot` divides it. Protected items are lowered last, before them the five
best sources and findings of high confidence, all else first; the result depends on the items, not on their order.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final

from contracts.tokens import RATIOS, CallFidelity, ItemFidelity, Level, TokenSettings

MAX_OVERHEAD_SHARE: Final = 0.25  # of a window
MAX_OUTPUT_SHARE: Final = 0.5
REDUCED_OUTPUT_SHARE: Final = 0.25
"""Largest shares of the remainder for the answer: the smaller one if the content would not fit otherwise."""
UNKNOWN: Final = 0.5  # value of an unknown part of a priority
LETTERS: Final = f"{string.ascii_letters} \n".encode()
BEYOND_ASCII: Final = bytes(range(128, 256))


class Rank(IntEnum):
    """Class of an item: a class is shortened only when the ones before it are at their last levels."""

    REGULAR = 0
    PRIORITY = 1  # one of the five best sources, or a finding of high confidence
    PROTECTED = 2  # named by the person


@dataclass(frozen=True, eq=False)
class ContentItem:
    """A part of the content of a call."""

    id: str
    kind: str  # `source`, `finding`, `passage`, `answer`, `draft` or `turn`
    render: Callable[[Level], str]  # its text in the prompt at a level; empty if it is dropped
    rank: Rank = Rank.REGULAR
    priority: float = UNKNOWN  # from 0 to 1; within a class the least important item is lowered first
    last: Level = Level.TRUNCATED  # the lowest level at which it may be shown
    levels: Sequence[Level] = tuple(Level)  # the levels that it has besides the full one
    originals: Callable[[], Sequence[str]] = tuple
    """Its texts that are never quoted, which a summary may replace."""
    measure: Callable[[str], float] | None = None  # tokens of a rendered text; None: as estimated

    @cached_property
    def ladder(self) -> list[Level]:
        """Return the levels of the item, full first. No item is both cut and dropped."""
        ratio = RATIOS[self.last]
        upper = [level for level in self.levels if RATIOS[level] > ratio and level not in (Level.FULL, Level.TRUNCATED)]
        if self.last is Level.FULL:
            return [Level.FULL, *upper]
        return [Level.FULL, *upper, self.last]

    @cached_property
    def _sizes(self) -> dict[Level, float]:
        return {}

    def text(self, level: Level) -> str:
        """Return its text in the prompt at a level, and measure it, so that none is rendered only for its size."""
        text = self.render(level)
        self._sizes[level] = (self.measure or estimated_tokens)(text)
        return text

    def size(self, level: Level) -> float:
        """Return the estimated tokens of the item at a level."""
        if level not in self._sizes:
            self.text(level)
        return self._sizes[level]


class ContextBudgetExceeded(Exception):
    """The items do not fit even at their last levels; `needed` tokens would suffice."""

    def __init__(self, needed: float) -> None:
        super().__init__(f"the content needs {needed:.0f} tokens at least")
        self.needed = needed


def priority(
    relevance: float = UNKNOWN, recency: float = UNKNOWN, quality: float = UNKNOWN, person: float = UNKNOWN
) -> float:
    """Return 0.4 relevance + 0.3 recency + 0.2 quality + 0.1 the person's choice, each from 0 to 1."""
    return 0.4 * relevance + 0.3 * recency + 0.2 * quality + 0.1 * person


def allot(items: Sequence[ContentItem], room: float, factor: float = 1.0) -> dict[str, Level]:
    """Return the levels of the items that are not whole, so that all fit into `room` tokens.

    Items are lowered round by round, class by class: each round lowers every item of the class by one level, the least
    important first and of these the largest, so that few are lowered, until the content fits. `factor` is that of the
    model's tokenizer. Raises `ContextBudgetExceeded`.
    """
    steps = {item.id: 0 for item in items}
    total = sum(item.size(Level.FULL) for item in items) * factor
    for rank in Rank:
        lowered = sorted((item for item in items if item.rank is rank), key=_order)
        for step in range(1, max((len(item.ladder) for item in lowered), default=0)):
            for item in lowered:
                if total <= room:
                    return _levels(items, steps)
                if step < len(item.ladder):
                    steps[item.id] = step
                    total += (item.size(item.ladder[step]) - item.size(item.ladder[step - 1])) * factor
    if total > room:
        raise ContextBudgetExceeded(total)
    return _levels(items, steps)


def _order(item: ContentItem) -> tuple[float, float, str]:
    return item.priority, -item.size(Level.FULL), item.id


def _levels(items: Sequence[ContentItem], steps: dict[str, int]) -> dict[str, Level]:
    return {item.id: item.ladder[steps[item.id]] for item in items if steps[item.id]}


def fidelity_of(
    items: Sequence[ContentItem], levels: Mapping[str, Level], factor: float, shown: Sequence[ContentItem] | None = None
) -> list[ItemFidelity]:
    """Return the level and the tokens of each item.

    `shown` are the items of a prompt for which the texts were chosen anew; None: they are the same. The level of a text
    that has fewer tokens there is the highest of which it has the share.
    """
    figures = []
    chosen = {item.id: item for item in (items if shown is None else shown)}
    for item in items:
        level = levels.get(item.id, Level.FULL)
        whole = item.size(Level.FULL)
        part = chosen[item.id].size(level) if item.id in chosen else 0.0
        if level is Level.FULL and part < whole:
            level = next(one for one in Level if RATIOS[one] <= part / whole)
        figures.append(
            ItemFidelity(
                id=item.id,
                kind=item.kind,
                original_tokens=round(whole * factor),
                current_tokens=round(part * factor),
                current_level=level,
            )
        )
    return figures


def call_fidelity(items: Sequence[ItemFidelity], available: int, used: int) -> CallFidelity:
    """Return the figures of a call with these items."""
    return CallFidelity(
        considered=sum(item.original_tokens for item in items),
        shown=sum(item.current_tokens for item in items),
        available=available,
        used=used,
        items=len(items),
        shortened=sum(item.current_level is not Level.FULL for item in items),
        dropped=[item.id for item in items if item.current_level is Level.DROPPED],
    )


# --- room -------------------------------------------------------------------------------------------------------------
def available_tokens(
    window: int, needed_output: int, output_limit: int | None, settings: TokenSettings, output_share: float
) -> tuple[int, int]:
    """Divide a window into tokens for the prompt and for all output, including reasoning.

    The room for the prompt is (window - overhead - output) x (1 - margin); a smaller overhead, a smaller margin or a
    larger window never makes it smaller.
    """
    free = window - min(settings.runtime_overhead, int(window * MAX_OVERHEAD_SHARE))
    output = min(needed_output, output_limit or needed_output, int(free * output_share))
    margin = settings.token_safety_margin if settings.token_management_enabled else 0.0
    return int((free - output) * (1 - margin)), output


def estimated_tokens(text: str) -> float:
    """Estimate the tokens of a text for the older tokenizers, erring on the high side.

    Letters and spaces count 0.27, digits, punctuation and markup 0.7; beyond ASCII each byte counts 0.5 (two or three
    bytes make a letter of another alphabet). Measured on prose, settings, hashes, addresses and JSON. The estimate of
    two texts is the sum of those of each.
    """
    data = text.encode("utf-8", "replace")
    letters = len(data) - len(data.translate(None, LETTERS))
    other_bytes = len(data) - len(data.translate(None, BEYOND_ASCII))
    return letters * 0.27 + (len(data) - letters - other_bytes) * 0.7 + other_bytes * 0.5
