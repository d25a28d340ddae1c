"""Expected sizes of calls bound what is really sent, and agree with the parts that they are about."""

import json
from collections.abc import Callable

import pytest

from activities.roles.prompt_rendering import prompt_of, render_role
from contracts import call_sizes, roles
from contracts.addresses import digest
from contracts.call_sizes import (
    expected_call,
    worst_call,
    worst_output,
    worst_report,
)
from contracts.evidence import DocumentRef, Evidence, Finding, Gap
from contracts.outcome import GateIssue, Guidance
from contracts.plan import PlanNode
from contracts.request import Turn
from contracts.resolved import CorpusSnapshot
from contracts.strategies import declared_roles
from contracts.vocabulary import Confidence, EngineKind, Phase

SCRIPTS = {
    "signs": "<\"&>'",
    "english": "The engine freezes old rows so that transaction numbers may wrap around safely. ",
    "chinese": "数据库会冻结旧行，这样事务编号可以安全地回绕。",
    "greek": "Η μηχανή παγώνει τις παλιές γραμμές. ",
}
CHARACTERS_PER_TOKEN = {"signs": 3.0, "english": 4.0, "chinese": 1.2, "greek": 2.0}
"""A careful figure for usual tokenizers."""


def text_of(script: str, characters: int) -> str:
    return (SCRIPTS[script] * (characters // len(SCRIPTS[script]) + 1))[:characters]


def common(script: str, written: Callable[[int, int], str], operation: str) -> dict[str, object]:
    advice = [Guidance(origin=origin, text=written(300, 2_000)) for origin in ("model", "person", "hook") * 2]
    return {
        "research_id": "r-1",
        "operation": operation,
        "engine": EngineKind.MODEL,
        "date": "2026-11-22",
        "query": written(200, 10_000),
        "guidance": advice,
        "repair": text_of(script, 300),
    }


def requests(script: str, *, largest: bool) -> list[tuple[roles.RoleSpec, roles.RoleInput, dict[str, str]]]:
    """An input of each role, usual or the largest that its prompt shows in full, with the texts that it is made from."""

    def written(usual: int, most: int) -> str:
        return text_of(script, most if largest else usual)

    text = text_of(script, 30_000)
    stored = DocumentRef(hash=digest(text))
    sources = [
        roles.SourceExtract(
            id=f"src-{number:032d}",
            url=f"https://example.org/{number}/" + "section-" * 40,
            title=written(120, 400),
            snippet=written(200, 400),
            text=stored,
        )
        for number in range(25)
    ]
    passages = [
        Evidence(id=f"ev-{number:032d}", source_id=sources[0].id, start=0, end=1_200, quote_hash=stored.hash)
        for number in range(30)
    ]
    findings = [
        Finding(
            id=f"f-{number:032d}",
            statement=written(300, 600),
            confidence=Confidence.HIGH,
            evidence_ids=[passage.id for passage in passages[number : number + (3 if largest else 1)]],
            source_ids=[sources[0].id],
        )
        for number in range(28)
    ]
    queries = [PlanNode(id=f"sq-{number:032d}", text=written(150, 600)) for number in range(15)]
    gaps = [
        Gap(id=f"gap-{number:032d}", description=written(250, 400), suggested_queries=[written(0, 300)] * 3)
        for number in range(10)
    ]
    brief = written(600, 2_000)
    turns = [Turn(question=written(200, 2_000), answer=text_of(script, 4_000))] * 5
    given = {**common(script, written, "call/1"), "issues": [GateIssue(code="few", message=written(0, 600))] * 5}
    made = [
        (
            roles.PLANNER,
            roles.PlanInput(
                **given,
                context=turns,
                system_prompt=written(0, 20_000),
                previous=[query.text for query in queries],
                corpus=CorpusSnapshot(name="manuals", title=written(0, 200)),
            ),
        ),
        (roles.ANALYZER, roles.AnalyzeInput(**given, sub_query=queries[0], sources=sources, brief=brief)),
        (
            roles.SYNTHESIZER,
            roles.WriteInput(
                **given,
                brief=brief,
                sub_queries=queries,
                findings=findings,
                evidence=passages,
                sources=sources,
                gaps=gaps,
                improvements=[written(0, 600)] * 10,
            ),
        ),
        (
            roles.REFINER,
            roles.RefineInput(
                **given, gaps=gaps, remaining_iterations=2, draft=stored, asked=[query.text for query in queries]
            ),
        ),
        (
            roles.SUPERVISOR,
            roles.ReflectInput(
                **given,
                phase=Phase.ANALYSIS,
                prompt=written(1_000, 4_000),
                gate_valid=True,
                gate_score=7.0,
                open_gaps=[gap.description for gap in gaps],
            ),
        ),
    ]
    return [(role, request, {stored.hash: text}) for role, request in made]


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_prompt_is_larger_than_its_bound(script: str) -> None:
    """The whole prompt of each role, with the schema and the repair, fits into what the ledger reserves for it."""
    for role, request, documents in requests(script, largest=True):
        rendered = render_role(role, request, documents)
        schema = json.dumps(role.answer.model_json_schema())
        sent = len(prompt_of(role).system + rendered.prompt) / CHARACTERS_PER_TOKEN[script] + len(schema) / 3 + 400
        assert sent <= worst_call(role, request).input_tokens, role.name


def test_the_reserve_for_a_report_covers_the_report() -> None:
    """The reserve before there are findings is enough for a report of thirty findings."""
    role, request, _ = next(item for item in requests("english", largest=False) if item[0] is roles.SYNTHESIZER)
    assert worst_call(role, request).tokens <= worst_report(30).tokens


def test_every_role_has_figures_and_the_bound_is_above_what_is_expected() -> None:
    """No role is left out of the estimate, and none is expected to need more than the ledger reserves."""
    assert len(declared_roles()) == 19
    for role in declared_roles():
        assert expected_call(role).output_tokens <= role.output_tokens < worst_output(role)


def test_the_room_for_reasoning_is_what_the_run_says() -> None:
    """An operator's own room goes into the bound, so that a model that thinks for long exceeds no limit."""
    assert worst_output(roles.PLANNER) == roles.PLANNER.output_tokens + call_sizes.REASONING_TOKENS
    assert worst_output(roles.PLANNER, 0) == roles.PLANNER.output_tokens
    assert worst_report(5, 50_000).output_tokens == roles.SYNTHESIZER.output_tokens + 50_000
    thinking, silent = expected_call(roles.PLANNER, reasoning_tokens=5_000), expected_call(roles.PLANNER)
    assert thinking.output_tokens == silent.output_tokens + 5_000


def test_an_analysis_grows_with_its_sources_up_to_twenty() -> None:
    """Sources times characters, and no more sources than one prompt holds (S0-060)."""
    few, many, most = (
        expected_call(roles.ANALYZER, sources=number, source_characters=3_000).input_tokens for number in (5, 20, 90)
    )
    assert many - few >= 15 * 1_000
    assert most == many
