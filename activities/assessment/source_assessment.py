"""Quality of a source: pure rules over its host, its date and its text, with a reason of one line.

Label: the parts are weighted (by kind of search). `high` needs a sum of 0.70, an authority of
0.70, a relevance of 0.30, a content of 0.40 and a site where not anybody can write. `low` is a sum below 0.40, an
authority up to 0.15, a relevance below 0.15, a content below 0.05, and whatever does not show its text. Everything
else is `medium`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from activities.assessment.authorities import GENERAL, PUBLISHER, Authorities, Authority, load_authorities
from activities.assessment.question_fit import Age, Coverage, age_of, coverage
from contracts.evidence import CHOSEN_BY_OPERATOR, SourceAssessment
from contracts.lenient import find_member
from contracts.messages import ReadRequest
from contracts.names import CORPUS_SCHEME
from contracts.request import SourceType
from contracts.vocabulary import Quality
from providers.interfaces import ExtractedDocument, IsolatedCalls


@dataclass(frozen=True)
class Weights:
    """Weight of each part; they add up to 1."""

    authority: float
    relevance: float
    recency: float
    content: float


WEIGHTS: Final[Mapping[SourceType, Weights]] = {
    SourceType.WEB: Weights(0.4, 0.3, 0.1, 0.2),
    SourceType.ACADEMIC: Weights(0.4, 0.35, 0.05, 0.2),
    SourceType.NEWS: Weights(0.35, 0.3, 0.25, 0.1),
}

HIGH_SCORE: Final = 0.7
HIGH_AUTHORITY: Final = 0.7
HIGH_RELEVANCE: Final = 0.3
HIGH_CONTENT: Final = 0.4
LITTLE_AUTHORITY: Final = 0.35
"""A page below it, or where anybody can write, is never called authoritative by an analyzer, whatever it says."""
LOW_SCORE: Final = 0.4
LOW_AUTHORITY: Final = 0.15
LOW_RELEVANCE: Final = 0.15
LOW_CONTENT: Final = 0.05
FULL_LENGTH: Final = 2_000
"""Characters of text from which more does not count."""
LONG_LINE: Final = 60
LOOKED_AT: Final = 60_000
OTHER_LANGUAGE: Final = 0.5
"""Relevance of a page whose language is not the question's: words cannot be compared."""


def assess(
    request: ReadRequest,
    document: ExtractedDocument,
    authorities: Authorities,
    declared: Mapping[str, Quality] | None = None,
) -> SourceAssessment:
    """Parts, label and reason for one page as it was read; the final address counts, not the one that led there.

    `declared` are the operator's own words about domains (`high`, `medium`, `low`), which decide the label of every
    page. Nothing that the page says of itself raises its authority.
    """
    standing = _standing(request, document, authorities, declared)
    age = age_of(document.published_at or request.published_at, request.date, request.published_from, request.mode)
    seen = coverage(
        request.query, document.title or request.title, request.snippet, document.text[:LOOKED_AT], document.language
    )
    content = content_quality(document.text)
    relevance = OTHER_LANGUAGE if seen.other_language else seen.share
    label = _label(request.mode, standing, age, relevance, content)
    return SourceAssessment(
        authority=round(standing.authority, 2),
        relevance=round(relevance, 2),
        recency=round(age.recency, 2),
        content_quality=round(content, 2),
        label=label,
        reason=_reason(standing, age, seen, content),
        user_generated=standing.user_generated,
    )


def best_quality(parts: SourceAssessment | None) -> Quality:
    """The best that an analyzer may call a source."""
    weak = parts is not None and (parts.user_generated or parts.authority < LITTLE_AUTHORITY)
    return Quality.MEDIUM if weak else Quality.HIGH


