"""What a model was shown of the content of its calls: settings, levels of shortening, and figures of fidelity.

*Fidelity* is the number of tokens shown divided by the number considered, where dropped items (sources, findings,
answers of tools, drafts) count as 0; stored text that was not considered does not count.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Annotated, Final

from pydantic import AwareDatetime, Field

from contracts.base import CompactModel, Contract, StrictContract
from contracts.evidence import DocumentRef

MOST_SHORTENED_CALLS: Final = 200
"""Shortened calls that a state remembers one by one; the totals count all of them."""
LOW_FIDELITY: Final = 0.5
"""Below it a report carries a warning."""


class Level(StrEnum):
    """The form in which an item is shown, from whole to not at all."""

    FULL = "full"
    CONDENSED = "condensed"
    COMPRESSED = "compressed"
    KEY_POINTS = "key_points"
    HEADLINE = "headline"
    TRUNCATED = "truncated"
    """A marked beginning: the last level while content must not be dropped."""
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
"""Share of an item's text that a level shows, about."""


class Band(StrEnum):
    """A range of fidelity, its lower bound included."""

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
    """A part of the tokens of a run that has a limit, in the order of their use: what one leaves goes to the next ones.

    The final report comes last, after whatever another iteration needs.
    """

    PLANNING = "planning"
    ANALYSIS = "analysis"
    REFINEMENT = "refinement"
    SYNTHESIS = "synthesis"


SHARE_PERCENT: Final = {
    TokenShare.PLANNING: 10, TokenShare.ANALYSIS: 40, TokenShare.REFINEMENT: 15, TokenShare.SYNTHESIS: 35
}  # fmt: skip
"""Of `limits.max_tokens`; searching and reading take no tokens."""


def tokens_of_share(share: TokenShare, most: int) -> int:
    """Return the tokens of a share of a run's limit."""
    return most * SHARE_PERCENT[share] // 100


def tokens_left(share: TokenShare, most: int, taken: Mapping[TokenShare, int], *, written: bool) -> int:
    """Return the tokens that a share may still use; `taken` is used or reserved by share.

    A share has its own part and what those before it left; it never takes from those after it. Until a report is
    written (`written`), refinement has its own part alone, so that an analysis finds the rest of its own.
    """
    order = list(TokenShare)
    left, bound, used = [], 0, 0
    for each in order:
        bound, used = bound + tokens_of_share(each, most), used + taken.get(each, 0)
        if order.index(each) >= order.index(share):
            left.append((most if each is order[-1] else bound) - used)
    if share is TokenShare.REFINEMENT and not written:
        left.append(tokens_of_share(share, most) - taken.get(share, 0))
    return max(0, min(left))


ModelName = Annotated[str, Field(min_length=1, max_length=200)]


class TokenSettings(StrictContract):
    """The section `[tokens]` of `research.toml`: how the content of a call is fitted into a model's window."""

    token_management_enabled: bool = True
    """False: 1,000 characters of each source; a prompt that does not fit is refused and never shortened."""
    token_safety_margin: float = Field(default=0.15, ge=0, lt=1)
    """Share of the room that stays free, since tokens are estimated."""
    runtime_overhead: int = Field(default=10_000, ge=0, le=10_000_000)
    """Tokens of each window for the endpoint itself; at most a quarter of a window is taken."""
    model_context_overrides: dict[ModelName, Annotated[int, Field(ge=2_000, le=10_000_000)]] = {}
    """Windows in tokens by model name, over the known ones."""
    summarization_provider: ModelName | None = None
    """Model that summarises what nothing is quoted from; None: such content is shortened by its own sentences."""
    summarization_providers: list[ModelName] = Field(default=[], max_length=10)
    """Models that take over from it, in order."""
    summarization_timeout: float = Field(default=60.0, gt=0, le=600)
    """Seconds for each of them."""
    summarization_cache_enabled: bool = True
    """The same content is summarised once for all runs of a tenant."""
    allow_content_dropping: bool = False
    """True: the last level of unimportant content is to leave it out; false: to show its beginning."""
    content_archive_enabled: bool = False
    """Keep a record of content that a model was not shown."""
    content_archive_ttl_hours: float = Field(default=168.0, gt=0, le=876_000)
    research_archive_dir: Path | None = None
    """Folder of the records; None: `archive` in the data folder."""


class ItemFidelity(CompactModel):
    """One item of the content of a call."""

    id: str
    kind: str
    original_tokens: int
    current_tokens: int
    current_level: Level = Level.FULL

    @property
    def compression_ratio(self) -> float:
        """Current divided by original tokens; 1 for an item without any."""
        return self.current_tokens / self.original_tokens if self.original_tokens else 1.0


class ContentSums(Contract):
    """Content of one call or of several, in estimated tokens; all figures add up."""

    considered: int = 0
    shown: int = 0
    items: int = 0
    shortened: int = 0
    """Number of items that are not whole, dropped ones included."""
    stored_characters: int = 0
    """Of the stored texts of the sources."""
    considered_characters: int = 0
    """Of these, for the prompt."""

    @property
    def fidelity(self) -> float:
        """Tokens shown divided by tokens considered; 1 where nothing was considered."""
        return self.shown / self.considered if self.considered else 1.0


class CallFidelity(CompactModel, ContentSums):
    """Content of one call."""

    available: int = 0
    """Room for the whole prompt."""
    used: int = 0
    """Of it, by the whole prompt."""
    dropped: list[str] = []
    """Ids of the items that are not shown at all."""
    entry: str = ""
    """Hash of the notebook's entry with the items (`ContentEntry`); empty where all are whole."""
    archived: list[str] = []
    """Hashes of the texts that the archive has records of, for this call."""
    archive_problem: str = ""
    """Why the archive has none although it should."""


class ContentEntry(CompactModel):
    """The items of a call of which some are not whole, as the notebook stores them."""

    operation: str = ""
    role: str = ""
    items: list[ItemFidelity] = []


class ArchiveRecord(Contract):
    """A text that a model was not shown, or only in part: it stays in the content store until the record expires."""

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
    """When it expires for each run that did not show it, by the run's id; in a folder of several homes after a hash."""


class FidelityTotals(ContentSums):
    """Fidelity of the calls of a phase, or of a run."""

    calls: int = 0
    lowest: float = 1.0
    """Fidelity of the call that showed the least of its content."""

    @property
    def band(self) -> Band:
        """The band of the fidelity."""
        return Band.of(self.fidelity)

    def plus(self, other: "CallFidelity | FidelityTotals") -> "FidelityTotals":
        """Return the totals with one more call, or with those of another phase."""
        calls, lowest = (1, other.fidelity) if isinstance(other, CallFidelity) else (other.calls, other.lowest)
        sums = {name: getattr(self, name) + getattr(other, name) for name in ContentSums.model_fields}
        return FidelityTotals(calls=self.calls + calls, lowest=min(self.lowest, lowest), **sums)

    def words(self) -> str:
        """Return the fidelity and its band for a person: `82% (condensed)`."""
        return f"{self.fidelity:.0%} ({self.band.value})"


def total_of(phases: Iterable[FidelityTotals]) -> FidelityTotals:
    """Return the totals of several phases."""
    return reduce(FidelityTotals.plus, phases, FidelityTotals())
