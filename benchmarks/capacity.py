"""What a number of runs a day needs: `python -m benchmarks.capacity [--page]`.

A discrete-event model: runs arrive, wait for one of `runs.at_once` places, and then make the activities of a run that
was measured, each after as many others as it waited for there. An activity takes a slot of a process of its pool,
processor time of that process and of the Temporal server, and the time of its call; calls of models besides keep to a
limit of requests a minute. Inputs are in `benchmarks/capacity.json`, which `benchmarks.load` measures. First the
measured points are computed with the machine on which they were measured; then a day of 10 thousand, 100 thousand and a
million runs, with a processor for each process. `--page` writes tables and plots of `docs/capacity.md`.
"""

import argparse
import json
import math
import random
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.load import AT_ONCE, PLACE
from benchmarks.simulation import Clock, Deployment, Limiter, Machine, Pool, Process, Shape
from contracts.outcome import Usage
from contracts.strategies import list_selectable
from providers.models.endpoints import PriceTable
from workers.pools import DEFAULT_SLOTS

DOCS: Final = Path(__file__).parents[1] / "docs"
LIKELY: Final = Path(__file__).parents[1] / "activities" / "likely_runs.json"
FETCH_SECONDS: Final = 1.0
"""What a page or a search of the real web is taken to hold a slot: an assumption, not a measurement."""
BEGIN, END = "<!-- computed -->", "<!-- end of what is computed -->"
ALLOWED_ERROR: Final = 0.15
DAY: Final = 86_400.0
DAYS: Final = (10_000, 100_000, 1_000_000)
SIMULATED: Final = 6_000
"""Most runs of a simulated day; of larger days a share is simulated, with the same share of every resource."""
CALLS_IN_A_ROW: Final = 5.5
"""Calls of the measured run that follow one another; of three analyses and of a reflection beside, the slowest."""
PEAK: Final = 2.0
"""Arrivals in the busiest hour, over the mean of the day; the quietest has none."""
BUSY: Final = 0.7
"""Share of a processor that a worker process may use in the busiest hour."""
ROOM: Final = 1.3
"""Slots, and requests of the provider, over what the busiest hour needs on average."""
MODELS: Final = ("claude-haiku-4-5", "claude-sonnet-4-5", "gpt-5-mini")


def point(shape: Shape, processes: int, at_once: int, cores: float, call: tuple[float, float]) -> tuple[float, float]:
    """Runs a minute and seconds of a run on the machine of the measurement, where a run begins as soon as one ends."""
    clock = Clock()
    machine = Machine(clock, cores)
    workers = [one_process(Process(machine)) for _ in range(processes)]
    pools = {pool: [each[pool][0] for each in workers] for pool in workers[0]}
    made = Deployment(clock, shape, pools, Process(machine), Process(machine), call)

    def again() -> None:
        made.arrive(again)

    for number in range(at_once):
        clock.after(number * 20.0 / at_once, again)
    clock.run(60.0)
    first = len(made.ended)
    clock.run(240.0)
    runs = made.ended[first:]
    return len(runs) / 3.0, statistics.mean(seconds for _, seconds in runs)


def quiet_shape(measured: dict[str, Any]) -> Shape:
    """Return the run with the processor seconds of a machine on which nothing else ran."""
    return Shape.measured(measured["run"], cpu_of(measured["run"], measured["quiet"]))


def bursts(measured: dict[str, Any]) -> list[dict[str, float]]:
    """Each measured burst of runs on a quiet machine, with the seconds until the last has ended by the model."""
    rows = []
    for each in measured["quiet"]["bursts"]:
        clock = Clock()
        machine = Machine(clock, measured["cores"])
        made = Deployment(
            clock,
            quiet_shape(measured),
            one_process(Process(machine)),
            Process(machine),
            Process(machine),
            (each["call_seconds"], each["call_seconds"]),
        )
        for _ in range(each["runs"]):
            made.arrive()
        clock.run(DAY)
        seconds = max(ended for ended, _ in made.ended)
        rows.append(each | {"modelled": seconds, "error": seconds / each["seconds"] - 1})
    return rows


def one_process(process: Process) -> dict[str, list[Pool]]:
    """Return all pools in one process."""
    return {pool: [Pool(process, slots)] for pool, slots in {"workflows": 0, **DEFAULT_SLOTS}.items()}


