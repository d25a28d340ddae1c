"""Quality of a source: pure rules over its host, its date and its text, with a one-line reason.

The parts are weighted by kind of search, and `assess` has the thresholds. Authority comes from a table of domains,
never from the page's own claims.
"""

import asyncio
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.resources import files
from typing import Final

from pydantic import Field

from contracts.addresses import url_host
from contracts.base import StrictContract
from contracts.evidence import OWN_DOCUMENTS, OWN_SETTING, SourceAssessment
from contracts.lenient import find_member
from contracts.messages import ReadRequest
from contracts.names import CORPUS_SCHEME, SERVER_SCHEME
from contracts.request import SourceType
from contracts.sentences import Message, joined
from contracts.vocabulary import Quality
from providers.interfaces import ExtractedDocument
from providers.text import STEMMED_LANGUAGES, detect_language, question_stems, stems

WEIGHTS: Final[Mapping[SourceType, tuple[float, float, float, float]]] = {
    SourceType.WEB: (0.4, 0.3, 0.1, 0.2),
    SourceType.ACADEMIC: (0.4, 0.35, 0.05, 0.2),
    SourceType.NEWS: (0.35, 0.3, 0.25, 0.1),
}
"""Weights of authority, relevance, recency and content."""
HALF_LIFE_DAYS: Final = {SourceType.WEB: 4 * 365.0, SourceType.ACADEMIC: 8 * 365.0, SourceType.NEWS: 30.0}
"""Days after which recency halves."""
DECLARED_AUTHORITY: Final[Mapping[Quality, float]] = {Quality.HIGH: 0.95, Quality.MEDIUM: 0.6, Quality.LOW: 0.1}
"""Authority of a host by the operator's label."""
HIGH_AUTHORITY: Final = 0.7  # no tier of user-generated content reaches it
LOW_AUTHORITY: Final = 0.35
"""An analyzer may not call a page below this, or one of user-generated content, high quality."""
UNKNOWN: Final = 0.5
"""Recency of an undated page, and relevance of one whose words cannot be compared with the question's."""
OUTDATED: Final = 0.1  # recency of a page older than the requested period
EXAMINED_CHARACTERS: Final = 60_000  # of a page
WINDOW_WORDS: Final = 150  # a long page has every word somewhere


# --- authority -------------------------------------------------------------------------------------------------------
class AuthorityTier(StrictContract):
    """A class of sites, with its authority for each kind of search, 0 to 1."""

    sentence: str  # id of the sentence that is shown as the reason
    web: float = Field(ge=0, le=1)
    academic: float = Field(ge=0, le=1)
    news: float = Field(ge=0, le=1)
    user_generated: bool = False  # true if readers can publish there
    domains: str = ""  # separated by blanks; each covers its subdomains


class Authorities(StrictContract):
    """The table of domains that ships with the product."""

    as_of: str
    general: AuthorityTier
    tiers: Mapping[str, AuthorityTier]

    def tier_of(self, url: str) -> AuthorityTier:
        """Return the tier of a host's longest domain in the table, else the general one."""
        return next((self._by_domain[domain] for domain in _domains(url) if domain in self._by_domain), self.general)

    @cached_property
    def _by_domain(self) -> dict[str, AuthorityTier]:
        return {domain: tier for tier in self.tiers.values() for domain in tier.domains.split()}


AUTHORITIES: Final = Authorities.model_validate(
    tomllib.loads(files(__package__ or "").joinpath("authorities.toml").read_text(encoding="utf-8"))
)


def declared_quality(url: str, declared: Mapping[str, Quality]) -> Quality | None:
    """Return the operator's label of a host's longest declared domain, if any; `declared` has lower-case domains."""
    labels = (declared.get(domain, Quality.UNKNOWN) for domain in _domains(url))
    return next((label for label in labels if label in DECLARED_AUTHORITY), None)


def _domains(url: str) -> Iterator[str]:
    """Yield the host of an address, then each domain above it."""
    host = url_host(url)
    while host:
        yield host
        host = host.partition(".")[2]


# --- assessment ------------------------------------------------------------------------------------------------------
def assess(request: ReadRequest, document: ExtractedDocument, declared: Mapping[str, Quality]) -> SourceAssessment:
    """Return parts, label and reason for one page, rated by its final address after redirects.

    `declared` has the operator's labels of domains (`high`, `medium`, `low`), which override the computed label.
    """
    tier = AUTHORITIES.tier_of(document.url)
    override = declared_quality(document.url, declared)
    authority: float = DECLARED_AUTHORITY[override] if override else getattr(tier, request.mode.value)
    relevance, covered = _relevance(request, document)
    recency, age = rate_recency(document.published_at or request.published_at, request)
    content = content_quality(document.text)
    parts = (authority, relevance, recency, content)
    score = sum(weight * part for weight, part in zip(WEIGHTS[request.mode], parts, strict=True))
    label = Quality.MEDIUM
    if score < 0.4 or authority <= 0.15 or relevance < 0.15 or content < 0.05:
        label = Quality.LOW
    elif score >= 0.7 and authority >= HIGH_AUTHORITY and relevance >= 0.3 and content >= 0.4:
        label = Quality.MEDIUM if recency == OUTDATED else Quality.HIGH
    place = Message("site_private") if document.url.startswith(SERVER_SCHEME) else Message(tier.sentence)
    reasons = [OWN_SETTING if override else place, covered, age]
    if content < 0.4:
        reasons.append(Message("page_little"))
    return SourceAssessment(
        authority=round(authority, 2),
        relevance=round(relevance, 2),
        recency=round(recency, 2),
        content_quality=round(content, 2),
        label=override or label,
        reason=joined([part for part in reasons if part]),
        user_generated=tier.user_generated and not override,
    )


