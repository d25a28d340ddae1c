"""Verification runs after each strategy unchanged: it works on the draft, whoever wrote it and however the run went."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.evidence import DocumentRef
from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, Outcome
from tests.every_strategy.joined import ENGINES, MODELLED, TWO_MODELLED, trial_of, undisturbed
from tests.every_strategy.test_tokens_of_every_strategy import assert_verbatim
from tests.fakes import checking_work

MADE_UP = ("Zyzzyva", "It is not true", "In other words")
"""Words of the embroidered report that stand in no source."""


@asynccontextmanager
async def with_writer(folder: Path, name: str, writer: str, *, corrector: str = "good", **fields: Any) -> Any:
    """A run with a writer of this kind, whatever the strategy calls it."""
    writers = {role.name: writer for role in declaration(name).roles if role.writes_report}
    by_role = {"synthesizer": writer, "corrector": corrector} | writers
    fields = {"verify": "full"} | fields
    async with trial_of(folder, name, EngineKind.MODEL.value, by_role=by_role, **fields) as trial:
        yield trial


@pytest.mark.one_in(6)
@pytest.mark.parametrize("verify", ["light", "full"])
@pytest.mark.parametrize(("name", "engine"), ENGINES)
async def test_the_claims_of_its_report_are_judged(tmp_path: Path, name: str, engine: str, verify: str) -> None:
    """Each claim has a verdict, by rules or by the model, and an event; what is quoted as it is, is supported
    (S1-040, S1-041, X-8).
    """
    trial = await undisturbed(tmp_path, name, engine, verify=verify)
    document = await trial.document()
    told = document["verification"]
    assert (document["strategy"], told["mode"]) == (name, verify)
    assert told["claims"] == len(document["claims"]) > 0
    assert told["verdict_counts"]["supported"] > 0
    assert {claim["verdict"] for claim in document["claims"]} <= {"supported", "unverified"}
    assert sum(told["verdict_counts"].values()) == told["claims"]
    kinds = [event.type for event in trial.state.people.events]
    assert (kinds.count("claim.verified"), kinds.count("verification.summary")) == (told["claims"], 1)
    asked = {activity for activity, _ in trial.host.calls}
    # A model that reviews the report sees the verdicts of the rules.
    assert ("extract_claims" in asked) is (verify == "full" or engine == EngineKind.MODEL.value)
    trial.assert_completed()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MODELLED)
async def test_what_its_writer_makes_up_is_corrected(tmp_path: Path, name: str) -> None:
    """Whatever the writer is called: embroidered sentences do not stay, and the record tells what stood there (X-8)."""
    async with with_writer(tmp_path, name, "embroiders") as trial:
        await trial.conduct()
    document = await trial.document()
    body = document["report"]["markdown"].split("## Sources")[0]
    assert not any(word in body for word in MADE_UP)
    assert any("Zyzzyva" in one["before"] for one in document["verification"]["corrections"])
    assert {call.role for call in trial.api.calls} >= {"checker", "corrector"}
    assert trial.state.accounts.engine_by_role["checker"] == EngineKind.MODEL.value


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TWO_MODELLED)
@pytest.mark.parametrize("verify", ["light", "off"])
async def test_a_report_that_its_sources_do_not_support_is_not_completed(
    tmp_path: Path, name: str, verify: str
) -> None:
    """The outcome follows the verdicts; without a check the report says so below its title (X-8)."""
    async with with_writer(tmp_path, name, "fabricates", verify=verify) as trial:
        await trial.conduct()
    document, markdown = await trial.document(), await trial.report()
    result = trial.state.work.result
    notice = next(line for line in markdown.splitlines() if line.startswith(">"))
    assert document["outcome"] == result.outcome.value == trial.state.work.status.value
    if verify == "off":
        assert result.outcome is Outcome.COMPLETED
        assert notice.startswith("> **Not verified:** Nobody has checked")
        return
    assert result.outcome is Outcome.PARTIAL
    wrong, cited = result.verification.shortfall
    assert 0 < wrong <= cited
    assert f"{wrong} of {cited} statements are not borne out by their sources." in notice
    assert any(line.startswith(f"{wrong} of {cited} statements not borne out") for line in result.limitations)
    assert not result.resumable, "nothing is left to do"


async def test_the_review_runs_beside_the_check_and_sees_the_whole_draft(tmp_path: Path) -> None:
    """Neither is waited for by the other; the reviewer reads no guess of rules, and no passages, which the check has."""
    async with with_writer(tmp_path, "supervisor", "embroiders") as trial:
        reviewed, checked = asyncio.Event(), asyncio.Event()
        work, check = (trial.host.implementations[name] for name in ("review_report", "check_claims"))

        async def review(request: Any) -> Any:
            reviewed.set()
            await checked.wait()
            return await work(request)

        async def wait_for_review(request: Any) -> Any:
            checked.set()
            await reviewed.wait()
            return await check(request)

        trial.host.implementations |= {"review_report": review, "check_claims": wait_for_review}
        await asyncio.wait_for(trial.conduct(), 60)
    (call,) = [request for request in trial.api.requests if request.role == "reviewer"]
    assert "(cited)" not in call.prompt
    assert "Zyzzyva Incorporated confirmed" in call.prompt
    assert "shortened for lack of room" not in call.prompt
    assert "<passages-" not in call.prompt
    assert "“Zyzzyva” is named" not in call.prompt


async def test_a_statement_is_cited_from_the_page_that_says_it(tmp_path: Path) -> None:
    """What no finding quotes is found on a page that was read, becomes evidence at its place, and the audit is good."""
    async with with_writer(tmp_path, "supervisor", "remembers") as trial:
        await trial.conduct()
        await assert_verbatim(trial)
    document = await trial.document()
    (claim,) = [one for one in document["claims"] if "autovacuum_max_workers" in one["text"]]
    quotes = {one["id"]: one["quote"] for one in document["evidence"]}
    quoted = {key for finding in document["findings"] for key in finding["evidence_ids"]}
    assert claim["verdict"] == "supported"
    (added,) = set(claim["evidence_ids"]) - quoted
    assert f"{checking_work.UNQUOTED}." in quotes[added].replace("\n", " ")
    assert document["verification"]["correction_counts"] == {"cite": 1}


async def test_a_citation_of_a_second_look_outlives_the_corrections(tmp_path: Path) -> None:
    """The verdict on the statement in its new form is stored, and the last conclusion finds it."""
    async with with_writer(tmp_path, "supervisor", "remembers and invents") as trial:
        await trial.conduct()
    document = await trial.document()
    (claim,) = [one for one in document["claims"] if "autovacuum_max_workers" in one["text"]]
    assert (claim["verdict"], claim["method"]) == ("supported", "model")
    assert document["verification"]["correction_counts"]["cite"] == 1
    assert sum(document["verification"]["correction_counts"].values()) > 1


async def test_corrections_that_fail_the_check_are_not_taken(tmp_path: Path) -> None:
    """What a corrector makes up is not taken; what it leaves wrong is removed, or marked if a passage has its words."""
    async with with_writer(tmp_path, "supervisor", "embroiders", corrector="worsening") as trial:
        await trial.conduct()
    document = await trial.document()
    told = document["verification"]
    assert "99 TB" not in document["report"]["markdown"]
    assert set(told["correction_counts"]) == {"remove"}
    assert "contradicted" not in told["verdict_counts"]
    assert document["report"]["markdown"].count("*(✗ Not supported)*") == told["verdict_counts"]["unsupported"]
    assert {"Summary", "Details"} <= set(document["report"]["sections"])


async def test_a_stop_in_the_middle_ends_with_what_was_judged(tmp_path: Path) -> None:
    """The report comes at once; what no checker was asked for is counted and called unverified."""
    async with with_writer(tmp_path, "supervisor", "embroiders") as trial:

        async def stop(_: Any) -> Any:
            await trial.stop()
            await asyncio.Event().wait()

        trial.host.implementations["check_claims"] = stop
        assert await trial.conduct() is Outcome.COMPLETED
    document = await trial.document()
    told = document["verification"]
    assert 1 <= told["not_reached"] <= told["verdict_counts"]["unverified"]
    assert "Not checked" in document["report"]["markdown"]


async def test_a_text_of_the_model_that_cannot_be_laid_out_is_replaced(tmp_path: Path) -> None:
    """The findings are set out without the model, and the report says that it is not what the model wrote."""
    async with with_writer(tmp_path, "supervisor", "good", verify="off") as trial:
        render = trial.host.implementations["render_report"]

        async def crash(request: Any) -> Any:
            if trial.state.accounts.engine_by_role["synthesizer"] == EngineKind.MODEL.value:
                kind = failures.INPUT_UNPROCESSABLE
                raise ApplicationError("it killed its process", {"kind": "crash"}, type=kind, non_retryable=True)
            return await render(request)

        trial.host.implementations["render_report"] = crash
        assert await trial.conduct() is Outcome.PARTIAL
    assert "[1]" in await trial.report()
    assert any("could not be laid out (crash)" in branch for branch in trial.state.work.failed_branches)
    assert any("written anew without the model" in note for note in trial.state.work.degraded)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("verify", "method"), [("light", "model"), ("off", None)])
@pytest.mark.parametrize("name", TWO_MODELLED)
async def test_a_model_reviews_the_final_report_unless_nothing_is_checked(
    tmp_path: Path, name: str, verify: str, method: str | None
) -> None:
    """By default, whatever the strategy; with `verify: off` no model is asked for it (S3-053)."""
    trial = await undisturbed(tmp_path, name, EngineKind.MODEL.value, depth="medium", verify=verify)
    review = trial.state.work.result.review
    assert (review.method if review else None, trial.api.counts()["reviewer"]) == (method, int(method is not None))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("scores", [(3, 8), (5, 3)])
async def test_a_draft_below_the_bar_is_revised_and_the_better_one_is_used(
    tmp_path: Path, scores: tuple[int, int]
) -> None:
    """A reviewer that is not content gets one revision; it is used only if it scores higher (S3-053)."""
    drafts, checks = list[DocumentRef](), {"review": "model", "correct": False}
    async with with_writer(tmp_path, "supervisor", "embroiders", checks=checks) as trial:
        work = trial.host.implementations["review_report"]

        async def reviewed(request: Any) -> Any:
            given = dict.fromkeys(("coverage", "support", "depth", "readability"), float(scores[len(drafts)]))
            drafts.append(request.draft)
            return (await work(request)).model_copy(update={**given, "notes": ["Say more."]})

        trial.host.implementations["review_report"] = reviewed
        await trial.conduct()
    review, better = trial.state.work.result.review, scores[1] > scores[0]
    told = [event.text for event in trial.state.people.events if event.type == "review.finished"]
    assert told[-1] == f"a revision scores {scores[1]} and was {'kept' if better else 'dropped'}"
    assert (trial.api.counts()["synthesizer"], review.method, review.revised) == (2, "model", better)
    assert (review.overall, review.before) == (max(scores), scores[0])
    assert trial.state.evidence.draft.document == drafts[better]


LONG: dict[str, Any] = {"output": {"target_words": 6_000, "sections": ["How it works", "What it costs"]}}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["supervisor", "reflective", "orchestrator", "recursive"])
async def test_sections_are_checked_while_the_frame_is_written(tmp_path: Path, name: str) -> None:
    """The frame is not answered before a checker was asked, and no statement is asked about a second time."""
    async with with_writer(tmp_path, name, "embroiders", **LONG) as trial:
        checked, framed = asyncio.Event(), list[bool]()
        write, check = (trial.host.implementations[one] for one in ("write_report", "check_claims"))

        async def write_after_check(request: Any) -> Any:
            if request.part and request.part.sections:
                await checked.wait()
                framed.append(True)
            return await write(request)

        async def note_check(request: Any) -> Any:
            checked.set()
            return await check(request)

        trial.host.implementations |= {"write_report": write_after_check, "check_claims": note_check}
        await asyncio.wait_for(trial.conduct(), 60)
    assert framed
    prompts = [request.prompt for request in trial.api.requests if request.role == "checker"]
    # Two calls may show one control, each under an id of its own.
    asked = [one.label for prompt in prompts for one in checking_work.statements_of(prompt)]
    assert len(asked) == len(set(asked)) > 0
    assert trial.state.evidence.verification.summary.verdict_counts["supported"] > 0
