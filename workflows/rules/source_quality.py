"""What the analyzer thinks of a source, kept within bounds: pure."""

from typing import Final

from contracts.evidence import QualityUpdate
from contracts.sources import CHOSEN_BY_OPERATOR, Source
from contracts.vocabulary import PageAccess, Quality

STEPS: Final = (Quality.LOW, Quality.MEDIUM, Quality.HIGH)
LITTLE_AUTHORITY: Final = 0.35
"""A page below it, or where anybody can write, is never called authoritative, whatever it says."""


def updated(source: Source, update: QualityUpdate) -> Source:
    """The source with the analyzer's label, at most one step from what the rules found; unchanged where it has no say.

    It has none where the operator chose the label, and an opinion `unknown` takes nothing away. However often sources
    are analyzed, the steps do not add up. A source that the rules did not judge starts in the middle.
    """
    if update.source_id != source.id or update.quality not in STEPS or _declared(source):
        return source
    found = source.assessment.label if source.assessment else source.quality
    base = found if found in STEPS else Quality.MEDIUM
    place, wanted = STEPS.index(base), STEPS.index(Quality(update.quality))
    step = max(place - 1, min(place + 1, wanted, STEPS.index(_ceiling(source))))
    quality = STEPS[step]
    if quality is found:
        reason = source.assessment.reason if source.assessment else source.quality_reason
    else:
        reason = f"analyzer: {quality.value} (was {found.value})"
    return source.model_copy(update={"quality": quality, "quality_reason": reason})


def _declared(source: Source) -> bool:
    return source.quality_reason.startswith(CHOSEN_BY_OPERATOR)


def _ceiling(source: Source) -> Quality:
    if source.access is not PageAccess.OPEN:
        return Quality.LOW
    parts = source.assessment
    weak = parts is not None and (parts.user_generated or parts.authority < LITTLE_AUTHORITY)
    return Quality.MEDIUM if weak else Quality.HIGH
