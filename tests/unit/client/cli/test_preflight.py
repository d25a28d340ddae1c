"""Before a run: reachable services, the endpoints of a resumed run, the lines about egress, and the estimate."""

import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from activities.likely_use import MEASURED
from activities.preparation import RunRefused, estimate_run, resolve, with_estimate
from client.cli.context import RunInfo
from client.cli.options import RunOptions
from client.cli.output import CommandError, ExitCode
from client.cli.preflight import RUN_MARK, RequestedRun, _lines, preflight, read_request, require_endpoint, resolve_here
from client.client_errors import PreviewRefused
from contracts.names import RECORDS_QUEUE
from contracts.outlines import MAX_HEADINGS
from contracts.presets import preset
from contracts.request import Checks, Depth, Gates, ResearchRequest, Verify
from contracts.resolved import CorpusSnapshot, Estimate, ModelPrice, ProviderChoice, ResolvedResearch
from contracts.strategies import calls_by_role, closing_calls
from contracts.tree_sizes import estimate_trees, tree_calls
from contracts.vocabulary import EngineKind, JudgeMode, ThinkMode
from providers.shared.day_budget import DayBudget
from tests.fakes import states
from tests.fakes.completions_api import CompletionsApi
from tests.fakes.world import no_list_of_runs
from workers.resolution_inputs import configuration_of
from workers.settings.loading import Settings
from workers.settings.models import EndpointSettings, ModelsSettings
from workers.settings.sections import TenantsSettings
from workers.shared_state import open_shared_state

SILENT = "http://127.0.0.1:1"
PRICES = {"cheap": ModelPrice(input=1.0, output=5.0), "dear": ModelPrice(input=10.0, output=50.0)}


def model_at(url: str, model: str = "m") -> Settings:
    return Settings(models=ModelsSettings(default=model, base_url=url))


def resolved(settings: Settings, **values: object) -> ResolvedResearch:
    return resolve_here(ResearchRequest.model_validate({"query": "q", **values}), settings)


class Workers:
    """Stands for the context of a command beside workers of these identities, which resolve by their own settings."""

    def __init__(self, settings: Settings, theirs: Settings | None = None, *marks: str) -> None:
        self.settings, self.theirs = settings, theirs
        self.identities = [f"records-1@elsewhere/{mark}" for mark in marks]
        self.previews = 0
        self.stores = self

    async def corpora(self) -> "Workers":
        return self

    async def count(self, name: str, folder: Path | None = None) -> CorpusSnapshot:
        return CorpusSnapshot(name=name, files=1)

    async def running_client(self) -> "Workers | None":
        return self if self.theirs else None

    client_if_running = running_client

    async def polled_by(self, queue: str, *, activities: bool = False) -> list[str]:
        assert (queue, activities) == (RECORDS_QUEUE, True)
        return self.identities

    async def preview(self, request: ResearchRequest, research_id: str) -> ResolvedResearch:
        self.previews += 1
        try:
            return resolve(research_id, request, configuration_of(self.theirs), None, search_attributes=False)  # type: ignore[arg-type]
        except RunRefused as refusal:
            raise PreviewRefused(str(refusal), refusal.reason.value) from None

    async def prepare(self, options: RunOptions | None = None, works: bool = True, **request: Any) -> bool:
        """What a command does before it starts this request; whether others do the work."""
        wanted = RequestedRun(ResearchRequest.model_validate({"query": "q", **request}))
        return await preflight(self, wanted, options or RunOptions(), RunInfo("r-1"), works=works)  # type: ignore[arg-type]


