"""`budget`: what is left of the money of today, by tenant."""

from client.cli.context import CommandContext
from client.cli.options import AsJson, Commands
from client.cli.output import CommandError, ExitCode, print_hint, print_json, print_result
from client.view.words import pasteable
from contracts.texts import plural
from providers.errors import ProviderError
from providers.shared.day_budget import DayBudget, MoneyLeft
from workers.shared_state import open_shared_state

commands = Commands()


@commands.command("budget")
async def budget(context: CommandContext, *, as_json: AsJson = False) -> None:
    """Print what is left of the money of today (UTC), of all tenants and of each, as `[budgets]` limits it.

    research budget
    research budget --json
    """
    budgets = context.settings.budgets
    if not budgets.is_set:
        raise CommandError("there is no budget: set usd_per_day under [budgets] in research.toml")
    try:
        async with open_shared_state(context.settings) as shared:
            together, by_tenant = await DayBudget(shared.store, budgets, "", _none_open).look()
    except ProviderError as error:
        raise CommandError(f"the money of today is not known: {error}", ExitCode.FAILED) from None
    if as_json:
        tenants = {name: _fields(money) for name, money in by_tenant.items()}
        print_json({"together": _fields(together), "tenants": tenants, "returns_in_seconds": together.returns_in})
        return
    for name, money in {"all tenants": together, **by_tenant}.items():
        print_result(pasteable(f"{name:<20} {_line(money)}"))
    minutes = int(together.returns_in // 60)
    print_hint(f"a new day begins at 00:00 UTC, in {minutes // 60} h {minutes % 60} min")


async def _none_open() -> list[str]:
    return []


def _fields(money: MoneyLeft) -> dict[str, float | None]:
    left = None if money.limit is None else money.left
    return {"usd_per_day": money.limit, "left": left, "spent": money.spent, "reserved": money.reserved}


def _line(money: MoneyLeft) -> str:
    reserved = f", {money.reserved:.2f} reserved by {plural(money.runs, 'run')}" if money.runs else ""
    used = f"{money.spent:.2f} spent{reserved}"
    if money.limit is None:
        return f"{used}, no budget of its own"
    return f"{money.left:.2f} of {money.limit:.2f} US dollars left: {used}"
