"""What a run may cost, told before it is paid."""

import pytest

from client.cli.estimate import Estimate, Range, estimate, estimate_of
from contracts.call_sizes import expected_call
from contracts.presets import preset
from contracts.request import Depth, Review, SearchPolicy, Verify
from contracts.resolved import EffectiveChecks, EffectiveGates, ProviderChoice
from contracts.roles import ANALYZER, PLANNER
from contracts.strategies import CLOSING_ROLES, declaration
from contracts.vocabulary import EngineKind, ThinkMode
from providers.models.prices import PriceEntry, PriceTable
from tests.fakes import states

SUPERVISOR = declaration("supervisor")
LIMITS = preset("supervisor", Depth.MEDIUM)
UNCAPPED = LIMITS.model_copy(update={"max_cost_usd": None})
OWN = {"cheap": PriceEntry(input=1.0, output=5.0), "dear": PriceEntry(input=10.0, output=50.0)}
PRICES = PriceTable(OWN)
MODELS = {"simple": "cheap", "analytical": "cheap", "complex": "dear"}


def test_calls_tokens_and_cost_are_ranges() -> None:
    """From one short iteration to all that the limits allow, each role at the price of its own model."""
    expected = estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=True)
    assert expected.calls == Range(low=8, high=33)
    by_role = {role.role: role for role in expected.by_role}
    assert set(by_role) == {role.name for role in SUPERVISOR.roles}
    size = expected_call(PLANNER)
    planner = by_role["planner"]
    assert planner.input_tokens == Range(low=size.input_tokens, high=size.input_tokens)
    price = round((size.input_tokens * 1.0 + size.output_tokens * 5.0) / 1e6, 4)
    assert planner.cost_usd == Range(low=price, high=price)
    assert by_role["synthesizer"].model == "dear"
    assert by_role["analyzer"].calls == Range(low=2, high=15)
    most = 15 * expected_call(ANALYZER, sources=LIMITS.max_sources_per_query).input_tokens
    assert by_role["analyzer"].input_tokens.high == most
    assert "no cap on cost" in expected.line()


def test_the_roles_sum_up_to_the_run() -> None:
    """Calls, tokens and money of the roles are those of the run, where no cap cuts them."""
    expected = estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=True)
    for bound in ("low", "high"):
        assert getattr(expected.calls, bound) == sum(getattr(role.calls, bound) for role in expected.by_role)
        tokens = sum(
            getattr(role.input_tokens, bound) + getattr(role.output_tokens, bound) for role in expected.by_role
        )
        assert getattr(expected.tokens, bound) == tokens
        cost = sum(getattr(role.cost_usd, bound) for role in expected.by_role)
        assert getattr(expected.cost_usd, bound) == pytest.approx(cost)
    assert len(expected.by_role) == len(SUPERVISOR.roles)


def test_the_estimate_keeps_to_every_cap() -> None:
    """Never more calls, tokens or money than the run may use."""
    limits = LIMITS.model_copy(update={"max_model_calls": 7, "max_tokens": 20_000, "max_cost_usd": 0.1})
    expected = estimate(SUPERVISOR, limits, dict.fromkeys(MODELS, "dear"), PRICES, thinks=True)
    assert (expected.calls.high, expected.tokens.high) == (7, 20_000)
    assert expected.cost_usd is not None
    assert expected.cost_usd.high == 0.1
    assert "the run stops at 0.10 USD" in expected.line()


def test_an_unknown_price_is_no_zero() -> None:
    """One model without a price makes the cost unknown: null for a program, words for a person."""
    expected = estimate(SUPERVISOR, LIMITS, MODELS | {"complex": "unheard-of"}, PRICES, thinks=False)
    assert expected.model_dump(mode="json")["cost_usd"] is None
    assert [role.role for role in expected.by_role if role.cost_usd is None] == ["synthesizer"]
    assert "cost unknown (no price for unheard-of)" in expected.line()
    assert "where prices are known" in expected.line()
    assert any("cost unknown" in role.line() for role in expected.by_role)


