"""Content shown to models in their calls: settings, levels of shortening, and fidelity figures.

*Fidelity* is the number of tokens shown divided by the number considered; dropped items (sources, findings, tool
answers, drafts) count as 0, and stored text that was not considered does not count.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Annotated, Final

from pydantic import AwareDatetime, Field

from contracts.base import CompactModel, Contract, StrictContract
from contracts.evidence import DocumentRef
from contracts.sentences import Text

MAX_SHORTENED_CALLS: Final = 200
"""Shortened calls that a state lists individually; the totals count all of them."""
LOW_FIDELITY: Final = 0.5
"""Below this, a report carries a warning."""


class Level(StrEnum):
    """Degree of shortening of an item, from whole to dropped."""

    FULL = "full"
    CONDENSED = "condensed"
    COMPRESSED = "compressed"
    KEY_POINTS = "key_points"
    HEADLINE = "headline"
    TRUNCATED = "truncated"
    """The marked beginning of the text: the last level if content must not be dropped."""
    DROPPED = "dropped"


RATIOS: Final = {
    Level.FULL: 1.0,
    Level.CONDENSED: 0.7,
    Level.COMPRESSED: 0.4,
    Level.KEY_POINTS: 0.2,
    Level.HEADLINE: 0.1,
    Level.TRUNCATED: 0.05,
    Level.DROPPED: 0.0,
}
"""Approximate share of an item's text shown at each level."""


class Band(StrEnum):
    """A range of fidelity, including its lower bound."""

    FULL = "full"
    CONDENSED = "condensed"
    COMPRESSED = "compressed"
    MINIMAL = "minimal"

    @classmethod
    def of(cls, fidelity: float) -> "Band":
        """Return the band of a fidelity from 0 to 1: full from 0.9, condensed from 0.6, compressed from 0.3."""
        bounds = ((0.9, cls.FULL), (0.6, cls.CONDENSED), (0.3, cls.COMPRESSED))
        return next((band for bound, band in bounds if fidelity >= bound), cls.MINIMAL)


class TokenShare(StrEnum):
    """A part of a limited run's tokens, in order of use; unused tokens pass to later shares.

    The final report comes last, after any further iteration.
    """

    PLANNING = "planning"
    ANALYSIS = "analysis"
    REFINEMENT = "refinement"
    SYNTHESIS = "synthesis"


SHARE_PERCENT: Final = {
    TokenShare.PLANNING: 10, TokenShare.ANALYSIS: 40, TokenShare.REFINEMENT: 15, TokenShare.SYNTHESIS: 35
}  # fmt: skip
"""Percentages of `limits.max_tokens`; searching and reading use no tokens."""


def share_tokens(share: TokenShare, limit: int) -> int:
    """Return the tokens of a share, out of a run's limit."""
    return limit * SHARE_PERCENT[share] // 100


def tokens_left(share: TokenShare, limit: int, taken: Mapping[TokenShare, int], *, written: bool) -> int:
    """Return the tokens that a share may still use; `taken` are those used or reserved, by share.

    A share has its own part and the unused tokens of earlier shares, never those of later ones. Until a report is
    written (`written`), refinement has only its own part, so that the rest stays available for analyses.
    """
    order = list(TokenShare)
    left = []
    bound = 0
    used = 0
    for current in order:
        bound = bound + share_tokens(current, limit)
        used = used + taken.get(current, 0)
        if order.index(current) >= order.index(share):
            left.append((limit if current is order[-1] else bound) - used)
    if share is TokenShare.REFINEMENT and not written:
        left.append(share_tokens(share, limit) - taken.get(share, 0))
    return max(0, min(left))


ModelName = Annotated[str, Field(min_length=1, max_length=200)]


