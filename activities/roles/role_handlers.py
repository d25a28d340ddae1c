"""Grounding of the answers of each role in stored text, and what of their results is stored.

One table, by the type of the result: a role whose answers refer to no stored text needs no entry.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

from activities.reporting.drafts import store_draft
from activities.roles.analyzer import ground_analysis, ground_extraction
from activities.roles.claim_checking import ground_corrections, ground_verdicts
from activities.roles.gap_passages import ground_readings
from activities.roles.grounding import RoleWork
from activities.roles.report_writing import ground_report, ground_update
from activities.roles.turn_taking import ground_turn
from contracts.checking import AnswersEntry, ProposalsEntry
from contracts.checking_roles import CheckerResult, CorrectorResult
from contracts.notebooks import AnalysisEntry, strip_details
from contracts.recursive_roles import ExtractorResult, SelfCheckResult
from contracts.reflective_roles import ReflectorResult
from contracts.report_updates import ReporterResult
from contracts.roles import AnalyzeInput, AnalyzerResult, RoleAnswer, RoleSpec, SynthesizerResult
from contracts.summaries import SummarizeInput, SummarizerAnswer, SummarizerResult, SummaryEntry, summary_key
from contracts.supervisor_roles import RefinerResult
from contracts.tool_turns import TRANSCRIPT_TYPE, TurnResult
from providers.interfaces import ContentStore
from providers.storage.stored_notebooks import Notebooks

Ground = Callable[[RoleWork[Any, Any]], RoleAnswer]
"""Returns the result of an answer, and puts texts to store with it into `work.texts`."""


@dataclass(frozen=True)
class ResultToStore:
    """A grounded result, the request that it answers, its texts, and the stores."""

    request: Any
    result: Any
    texts: Sequence[str]
    content: ContentStore
    notebooks: Notebooks


Store = Callable[[ResultToStore], Awaitable[RoleAnswer]]
"""Stores texts and long lists, and returns the result with references to them: it becomes part of the history."""


async def _store_nothing(made: ResultToStore) -> RoleAnswer:
    result: RoleAnswer = made.result
    return result


def _fit(work: RoleWork[Any, Any]) -> RoleAnswer:
    """Return the result of an answer that refers to no stored text."""
    fitted: RoleAnswer = work.answer.fitted(work.request, work.warnings)
    return fitted


@dataclass(frozen=True)
class RoleHandler:
    """The treatment of the answers of a role."""

    ground: Ground = _fit
    store: Store = _store_nothing


def handler_of(role: RoleSpec[Any, Any]) -> RoleHandler:
    """Return the handler of a role; an external role may define `ground` in its module."""
    kind = next(kind for kind in role.result.__mro__ if kind in HANDLERS)
    handler = HANDLERS[kind]
    if role.module is None or kind in (TurnResult, SynthesizerResult):
        return handler
    return replace(handler, ground=getattr(import_module(role.module), "ground", _fit))


def _ground_summary(work: RoleWork[SummarizeInput, SummarizerAnswer]) -> SummarizerResult:
    """Put the summary, which the engine has checked, into `work.texts`."""
    work.texts.append(work.answer.summary.strip())
    return SummarizerResult()


async def _store_transcript(made: ResultToStore) -> TurnResult:
    await made.content.put_text(made.texts[0], TRANSCRIPT_TYPE)
    result: TurnResult = made.result
    return result


async def _store_report(made: ResultToStore) -> SynthesizerResult:
    result: SynthesizerResult = made.result
    return result.with_fields(draft=await store_draft(made.content, result.draft, made.texts[0]))


async def _store_analysis(made: ResultToStore) -> AnalyzerResult:
    """Store an analysis in the notebook, and return the result without the details of findings and evidence."""
    request = made.request
    result = made.result
    if not isinstance(request, AnalyzeInput) or not result.findings:
        unchanged: AnalyzerResult = result
        return unchanged
    cited = {source_id for finding in result.findings for source_id in finding.source_ids}
    sources = [
        source.with_fields(snippet="", sections=[], links=[], entry=None, hit_entries=[])
        for source in request.sources
        if source.id in cited
    ]
    entry = AnalysisEntry(findings=result.findings, evidence=result.evidence, sources=sources)
    return strip_details(result, request).with_fields(entry=await made.notebooks.write(entry))


async def _store_summary(made: ResultToStore) -> SummarizerResult:
    request: SummarizeInput = made.request
    result: SummarizerResult = made.result
    summary = SummaryEntry(key=summary_key(request.text.hash, request.level), summary=made.texts[0])
    return result.with_fields(entry=await made.notebooks.write(summary))


async def _store_verdicts(made: ResultToStore) -> CheckerResult:
    result: CheckerResult = made.result
    entry = await made.notebooks.write(AnswersEntry(items=result.answers))
    return result.with_fields(entry=entry, answers=[])


async def _store_proposals(made: ResultToStore) -> CorrectorResult:
    result: CorrectorResult = made.result
    entry = await made.notebooks.write(ProposalsEntry(items=result.proposals))
    return result.with_fields(entry=entry, proposals=[])


HANDLERS: Final[Mapping[type[RoleAnswer], RoleHandler]] = {
    RoleAnswer: RoleHandler(),
    AnalyzerResult: RoleHandler(ground_analysis, _store_analysis),
    ExtractorResult: RoleHandler(ground_extraction, _store_analysis),
    RefinerResult: RoleHandler(ground_readings),
    ReflectorResult: RoleHandler(ground_readings),
    SelfCheckResult: RoleHandler(ground_readings),
    TurnResult: RoleHandler(ground_turn, _store_transcript),
    SynthesizerResult: RoleHandler(ground_report, _store_report),
    ReporterResult: RoleHandler(ground_update),
    CheckerResult: RoleHandler(ground_verdicts, _store_verdicts),
    CorrectorResult: RoleHandler(ground_corrections, _store_proposals),
    SummarizerResult: RoleHandler(_ground_summary, _store_summary),
}
"""Handlers by type of result; a type without an entry has that of its nearest parent with one."""
