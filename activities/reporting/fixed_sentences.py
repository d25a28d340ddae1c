"""Fixed sentences of a report about itself: each says no more than the run can show."""

from typing import Final

from contracts.vocabulary import Completeness, EngineKind, Outcome

OUTCOMES: Final[dict[Outcome, str]] = {
    Outcome.COMPLETED: "Completed",
    Outcome.PARTIAL: "Partial",
    Outcome.EMPTY: "Nothing found that answers the question",
    Outcome.REFUSED: "Refused before any work",
    Outcome.CANCELLED: "Cancelled",
    Outcome.TIMED_OUT: "Timed out",
    Outcome.FAILED: "Failed",
}

PARTS_FAILED: Final = "parts of the work failed, and were left out or done in a simpler way"

COMPLETENESS: Final[dict[Completeness, str]] = {
    Completeness.FULL: "every part of the plan is answered or its gap is stated",
    Completeness.PARTIAL: "parts of the plan are not answered",
    Completeness.EMPTY: "the question is not answered",
}

ENGINES: Final[dict[EngineKind, str]] = {
    EngineKind.EXTRACTIVE: "no language model: passages are selected and quoted word for word",
    EngineKind.MODEL: "a language model did the work",
}

NO_DRAFT: Final = "No report text was written."
NO_DRAFT_WHY: Final = "The run ended before the writing phase gave a text: {reason}."
NO_DRAFT_FOUND: Final = (
    "By then it had read {sources} and kept {passages}; they are listed in the JSON form of this report."
)

LEADS: Final = "A number in brackets leads to a passage that was compared with the stored text of its source."
ALL_QUOTED: Final = (
    "Cited statements: {all:,}, each of them word for word the cited passage. Whether the sources are right was not "
    "checked."
)
SOME_QUOTED: Final = (
    "Cited statements: {all:,}; word for word the cited passage: {same:,}; in other words: {others:,}, and nobody has "
    "checked whether the passages support those. Whether the sources are right was not checked either."
)
SOME_JUDGED: Final = (
    "Cited statements: {all:,}; word for word the cited passage: {same:,}. Rules compared the others with their "
    "passages: {supported:,} supported, {partial:,} in part, {unsupported:,} not supported, {contradicted:,} "
    "contradicted, {undecided:,} not decided. Whether the sources are right was not checked."
)
JUDGES_RULES: Final = "Rules compared these statements with their passages and found differences."
JUDGES_MODEL: Final = "A model or rules compared these statements with their passages and found differences."
CORRECTED: Final = "What did not pass its check was corrected and checked again: {count}."
UNREACHED: Final = "Time or a limit ended the check before {count} could be judged by a model."
REVIEWED: Final = (
    "The draft scored {overall:g} of 10 (coverage {coverage:g}, support {support:g}, depth {depth:g}, readability "
    "{readability:g}; by {method})."
)
NOT_VERIFIED: Final = "Not verified"
NOT_BORNE_OUT: Final = "Even after corrections more of this report is not borne out by its sources than is allowed."
SOME_CHECKED: Final = (
    "Cited statements: {all:,}; word for word the cited passage: {same:,}. Of the others rules judged {rules:,} and a "
    "model {model:,}, each statement beside its passages alone: {supported:,} supported, {partial:,} in part, "
    "{unsupported:,} not supported, {contradicted:,} contradicted, {undecided:,} not decided. Whether the sources are "
    "right was not checked."
)
UNCITED: Final = "The writer cites no passage for {count}: taken as the writer's own inference, and not checked."
EMPTY_CITES_NOTHING: Final = "This report cites nothing."


def count_noun(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 source`, `1,204 sources`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def day(timestamp: str | None) -> str:
    """The date of an ISO 8601 timestamp, or a statement that it is unknown."""
    return timestamp[:10] if timestamp else "at an unknown time"


def moment(timestamp: str | None) -> str:
    """Date and minute of an ISO 8601 timestamp with its offset, for people."""
    if not timestamp:
        return "unknown"
    zone = " UTC" if timestamp.endswith(("Z", "+00:00")) else f" {timestamp[-6:]}" if timestamp[-6:-5] in "+-" else ""
    return timestamp[:16].replace("T", " ") + zone
