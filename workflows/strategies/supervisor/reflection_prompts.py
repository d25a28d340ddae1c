"""Think-pause prompts: what the supervisor is told and asked after each phase."""

from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import GapStatus, Phase


def reflection_prompt(phase: Phase, state: ResearchState) -> str:
    """The figures of the phase, then the questions to think about."""
    write = {
        Phase.PLANNING: _planning,
        Phase.GATHERING: _gathering,
        Phase.ANALYSIS: _analysis,
        Phase.SYNTHESIS: _synthesis,
        Phase.REFINEMENT: _refinement,
    }[phase]
    return write(state)


def _planning(state: ResearchState) -> str:
    brief = "yes" if state.plan.brief.strip() else "no"
    return (
        f"The plan is made: {len(state.plan.sub_queries)} sub-queries; research brief: {brief}. "
        "Do the sub-queries cover the whole question, and what aspect is missing?"
    )


def _gathering(state: ResearchState) -> str:
    sources = state.readable_sources()
    publishers = {source.publisher or source.provider for source in sources}
    return (
        f"Searching is done: {plural(len(sources), 'source')} read, "
        f"{len(state.high_quality_sources())} of high quality, "
        f"from {plural(len(publishers), 'publisher')}. Are they diverse enough, and how is their quality spread?"
    )


def _analysis(state: ResearchState) -> str:
    return (
        f"The sources are analyzed: {plural(len(state.findings), 'finding')}, "
        f"{plural(len(state.unaddressed_gaps()), 'gap')}. "
        "Is each finding well supported, and is any gap critical?"
    )


def _synthesis(state: ResearchState) -> str:
    length = state.draft.characters if state.draft else 0
    last = state.resolved.limits.max_iterations if state.resolved else 1
    return (
        f"The report is written: {length} characters, iteration {state.iteration} of {last}. "
        "Is it good enough, or does it need another round?"
    )


def _refinement(state: ResearchState) -> str:
    addressed = sum(gap.status is GapStatus.ADDRESSED for gap in state.gaps)
    return f"The gaps are reviewed: {addressed} of {len(state.gaps)} addressed. Go on iterating, or finish?"