def content_quality(text: str) -> float:
    """Return how much there is to quote, 0 to 1: the length, and the share that stands in whole lines of prose."""
    looked_at = text[:LOOKED_AT]
    lines = [line.strip() for line in looked_at.splitlines() if line.strip()]
    characters = sum(map(len, lines))
    if not characters:
        return 0.0
    prose = sum(len(line) for line in lines if len(line) >= LONG_LINE) / characters
    length = min(1.0, characters / FULL_LENGTH)
    return length * (0.5 + 0.5 * prose)


def _standing(
    request: ReadRequest, document: ExtractedDocument, authorities: Authorities, declared: Mapping[str, Quality] | None
) -> Authority:
    standing = authorities.standing(document.url, request.mode, declared)
    # A search for papers tells the identifier itself; on a host without an entry it stands for a publisher's page.
    if standing.tier == GENERAL and request.mode is SourceType.ACADEMIC and request.doi:
        published = authorities.tiers[PUBLISHER].authority(request.mode)
        return Authority(GENERAL, (standing.authority + published) / 2, "publication with an identifier")
    return standing


def _label(mode: SourceType, standing: Authority, age: Age, relevance: float, content: float) -> Quality:
    if standing.declared is not None:
        return standing.declared
    weights = WEIGHTS[mode]
    authority = standing.authority
    score = (
        weights.authority * authority
        + weights.relevance * relevance
        + weights.recency * age.recency
        + weights.content * content
    )
    poor = authority <= LOW_AUTHORITY or relevance < LOW_RELEVANCE or content < LOW_CONTENT
    if poor or score < LOW_SCORE:
        return Quality.LOW
    fit = authority >= HIGH_AUTHORITY and relevance >= HIGH_RELEVANCE and content >= HIGH_CONTENT
    able = fit and not age.outside and not standing.user_generated
    return Quality.HIGH if able and score >= HIGH_SCORE else Quality.MEDIUM


def _reason(standing: Authority, age: Age, seen: Coverage, content: float) -> str:
    """Return what decided, in our own words alone: nothing of the page is in it."""
    parts = [standing.phrase]
    if seen.other_language:
        parts.append("in another language than the question")
    elif seen.of:
        parts.append(f"covers {seen.found} of {seen.of} words")
    parts.append(age.phrase)
    if content < HIGH_CONTENT:
        parts.append("little text")
    return "; ".join(parts)


@dataclass(frozen=True)
class Judgement:
    """A label, what decided, and the parts where there are any."""

    quality: Quality = Quality.UNKNOWN
    reason: str = ""
    assessment: SourceAssessment | None = None


Judge = Callable[[ReadRequest, ExtractedDocument], Awaitable[Judgement]]
ASSESSED: Final = f"{__name__}:assess_as_json"


def judge_of(
    isolated: IsolatedCalls, authority_of: Callable[[str], str | None], authorities: Mapping[str, str] | None = None
) -> Judge:
    """Judges by the operator's declarations: what each corpus is worth, and domains of the web.

    Pages are looked at in killable processes.
    """
    declared = {domain.lower(): Quality(label) for domain, label in (authorities or {}).items()}

    async def judge(request: ReadRequest, document: ExtractedDocument) -> Judgement:
        if document.url.startswith(CORPUS_SCHEME):
            return _judge_corpus(document.url, authority_of)
        looked_at = replace(document, text=document.text[:LOOKED_AT], raw=b"")
        found = SourceAssessment.model_validate_json(await isolated.call(ASSESSED, request, looked_at, declared))
        return Judgement(found.label, found.reason, found)

    return judge


def assess_as_json(request: ReadRequest, document: ExtractedDocument, declared: Mapping[str, Quality]) -> str:
    """`assess` for a child process, over JSON."""
    return assess(request, document, load_authorities(), declared).model_dump_json()


def _judge_corpus(url: str, authority_of: Callable[[str], str | None]) -> Judgement:
    authority = authority_of(url.removeprefix(CORPUS_SCHEME).partition("/")[0])
    quality = find_member(Quality, authority or "")
    return Judgement() if quality is None else Judgement(quality, CHOSEN_BY_OPERATOR)
