"""What a role is not shown, and what is not taken of its answer: all that is about what a run leaves out."""

from typing import TypeVar

from contracts.exclusions import find_about, find_mainly_about, is_kept_out
from contracts.roles import AnalyzeInput, RoleInput, SourceExtract, WriteInput
from providers.text import meaning_words

I = TypeVar("I", bound=RoleInput)


def without_left_out(request: I) -> I:
    """The input of a role without sources, findings and gaps that are left out."""
    if not request.exclusions and not request.only_from:
        return request
    if isinstance(request, AnalyzeInput):
        kept = [source for source in request.sources if not _is_kept_out(source, request)]
        return request.model_copy(update={"sources": kept})
    return _writing(request) if isinstance(request, WriteInput) else request


def is_left_out(passage: str, request: RoleInput) -> bool:
    """Whether a passage or a statement is mainly about something that is left out."""
    return find_mainly_about(passage, [one.subject for one in request.exclusions]) is not None


def _is_kept_out(source: SourceExtract, request: RoleInput) -> bool:
    return is_kept_out(source.title, source.url, [one.subject for one in request.exclusions], request.only_from)


def _writing(request: I) -> I:
    if not isinstance(request, WriteInput):
        return request
    sources = [source for source in request.sources if not _is_kept_out(source, request)]
    known = {source.id for source in sources}
    evidence = {item.id: item for item in request.evidence if item.source_id in known}
    findings = [
        finding.model_copy(
            update={
                "evidence_ids": [key for key in finding.evidence_ids if key in evidence],
                "source_ids": [key for key in finding.source_ids if key in known],
            }
        )
        for finding in request.findings
        if not is_left_out(finding.statement, request)
    ]
    findings = [finding for finding in findings if finding.evidence_ids]
    used = {key for finding in findings for key in finding.evidence_ids}
    cited = {key for finding in findings for key in finding.source_ids}
    subjects = [one.subject for one in request.exclusions]
    asked = " ".join(meaning_words(request.query, request.language))
    return request.model_copy(
        update={
            "sources": [source for source in sources if source.id in cited],
            "evidence": [item for key, item in evidence.items() if key in used],
            "findings": findings,
            "gaps": [gap for gap in request.gaps if not find_about(gap.description, subjects, asked)],
        }
    )
