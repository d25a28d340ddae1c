"""Verification runs after each strategy unchanged: it works on the draft, whoever wrote it and however the run went."""

from pathlib import Path

import pytest

from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, Outcome
from tests.every_strategy.joined import ENGINES, MODELLED, Trial, trial_of, undisturbed

MADE_UP = ("Zyzzyva", "It is not true", "In other words")
"""Words of the embroidered report that stand in no source."""


async def with_writer(folder: Path, name: str, writer: str, verify: str) -> Trial:
    """A whole run with a writer of this kind, whatever the strategy calls it."""
    writers = {role.name: writer for role in declaration(name).roles if role.writes_report}
    by_role = {"synthesizer": writer} | writers
    async with trial_of(folder, name, EngineKind.MODEL.value, by_role=by_role, verify=verify) as trial:
        await trial.conduct()
    return trial


@pytest.mark.parametrize("verify", ["light", "full"])
@pytest.mark.parametrize(("name", "engine"), ENGINES)
async def test_the_claims_of_its_report_are_judged(tmp_path: Path, name: str, engine: str, verify: str) -> None:
    """Each claim has a verdict, by rules or by the model; what is quoted as it stands is supported (S1-040, X-8)."""
    trial = await undisturbed(tmp_path, name, engine, verify=verify)
    document = await trial.document()
    told = document["verification"]
    assert (document["strategy"], told["mode"]) == (name, verify)
    assert told["claims"] == len(document["claims"]) > 0
    assert told["verdict_counts"]["supported"] > 0
    assert {claim["verdict"] for claim in document["claims"]} <= {"supported", "unverified"}
    assert sum(told["verdict_counts"].values()) == told["claims"]
    asked = {activity for activity, _ in trial.host.calls}
    assert ("extract_claims" in asked) is (verify == "full")
    trial.assert_completed()


@pytest.mark.parametrize("name", MODELLED)
async def test_what_its_writer_makes_up_is_corrected(tmp_path: Path, name: str) -> None:
    """Whatever the writer is called: embroidered sentences do not stay, and the record tells what stood there (X-8)."""
    trial = await with_writer(tmp_path, name, "embroiders", "full")
    document = await trial.document()
    body = document["report"]["markdown"].split("## Sources")[0]
    assert not any(word in body for word in MADE_UP)
    assert any("Zyzzyva" in one["before"] for one in document["verification"]["corrections"])
    assert {call.role for call in trial.api.calls} >= {"checker", "corrector"}
    assert trial.state.engine_by_role["checker"] == EngineKind.MODEL.value


@pytest.mark.parametrize("name", MODELLED)
@pytest.mark.parametrize("verify", ["light", "off"])
async def test_a_report_that_its_sources_do_not_bear_out_is_not_completed(
    tmp_path: Path, name: str, verify: str
) -> None:
    """The outcome follows the verdicts; without a check the report says so below its title (X-8)."""
    trial = await with_writer(tmp_path, name, "fabricates", verify)
    document, markdown = await trial.document(), await trial.report()
    result = trial.state.result
    notice = next(line for line in markdown.splitlines() if line.startswith(">"))
    assert document["outcome"] == result.outcome.value == trial.state.status.value
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
