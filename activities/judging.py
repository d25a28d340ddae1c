"""What a document is worth: the operator's word for a corpus, an assessment for a page of the web."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from activities.assessment import assess
from activities.authorities import load_authorities
from activities.wording import named
from contracts.activities import ReadRequest
from contracts.names import CORPUS_SCHEME
from contracts.sources import CHOSEN_BY_OPERATOR, SourceAssessment
from contracts.vocabulary import Quality
from providers.interfaces import ExtractedDocument


@dataclass(frozen=True)
class Judgement:
    """A label, what decided, and the parts where there are any."""

    quality: Quality = Quality.UNKNOWN
    reason: str = ""
    assessment: SourceAssessment | None = None


Judge = Callable[[ReadRequest, ExtractedDocument], Judgement]


def judge_of(authority_by_corpus: Mapping[str, str], authorities: Mapping[str, str] | None = None) -> Judge:
    """Judges by the operator's declarations: what each corpus is worth (C0-24), and domains of the web."""
    declared = {domain.lower(): Quality(label) for domain, label in (authorities or {}).items()}

    def judge(request: ReadRequest, document: ExtractedDocument) -> Judgement:
        if document.url.startswith(CORPUS_SCHEME):
            return _declared(document.url, authority_by_corpus)
        found = assess(request, document, load_authorities(), declared)
        return Judgement(found.label, found.reason, found)

    return judge


def _declared(url: str, authority_by_corpus: Mapping[str, str]) -> Judgement:
    authority = authority_by_corpus.get(url.removeprefix(CORPUS_SCHEME).partition("/")[0], "")
    quality = named(Quality, authority)
    return Judgement() if quality is None else Judgement(quality, CHOSEN_BY_OPERATOR)
