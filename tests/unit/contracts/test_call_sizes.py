"""Expected sizes of calls bound what is really sent, and the shares of a run's tokens."""

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.roles.prompt_files import prompt_of
from activities.roles.prompt_rendering import render_role
from contracts import answer_sizes, roles, supervisor_roles
from contracts.addresses import digest
from contracts.call_sizes import (
    CallSizes,
    asked_output,
    claims_per_call,
    expected_call,
    likely_call,
    likely_output,
    likely_updates,
    worst_call,
    worst_output,
)
from contracts.checking_roles import CHECKER, CheckInput, CorrectInput
from contracts.evidence import DocumentRef, Evidence, Gap, SectionRef
from contracts.living_roles import LivingInput
from contracts.outcome import GateIssue, Guidance, Usage
from contracts.plan import PlanNode
from contracts.report_updates import REPORTER, UpdateInput
from contracts.request import Turn
from contracts.resolved import CorpusSnapshot
from contracts.strategies import declared_roles
from contracts.tokens import TokenShare, share_tokens, tokens_left
from contracts.vocabulary import EngineKind, Phase
from tests.fakes import states

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


def requests(script: str) -> list[tuple[roles.RoleSpec, roles.RoleInput]]:
    """The largest input of each role that its prompt shows in full; its stored text is of this script, too."""
    text = partial(text_of, script)
    stored = DocumentRef(hash=digest(text(30_000)))
    address = "https://example.org/" + "section-" * 40
    sources = [
        roles.SourceExtract(id=f"src-{n:032d}", url=f"{address}{n}", title=text(400), snippet=text(400), text=stored)
        for n in range(25)
    ]
    passages = [
        Evidence(id=f"ev-{n:032d}", source_id=sources[0].id, start=0, end=1_200, quote_hash=stored.hash)
        for n in range(30)
    ]
    cited = [[passage.id for passage in passages[n : n + 3]] for n in range(28)]
    findings = [
        states.finding(text(600), id=f"f-{n:032d}", evidence_ids=evidence, source_ids=[sources[0].id])
        for n, evidence in enumerate(cited)
    ]
    queries = [PlanNode(id=f"sq-{n:032d}", text=text(600)) for n in range(15)]
    asked = [query.text for query in queries]
    gaps = [Gap(id=f"gap-{n:032d}", description=text(400), suggested_queries=[text(300)] * 3) for n in range(10)]
    common = {
        "research_id": "r-1",
        "operation": "call/1",
        "engine": EngineKind.MODEL,
        "date": "2026-11-22",
        "query": text(10_000),
        "guidance": [Guidance(origin=origin, text=text(2_000)) for origin in ("model", "person", "hook") * 2],
        "repair": text(300),
        "issues": [GateIssue(code="few", message=text(600))] * 5,
    }
    planned = {
        "context": [Turn(question=text(2_000), answer=text(4_000))] * 5,
        "system_prompt": text(20_000),
        "corpus": CorpusSnapshot(name="manuals", title=text(200)),
    }
    written = {"findings": findings, "evidence": passages, "sources": sources, "gaps": gaps}
    notes = {name: written[name] for name in ("findings", "evidence", "sources")}
    reflected = {"prompt": text(4_000), "gate_valid": True, "gate_score": 7.0}
    return [
        (roles.PLANNER, roles.PlanInput(**common, **planned, previous=asked)),
        (roles.ANALYZER, roles.AnalyzeInput(**common, sub_query=queries[0], sources=sources, brief=text(2_000))),
        (
            roles.SYNTHESIZER,
            roles.WriteInput(
                **common, **written, brief=text(2_000), sub_queries=queries, improvements=[text(600)] * 10
            ),
        ),
        (REPORTER, UpdateInput(**common, **notes, heading=text(120), outline=[text(120)] * 12, purpose=text(400))),
        (
            supervisor_roles.REFINER,
            supervisor_roles.RefineInput(**common, gaps=gaps, remaining_iterations=2, draft=stored, asked=asked),
        ),
        (
            supervisor_roles.SUPERVISOR,
            supervisor_roles.ReflectInput(**common, **reflected, phase=Phase.ANALYSIS, gaps=gaps),
        ),
    ]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("script", SCRIPTS)
def test_no_prompt_is_larger_than_its_bound(script: str) -> None:
    """The whole prompt of each role, with the schema and the repair, fits into what the ledger reserves for it."""
    stored = text_of(script, 30_000)
    for role, request in requests(script):
        rendered = render_role(role, request, {digest(stored): stored})
        schema = json.dumps(role.answer.model_json_schema())
        sent = len(prompt_of(role).system + rendered.prompt) / CHARACTERS_PER_TOKEN[script] + len(schema) / 3 + 400
        assert sent <= worst_call(role, request).input_tokens, role.name


