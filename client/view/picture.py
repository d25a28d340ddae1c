"""A picture of a run: its calls over time by pool, what waited, what was repeated, what each cost."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

from activities.reporting.picture import add_pictures
from client.client_errors import ClientError
from client.handle import ResearchHandle
from client.run_calls import Call
from client.view.words import duration, printable

WIDTH: Final = 960  # of the picture, in its units, as are the next four
LEFT: Final = 96  # where time begins, behind the names of pools
ROW: Final = 12  # height of a lane
GAP: Final = 16  # between two pools
MIN_BAR: Final = 2.0  # width of a short call, so that it can be seen
MAX_LANES: Final = 40
"""Lanes of a pool that are drawn; calls beyond them share the last one."""
TICKS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400)
"""Seconds between two lines of the scale."""
MAX_TICKS: Final = 8
LISTED_CALLS: Final = 20
TEXT: Final = 'font-size="11" fill="currentColor"'
HATCHED: Final = (
    '<defs><pattern id="{}" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch" width="2" height="4" fill="currentColor"></rect></pattern></defs>'
)
WAITED: Final = "waited"
"""Id of the hatching; one of several pictures in a page has its number behind it."""
FILLS: Final = {"done": "#4a80c0", "open": "#b07a10", "repeated": "#b07a10", "failed": "#d0453f"}
"""Colours that can be seen on light and dark ground, for a report, which has no styles for pictures."""
SCALE: Final = "#88888888"
READING_SECONDS: Final = 20.0
"""Longest wait for the histories of a run; a report without its picture is better than none."""
LEGEND: Final = (
    "Each bar is a call; point at one to read it. Hatched: it waited for a worker. Blue: done. Yellow: not over; "
    "with a red edge: repeated. Red: failed."
)


@dataclass(frozen=True)
class Bar:
    """A call in its lane."""

    call: Call
    lane: int


async def draw_picture(handle: ResearchHandle | None, number: int = 0) -> Markup | None:
    """Draw the calls of a run from its histories; None if no server has them any more, or none answers in time.

    `number` tells several pictures in one page apart.
    """
    if handle is None:
        return None
    try:
        async with asyncio.timeout(READING_SECONDS):
            calls = await handle.calls()
    except (ClientError, TimeoutError):
        return None
    return draw(calls, datetime.now(tz=UTC).timestamp(), number) if calls else None


async def illustrate(documents: Mapping[str, bytes], handle: ResearchHandle | None) -> dict[str, bytes]:
    """Return the forms of a report, the HTML with a picture of the run's calls where a server has its histories."""
    if "html" not in documents or (picture := await draw_picture(handle)) is None:
        return dict(documents)
    return {**documents, "html": add_pictures(documents["html"].decode(), [picture]).encode()}


async def illustrate_thread(page: str, runs: Sequence[tuple[str, ResearchHandle | None]]) -> str:
    """Return the HTML of a thread with a picture below each question whose run a server has; `runs` with questions."""
    pictures = []
    for number, (question, handle) in enumerate(runs, start=1):
        if (picture := await draw_picture(handle, number)) is not None:
            pictures.append(f"<figcaption>{number} · {escape(printable(question))}</figcaption>{picture}")
    return add_pictures(page, pictures)


def lanes(calls: Iterable[Call], now: float) -> list[Bar]:
    """Put each call into the first lane that is free when it begins."""
    free: list[float] = []
    bars = []
    for call in sorted(calls, key=lambda each: each.scheduled):
        lane = next((index for index, end in enumerate(free) if end <= call.scheduled), len(free))
        if lane == len(free) and lane < MAX_LANES:
            free.append(0.0)
        lane = min(lane, MAX_LANES - 1)
        free[lane] = max(free[lane], call.ended or now)
        bars.append(Bar(call, lane))
    return bars