def compared(measured: dict[str, Any]) -> list[dict[str, float]]:
    """Each measured point beside what the model says of it.

    Processor seconds of a run are those of the point: other work on the machine makes them more.
    """
    rows = []
    for each in measured["points"]:
        shape = Shape.measured(measured["run"], cpu_of(measured["run"], each))
        cores = measured["cores"] - each["other_cores"]
        rate, seconds = point(shape, each["processes"], each["at_once"], cores, tuple(measured["call_seconds"]))
        rows.append(each | {"modelled": rate, "modelled_seconds": seconds, "error": rate / each["runs_a_minute"] - 1})
    return rows


def cpu_of(run: dict[str, Any], at: dict[str, float]) -> dict[str, float]:
    """Processor seconds of a run by part: those of the workers at a point, shared as pools of their own use them."""
    own = {pool: seconds for pool, seconds in run["cpu"].items() if pool != "server"}
    factor = at["worker_cpu"] / sum(own.values())
    shared = {pool: seconds * factor for pool, seconds in own.items()}
    return shared | {"server": at["server_cpu"], "fakes": at["fakes_cpu"]}


@dataclass
class Need:
    """What a number of runs a day needs, and how a simulated day with that went."""

    runs: int
    peak: float
    """Runs a second in the busiest hour."""
    processes: dict[str, int]
    at_once: int
    requests_a_minute: float
    """Limit of the model's provider."""
    queue_seconds: tuple[float, float] = (0.0, 0.0)
    """Half and 95 of 100 runs wait no longer for a place."""
    run_seconds: tuple[float, float] = (0.0, 0.0)
    limited_seconds: float = 0.0
    """Longest wait of a call for the provider's limit."""
    by_hour: list[tuple[float, float]] = field(default_factory=list)
    """Hour of the day, and the mean of runs at work in it."""


def needed(measured: dict[str, Any], runs: int) -> Need:
    """Work out processes, places and limits from means of the busiest hour."""
    run = measured["run"]
    cpu = cpu_of(run, measured["quiet"])
    peak = PEAK * runs / DAY
    low, high = measured["call_seconds"]
    held = dict.fromkeys(DEFAULT_SLOTS, 0.0)
    calls = 0
    for each in run["activities"]:
        is_call = each["pool"] == "models" and each["seconds"] > 1.0
        calls += is_call
        held[each["pool"]] += (low + high) / 2 if is_call else FETCH_SECONDS
    processes = {}
    for pool in ("workflows", *DEFAULT_SLOTS):
        seconds = cpu[pool]
        by_processor = peak * seconds / BUSY
        by_slots = peak * held[pool] * ROOM / DEFAULT_SLOTS[pool] if pool in held else 0.0
        processes[pool] = max(1, math.ceil(max(by_processor, by_slots)))
    at_once = with_room(peak * CALLS_IN_A_ROW * (low + high) / 2)
    return Need(runs, peak, processes, at_once, peak * 60 * calls * ROOM + 5)


def with_room(mean: float) -> int:
    """Return places for so many runs on average: the more there are, the less they differ from the mean."""
    return math.ceil(mean + 2 * math.sqrt(mean) + 1)


