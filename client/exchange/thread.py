"""A thread of questions as one report with one list of sources, made of the `report.json` of its answers.

The result is an ordinary report: every form, export and audit of one run works on it. Pure; texts come from anybody, so
it runs in a process that can be killed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

from activities.reporting.audit import material_of, text_with_passages, unrepeatable_verdicts
from activities.reporting.claims import claim_key
from activities.reporting.inputs import gather_inputs
from activities.reporting.references import DraftMarks, KnownAddresses, addresses_of
from activities.reporting.render import RenderedForms, render
from activities.reporting.report_messages import ReportMessages
from activities.reporting.tree import Block, heading, one_line, parse, sentences, write
from contracts.addresses import evidence_id, source_version_id
from contracts.base import Contract
from contracts.checking import VerificationSummary
from contracts.evidence import ClaimVerdict
from contracts.outcome import Usage
from contracts.report import (
    Report,
    ReportEvidence,
    ReportSource,
    ReportText,
    ReportVerification,
    ThreadAnswer,
    with_messages,
)
from contracts.request import MAX_QUERY_CHARACTERS, Verify
from contracts.vocabulary import Completeness, EngineKind, GapStatus, Outcome, SourceStatus

THREAD: Final = "thread"
"""Strategy of a document that several runs made, and the beginning of its id."""
MAX_LEVEL: Final = 6
"""Deepest heading of Markdown."""
VERIFY_ORDER: Final = tuple(verify.value for verify in (Verify.OFF, Verify.LIGHT, Verify.FULL))


class ThreadPart(Contract):
    """One question of a thread, and its report if it has one."""

    answer: ThreadAnswer
    report: Report | None = None


def render_thread(parts: Sequence[ThreadPart], texts: Mapping[str, str]) -> RenderedForms:
    """Render a thread, in the order of its questions; `texts` are stored texts of its sources by hash.

    A missing text is replaced by its quoted passages. Raises ValueError without an answer, and as `render` does.
    """
    merged = merge(parts)
    stored = {
        source.text_hash: texts.get(source.text_hash) or text_with_passages(merged.report, source.id)
        for source in merged.report.sources
        if source.text_hash
    }
    material = material_of(merged.report, stored, [])
    given: list[ClaimVerdict] = []
    if known := _given_verdicts(parts, merged, texts):
        for claim in gather_inputs(material).claims:
            verdict = known.get(claim_key(claim.text, list(claim.evidence_ids)))
            if verdict is not None:
                given.append(verdict.with_fields(claim_id=claim.id))
    return render(material.with_fields(verdicts=given))


def _given_verdicts(
    parts: Sequence[ThreadPart], merged: "MergedReport", texts: Mapping[str, str]
) -> dict[str, ClaimVerdict]:
    """Return the verdicts of models, by the words of their claim and its passages in the merged report."""
    given: dict[str, ClaimVerdict] = {}
    for number, part in enumerate(parts):
        if part.report is None or not part.report.report.draft:
            continue
        report = with_messages(part.report)
        by_source = {source.id: texts.get(source.text_hash or "") for source in report.sources}
        verdicts = {verdict.claim_id: verdict for verdict in unrepeatable_verdicts(report, by_source)}
        if not verdicts:
            continue
        by_hash = {
            source.text_hash: by_source[source.id] or text_with_passages(report, source.id)
            for source in report.sources
            if source.text_hash
        }
        for claim in gather_inputs(material_of(report, by_hash, [])).claims:
            if claim.id in verdicts:
                passages = [merged.passages[number, key] for key in claim.evidence_ids]
                given.setdefault(claim_key(claim.text, passages), verdicts[claim.id])
    return given


# --- merging ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MergedReport:
    """The fields that several reports have in common, with one draft, and where each passage went."""

    report: Report
    passages: Mapping[tuple[int, str], str]
    """Id of each passage in the merged report, by the number of its part, from 0, and its id there."""


@dataclass
class _Sources:
    """The sources of a thread, each text once."""

    merged: dict[str, ReportSource] = field(default_factory=dict)
    _by_text: dict[str, str] = field(default_factory=dict)

    def add(self, source: ReportSource) -> str:
        """Add a source; return its id here, which is that of an equal text, or new for another text of its address."""
        known = self._by_text.get(source.text_hash or "")
        if known is not None:
            earlier = self.merged[known]
            others = [url for url in (source.url, *source.aliases) if url != earlier.url]
            self.merged[known] = earlier.with_fields(
                aliases=list(dict.fromkeys([*earlier.aliases, *others])),
                analyzed=earlier.analyzed or source.analyzed,
            )
            return known
        name = source.id
        if name in self.merged:
            name = source_version_id(source.id, source.text_hash or "")
        self.merged[name] = source.with_fields(id=name, notes=[], query_ids=[])
        if source.text_hash:
            self._by_text[source.text_hash] = name
        return name


def merge(parts: Sequence[ThreadPart]) -> MergedReport:
    """Merge the answers of a thread, in order: one draft, each source once. Raises ValueError without an answer."""
    if not any(part.report is not None and part.report.report.draft for part in parts):
        raise ValueError("no question of the thread has a report")
    sources = _Sources()
    evidence: dict[str, ReportEvidence] = {}
    passages: dict[tuple[int, str], str] = {}
    answered: list[Report] = []
    title = one_line(parts[0].answer.query)
    blocks: list[Block] = [heading(1, title)]
    for number, part in enumerate(parts):
        report = part.report
        name = f"{number + 1} · {one_line(part.answer.query)}"
        if report is None or not report.report.draft:
            say = ReportMessages.of({}, None, "en" if not answered else answered[0].language)
            blocks.append(heading(2, f"{name} – {say.name('outcome', part.answer.status)}"))
            continue
        answered.append(report)
        places = {source.id: sources.add(source) for source in report.sources if source.status == SourceStatus.FULL}
        for item in report.evidence:
            place = places.get(item.source_id)
            if place is None:
                continue
            key = passages[number, item.id] = evidence_id(place, item.start, item.end)
            evidence.setdefault(key, item.with_fields(id=key, source_id=place))
        blocks.append(heading(2, name))
        blocks += _body(report, {item.id: passages.get((number, item.id)) for item in report.evidence})
    cited = {key for sentence in sentences(tuple(blocks)) for mark in sentence.marks for key in mark.evidence_ids}
    request = _request(parts, answered)
    report = Report(
        **_figures(answered, parts),
        research_id=request["research_id"],
        query=request["query"],
        strategy=THREAD,
        language=answered[0].language,
        effective_request=request,
        report=ReportText(markdown=title, draft=write(tuple(blocks)).text),
        sources=list(sources.merged.values()),
        evidence=[item for key, item in evidence.items() if key in cited],
        answers=[part.answer for part in parts],
    )
    return MergedReport(report, passages)


def _body(report: Report, passages: Mapping[str, str | None]) -> Iterable[Block]:
    """Return an answer below its title, one level lower, with the ids that its passages have in the thread."""
    quotes = (item.quote for item in report.evidence)
    registry = KnownAddresses.of(addresses_of(report.sources), report.query, quotes)
    marks = DraftMarks({key.lower(): [name] for key, name in passages.items() if name is not None})
    blocks = parse(report.report.draft, marks, registry.filter([]))
    for number, block in enumerate(blocks):
        if block.kind != "heading":
            yield block
        elif number or block.level > 1:
            yield replace(block, level=min(max(block.level, 2) + 1, MAX_LEVEL))


def _request(parts: Sequence[ThreadPart], answered: Sequence[Report]) -> dict[str, Any]:
    """Return the request of a thread: all its questions, and of the newest answer what decides how a report looks."""
    query = ""
    for text in (part.answer.query for part in parts):
        if len(query) + len(text) < MAX_QUERY_CHARACTERS:
            query = f"{query}\n{text}".strip()
    base = dict(answered[-1].effective_request)
    verify = max((str(report.effective_request["verify"]) for report in answered), key=VERIFY_ORDER.index)
    limits = dict(base.get("limits", {})) | {"max_tokens": None}
    own = {"research_id": f"{THREAD}-{parts[0].answer.research_id}", "query": query, "strategy": THREAD}
    nothing: dict[str, Any] = {"follow_up": None, "estimate": None, "requested": {}, "context": [], "choices": {}}
    return base | own | nothing | {"limits": limits, "verify": verify}


def _figures(answered: Sequence[Report], parts: Sequence[ThreadPart]) -> dict[str, Any]:
    """Return the fields of a thread that add up, or follow from all its answers."""
    latest = answered[-1]
    complete = len(answered) == len(parts) and all(
        report.outcome_before_check == Outcome.COMPLETED for report in answered
    )
    if complete:
        outcome = Outcome.COMPLETED
        completeness = Completeness.FULL
    else:
        outcome = Outcome.PARTIAL
        completeness = Completeness.PARTIAL
    stops = [report.stop_reason for report in answered if report.outcome_before_check != Outcome.COMPLETED]
    with_texts = list(map(with_messages, answered))
    engines: dict[str, str] = {}
    prompts: dict[str, str] = {}
    for report in answered:
        prompts |= report.prompt_versions
        for role, kind in report.engine_by_role.items():
            if engines.get(role) != EngineKind.MODEL.value:
                engines[role] = kind
    open_gaps = (GapStatus.OPEN, GapStatus.UNADDRESSABLE)
    gaps = [gap for report in with_texts for gap in report.gaps if gap.status in open_gaps]
    return {
        "product_version": latest.product_version,
        "engine_by_role": engines,
        "models": list(dict.fromkeys(name for report in answered for name in report.models)),
        "prompt_versions": prompts,
        "outcome": outcome.value,
        "outcome_before_check": outcome.value,
        "stop_reason": stops[0] if stops else latest.stop_reason,
        "completeness": completeness.value,
        "iterations": sum(report.iterations for report in answered),
        "started_at": parts[0].answer.started_at,
        "ended_at": max((part.answer.ended_at for part in parts), default=""),
        "gaps": [gap.with_fields(origin="analysis", resolved_by=[], unread=[]) for gap in gaps],
        "usage": _usage(answered),
        "verification": _verification(answered),
        "degraded": _each_once(report.degraded for report in with_texts),
        "failed_branches": _each_once(report.failed_branches for report in with_texts),
        "limitations": _each_once(report.limitations for report in with_texts),
    }


def _each_once(lists: Iterable[Sequence[str]]) -> list[str]:
    """Return the texts of all lists in order, without repetitions in the same words."""
    return list({str(text): text for texts in lists for text in texts}.values())


def _usage(answered: Sequence[Report]) -> dict[str, Any]:
    """Return what all answers used, with the breakdowns that each of them has."""
    totals = [Usage.model_validate(report.usage) for report in answered]
    usage: dict[str, Any] = reduce(Usage.plus, totals, Usage()).model_dump(mode="json")
    for table in ("by_role", "by_phase"):
        if any(table not in report.usage for report in answered):
            continue
        added: dict[str, Usage] = {}
        for report in answered:
            for name, part in report.usage[table].items():
                added[name] = added.get(name, Usage()).plus(Usage.model_validate(part))
        usage[table] = {name: part.model_dump(mode="json") for name, part in added.items()}
    return usage


def _verification(answered: Sequence[Report]) -> ReportVerification:
    """Return the corrections of all answers, and how many claims none of the checks reached."""
    counts: dict[str, int] = {}
    for report in answered:
        for action, count in report.verification.correction_counts.items():
            counts[action] = counts.get(action, 0) + count
    summary = VerificationSummary(
        not_reached=sum(report.verification.not_reached for report in answered), correction_counts=counts
    )
    corrections = [item for report in map(with_messages, answered) for item in report.verification.corrections]
    return ReportVerification(**summary.model_dump(), corrections=corrections)
