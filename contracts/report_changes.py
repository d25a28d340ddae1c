"""Comparison of two reports claim by claim, and of their sources. Pure: neither server nor store is needed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from contracts.addresses import canonical_url, normalized_text
from contracts.base import BoundedList, Contract
from contracts.vocabulary import SourceStatus

if TYPE_CHECKING:
    from contracts.report import Report, ReportClaim

VERDICT_SIGNS: Final = {
    "supported": "✓",
    "partial": "±",
    "unsupported": "✗",
    "contradicted": "≠",
    "not_enough_information": "○",
    "unverified": "–",
}
"""In the order in which readers are shown them."""
CITATION: Final = re.compile(r"\\?\[\d+\\?\](?:\([^()\s]*\))?")
ALIKE: Final = 0.5
"""Share of common words, of all words of both, from which two statements are one in other words."""
MOST_PAIRED: Final = 1_000
"""Claims of each report that are compared with those of the other one by their words."""
MOST_PASSAGES: Final = 20
"""Passages that are shown of one source."""


class ChangeKind(StrEnum):
    """Change of a claim."""

    NEW = "new"
    GONE = "gone"
    WORDED_ANEW = "worded_anew"
    OTHER_VERDICT = "other_verdict"


class SourceChangeKind(StrEnum):
    """Change of a source."""

    CHANGED = "changed"
    GONE = "gone"
    UNREACHABLE = "unreachable"
    """It could not be read again; whether it has changed is not known."""


class ClaimChange(Contract):
    """A claim that only one of two reports makes, or that both make differently."""

    kind: ChangeKind
    section: str = ""
    before: str = ""
    """Its words in the earlier report, without citations; empty for a new one."""
    after: str = ""
    verdict_before: str = ""
    verdict_after: str = ""


class SourceChange(Contract):
    """A source of the earlier report whose text is another one now, or is not there any more."""

    kind: SourceChangeKind
    source_id: str
    url: str = ""
    title: str = ""
    reason: str = ""
    """Reason for which it was not read again; empty for a changed one."""
    passages: BoundedList[str] = []
    """Passages that the earlier report cites, as they are archived."""


class ReportChanges(Contract):
    """Differences between a report and an earlier one."""

    since: str = ""
    """Time at which the earlier report was finished."""
    claims: BoundedList[ClaimChange] = []
    sources: BoundedList[SourceChange] = []


def compare_reports(before: "Report", after: "Report", lost: Mapping[str, str] | None = None) -> ReportChanges:
    """Return the differences; `lost`: reason by id of sources that could not be read again, `not_found` if gone."""
    return ReportChanges(
        since=before.ended_at,
        claims=list(_claim_changes(before, after)),
        sources=list(_source_changes(before, after, lost or {})),
    )


def words_of_claim(claim: "ReportClaim") -> str:
    """Return the text of a claim without citations, quotation signs and the sign of its verdict."""
    text, sign = claim.text, VERDICT_SIGNS.get(claim.verdict)
    if sign and claim.verdict != "supported":
        text = text.rpartition(f" {sign} ")[0] or text
    lines = (line.removeprefix(">").strip() for line in CITATION.sub("", text).splitlines())
    return " ".join(" ".join(lines).split())


def _claim_changes(before: "Report", after: "Report") -> Iterator[ClaimChange]:
    """Give the claims of both reports that differ: those of the newer one in its order, then those that are gone."""
    old, new = list(before.claims), list(after.claims)
    same = _same_claims(old, new)
    known = {place: claim for place, claim in enumerate(old) if place not in same.values()}
    rephrased = _rephrased(known, {place: claim for place, claim in enumerate(new) if place not in same})
    for place, claim in enumerate(new):
        if place in rephrased:
            yield _change(ChangeKind.WORDED_ANEW, old[rephrased[place]], claim)
        elif place not in same:
            yield _change(ChangeKind.NEW, None, claim)
        elif old[same[place]].verdict != claim.verdict:
            yield _change(ChangeKind.OTHER_VERDICT, old[same[place]], claim)
    for place, claim in known.items():
        if place not in rephrased.values():
            yield _change(ChangeKind.GONE, claim, None)


def _change(kind: ChangeKind, before: "ReportClaim | None", after: "ReportClaim | None") -> ClaimChange:
    newest = after or before
    return ClaimChange(
        kind=kind,
        section=newest.section if newest else "",
        before=words_of_claim(before) if before else "",
        after=words_of_claim(after) if after else "",
        verdict_before=before.verdict if before else "",
        verdict_after=after.verdict if after else "",
    )


def _same_claims(old: Sequence["ReportClaim"], new: Sequence["ReportClaim"]) -> dict[int, int]:
    """Return the place of the earlier claim for each place of a newer one in the same words, each used once."""
    known: dict[str, list[int]] = {}
    for place, claim in enumerate(old):
        known.setdefault(normalized_text(words_of_claim(claim)), []).append(place)
    partners = {}
    for place, claim in enumerate(new):
        if places := known.get(normalized_text(words_of_claim(claim))):
            # The one of the same section first: a statement may occur in two.
            partners[place] = max(places, key=lambda each: old[each].section == claim.section)
            places.remove(partners[place])
    return partners


def _rephrased(old: Mapping[int, "ReportClaim"], new: Mapping[int, "ReportClaim"]) -> dict[int, int]:
    """Return the place of the earlier claim for each newer one of nearly the same words, most similar pairs first."""
    earlier, later = (
        [(place, normalized_text(words_of_claim(claim)).split()) for place, claim in [*claims.items()][:MOST_PAIRED]]
        for claims in (old, new)
    )
    pairs = [
        (-likeness, place, number)
        for place, words in later
        for number, known in earlier
        if (likeness := _likeness(words, known)) >= ALIKE
    ]
    chosen: dict[int, int] = {}
    for _, place, number in sorted(pairs):
        if place not in chosen and number not in chosen.values():
            chosen[place] = number
    return chosen


def _likeness(one: list[str], other: list[str]) -> float:
    """Return the share of words that two statements have in common and in the same order."""
    few = 2 * len({*one} & {*other}) < ALIKE * (len({*one}) + len({*other}))
    return 0.0 if few else SequenceMatcher(None, one, other, autojunk=False).ratio()


def _source_changes(before: "Report", after: "Report", lost: Mapping[str, str]) -> Iterator[SourceChange]:
    """Give the sources that the earlier report had read and that are others now."""
    by_address = {canonical_url(address): one for one in after.sources for address in (*one.aliases, one.url)}
    by_id = {one.id: one for one in after.sources}
    for source in before.sources:
        if source.status != SourceStatus.FULL.value:
            continue
        now = by_id.get(source.id) or by_address.get(canonical_url(source.url))
        reason = lost.get(source.id, "")
        if reason:
            kind = SourceChangeKind.GONE if reason == "not_found" else SourceChangeKind.UNREACHABLE
        elif now is None or now.status != SourceStatus.FULL.value:
            kind, reason = SourceChangeKind.GONE, now.status_reason if now else "the newer report does not have it"
        elif now.text_hash != source.text_hash:
            kind = SourceChangeKind.CHANGED
        else:
            continue
        cited = {key for claim in before.claims for key in claim.evidence_ids}
        passages = [one.quote for one in before.evidence if one.source_id == source.id and one.id in cited]
        shown = {"source_id": source.id, "url": source.url, "title": source.title}
        yield SourceChange(kind=kind, reason=reason, passages=passages[:MOST_PASSAGES], **shown)