def simulate(measured: dict[str, Any], need: Need) -> None:
    """Let a day pass with what was worked out; of a large day, a share of it."""
    share = min(1.0, SIMULATED / need.runs)
    clock = Clock()
    shape = quiet_shape(measured)
    shape.cpu["fakes"] = 0.0
    pools: dict[str, list[Pool]] = {}
    for pool, count in need.processes.items():
        slots = DEFAULT_SLOTS.get(pool, 0)
        number = max(1, math.ceil(count * share))
        pools[pool] = [Pool(Process(Machine(clock, 1)), slots) for _ in range(number)]
    endless = Machine(clock, 1_000)
    made = Deployment(
        clock,
        shape,
        pools,
        Process(endless),
        Process(endless),
        tuple(measured["call_seconds"]),
        at_once=with_room(need.peak * share * CALLS_IN_A_ROW * statistics.mean(measured["call_seconds"])),
        limiter=Limiter(clock, need.requests_a_minute * share),
    )
    made.shape.cpu["server"] = 0.0  # a cluster: its delay is within the measured seconds
    chance = random.Random(2026)
    mean = need.runs * share / DAY

    def next_arrival() -> None:
        clock.after(chance.expovariate(mean * PEAK), arrival)

    def arrival() -> None:
        hour = clock.now / 3_600
        if chance.random() < (1 - math.cos(2 * math.pi * hour / 24)) / 2:
            made.arrive()
        next_arrival()

    next_arrival()
    clock.run(DAY)
    at_work = [0.0] * 24
    for at, seconds in made.ended:
        at_work[int(at // 3_600) % 24] += seconds / 3_600 / share
    need.by_hour = [(hour + 0.5, number) for hour, number in enumerate(at_work)]
    need.queue_seconds = _middle_and_95(made.queued)
    need.run_seconds = _middle_and_95([seconds for _, seconds in made.ended])
    need.limited_seconds = made.limiter.waited if made.limiter else 0.0


def _middle_and_95(values: list[float]) -> tuple[float, float]:
    in_order = sorted(values)
    return in_order[len(in_order) // 2], in_order[int(len(in_order) * 0.95)]


# --- tables, plots, page ---------------------------------------------------------------------------------------------
def table(head: str, rows: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join([f"| {head} |", "|" + "---|" * (head.count(" | ") + 1), *(f"| {row} |" for row in rows)])


def comparison(rows: list[dict[str, float]]) -> str:
    """Return the measured points beside the model."""
    lines = [
        f"{each['processes']} | {each['at_once']} | {each['other_cores']:.2f} | {each['server_cpu']:.2f} "
        f"| {each['worker_cpu']:.2f} | {each['run_seconds']:.1f} | {each['modelled_seconds']:.1f} "
        f"| {each['runs_a_minute']:.1f} | {each['modelled']:.1f} | {each['error']:+.0%}"
        for each in rows
    ]
    head = "worker processes | runs at once | cores that others used | server s a run | workers s a run "
    head += "| seconds of a run | modelled | runs a minute | modelled | error"
    return table(head, lines)


def of_bursts(rows: list[dict[str, float]]) -> str:
    """Return the measured bursts beside the model."""
    lines = [
        f"{each['runs']} | {each['call_seconds']} | {each['seconds']} | {each['modelled']:.2f} | {each['error']:+.0%}"
        for each in rows
    ]
    return table("runs begun at once | seconds of a call | measured, s | modelled, s | error", lines)


def grid(measured: dict[str, Any]) -> dict[int, list[tuple[float, float]]]:
    """Return, by worker processes, runs at once and modelled runs a minute on the quiet machine."""
    shape = quiet_shape(measured)
    call = tuple(measured["call_seconds"])
    return {
        processes: [(size, point(shape, processes, size, measured["cores"], call)[0]) for size in AT_ONCE]
        for processes in (1, 2, 4)
    }


def of_grid(curves: dict[int, list[tuple[float, float]]]) -> str:
    """Return the modelled runs a minute."""
    head = " | ".join(["worker processes", *(f"{size} at once" for size in AT_ONCE)])
    return table(
        head, [" | ".join([str(count), *(f"{rate:.0f}" for _, rate in line)]) for count, line in curves.items()]
    )


def of_one_run(measured: dict[str, Any]) -> str:
    """Return what one run takes."""
    run = measured["run"]
    actions = sum(run["actions"].values()) + run["retries"]
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(run["actions"].items(), key=lambda one: -one[1]))
    requests = ", ".join(f"{method} {number:.0f}" for method, number in sorted(run["object_requests"].items()))
    lines = [
        f"activities, tasks of the workflow | {len(run['activities'])}, {run['tasks']}",
        f"events, bytes of the history | {run['events']}, {run['bytes']:,}",
        f"billable actions | {actions} ({kinds}, retries {run['retries']})",
        f"growth of the server's database (SQLite), bytes | {run['database_bytes']:,}",
        f"rows (keys) and bytes in Redis | {run['redis_keys']:.0f}, {run['redis_bytes']:,}",
        f"requests to the object store | {requests}",
        f"bytes in the object store | {run['object_bytes']:,}",
        f"processor seconds of the server | {run['cpu']['server']:.2f}",
    ]
    return table("of one run | measured", lines)


def of_pools(measured: dict[str, Any]) -> str:
    """Return processor time and memory by pool."""
    run = measured["run"]
    lines = [
        f"`{pool}` | {DEFAULT_SLOTS.get(pool, '–')} | {run['cpu'][pool]:.3f} | {run['idle_cores'][pool]:.1%} "
        f"| {run['rest_megabytes'][pool]} | {run['warm_megabytes'][pool]} | {run['run_megabytes'][pool]:.1f}"
        for pool in run["idle_cores"]
    ]
    return table(
        "pool | slots | s a run | of a core at rest | MB at rest | MB after six runs | MB more for each run at once",
        lines,
    )


def likely_runs() -> list[str]:
    """Return tokens and dollars of a likely run at medium depth, by strategy and model."""
    prices = PriceTable()
    likely = json.loads(LIKELY.read_text(encoding="utf-8"))["runs"]
    lines = []
    for strategy in list_selectable():
        roles = likely[strategy.name]["medium"]["likely"]["roles"].values()
        calls = sum(count for count, _, _ in roles)
        shown = round(sum(count * size for count, size, _ in roles))
        written = round(sum(count * size for count, _, size in roles))
        used = Usage(input_tokens=shown, output_tokens=written)
        dollars = [prices.cost_usd(model, used) for model in MODELS]
        each = " | ".join("unknown" if cost is None else f"{cost:.2f}" for cost in dollars)
        lines.append(f"`{strategy.name}` | {calls:.0f} | {shown:,} | {written:,} | {each}")
    return lines


def of_days(measured: dict[str, Any], needs: list[Need]) -> str:
    """Return what each number of runs a day needs."""
    run = measured["run"]
    likely = json.loads(LIKELY.read_text(encoding="utf-8"))["runs"]["supervisor"]["medium"]["likely"]
    roles = likely["roles"].values()
    calls = sum(count for count, _, _ in roles)
    tokens = sum(count * (shown + written) for count, shown, written in roles)
    actions = sum(run["actions"].values()) + run["retries"]
    objects = sum(run["object_requests"].values())
    spent = Usage(
        input_tokens=round(sum(count * shown for count, shown, _ in roles)),
        output_tokens=round(sum(count * written for count, _, written in roles)),
    )
    cost = PriceTable().cost_usd(MODELS[0], spent) or 0.0
    slow = {each.runs: with_room(each.peak * likely["seconds"]) for each in needs}
    lines: list[tuple[str, list[str]]] = [
        ("runs a second in the busiest hour", [f"{each.peak:.2f}" for each in needs]),
        *((f"processes of `{pool}`", [str(each.processes[pool]) for each in needs]) for pool in needs[0].processes),
        (
            "processors of the workers, busiest hour",
            [f"{each.peak * measured['quiet']['worker_cpu']:.1f}" for each in needs],
        ),
        ("`runs.at_once`, calls of 2 to 5 s", [f"{each.at_once:,}" for each in needs]),
        (f"`runs.at_once`, runs of {likely['seconds']} s", [f"{slow[each.runs]:,}" for each in needs]),
        ("memory of the workers, GB", [f"{_gigabytes(run, each, each.at_once):.1f}" for each in needs]),
        (
            f"the same, runs of {likely['seconds']} s",
            [f"{_gigabytes(run, each, slow[each.runs]):.1f}" for each in needs],
        ),
        ("model requests a minute, the measured run", [f"{each.requests_a_minute:,.0f}" for each in needs]),
        ("model requests a minute, a likely real run", [f"{each.peak * 60 * calls * ROOM:,.0f}" for each in needs]),
        ("tokens a minute, a likely real run", [f"{each.peak * 60 * tokens * ROOM:,.0f}" for each in needs]),
        (f"dollars a day, {MODELS[0]}", [f"{each.runs * cost:,.0f}" for each in needs]),
        ("Temporal: actions a second, busiest hour", [f"{each.peak * actions:,.0f}" for each in needs]),
        ("Temporal: actions a month", [f"{each.runs * actions * 30 / 1e6:,.0f} million" for each in needs]),
        ("Temporal: histories of 30 days, GB", [f"{each.runs * run['bytes'] * 30 / 1e9:,.0f}" for each in needs]),
        (
            "Temporal: processors of the server",
            [f"{each.peak * measured['quiet']['server_cpu']:.1f}" for each in needs],
        ),
        (
            "Redis: memory for the records of a day, GB",
            [f"{each.runs * run['redis_bytes'] / 1e9:,.1f}" for each in needs],
        ),
        ("object store: requests a second", [f"{each.peak * objects:,.0f}" for each in needs]),
        ("object store: GB of 30 days", [f"{each.runs * run['object_bytes'] * 30 / 1e9:,.0f}" for each in needs]),
        (
            "simulated: wait for a place, half and 95 %",
            [f"{each.queue_seconds[0]:.1f} s, {each.queue_seconds[1]:.1f} s" for each in needs],
        ),
        (
            "simulated: seconds of a run, half and 95 %",
            [f"{each.run_seconds[0]:.1f}, {each.run_seconds[1]:.1f}" for each in needs],
        ),
        ("simulated: longest wait for the provider", [f"{each.limited_seconds:.1f} s" for each in needs]),
    ]
    head = " | ".join(["runs a day", *(f"{each.runs:,}" for each in needs)])
    return table(head, [" | ".join([name, *values]) for name, values in lines])


def _gigabytes(run: dict[str, Any], need: Need, at_once: int) -> float:
    at_rest = sum(count * run["warm_megabytes"][pool] for pool, count in need.processes.items())
    return float(at_rest + at_once * sum(run["run_megabytes"].values())) / 1_000


def plot(name: str, title: str, across: str, series: dict[str, list[tuple[float, float]]]) -> None:
    """Write lines as a picture."""
    width, height, left, low = 640, 320, 56, 40
    all_points = [pair for line in series.values() for pair in line]
    most_x, most_y = max(x for x, _ in all_points), max(y for _, y in all_points) * 1.1
    colours = ("#1f6f8b", "#b5541c", "#4a7c2c", "#6b3fa0")

    def at(x: float, y: float) -> str:
        return f"{left + x / most_x * (width - left - 150):.1f},{height - low - y / most_y * (height - low - 40):.1f}"

    parts = [f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for step in range(5):
        y = most_y * step / 4
        start, end = at(0, y), at(most_x, y)
        parts.append(f'<polyline points="{start} {end}" stroke="#ddd" fill="none"/>')
        parts.append(f'<text x="4" y="{start.split(",")[1]}" font-size="11">{y:,.0f}</text>')
        x_at = at(most_x * step / 4, 0).split(",")[0]
        parts.append(f'<text x="{x_at}" y="{height - 22}" font-size="11">{most_x * step / 4:,.0f}</text>')
    parts.append(f'<text x="{left}" y="{height - 6}" font-size="11">{across}</text>')
    for number, (label, line) in enumerate(series.items()):
        points = " ".join(at(x, y) for x, y in line)
        stroke = colours[number % len(colours)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="2"/>')
        parts.append(f'<text x="{width - 140}" y="{48 + 16 * number}" font-size="11" fill="{stroke}">{label}</text>')
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif"'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>\n<rect width="100%" height="100%" fill="white"/>\n'
    (DOCS / "pictures" / name).write_text(picture + "\n".join(parts) + "\n</svg>\n", encoding="utf-8")


def write_page(sections: list[str], curves: dict[int, list[tuple[float, float]]], needs: list[Need]) -> None:
    """Replace what is computed in the page on capacity, and its pictures."""
    lines = {f"{count} process" + ("es" if count > 1 else ""): line for count, line in curves.items()}
    plot("capacity-machine.svg", "Runs a minute on two cores, calls of 2 to 5 s, modelled", "runs at once", lines)
    day = {f"{need.runs:,} a day, in {need.runs // 10_000:,}": need for need in needs}
    lines = {
        label: [(hour, running / (need.runs / 10_000)) for hour, running in need.by_hour] for label, need in day.items()
    }
    plot("capacity-day.svg", "Runs at work over a simulated day, for each 10,000 runs a day", "hour", lines)
    page = DOCS / "capacity.md"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(sections) + f"\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Compute and print; with `--page` write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write tables and plots of docs/capacity.md")
    given = parser.parse_args()
    measured = json.loads(PLACE.read_text(encoding="utf-8"))
    quiet = bursts(measured)
    rows = compared(measured)
    curves = grid(measured)
    needs = [needed(measured, runs) for runs in DAYS]
    for need in needs:
        simulate(measured, need)
    dollars = " | ".join(f"{model}, $" for model in MODELS)
    sections = [
        "### One run",
        f"{measured['machine']}.",
        of_one_run(measured),
        of_pools(measured),
        "### Bursts on a quiet machine, measured and modelled",
        of_bursts(quiet),
        "### Runs a minute on a quiet machine of two cores, modelled",
        of_grid(curves),
        "![Runs a minute, modelled](pictures/capacity-machine.svg)",
        "### Runs a minute, measured and modelled",
        comparison(rows),
        "### A likely run of a real model, by strategy",
        table(f"strategy, medium depth | calls | tokens shown | tokens written | {dollars}", likely_runs()),
        "### What a day needs",
        of_days(measured, needs),
        "![Runs at work over a simulated day](pictures/capacity-day.svg)",
    ]
    print("\n\n".join(sections))
    if given.page:
        write_page(sections, curves, needs)
    rows += quiet
    beyond = [each for each in rows if abs(each["error"]) > ALLOWED_ERROR]
    if beyond:
        raise SystemExit(f"{len(beyond)} of {len(rows)} points differ by more than {ALLOWED_ERROR:.0%}")


if __name__ == "__main__":
    main()