def test_every_role_has_figures_and_the_bound_is_above_what_is_expected() -> None:
    """No role is expected to need more than is reserved for it, and an operator's own room for thoughts goes into both."""
    for role in declared_roles():
        assert expected_call(role).output_tokens <= role.output_tokens < worst_output(role)
        assert worst_output(role, 50_000) == worst_output(role, 0) + 50_000
        assert expected_call(role, reasoning_tokens=5_000).output_tokens == expected_call(role).output_tokens + 5_000


def test_an_analysis_grows_with_what_it_is_shown() -> None:
    """Its texts, and the frames of no more sources than one prompt holds (S0-060)."""
    few, many, most = (
        expected_call(roles.ANALYZER, sources=number, shown_tokens=size).input_tokens
        for number, size in ((5, 1_000), (20, 9_000), (90, 9_000))
    )
    assert many - few >= 8_000
    assert most == many


# --- shares ----------------------------------------------------------------------------------------------------------
MOST = 60_000


@given(st.lists(st.tuples(st.sampled_from(TokenShare), st.integers(0, 40_000), st.booleans()), max_size=30))
def test_no_share_is_passed_and_the_report_keeps_its_own(calls: list[tuple[TokenShare, int, bool]]) -> None:
    """Whatever is called in whatever order: later shares get what is left, earlier ones never theirs."""
    taken = dict.fromkeys(TokenShare, 0)
    for share, tokens, written in calls:
        if tokens <= tokens_left(share, MOST, taken, written=written):
            taken[share] += tokens
    order, bound, used = list(TokenShare), 0, 0
    for share in order:
        bound, used = bound + share_tokens(share, MOST), used + taken[share]
        assert used <= bound
    own = share_tokens(TokenShare.SYNTHESIS, MOST)
    assert taken[TokenShare.SYNTHESIS] or tokens_left(TokenShare.SYNTHESIS, MOST, taken, written=False) >= own


def test_what_a_share_leaves_goes_to_those_after_it() -> None:
    """Analysis may use what planning left; reflections before the first report have their own share alone."""
    nothing: dict[TokenShare, int] = {}
    assert tokens_left(TokenShare.ANALYSIS, MOST, {TokenShare.PLANNING: 2_000}, written=False) == 28_000
    assert tokens_left(TokenShare.PLANNING, MOST, {TokenShare.ANALYSIS: 28_000}, written=False) == 2_000
    assert tokens_left(TokenShare.REFINEMENT, MOST, nothing, written=False) == 9_000
    assert tokens_left(TokenShare.REFINEMENT, MOST, nothing, written=True) == 39_000
    assert tokens_left(TokenShare.SYNTHESIS, MOST, {TokenShare.REFINEMENT: 9_000}, written=False) == 51_000


def test_an_analysis_asks_for_no_more_findings_than_its_answer_has_room_for() -> None:
    """A model cannot know how many tokens are left for its answer: one cut short is paid twice."""
    text = DocumentRef(hash="sha256:" + "1" * 64, size=100_000)
    sources = [roles.SourceExtract(id=f"src-{number}", text=text) for number in range(4)]
    request = roles.AnalyzeInput(sub_query=PlanNode(id="sq-1", text="what"), sources=sources)
    asked = [
        request.model_copy(update={"reserved_output_tokens": tokens}).asked_findings
        for tokens in (None, 8_000, 2_000, 100)
    ]
    assert asked == [request.finding_limit, request.finding_limit, 5, 3]
    assert request.asked_output_tokens >= 400 * request.finding_limit
    (first, *_) = sources
    page = request.model_copy(update={"sources": [first]})
    assert 300 * page.finding_limit < page.asked_output_tokens < 400 * page.finding_limit
    granted = request.model_copy(update={"reserved_output_tokens": request.asked_output_tokens})
    assert granted.asked_findings == request.finding_limit


def test_an_update_asks_for_no_more_characters_than_its_answer_has_room_for() -> None:
    """With less room than the limit of an update takes, the prompt names fewer characters, never none."""
    notes = [states.finding("a note", evidence_ids=["ev-1", "ev-2"])] * 8
    request = UpdateInput(heading="What it does", findings=notes, most_characters=1_600)
    asked = [
        request.model_copy(update={"reserved_output_tokens": tokens}).asked_characters
        for tokens in (None, request.asked_output_tokens, 700, 100)
    ]
    assert asked == [1_440, 1_440, 342, 300]
    assert request.asked_output_tokens >= 1_440 // 3 + 24 * 14


