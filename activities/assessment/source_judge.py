"""What a document is worth: the operator's word for a corpus, an assessment for a page of the web."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from activities.assessment.authorities import load_authorities
from activities.assessment.source_assessment import LOOKED_AT, assess
from activities.roles.lenient_values import named
from contracts.activities import ReadRequest
from contracts.names import CORPUS_SCHEME
from contracts.sources import CHOSEN_BY_OPERATOR, SourceAssessment
from contracts.vocabulary import Quality
from providers.interfaces import ExtractedDocument, IsolatedCalls


@dataclass(frozen=True)
class Judgement:
    """A label, what decided, and the parts where there are any."""

    quality: Quality = Quality.UNKNOWN
    reason: str = ""
    assessment: SourceAssessment | None = None


Judge = Callable[[ReadRequest, ExtractedDocument], Awaitable[Judgement]]
ASSESSED: Final = f"{__name__}:assessed"


def judge_of(
    isolated: IsolatedCalls, authority_by_corpus: Mapping[str, str], authorities: Mapping[str, str] | None = None
) -> Judge:
    """Judges by the operator's declarations: what each corpus is worth, and domains of the web.

    Pages are looked at in killable processes.
    """
    declared = {domain.lower(): Quality(label) for domain, label in (authorities or {}).items()}

    async def judge(request: ReadRequest, document: ExtractedDocument) -> Judgement:
        if document.url.startswith(CORPUS_SCHEME):
            return _declared(document.url, authority_by_corpus)
        looked_at = replace(document, text=document.text[:LOOKED_AT], raw=b"")
        found = SourceAssessment.model_validate_json(await isolated.call(ASSESSED, request, looked_at, declared))
        return Judgement(found.label, found.reason, found)

    return judge


def assessed(request: ReadRequest, document: ExtractedDocument, declared: Mapping[str, Quality]) -> str:
    """`assess` for a child process, over JSON."""
    return assess(request, document, load_authorities(), declared).model_dump_json()


def _declared(url: str, authority_by_corpus: Mapping[str, str]) -> Judgement:
    authority = authority_by_corpus.get(url.removeprefix(CORPUS_SCHEME).partition("/")[0], "")
    quality = named(Quality, authority)
    return Judgement() if quality is None else Judgement(quality, CHOSEN_BY_OPERATOR)
