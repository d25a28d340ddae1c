"""What the analyzer thinks of a source, kept within bounds: pure."""

from typing import Final

from contracts.evidence import CHOSEN_BY_OPERATOR, QualityUpdate, Source
from contracts.vocabulary import Quality

STEPS: Final = (Quality.LOW, Quality.MEDIUM, Quality.HIGH)


def update_quality(source: Source, update: QualityUpdate) -> Source:
    """The source with the analyzer's label, at most one step from what the rules found; unchanged where it has no say.

    It has none where the operator chose the label, and an opinion `unknown` takes nothing away. However often sources
    are analyzed, the steps do not add up. A source that the rules did not judge starts in the middle.
    """
    if update.source_id != source.id or update.quality not in STEPS or _is_declared(source):
        return source
    found = source.found_quality or source.quality
    base = found if found in STEPS else Quality.MEDIUM
    place, wanted = STEPS.index(base), STEPS.index(Quality(update.quality))
    quality = STEPS[max(place - 1, min(place + 1, wanted, STEPS.index(source.best_quality)))]
    reason = f"analyzer: {quality.value} (was {found.value})" if quality is not found else _reason_of_rules(source)
    known = source.found_quality if quality is source.quality else found
    return source.model_copy(update={"quality": quality, "quality_reason": reason, "found_quality": known})


def _reason_of_rules(source: Source) -> str:
    """Why the rules found what they found; empty where an entry of the notebook tells it."""
    if source.assessment is not None:
        return source.assessment.reason
    return source.quality_reason if source.entry is None else ""


def _is_declared(source: Source) -> bool:
    return source.quality_reason.startswith(CHOSEN_BY_OPERATOR)
