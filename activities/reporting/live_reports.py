"""The activities that change live reports: they store each text that a report has on its way to another one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.reporting.drafts import parse_draft, split_sections, store_draft
from activities.reporting.updates import (
    LiveText,
    UpdateRefused,
    apply_update,
    change_outline,
    cited_by,
    describe_live,
    empty_report,
    fit_to_outline,
    measure_reports,
    read_live,
    shown_section,
    steps_between,
    withdraw,
)
from contracts import activities
from contracts.addresses import digest
from contracts.evidence import DocumentRef, ReportDraft
from contracts.report_updates import (
    AppliedUpdate,
    AppliedUpdates,
    DraftStep,
    DraftSteps,
    LiveReportRequest,
    SplitRequest,
    UpdatesRequest,
    WithdrawRequest,
)
from contracts.vocabulary import ReportKind
from providers.interfaces import ContentStore


@dataclass(frozen=True, eq=False)
class LiveReportActivities:
    """Changes live reports; their texts are in the content store."""

    content: ContentStore

    @activity.defn(name=activities.APPLY_REPORT_UPDATES.name)
    async def apply_report_updates(self, request: UpdatesRequest) -> AppliedUpdates:
        """Apply updates in order; a refused one has a reason and leaves the text unchanged."""
        async with attempt(RECORDS):
            base, report = await self._load_base(request)
            outcomes: list[AppliedUpdate] = []
            draft = base
            newest = 0
            for update in request.updates:
                try:
                    updated = await asyncio.to_thread(apply_update, report, update, request.most_characters)
                except UpdateRefused as refusal:
                    outcomes.append(AppliedUpdate(refusal=str(refusal)))
                    continue
                if draft.empty or update.kind is ReportKind.REPORT:  # a model's part makes it a model's report
                    draft = draft.with_fields(kind=update.kind)
                (step,) = await self._store_steps(draft, report, [updated])
                report = updated
                draft = step.draft
                newest = len(outcomes)
                outcomes.append(AppliedUpdate(step=step, section=shown_section(report, update.heading)))
            followed = [
                outcome.with_fields(step=_without_figures(outcome.step)) if outcome.step and index < newest else outcome
                for index, outcome in enumerate(outcomes)
            ]
            return AppliedUpdates(base=None if request.base else base, outcomes=followed)

    @activity.defn(name=activities.SPLIT_DRAFT.name)
    async def split_draft(self, request: SplitRequest) -> DraftSteps:
        """Store each step to another text; figures that do not follow from a text are those of the last."""
        async with attempt(RECORDS):
            target = await self.content.get_text(request.after.document)
            names = (name for name, _ in split_sections(parse_draft(target)) if name)
            outline = request.outline or list(dict.fromkeys(names)) or [request.title]
            base, before = await self._load_base(request.with_fields(outline=outline))
            after = await asyncio.to_thread(fit_to_outline, target, before)
            reports, unreached = await asyncio.to_thread(steps_between, before, after, request.most_characters)
            steps = await self._store_steps(request.after, before, reports)
            if not request.base:
                first = DraftStep(draft=base)
                steps.insert(0, _without_figures(first) if steps else first)
            return DraftSteps(steps=steps, unreached=unreached)

    @activity.defn(name=activities.CHANGE_OUTLINE.name)
    async def change_outline(self, request: LiveReportRequest) -> DraftSteps:
        """Store each step to a text with the headings of the request."""
        async with attempt(RECORDS):
            base, before = await self._load_base(request)
            reports = await asyncio.to_thread(change_outline, before, request.outline, request.most_characters)
            return DraftSteps(steps=await self._store_steps(base, before, reports))

    @activity.defn(name=activities.WITHDRAW_EVIDENCE.name)
    async def withdraw_evidence(self, request: WithdrawRequest) -> DraftSteps:
        """Store each step to a text that cites none of the passages."""
        async with attempt(RECORDS):
            base, before = await self._load_base(request)
            reports = await asyncio.to_thread(withdraw, before, request.evidence_ids, request.most_characters)
            return DraftSteps(steps=await self._store_steps(base, before, reports))

    async def _load_base(self, request: LiveReportRequest) -> tuple[ReportDraft, LiveText]:
        """Return the text to be changed; without one, the headings of the outline."""
        if request.base is not None:
            return request.base, read_live(await self.content.get_text(request.base.document))
        report = empty_report(request.title, request.outline)
        empty = ReportDraft(document=DocumentRef(hash=digest("")), kind=ReportKind.PASSAGES, empty=True)
        (step,) = await self._store_steps(empty, report, [report])
        return step.draft, report

    async def _store_steps(self, base: ReportDraft, before: LiveText, reports: Sequence[LiveText]) -> list[DraftStep]:
        """Store consecutive texts, with the figures of `base` that do not follow from a text.

        Only the last one has the longer figures.
        """
        steps = list[DraftStep]()
        for report in reports:
            draft, step = await asyncio.to_thread(_describe_step, base, before, report)
            steps.append(step.with_fields(draft=await store_draft(self.content, draft, report.text)))
            before = report
        return [*map(_without_figures, steps[:-1]), *steps[-1:]]


def _describe_step(base: ReportDraft, before: LiveText, after: LiveText) -> tuple[ReportDraft, DraftStep]:
    """Return the draft of a text that is not stored yet, and its differences from the text before it."""
    draft = describe_live(base, after)
    inserted, removed = measure_reports(before, after)
    known = cited_by(before)
    cited = [key for key in draft.evidence_ids if key not in known]
    withdrawn = [key for key in known if key not in draft.evidence_ids]
    draft = draft.with_fields(evidence_ids=[])
    return draft, DraftStep(draft=draft, inserted=inserted, removed=removed, cited=cited, withdrawn=withdrawn)


def _without_figures(step: DraftStep) -> DraftStep:
    """Return an intermediate step, without the longer figures of its text."""
    return step.with_fields(draft=step.draft.without_longer_figures())
