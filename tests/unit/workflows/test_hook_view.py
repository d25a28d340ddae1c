"""What a hook is shown."""

import json

from contracts.evidence import Finding, Gap
from contracts.outcome import AgentDecision, GateIssue, GateResult, Guidance
from contracts.vocabulary import GapStatus
from tests.fakes import states
from workflows.phases.hook_view import LONGEST, MOST_FINDINGS, MOST_SOURCES, hook_view

MOST_BYTES = 48_000


def test_a_small_run_is_shown_whole() -> None:
    """Plan, sources, findings, gaps, gates and decisions, under the names that the page on hooks promises."""
    query = states.sub_query("how rows are frozen")
    source = states.source("corpus:m/a")
    state = states.state(
        phase="analysis",
        plan=states.plan(query),
        sources={source.id: source},
        findings=[Finding(id="f-1", statement="Rows are frozen.", source_ids=[source.id])],
        gaps=[Gap(id="gap-1", description="No figures.")],
        gates=[GateResult(phase="analysis", valid=True, quality_score=7)],
        decisions=[AgentDecision(seq=1, agent="supervisor", action="proceed", rationale="enough")],
    )
    view = hook_view(state)
    assert (view["phase"], view["iteration"], view["resolved"]["query"]) == ("analysis", 1, state.resolved.query)
    assert [one["text"] for one in view["plan"]["sub_queries"]] == ["how rows are frozen"]
    assert view["sources"][source.id]["quality"] == "high"
    assert view["findings"][0]["statement"] == "Rows are frozen."
    assert view["gaps"][0]["status"] == "open"
    assert view["gates"][0]["quality_score"] == 7
    assert view["decisions"][0]["rationale"] == "enough"
    assert view["counts"]["sources"] == 1


def test_a_large_run_is_shown_in_short() -> None:
    """With a hundred sources, long words everywhere: the newest of each, open gaps first, and the figures of all."""
    long = "words " * 400
    sources = {one.id: one for one in (states.source(f"https://e.org/{n}/{'a' * 900}", title=long) for n in range(100))}
    gaps = [Gap(id=f"gap-{n}", description=long[:400], status=GapStatus.ADDRESSED) for n in range(30)]
    gates = [
        GateResult(phase="analysis", valid=False, quality_score=1, issues=[GateIssue(code="c", message=long)] * 2)
    ] * 30
    decisions = [
        AgentDecision(seq=n, agent="a", action="b", rationale=long, inputs={"x": long}, outputs={"y": long})
        for n in range(500)
    ]
    state = states.state(
        plan=states.plan(*(states.sub_query(f"{n} {long}") for n in range(40)), brief=long),
        sources=sources,
        findings=[Finding(id=f"f-{n}", statement=long[:600], source_ids=list(sources)) for n in range(75)],
        gaps=[*gaps, Gap(id="gap-open", description="open")],
        gates=gates,
        decisions=decisions,
        guidance=[Guidance(origin="person", text=long[:2_000])] * 20,
    )
    view = hook_view(state)
    assert len(json.dumps(view)) < MOST_BYTES
    assert list(view["sources"]) == list(sources)[-MOST_SOURCES:]
    assert [one["id"] for one in view["findings"]] == [f"f-{n}" for n in range(75 - MOST_FINDINGS, 75)]
    assert view["gaps"][0]["id"] == "gap-open"
    assert (view["counts"]["sources"], view["counts"]["findings"]) == (100, 75)


def test_only_what_is_too_long_is_cut() -> None:
    """A text of just the length is shown whole, one of a letter more loses its end, and says so."""
    whole, longer = "w" * LONGEST, "w" * (LONGEST + 1)
    shown = [
        hook_view(states.state(gaps=[Gap(id="gap-1", description=text)]))["gaps"][0]["description"]
        for text in (whole, longer)
    ]
    assert shown == [whole, "w" * (LONGEST - 1) + "…"]