def draw(calls: Sequence[Call], now: float, number: int = 0) -> Markup:
    """Return the picture as SVG: a band for each pool, a bar for each call, lighter where it waited for a worker."""
    suffix = f"-{number}" if number else ""
    start = min(call.scheduled for call in calls)
    end = max(call.ended or now for call in calls)
    scale = (WIDTH - LEFT - 8) / max(end - start, 1.0)
    parts = [HATCHED.format(WAITED + suffix)]
    top = GAP
    for pool in dict.fromkeys(call.pool for call in calls):
        bars = lanes([call for call in calls if call.pool == pool], now)
        height = (max(bar.lane for bar in bars) + 1) * ROW
        parts.append(f'<text class="pool" x="0" y="{top + ROW - 2}" {TEXT}>{escape(pool)}</text>')
        parts += [_bar(bar, top, start, scale, now, suffix) for bar in bars]
        top += height + GAP
    step = next((tick for tick in TICKS if (end - start) / tick <= MAX_TICKS), TICKS[-1])
    for index in range(int((end - start) // step) + 1):
        x = LEFT + index * step * scale
        parts.append(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{GAP / 2}" y2="{top - GAP / 2}" stroke="{SCALE}"></line>'
        )
        parts.append(f'<text class="time" x="{x + 2:.1f}" y="{top + 4}" {TEXT}>{duration(index * step)}</text>')
    title = f"{len(calls)} calls in {duration(end - start)}"
    svg = "".join(parts)
    return Markup(  # noqa: S704  every text in it is escaped
        f'<svg class="calls" viewBox="0 0 {WIDTH} {top + 10}" role="img" aria-label="{title}">{svg}</svg>'
        f'<p class="quiet">{LEGEND}</p>{_table(calls, now, suffix)}'
    )


def _table(calls: Sequence[Call], now: float, suffix: str) -> str:
    """Return the longest calls in words, for those who cannot see or point at bars."""
    longest = sorted(calls, key=lambda call: call.scheduled - (call.ended or now))[:LISTED_CALLS]
    rows = "".join(f"<li>{escape(call.pool)}: {escape(printable(describe(call, now)))}</li>" for call in longest)
    return f'<details id="longest{suffix}"><summary>The longest calls in words</summary><ol>{rows}</ol></details>'


def _bar(bar: Bar, top: int, start: float, scale: float, now: float, suffix: str) -> str:
    call = bar.call
    y = top + bar.lane * ROW
    begun = began(call)
    x = LEFT + (call.scheduled - start) * scale
    waited = (begun - call.scheduled) * scale
    worked = max(MIN_BAR, ((call.ended or now) - begun) * scale)
    wait = ""
    if waited >= 1:
        place = f'x="{x:.1f}" y="{y}" width="{waited:.1f}" height="{ROW - 2}"'
        wait = f'<rect class="wait" {place} fill="url(#{WAITED}{suffix})"></rect>'
    kind = "done"
    edge = ""
    if call.failed:
        kind = "failed"
    elif call.attempt > 1:
        kind = "repeated"
        edge = f' stroke="{FILLS["failed"]}"'
    elif not call.ended:
        kind = "open"
    size = f'width="{worked:.1f}" height="{ROW - 2}"'
    work = f'<rect class="{kind}" x="{x + waited:.1f}" y="{y}" {size} fill="{FILLS[kind]}"{edge}></rect>'
    return f"<g><title>{escape(printable(describe(call, now)))}</title>{wait}{work}</g>"


def began(call: Call) -> float:
    """Return when a worker began a call; a history names that only once the call is over."""
    return call.started or call.ended or call.scheduled


def describe(call: Call, now: float) -> str:
    """Return what a bar stands for: the call, how long it waited and worked, its attempt and its cost."""
    begun = began(call)
    parts = [call.what or call.name, f"{(call.ended or now) - begun:.1f} s"]
    if begun - call.scheduled >= 0.1:
        parts.append(f"waited {begun - call.scheduled:.1f} s")
    if call.attempt > 1:
        parts.append(f"attempt {call.attempt}")
    if call.failed:
        parts.append("failed")
    if call.cost_usd:
        parts.append(f"{call.cost_usd:.3f} US dollars")
    return " · ".join(parts)
