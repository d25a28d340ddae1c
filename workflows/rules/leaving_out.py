"""What exclusions do to a run's state: sub-queries are skipped, gaps and findings about them go. Pure."""

from collections.abc import Iterable
from typing import Final

from contracts.evidence import Finding, Gap, SearchHit, Source
from contracts.exclusions import find_about, find_mainly_about, is_kept_out
from contracts.outcome import Exclusion, Guidance
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.vocabulary import GapStatus, NodeStatus

LEFT_OUT: Final = "left out, as was asked"


def take_exclusions(state: ResearchState, said: Guidance) -> None:
    """Remember what guidance leaves out and what it keeps to; each stands once."""
    known = {one.subject.casefold() for one in state.exclusions}
    for subject in said.left_out:
        if subject.casefold() not in known:
            known.add(subject.casefold())
            state.exclusions = [*state.exclusions, Exclusion(subject=subject, origin=said.origin)]
    state.only_from = list(dict.fromkeys([*state.only_from, *said.only_from]))


def asked_words(state: ResearchState) -> str:
    """What the question is about, in its own words."""
    return " ".join(state.resolved.question_words) if state.resolved else ""


def why_left_out(state: ResearchState, text: str, pending: Iterable[Guidance] = ()) -> str | None:
    """Why a query or a gap is left out; None for one that is not. `pending` is guidance that was not taken up yet."""
    subjects = [*(one.subject for one in state.exclusions), *(name for said in pending for name in said.left_out)]
    subject = find_about(text, subjects, asked_words(state)) if subjects else None
    return f"{LEFT_OUT}: {subject}" if subject else None


def keeps_out(state: ResearchState, source: Source | SearchHit, pending: Iterable[Guidance] = ()) -> bool:
    """Whether a source is about what is left out, or not from where sources are to be from."""
    waiting = list(pending)
    subjects = [*(one.subject for one in state.exclusions), *(name for said in waiting for name in said.left_out)]
    only_from = [*state.only_from, *(place for said in waiting for place in said.only_from)]
    return is_kept_out(source.title, source.url, subjects, only_from) if subjects or only_from else False


def skip_left_out(state: ResearchState, nodes: Iterable[PlanNode]) -> list[PlanNode]:
    """Nodes with those skipped that are left out, and their reason."""
    return [
        node.model_copy(update={"status": NodeStatus.SKIPPED, "status_reason": why, "error": None})
        if (why := why_left_out(state, node.text))
        else node
        for node in nodes
    ]


def _without_sources(state: ResearchState, finding: Finding, kept_out: set[str]) -> Finding:
    """A finding as the other sources bear it out; it stands for itself then, since its entry tells of all of them."""
    if kept_out.isdisjoint(finding.source_ids):
        return finding
    left = [key for key in finding.evidence_ids if state.evidence[key].source_id not in kept_out]
    sources = [name for name in finding.source_ids if name not in kept_out]
    return finding.model_copy(update={"evidence_ids": left, "source_ids": sources, "entry": None})


def drop_left_out(state: ResearchState) -> list[Gap]:
    """Take findings of no further use out of the state and close open gaps that nobody wants; those gaps."""
    subjects = [one.subject for one in state.exclusions]
    kept_out = {source.id for source in state.sources.values() if keeps_out(state, source)}
    state.findings = [
        _without_sources(state, finding, kept_out)
        for finding in state.findings
        if not find_mainly_about(finding.statement, subjects) and not kept_out.issuperset(finding.source_ids)
    ]
    gone = [
        gap.model_copy(update={"status": GapStatus.SUPERSEDED})
        for gap in state.gaps
        if gap.status is GapStatus.OPEN and why_left_out(state, gap.description)
    ]
    state.gaps = [next((other for other in gone if other.id == gap.id), gap) for gap in state.gaps]
    return gone