def test_a_model_at_an_endpoint_has_the_price_that_its_calls_are_accounted_at() -> None:
    """An entry for `endpoint:name` goes first, else that of the name; without such an endpoint it is all one name."""
    models = dict.fromkeys(MODELS, "office:dear")
    told = estimate(SUPERVISOR, UNCAPPED, models, PRICES, thinks=False, endpoints=["office"])
    assert told.cost_usd == estimate(SUPERVISOR, UNCAPPED, dict.fromkeys(MODELS, "dear"), PRICES, thinks=False).cost_usd
    assert (told.by_role[0].model, told.unpriced_models) == ("office:dear", [])
    assert estimate(SUPERVISOR, UNCAPPED, models, PRICES, thinks=False).unpriced_models == ["office:dear"]
    own = PriceTable({**OWN, "office:dear": PriceEntry(input=0, output=0)})
    assert estimate(SUPERVISOR, UNCAPPED, models, own, thinks=False, endpoints=["office"]).cost_usd == Range(
        low=0, high=0
    )


def test_a_model_that_thinks_stays_within_the_range() -> None:
    """What a model may generate unseen is in the upper end: of tokens and of money, of each role and of the run."""
    told = estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=True)
    thinking = estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=True, reasoning_tokens=5_000)
    assert (thinking.tokens.low, thinking.cost_usd.low) == (told.tokens.low, told.cost_usd.low)
    assert thinking.tokens.high == told.tokens.high + told.calls.high * 5_000
    for before, after in zip(told.by_role, thinking.by_role, strict=True):
        assert after.output_tokens.high == before.output_tokens.high + before.calls.high * 5_000
        per_token = OWN[after.model].output / 1e6
        more = after.cost_usd.high - before.cost_usd.high
        assert more == pytest.approx(before.calls.high * 5_000 * per_token, abs=2e-4)


def test_a_resolved_run_is_estimated_with_the_room_for_its_models_thoughts() -> None:
    """The room that the run reserves, or the usual one where nobody knows."""
    run = states.resolved(engine=EngineKind.MODEL, models=MODELS, limits=UNCAPPED, reasoning_tokens=50_000)
    long, short = (estimate_of(run.model_copy(update={"reasoning_tokens": room}), PRICES) for room in (50_000, 0))
    unknown = estimate_of(run.model_copy(update={"reasoning_tokens": None}), PRICES)
    assert long.tokens.high == short.tokens.high + short.calls.high * 50_000
    assert short.tokens.high < unknown.tokens.high < long.tokens.high


def test_where_no_price_is_known_no_cap_in_dollars_is_promised() -> None:
    """The line says so, and what to set; a limit on tokens that is set already is named instead."""
    unknown = dict.fromkeys(MODELS, "unheard-of")
    expected = estimate(SUPERVISOR, LIMITS, unknown, PRICES, thinks=False)
    line = expected.line()
    assert not expected.stops_at_cap
    remedy = "no cap in dollars holds for unheard-of: set [models.prices.NAME] or limits.max_tokens"
    assert line.endswith(f"; {remedy}")
    assert "the run stops at" not in line
    some = estimate(SUPERVISOR, LIMITS, MODELS | {"complex": "unheard-of"}, PRICES, thinks=False).line()
    assert some.endswith(f"the run stops at 2.00 USD where prices are known; {remedy}")
    limited = LIMITS.model_copy(update={"max_tokens": 90_000})
    assert (
        estimate(SUPERVISOR, limited, unknown, PRICES, thinks=False)
        .line()
        .endswith("unheard-of: limits.max_tokens does")
    )


def test_thinking_by_rules_costs_no_calls() -> None:
    """Think-pauses are counted only when a model thinks."""
    with_model = estimate(SUPERVISOR, LIMITS, MODELS, PRICES, thinks=True)
    by_rules = estimate(SUPERVISOR, LIMITS, MODELS, PRICES, thinks=False)
    assert by_rules.calls.high < with_model.calls.high
    assert "supervisor" not in {role.role for role in by_rules.by_role}


def web(prices: dict[str, float | None], policy: SearchPolicy = SearchPolicy.FAN_OUT) -> Estimate:
    return estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=False, searching=prices, policy=policy)