class TokenSettings(StrictContract):
    """The section `[tokens]` of `research.toml`: fitting the content of a call into a model's window."""

    token_management_enabled: bool = True
    """False: 1,000 characters of each source; a prompt that does not fit is refused and never shortened."""
    token_safety_margin: float = Field(default=0.15, ge=0, lt=1)
    """Share of the window that stays free, because token counts are estimates."""
    runtime_overhead: int = Field(default=10_000, ge=0, le=10_000_000)
    """Tokens of each window reserved for the endpoint itself, at most a quarter of it."""
    model_context_overrides: dict[ModelName, Annotated[int, Field(ge=2_000, le=10_000_000)]] = {}
    """Windows in tokens by model name; they override the known ones."""
    summarization_provider: ModelName | None = None
    """Model that summarises content that is not quoted; None: it is shortened to some of its own sentences."""
    summarization_providers: list[ModelName] = Field(default=[], max_length=10)
    """Fallback models, in order."""
    summarization_timeout: float = Field(default=60.0, gt=0, le=600)
    """Seconds per model."""
    summarization_cache_enabled: bool = True
    """True: the same content is summarised once for all runs of a tenant."""
    allow_content_dropping: bool = False
    """True: unimportant content may be dropped as a last resort; false: its beginning is shown."""
    content_archive_enabled: bool = False
    """True: content that was not shown to a model is recorded."""
    content_archive_ttl_hours: float = Field(default=168.0, gt=0, le=876_000)
    research_archive_dir: Path | None = None
    """Folder of the records; None: `archive` in the data folder."""


class ItemFidelity(CompactModel):
    """One item of a call's content."""

    id: str
    kind: str
    original_tokens: int
    current_tokens: int
    current_level: Level = Level.FULL

    @property
    def compression_ratio(self) -> float:
        """Return current divided by original tokens; 1 for an empty item."""
        if not self.original_tokens:
            return 1.0
        return self.current_tokens / self.original_tokens


class ContentSums(Contract):
    """Content of one or several calls, in estimated tokens; all figures can be added."""

    considered: int = 0
    shown: int = 0
    items: int = 0
    shortened: int = 0
    """Number of shortened items, including dropped ones."""
    stored_characters: int = 0
    """Characters of the sources' stored texts."""
    considered_characters: int = 0
    """Characters of these that were considered for the prompt."""

    @property
    def fidelity(self) -> float:
        """Return tokens shown divided by tokens considered; 1 if nothing was considered."""
        if not self.considered:
            return 1.0
        return self.shown / self.considered


class CallFidelity(CompactModel, ContentSums):
    """Content of one call."""

    available: int = 0
    """Tokens available for the whole prompt."""
    used: int = 0
    """Tokens of the whole prompt."""
    dropped: list[str] = []
    """Ids of the dropped items."""
    entry: str = ""
    """Hash of the notebook entry with the items (`ContentEntry`); empty if all are whole."""
    archived: list[str] = []
    """Hashes of the texts recorded in the archive for this call."""
    archive_problem: Text = ""
    """Reason why the archive has no records although it should."""


class ContentEntry(CompactModel):
    """The items of a call that shortened some, as stored in the notebook."""

    operation: str = ""
    role: str = ""
    available: int = 0
    """Tokens available for the whole prompt."""
    used: int = 0
    """Tokens of the whole prompt; divided by `available`, the share of the room that it takes."""
    items: list[ItemFidelity] = []


class ArchiveRecord(Contract):
    """A text shown to a model only in part or not at all; it stays in the content store until the record expires."""

    content_hash: str
    content: DocumentRef
    item_id: str
    item_type: str
    archived_at: AwareDatetime
    archive_reason: str
    original_tokens: int = 0
    metadata: dict[str, str]
    """`url` and `title` of a source."""
    runs: dict[str, AwareDatetime]
    """Run id → expiry, for each run that did not show it; prefixed by a hash in a folder shared by several homes."""


class FidelityTotals(ContentSums):
    """Fidelity of the calls of a phase, or of a run."""

    calls: int = 0
    lowest: float = 1.0
    """Lowest fidelity of a single call."""

    @property
    def band(self) -> Band:
        """Return the band of the fidelity."""
        return Band.of(self.fidelity)

    def plus(self, other: "CallFidelity | FidelityTotals") -> "FidelityTotals":
        """Return the totals plus one call or another phase's totals."""
        calls, lowest = (1, other.fidelity) if isinstance(other, CallFidelity) else (other.calls, other.lowest)
        sums = {name: getattr(self, name) + getattr(other, name) for name in ContentSums.model_fields}
        return FidelityTotals(calls=self.calls + calls, lowest=min(self.lowest, lowest), **sums)

    def words(self) -> str:
        """Return the fidelity and its band for people: `82% (condensed)`."""
        return f"{self.fidelity:.0%} ({self.band.value})"


def sum_totals(phases: Iterable[FidelityTotals]) -> FidelityTotals:
    """Return the totals of several phases."""
    return reduce(FidelityTotals.plus, phases, FidelityTotals())