def best_quality(parts: SourceAssessment | None) -> Quality:
    """Return the best label that an analyzer may give a source."""
    weak = parts is not None and (parts.user_generated or parts.authority < LOW_AUTHORITY)
    return Quality.MEDIUM if weak else Quality.HIGH


def _relevance(request: ReadRequest, document: ExtractedDocument) -> tuple[float, str]:
    """Return the highest share of a question's words in one window of the page, and a description of it."""
    language = detect_language(request.query)
    page_language = (document.language or "").lower().replace("_", "-").partition("-")[0]
    questions = [set(question_stems(line, language)) for line in request.query.splitlines()]
    all_words = set[str]().union(*questions)
    heading = all_words.intersection(stems(f"{document.title or request.title} {request.snippet}", language))
    text = stems(document.text[:EXAMINED_CHARACTERS], language)
    starts = range(0, max(1, len(text)), WINDOW_WORDS // 2)
    windows = [heading | all_words.intersection(text[start : start + WINDOW_WORDS]) for start in starts]
    in_page = heading | all_words.intersection(text)
    best = 0.0
    matched = 0
    count = 0
    for question in questions:
        if question:
            share = max(len(question & window) for window in windows) / len(question)
            best, matched, count = max((best, matched, count), (share, len(question & in_page), len(question)))
    foreign = page_language in STEMMED_LANGUAGES and page_language != language and best < UNKNOWN
    if not count or language not in STEMMED_LANGUAGES or foreign:
        return UNKNOWN, Message("page_language") if foreign else ""
    return best, Message("page_covers", found=matched, all=count)


def rate_recency(published: str | None, request: ReadRequest) -> tuple[float, str]:
    """Return a source's recency, 0 to 1, and its year as a reason; a partial date counts as a late day in it."""
    last = _latest_day(published)
    today = _latest_day(request.date)
    date_text = (published or "").strip()[:10]
    # Up to two days ahead is a matter of time zones.
    if not last or not today or ((last - today).days > 2 and date_text > str(today)[: len(date_text)]):
        return UNKNOWN, Message("page_undated")
    if request.published_from and str(last) < request.published_from:
        return OUTDATED, Message("page_too_old", year=str(last.year))
    return 0.5 ** (max(0, (today - last).days) / HALF_LIFE_DAYS[request.mode]), str(last.year)


def _latest_day(text: str | None) -> date | None:
    """Return the day of an ISO date, for a partial one a late day in it; None for any other text."""
    date_text = (text or "").strip()[:10]
    try:
        return date.fromisoformat(date_text + "0000-12-28"[len(date_text) :])
    except ValueError:
        return None


def content_quality(text: str) -> float:
    """Return how quotable a text is, 0 to 1: its length up to 2,000 characters, weighted by its share of prose."""
    lines = [line.strip() for line in text[:EXAMINED_CHARACTERS].splitlines()]
    characters = sum(map(len, lines))
    prose = sum(len(line) for line in lines if len(line) >= 60)
    if not characters:
        return 0.0
    return min(1.0, characters / 2_000) * (0.5 + 0.5 * prose / characters)


# --- the judge of a worker -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Judgement:
    """A label, the reason for it, and the assessed parts, if any."""

    quality: Quality = Quality.UNKNOWN
    reason: str = ""
    assessment: SourceAssessment | None = None


Judge = Callable[[ReadRequest, ExtractedDocument], Awaitable[Judgement]]


def create_judge(
    authority_of: Callable[[str], str | None],
    authorities: Mapping[str, str],
    servers: Mapping[str, str | None] | None = None,
) -> Judge:
    """Make a judge that applies the operator's labels of corpora, domains and servers; pages are assessed in threads.

    A document of a server without a label is assessed like a page.

    The rules take linear time over bounded text, less than a child process would cost.
    """
    declared = {domain.lower(): Quality(label) for domain, label in authorities.items()}

    async def judge(request: ReadRequest, document: ExtractedDocument) -> Judgement:
        if document.url.startswith(CORPUS_SCHEME):
            name = document.url.removeprefix(CORPUS_SCHEME).partition("/")[0]
            quality = find_member(Quality, authority_of(name) or "")
            if quality:
                return Judgement(quality, OWN_DOCUMENTS)
            return Judgement()
        server = document.url.removeprefix(SERVER_SCHEME).partition("/")[0]
        if document.url.startswith(SERVER_SCHEME) and (label := (servers or {}).get(server)):
            return Judgement(Quality(label), OWN_DOCUMENTS)
        assessment = await asyncio.to_thread(assess, request, document, declared)
        return Judgement(assessment.label, assessment.reason, assessment)

    return judge
