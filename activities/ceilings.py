"""An operator's ceilings, applied to a request and to what is resolved from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.ceilings import DEPTHS, NUMBERS, Ceiling, Ceilings
from contracts.presets import effective_depth, effective_limits
from contracts.request import Depth, Limits, ResearchRequest
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.sentences import Message
from contracts.texts import plural
from providers.shared.day_budget import MoneyLeft

REMEDY = "name less, or leave it out"


@dataclass
class BoundRequest:
    """A request within the ceiling of its tenant."""

    request: ResearchRequest
    ceiling: Ceiling
    places: Mapping[str, str]
    """Value of the ceiling → table and key of the configuration that set it."""
    cuts: list[str] = field(default_factory=list)
    """What was made smaller, for the report."""
    problems: list[str] = field(default_factory=list)
    """What cannot be made smaller, or must not be: each refuses the run."""

    def words(self, *, with_tenant: bool) -> str:
        """Return the ceiling in one line; `with_tenant`, it says whose it is."""
        tenant = f"tenant {self.request.tenant}" if with_tenant else ""
        return ", ".join(filter(None, [tenant, self.ceiling.words()]))

    def cut(self, setting: str, asked: object, allowed: object) -> None:
        """Note that a setting got less than it had."""
        note = Message("cut_to_ceiling", setting=setting, asked=_shown(asked), allowed=_shown(allowed))
        if note not in self.cuts:
            self.cuts.append(note)

    def refuse(self, setting: str, problem: str, name: str, remedy: str = REMEDY) -> None:
        """Note that a setting is not allowed; `name` is that of the ceiling's value."""
        self.problems.append(f"{setting}: {problem} (the operator's {self.places[name]}): {remedy}")

    def limits(self, limits: EffectiveLimits, *, noted: bool = True) -> EffectiveLimits:
        """Return limits within the ceiling; with `noted`, those of a preset that are lowered are listed as cuts."""
        bounds = {name: getattr(self.ceiling, name) for name in NUMBERS}
        now = {name: getattr(limits, name) for name in NUMBERS}
        lower = {
            name: bound
            for name, bound in bounds.items()
            if bound is not None and (now[name] is None or now[name] > bound)
        }
        for name, bound in lower.items():
            if noted and now[name] is not None:
                self.cut(f"limits.{name}", now[name], bound)
        return effective_limits(limits, Limits(**lower)) if lower else limits

    def choices(self, choices: Mapping[str, EffectiveLimits]) -> dict[str, EffectiveLimits]:
        """Return the limits that the run may choose, within the ceiling and without the depths beyond it."""
        beyond = [depth.value for depth in DEPTHS if self.ceiling.depth and _rank(depth) > _rank(self.ceiling.depth)]
        return {name: self.limits(limits, noted=False) for name, limits in choices.items() if name not in beyond}


def bind(request: ResearchRequest, ceilings: Ceilings) -> BoundRequest:
    """Return a request within the ceiling of its tenant: what it names beyond that is a problem, or is cut."""
    bound = BoundRequest(request, ceilings.of(request.tenant), ceilings.places(request.tenant))
    cuts = ceilings.beyond == "cut"
    _bind_numbers(bound, cuts=cuts)
    _bind_depth(bound, cuts=cuts)
    _bind_names(bound)
    return bound


def _bind_numbers(bound: BoundRequest, *, cuts: bool) -> None:
    """Bind the limits that a request names."""
    ceiling = bound.ceiling
    lower = {}
    for name in NUMBERS:
        asked = getattr(bound.request.limits, name)
        allowed = getattr(ceiling, name)
        if asked is None or allowed is None or asked <= allowed:
            continue
        if cuts:
            bound.cut(f"limits.{name}", asked, allowed)
            lower[name] = allowed
        else:
            bound.refuse(f"limits.{name}", f"{_shown(asked)} is more than the {_shown(allowed)} allowed", name)
    bound.request = bound.request.with_fields(limits=bound.request.limits.with_fields(**lower))
    named = len(bound.request.protected_sources)
    if ceiling.max_sources is not None and named > ceiling.max_sources:
        problem = f"{named} sources are named, and a run may read {ceiling.max_sources}"
        bound.refuse("protected_sources", problem, "max_sources", "name fewer")


def _bind_depth(bound: BoundRequest, *, cuts: bool) -> None:
    deepest = bound.ceiling.depth
    asked = bound.request.depth
    if deepest is None or _rank(asked) <= _rank(deepest):
        return
    if asked is not Depth.AUTO and not cuts:
        bound.refuse("depth", f"{asked.value} is deeper than {deepest.value}", "depth")
        return
    bound.cut("depth", effective_depth(asked).value, deepest.value)
    bound.request = bound.request.with_fields(depth=deepest)


def _bind_names(bound: BoundRequest) -> None:
    """Bind strategy, engine and models, which have no smaller ones: others than the allowed ones are refused."""
    ceiling = bound.ceiling
    request = bound.request
    if ceiling.strategies is not None and request.strategy not in ceiling.strategies:
        remedy = f"choose {' or '.join(ceiling.strategies)}"
        bound.refuse("strategy", f"{request.strategy} is not allowed", "strategies", remedy)
    engines = ceiling.engines or []
    if request.engine == "auto" and len(engines) == 1:
        request = request.with_fields(engine=engines[0])
    elif engines and request.engine not in ("auto", *engines):
        bound.refuse("engine", f"{request.engine} is not allowed", "engines", f"choose {' or '.join(engines)}")
    for tier, model in request.models.model_dump(exclude_none=True).items():
        if ceiling.models is None or model in ceiling.models:
            continue
        remedy = f"choose {' or '.join(ceiling.models)}"
        bound.refuse(f"models.{tier}", f"{model} is not allowed", "models", remedy)
    bound.request = request


def cap_cost(resolved: ResolvedResearch, usd: float) -> ResolvedResearch:
    """Return a run that may cost so many US dollars at most, as no more of the day's money is left."""

    def capped(limits: EffectiveLimits) -> EffectiveLimits:
        lower = usd if limits.max_cost_usd is None else min(limits.max_cost_usd, usd)
        return limits.with_fields(max_cost_usd=lower)

    asked = resolved.limits.max_cost_usd
    before = "-" if asked is None else _shown(asked)
    note = Message("cut_to_budget", setting="limits.max_cost_usd", asked=before, allowed=_shown(usd))
    return resolved.with_fields(
        limits=capped(resolved.limits),
        choices={name: capped(limits) for name, limits in resolved.choices.items()},
        cuts=[*resolved.cuts, note],
    )


def no_money_left(money: MoneyLeft, usd: float | None) -> str:
    """Return why a run that may cost `usd` is refused: the budget, what is left of it, and when it returns."""
    cost = "has no limit of cost" if usd is None else f"may cost {usd:.2f} US dollars"
    reserved = f", {money.reserved:.2f} reserved by {plural(money.runs, 'run')}" if money.runs else ""
    limit = money.limit or 0.0
    minutes = int(money.returns_in // 60)
    return (
        f"budget: this run {cost}, and {money.left:.2f} of {limit:.2f} are left today (the operator's "
        f"{money.place}; {money.spent:.2f} spent{reserved}): name at most that in limits.max_cost_usd, or start it "
        f"again after 00:00 UTC, in {minutes // 60} h {minutes % 60} min"
    )


def _rank(depth: Depth) -> int:
    return DEPTHS.index(effective_depth(depth))


def _shown(value: object) -> str:
    """Return a value of a limit as people write it."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