def test_searches_and_reads_are_told() -> None:
    """Every question goes to every provider; what they charge is part of the cost."""
    expected = web({"one": 0.0, "two": 0.01})
    assert (expected.searches, expected.reads) == (Range(low=4, high=30), Range(low=2, high=60))
    assert expected.search_cost_usd == Range(low=0.0, high=0.3)
    assert expected.cost_usd.high == pytest.approx(expected.model_cost_usd.high + 0.3)
    assert "about 4 to 30 searches at one, two, 2 to 60 reads" in expected.line()


def test_one_provider_after_another_may_need_but_one_search_each() -> None:
    """Under another policy than fan-out the fewest searches are one per question."""
    other = next(policy for policy in SearchPolicy if policy is not SearchPolicy.FAN_OUT)
    assert web({"one": 0.0, "two": 0.0}, other).searches == Range(low=2, high=30)


def test_a_provider_that_charges_nobody_knows_what() -> None:
    """The whole cost is null; what the model may cost is told all the same."""
    expected = web({"one": 0.01, "two": None})
    assert (expected.cost_usd, expected.search_cost_usd, expected.unpriced_providers) == (None, None, ["two"])
    assert expected.model_cost_usd is not None
    assert "USD and what two charges for searches" in expected.line()


def test_without_a_model_there_are_searches_and_no_calls() -> None:
    """The extractive engine costs nothing; the searches may."""
    expected = estimate(SUPERVISOR, LIMITS, {}, PRICES, thinks=False, searching={"one": 0.001})
    assert (expected.calls.high, expected.tokens.high, expected.by_role) == (0, 0, [])
    assert expected.cost_usd == Range(low=0.002, high=0.015)
    assert "model calls" not in expected.line()


def test_a_resolved_run_is_estimated_as_it_will_be_asked() -> None:
    """Available providers alone, a folder for nothing, a service at its price or at an unknown one."""
    resolved = states.resolved(
        engine=EngineKind.MODEL,
        models=MODELS,
        gates=EffectiveGates(think=ThinkMode.MODEL),
        providers=[
            ProviderChoice(name="corpus", available=True),
            ProviderChoice(name="paid", available=True, host="search.example"),
            ProviderChoice(name="lacking", available=False, host="other.example"),
        ],
    )
    known = estimate_of(resolved, PRICES, {"paid": 0.01})
    assert (known.providers, known.search_cost_usd) == (["corpus", "paid"], Range(low=0.0, high=0.3))
    assert {role.role for role in known.by_role} == {role.name for role in SUPERVISOR.roles}
    checks = EffectiveChecks(correct=True, review=Review.MODEL)
    full = estimate_of(resolved.model_copy(update={"verify": Verify.FULL, "checks": checks}), PRICES, {"paid": 0.01})
    assert {role.role for role in full.by_role} == {role.name for role in (*SUPERVISOR.roles, *CLOSING_ROLES)}
    assert full.calls.high > known.calls.high
    assert {role.role: role.calls.low for role in full.by_role if role.role in ("checker", "corrector")} == {
        "checker": 1, "corrector": 0,
    }  # fmt: skip
    assert estimate_of(resolved, PRICES).unpriced_providers == ["paid"]
    without_model = estimate_of(resolved.model_copy(update={"engine": EngineKind.EXTRACTIVE}), PRICES)
    assert without_model.by_role == []


def test_who_is_asked_first_is_paid_for() -> None:
    """A request that has its question looked at needs up to a call for each round."""
    without = estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=False)
    asked = estimate(SUPERVISOR, UNCAPPED, MODELS, PRICES, thinks=False, clarifies=True)
    assert (asked.calls.low - without.calls.low, asked.calls.high - without.calls.high) == (1, 3)


def test_a_long_report_is_counted_by_its_sections() -> None:
    """Each section is a call of its own beside the frame, each time that the report is written; short ones have none."""
    resolved = states.resolved(engine=EngineKind.MODEL, models=MODELS, limits=UNCAPPED)

    def writer(**changes: object) -> Range:
        by_role = estimate_of(resolved.model_copy(update=changes), PRICES).by_role
        return next(role.calls for role in by_role if role.role == "synthesizer")

    whole = writer(target_words=2_499)
    assert writer(target_words=2_500) == Range(low=whole.low + 2, high=whole.high * (1 + 12))
    asked = writer(target_words=4_000, sections=["Costs", "Risks", "Dates"])
    assert asked == Range(low=whole.low + 3, high=whole.high * (1 + 3))