@pytest.mark.parametrize(
    ("request_", "characters"),
    [
        # The longest answers of a real run; text of manuals with ids has about 3.2 characters for each token.
        (UpdateInput(heading="h", finding_ids=["f"] * 12, most_characters=1_600), 1_791),
        (CheckInput(numbers=list(range(16))), 7_002),
        (CorrectInput(numbers=[0, 1, 2]), 1_205),
        (LivingInput(), 2_152),
    ],
)
def test_what_is_asked_for_has_room_for_the_longest_real_answer(request_: roles.RoleInput, characters: int) -> None:
    """With a fifth to spare, so that no answer of the size that the prompt asks for is cut."""
    assert request_.asked_output_tokens >= 1.2 * characters / 3.2


def test_a_verdict_is_asked_for_fewer_quotes_where_the_answer_has_less_room() -> None:
    """Eight where there is room for what each verdict may need, never fewer than two."""
    claims = CheckInput(numbers=list(range(16)))
    asked = [
        claims.model_copy(update={"reserved_output_tokens": tokens}).asked_quotes
        for tokens in (None, claims.asked_output_tokens, 2_800, 300)
    ]
    assert asked == [8, 8, 3, 2]


def test_what_is_reserved_is_what_the_prompt_asks_for_however_short_earlier_answers_were() -> None:
    """A later answer is not cut because the first one was short, and one of a model that reasons has room for that."""
    claims = CheckInput(numbers=list(range(17)))
    quiet = {CHECKER.name: CallSizes(calls=3, output_share=0.2)}
    assert asked_output(claims, quiet) == claims.asked_output_tokens >= 17 * 110
    reasoning = {CHECKER.name: CallSizes(calls=3, output_share=5.0, excess_tokens=4_000)}
    assert asked_output(claims, reasoning) == claims.asked_output_tokens + 4_000
    assert asked_output(roles.RoleInput(), reasoning) == 0


def test_short_answers_do_not_make_the_next_reservation_smaller_still() -> None:
    """A role keeps room for half of its expected answer, however short its answers were."""
    short = {roles.ANALYZER.name: CallSizes(calls=9, input_share=0.1, output_share=0.01)}
    assert likely_output(roles.ANALYZER, short) == roles.ANALYZER.expected_output_tokens // 2


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1_000] * 16, 16),
        ([1_000] * 17, 9),
        ([5_000] * 14, 7),
        ([90_000], 1),
        ([], 1),
    ],
)
def test_claims_with_many_passages_are_divided_over_more_calls(sizes: list[int], expected: int) -> None:
    """At most 16 claims a call, and fewer where their passages are long; one claim is never divided."""
    assert claims_per_call(sizes) == expected


@pytest.mark.parametrize(("characters", "expected"), [(900, 5), (6_400, 14), (60_000, 20)])
def test_the_number_of_findings_follows_what_is_shown(characters: int, expected: int) -> None:
    """A page of settings has one in each paragraph; of sections alone these count, not the pages that they are from."""
    assert max(5, answer_sizes.findings_of_text(characters)) == expected
    page = roles.SourceExtract(id="src-1", text=DocumentRef(hash=digest("page"), size=400_000))
    wanted = [SectionRef(source_id="src-1", start=0, end=characters)]
    request = roles.AnalyzeInput(sub_query=PlanNode(id="sq-1", text="which settings"), sources=[page], wanted=wanted)
    assert request.finding_limit == expected


def test_a_long_answer_of_a_reader_reserves_nothing_for_later_updates_that_reasoning_does_for_all() -> None:
    """What each role wrote beyond its expected length is reserved for a role without calls: the least of it."""
    roles_seen = (roles.ANALYZER, supervisor_roles.REFINER)

    def reserved(*excess: int) -> int:
        seen = {
            role.name: CallSizes().with_call(
                role, Usage(input_tokens=9_000), 5_000, Usage(output_tokens=role.expected_output_tokens + more), None
            )
            for role, more in zip(roles_seen, excess, strict=True)
        }
        return likely_updates(seen, 8_000, 0).output_tokens

    assert reserved(5_000, 0) == reserved(0, 0)
    assert reserved(5_000, 4_000) >= reserved(0, 0) + 3 * 4_000


def test_a_first_short_prompt_is_reserved_for_with_its_instructions() -> None:
    """A supervisor's first prompt, of 2,800 tokens and a bound of 4,650, is not refused for its reservation."""
    bound = Usage(input_tokens=4_650, output_tokens=1_000)
    assert likely_call(supervisor_roles.SUPERVISOR, bound, {}).input_tokens >= 2_850
    known = {supervisor_roles.SUPERVISOR.name: CallSizes(calls=1, input_share=0.4)}
    assert likely_call(supervisor_roles.SUPERVISOR, bound, known).input_tokens == 1_954
