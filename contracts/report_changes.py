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
    from contracts.report import Report, ReportClaim, ReportSource

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
ALIKE_IN_SOURCE: Final = 0.3
"""The same for statements about the same sources."""
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
    """Return the differences of a report from an earlier one; `lost` has sources that could not be read again.

    By source id it names the reason, which is `not_found` for a source that is gone.
    """
    return ReportChanges(
        since=before.ended_at,
        claims=list(_claim_changes(before, after)),
        sources=list(_source_changes(before, after, lost or {})),
    )


# --- claims --------------------------------------------------------------------------------------------------------
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
    partners = _same_claims(old, new)
    rest = [claim for place, claim in enumerate(old) if place not in partners.values()]
    rephrased = _rephrased(rest, [new[place] for place in range(len(new)) if place not in partners], before, after)
    for place, claim in enumerate(new):
        earlier = old[partners[place]] if place in partners else rephrased.get(id(claim))
        if earlier is None:
            yield _change(ChangeKind.NEW, None, claim)
        elif place not in partners:
            yield _change(ChangeKind.WORDED_ANEW, earlier, claim)
        elif earlier.verdict != claim.verdict:
            yield _change(ChangeKind.OTHER_VERDICT, earlier, claim)
    reworded = {id(claim) for claim in rephrased.values()}
    for claim in rest:
        if id(claim) not in reworded:
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
            chosen = next((each for each in places if old[each].section == claim.section), places[0])
            places.remove(chosen)
            partners[place] = chosen
    return partners


def _rephrased(
    old: Sequence["ReportClaim"], new: Sequence["ReportClaim"], before: "Report", after: "Report"
) -> dict[int, "ReportClaim"]:
    """Return the earlier claim of each newer one that says nearly the same, the most similar pairs first."""
    sources = [{one.id: one.source_id for one in report.evidence} for report in (before, after)]
    earlier = [(claim, _word_list(claim), _sources_of(claim, sources[0])) for claim in old[:MOST_PAIRED]]
    pairs = []
    for place, claim in enumerate(new[:MOST_PAIRED]):
        words, cited = _word_list(claim), _sources_of(claim, sources[1])
        for number, (_, known, known_cited) in enumerate(earlier):
            least = ALIKE_IN_SOURCE if cited & known_cited else ALIKE
            if (likeness := _likeness(words, known)) >= least:
                pairs.append((-likeness, place, number))
    chosen: dict[int, ReportClaim] = {}
    used = set[int]()
    for _, place, number in sorted(pairs):
        if id(new[place]) not in chosen and number not in used:
            chosen[id(new[place])] = earlier[number][0]
            used.add(number)
    return chosen


def _word_list(claim: "ReportClaim") -> list[str]:
    return normalized_text(words_of_claim(claim)).split()


def _sources_of(claim: "ReportClaim", sources: Mapping[str, str]) -> set[str]:
    return {sources[key] for key in claim.evidence_ids if key in sources}


def _likeness(one: list[str], other: list[str]) -> float:
    """Return the share of words that two statements have in common and in the same order."""
    common, all_words = len({*one} & {*other}), len({*one} | {*other})
    if not all_words or common / all_words < ALIKE_IN_SOURCE:
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


# --- sources -------------------------------------------------------------------------------------------------------
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
        yield _source_change(kind, source, reason, before)


def _source_change(kind: SourceChangeKind, source: "ReportSource", reason: str, before: "Report") -> SourceChange:
    cited = {key for claim in before.claims for key in claim.evidence_ids}
    passages = [one.quote for one in before.evidence if one.source_id == source.id and one.id in cited]
    return SourceChange(
        kind=kind,
        source_id=source.id,
        url=source.url,
        title=source.title,
        reason=reason,
        passages=passages[:MOST_PASSAGES],
    )