async def test_the_first_lines_say_where_text_goes(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a model nothing leaves; web search and keys to set are named, and without workers nothing is (S0-102)."""
    assert not await Workers(Settings()).prepare(corpus="manual")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "nothing leaves this machine"
    assert lines[1].startswith("engine: extractive")
    assert lines[2] == "limits: 3 iterations of 5 sub-queries, 60 sources, 15:00 minutes"
    assert resolved(model_at("https://models.example/v1"), corpus="manual").egress == "passages go to models.example"
    searching = resolved(Settings())
    assert "searches go to " in searching.egress
    assert any("TAVILY_API_KEY" in line for line in searching.advice)
    assert await Workers(Settings(), Settings()).prepare(works=False, corpus="manual")
    assert capsys.readouterr().err == ""


async def test_an_endpoint_that_says_nothing_is_waited_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took the connection, so that the run may begin; a person is told what is waited for, and what to look at."""
    monkeypatch.setattr("client.cli.preflight.PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr("client.cli.preflight.WINDOW_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = model_at(f"http://127.0.0.1:{server.getsockname()[1]}")
        began = time.monotonic()
        [warning] = await require_endpoint(resolved(settings, corpus="manual"), settings)
    assert time.monotonic() - began < 3
    assert warning.endswith("took the connection and said nothing in 0 s: see the log of that server")
    assert capsys.readouterr().err == "waiting for the model endpoint, at most 0 s\n"


async def test_a_dry_run_has_the_tenant_and_the_money_that_workers_would_find(
    home: Path, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without workers, too: what is left is named with its return, and reserves nothing; an unproven tenant is refused."""
    prices = {"m": ModelPrice(input=5.0, output=25.0)}
    values = {"limits": {"tenants": {"lab": {"max_cost_usd": 1.5}}}, "budgets": {"usd_per_day": 1.0}}
    settings = Settings.model_validate({**values, "home": home}).with_fields(
        models=ModelsSettings(default="m", base_url=endpoint, prices=prices)
    )
    dry = RunOptions(dry_run=True)
    refusal = r"may cost 2\.00 US dollars, and 1\.00 of 1\.00 are left today .* or start it again after 00:00 UTC, in"
    for _ in range(2):
        with pytest.raises(CommandError, match=refusal) as refused:
            await Workers(settings).prepare(dry, corpus="manual", tenant="lab")
        assert refused.value.code == ExitCode.FAILED
    assert not await Workers(settings).prepare(dry, corpus="manual", limits={"max_cost_usd": 0.4})
    async with open_shared_state(settings) as shared:
        money, _ = await DayBudget(shared.store, settings.budgets, "default", no_list_of_runs).look()
    assert (money.reserved, money.left) == (0.0, 1.0)
    extractive = settings.with_fields(models=ModelsSettings())
    assert not await Workers(extractive).prepare(dry, corpus="manual", tenant="lab")
    assert "lab" not in capsys.readouterr().out
    proven = extractive.with_fields(tenant_keys=SecretStr("lab=a-key-of-sixteen-bytes"))
    assert not await Workers(proven).prepare(dry, corpus="manual")
    assert "ceiling: tenant lab, 1.50 US dollars" in capsys.readouterr().out
    refusing = extractive.with_fields(tenants=TenantsSettings(unproven="refuse"))
    with pytest.raises(CommandError, match="tenant: the start proves none"):
        await Workers(refusing).prepare(dry, corpus="manual", tenant="lab")


async def test_those_who_do_the_work_say_what_it_uses(capsys: pytest.CaptureFixture[str]) -> None:
    """A command without an endpoint beside workers with one, also if it names the model: text goes away, so the lines
    and the cap say so.
    """
    theirs = Settings(models=ModelsSettings(default="cheap", base_url="http://127.0.0.1:8080", prices=PRICES))
    workers = Workers(Settings(), theirs, theirs.mark())
    assert await workers.prepare(web=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("passages go to 127.0.0.1:8080")
    assert any("model calls" in line and "the run stops at 2.00 USD" in line for line in lines)
    assert lines[-1] == "running workers do the work, with their own settings"
    named = RunOptions(question="q", model="cheap")
    wanted = await read_request(workers, named)  # type: ignore[arg-type]
    assert await preflight(workers, wanted, named, RunInfo("r-1"))  # type: ignore[arg-type]
    assert workers.previews == 2


async def test_alike_workers_share_the_work_and_others_are_named_with_the_remedy() -> None:
    """Workers without the model that the command was given, or that end with their own run, are no help."""
    settings = Settings()
    for mark in (settings.mark(), f"{settings.mark()}{RUN_MARK}"):
        workers = Workers(settings, settings, mark)
        assert not await workers.prepare(corpus="manual")
        assert workers.previews == 0
    lacking = Workers(model_at(SILENT), Settings(), Settings().mark())
    with pytest.raises(CommandError, match=r"research serve.*restart them with what is missing, or") as refused:
        await lacking.prepare(RunOptions(model="m"), web=True, models={"simple": "m"})
    assert refused.value.code == ExitCode.NOTHING_TO_WORK_WITH
    with pytest.raises(CommandError, match="omit --model-url"):
        await Workers(Settings(), Settings(), "other").prepare(RunOptions(model_url=SILENT), web=True)
    with pytest.raises(CommandError, match="wait until it ends"):
        await Workers(settings, model_at(SILENT), f"other{RUN_MARK}").prepare(corpus="manual")


async def test_a_model_endpoint_that_is_down_is_found_before_the_run(endpoint: str) -> None:
    """With a second one for its calls the run begins; without, it is refused with the remedy."""
    with pytest.raises(
        CommandError, match=r"no model endpoint answers: 127\.0\.0\.1 is not reachable at port 1 .*ANTHROPIC_BASE_URL"
    ) as refused:
        await require_endpoint(resolved(model_at(SILENT), corpus="manual"), model_at(SILENT))
    assert refused.value.code == ExitCode.NOTHING_TO_WORK_WITH
    spare = {"spare": EndpointSettings(base_url=endpoint)}
    two = Settings(models=ModelsSettings(default=["m", "spare:n"], base_url=SILENT, endpoints=spare))
    await require_endpoint(resolved(two, corpus="manual"), two)
    await require_endpoint(resolved(Settings(), corpus="manual"), Settings())


def test_a_resumed_run_sends_passages_to_no_other_host() -> None:
    """Without its endpoint here it is refused with what to add, unless `--model-url` names another one."""
    there, elsewhere = model_at("http://127.0.0.1:8080", "qwen3"), model_at("http://models.example", "qwen3")
    stored, again = resolved(there, corpus="manual"), ResearchRequest(query="q")
    assert resolve_here(again, there, stored, url_given=False).egress == stored.egress
    unnamed = Settings(models=ModelsSettings(base_url="http://127.0.0.1:8080"))
    for settings in (Settings(), elsewhere, unnamed):
        with pytest.raises(
            CommandError, match=r"qwen3 at .*8080.*names no model there: add --model qwen3 --model-url URL"
        ):
            resolve_here(again, settings, stored, url_given=False)
    moved = resolve_here(again, elsewhere, stored, url_given=True)
    assert moved.egress == "passages go to models.example"
    public = Settings(models=ModelsSettings(default="m"), anthropic_api_key=SecretStr("k"))
    with pytest.raises(CommandError, match="set ANTHROPIC_API_KEY"):
        resolve_here(again, Settings(), resolved(public, corpus="manual"), url_given=False)
    extractive = resolved(Settings(), corpus="manual")
    assert resolve_here(again, Settings(), extractive, url_given=False).egress == extractive.egress


def run_with(limits: dict[str, Any], models: dict[str, str], *, reasoning_tokens: int = 0) -> ResolvedResearch:
    capped = preset("supervisor", Depth.MEDIUM).model_copy(update=limits)
    return states.resolved(engine=EngineKind.MODEL, models=models, limits=capped, reasoning_tokens=reasoning_tokens)


USUAL = {
    "engine": EngineKind.MODEL,
    "verify": Verify.FULL,
    "checks": Checks(correct=True, review=JudgeMode.MODEL),
    "gates": Gates(think=ThinkMode.AUTO),
    "corpus": CorpusSnapshot(name="manual", files=1_000),
}
"""What a run with a model has by default, over many documents."""


def usual_run(**limits: Any) -> ResolvedResearch:
    return run_with(limits, BOTH).model_copy(update=USUAL)


PRICED = Settings(models=ModelsSettings(prices=PRICES))
BOTH = {"simple": "cheap", "analytical": "cheap", "complex": "dear"}


def estimate_of(run: ResolvedResearch, settings: Settings = PRICED) -> Estimate:
    made = estimate_run(run, configuration_of(settings))
    assert made is not None
    return made


@pytest.mark.parametrize("strategy", ["supervisor", "reflective", "orchestrator", "living", "recursive"])
@pytest.mark.parametrize("depth", [Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED])
def test_a_usual_run_is_estimated_at_the_figures_of_real_runs(strategy: str, depth: Depth) -> None:
    """Over many documents and at usual limits; the estimate says which real runs it is built from."""
    fields = {"strategy": strategy, "depth": depth, "limits": preset(strategy, depth)}
    run = usual_run().model_copy(update=fields)
    made, likely = estimate_of(run), MEASURED[strategy][depth.value]["likely"]
    calls = sum(count for count, _, _ in likely["roles"].values())
    tokens = sum(count * (tokens_in + tokens_out) for count, tokens_in, tokens_out in likely["roles"].values())
    # What is scaled from another depth is bounded by what the strategy declares at this one.
    is_bounded = not likely["source"].startswith("from ")
    for estimated, real in ((made.likely_calls, calls), (made.likely_tokens, tokens)):
        assert (0.5 if is_bounded else 0.9) * real <= estimated <= 1.05 * real
    assert "with a real model" in made.source
    assert f", {likely['source']}; " in made.words()
    assert made.likely_usd is not None
    assert 0 < made.least_usd <= made.likely_usd


def test_the_estimate_follows_iterations_pages_and_checks() -> None:
    """One iteration is less than three, a folder of four files or of little text less than a large one.

    No check costs none.
    """
    whole, one = estimate_of(usual_run()), estimate_of(usual_run(max_iterations=1))
    assert one.likely_calls < whole.likely_calls
    assert one.likely_minutes < whole.likely_minutes
    few = usual_run().model_copy(update={"corpus": CorpusSnapshot(name="manual", files=4)})
    assert estimate_of(few).likely_calls < whole.likely_calls
    assert "less for what it searches" in estimate_of(few).source
    brief = usual_run().model_copy(update={"corpus": CorpusSnapshot(name="manual", files=1_000, size_bytes=50_000)})
    assert estimate_of(brief).likely_calls == whole.likely_calls
    assert estimate_of(brief).likely_tokens < whole.likely_tokens / 2
    unchecked = usual_run().model_copy(update={"verify": Verify.OFF})
    assert estimate_of(unchecked).likely_tokens < whole.likely_tokens


def test_each_limit_of_the_run_is_named_and_what_has_none() -> None:
    """The likely figures are no limits: those that are held stand beside them (nothing is passed in silence)."""
    free = estimate_of(run_with({"max_cost_usd": None}, BOTH)).words()
    assert free.endswith("the run stops at 15 min; no limit of cost and calls and tokens")
    caps = {"max_model_calls": 7, "max_tokens": 20_000, "max_cost_usd": 0.1}
    capped = estimate_of(run_with(caps, dict.fromkeys(BOTH, "dear"))).words()
    assert capped.endswith("the run stops at 0.10 USD, 7 calls, 20,000 tokens, 15 min")


def test_limits_that_a_model_chooses_later_are_named_at_their_highest() -> None:
    """A run whose depth its question decides stops at no less than the first lines say of any depth."""
    run = usual_run().model_copy(update={"strategy": "reflective", "limits": preset("reflective", Depth.MEDIUM)})
    choices = {depth.value: preset("reflective", depth) for depth in Depth if depth is not Depth.AUTO}
    assert estimate_of(run).words().endswith("15 min; no limit of calls and tokens")
    open_run = run.model_copy(update={"choices": choices})
    assert estimate_of(open_run).words().endswith("30 min; no limit of calls and tokens")


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        ({"max_cost_usd": 0.001}, r"limits\.max_cost_usd is 0\.00 US dollars, and one iteration takes about \d"),
        ({"max_model_calls": 3}, r"limits\.max_model_calls is 3 model calls, and one iteration takes about \d"),
        ({"max_tokens": 900}, r"limits\.max_tokens is 900 tokens, and one iteration takes about \d"),
    ],
)
def test_a_limit_below_one_iteration_is_named_before_the_first_call(limits: dict[str, Any], line: str) -> None:
    """With what an iteration takes and a value to set; with enough of everything nothing is advised."""
    enough = with_estimate(usual_run(max_cost_usd=100.0), configuration_of(PRICED))
    assert enough.advice == []
    (advice,) = with_estimate(usual_run(**{"max_cost_usd": 100.0} | limits), configuration_of(PRICED)).advice
    assert re.match(line, advice)
    (name,) = limits
    assert re.search(rf"the report will be partial \(--set limits\.{name}=[\d.]+\)$", advice)


def test_a_limit_that_allows_one_iteration_but_not_the_likely_run_may_leave_the_report_partial() -> None:
    """It is said as what it is: between the least and the likely run."""
    made = estimate_of(usual_run())
    between = int(made.least_calls + made.likely_calls) // 2
    (advice,) = with_estimate(usual_run(max_model_calls=between), configuration_of(PRICED)).advice
    assert "runs like this take about" in advice
    assert "the report may be partial" in advice


def test_a_run_with_trees_and_the_objections_to_its_scope_have_one_estimate() -> None:
    """A scope of one query is objected to by less than its run uses: what is asked for is no more (S4-005, C4-10, X-18)."""
    limits = preset("recursive", Depth.LIGHT).model_copy(update={"max_cost_usd": None})
    prices = {tier: PRICES[name] for tier, name in BOTH.items()}
    fields = {"strategy": "recursive", "limits": limits, "models": BOTH, "model_prices": prices, "depth": Depth.LIGHT}
    run = states.resolved(engine=EngineKind.MODEL, **fields)
    made, calls = estimate_of(run), calls_by_role(run, tree_calls(limits, 1))
    least = estimate_trees(["How?"], calls, prices)
    assert (least["max_model_calls"] or 0) <= made.least_calls <= made.likely_calls
    assert (least["max_cost_usd"] or 0) <= made.likely_usd


def test_a_strategy_that_was_not_measured_is_estimated_by_what_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the fewest and the most calls that its declaration names, and the estimate says so."""
    run = run_with({}, BOTH)
    declared = calls_by_role(run).values()
    monkeypatch.setattr("activities.likely_use.MEASURED", {})
    made = estimate_of(run)
    assert sum(low for low, _ in declared) <= made.likely_calls <= sum(high for _, high in declared)
    assert "by what the strategy declares" in made.words()


def test_an_unknown_price_is_no_zero() -> None:
    """A model without one makes the cost unknown, and so does a paid search provider."""
    assert estimate_of(run_with({}, BOTH | {"complex": "unheard-of"})).likely_usd is None
    tavily = ProviderChoice(name="tavily", available=True, host="api.tavily.com")
    searching = estimate_of(states.resolved(web=True, providers=[tavily]))
    assert (searching.likely_usd, searching.unpriced) == (None, ["tavily"])


def test_the_review_of_a_live_report_is_the_work_of_its_reporter() -> None:
    """The estimate counts a call of the reporter for each heading, and none of a writer that the run never asks."""
    run = states.resolved(strategy="living")
    by_review = {
        review: closing_calls(run.model_copy(update={"checks": run.checks.model_copy(update={"review": review})}))
        for review in (JudgeMode.MODEL, JudgeMode.OFF)
    }
    assert by_review[JudgeMode.MODEL]["reporter"] == (0, MAX_HEADINGS)
    assert by_review[JudgeMode.OFF]["reporter"] == (0, 0)
    assert "synthesizer" not in by_review[JudgeMode.MODEL]


def test_what_a_run_may_choose_is_announced_at_its_highest() -> None:
    """Where the coordinator chooses the depth, the limits are those of the deepest (S1-011)."""
    priced = model_at(SILENT).model_copy(update={"models": ModelsSettings(default="m", base_url=SILENT, prices=PRICES)})
    open_, named = (
        resolved(priced, corpus="manual", strategy="reflective", **fields) for fields in ({}, {"depth": "light"})
    )
    (limits,) = [line for line in _lines(open_) if line.startswith("limits")]
    assert limits.startswith("limits: at most, as the question needs, 10 steps in 3 iterations, 100 sources, 30:00")
    (limits,) = [line for line in _lines(named) if line.startswith("limits")]
    assert "3 steps in 3 iterations, 15 sources, 5:00" in limits


async def test_a_window_smaller_than_trained_is_reported_before_the_first_call() -> None:
    """The line names the model, both windows, and what to start the server with."""
    models = [{"id": "gemma", "meta": {"n_ctx": 4_096, "n_ctx_train": 32_768}}]
    async with CompletionsApi(models=models) as api:
        settings = Settings(models=ModelsSettings(default="gemma", base_url=api.base_url))
        (line,) = await require_endpoint(resolved(settings, corpus="manual"), settings)
    assert line.startswith("gemma has a window of 4,096 tokens, trained with 32,768: start its server with more")
    assert api.calls == []
