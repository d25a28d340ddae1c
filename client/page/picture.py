"""A picture of a run: its calls over time by pool, what waited, what was repeated, what each cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

from client.cli.context import RunInfo
from client.client_errors import ClientError
from client.run_calls import Call
from client.view.words import duration, printable

WIDTH: Final = 960
LEFT: Final = 96
ROW: Final = 12
GAP: Final = 16
MIN_BAR: Final = 2.0
MAX_LANES: Final = 40
"""Lanes of a pool that are drawn; calls beyond them share the last one."""
TICKS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400)
"""Seconds between two lines of the scale."""
MAX_TICKS: Final = 8
LISTED_CALLS: Final = 20
TEXT: Final = 'font-size="11" fill="currentColor"'
HATCHED: Final = (
    '<defs><pattern id="waited" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch" width="2" height="4" fill="currentColor"></rect></pattern></defs>'
)
FILLS: Final = {"done": "#4a80c0", "open": "#b07a10", "repeated": "#b07a10", "failed": "#d0453f"}
"""Colours that can be seen on light and dark ground, for a report, which has no styles for pictures."""
SCALE: Final = "#88888888"
METHOD: Final = '<dl class="method">'
"""What a report says under *Method* begins there."""
LEGEND: Final = (
    "Each bar is a call; point at one to read it. Hatched: it waited for a worker. Blue: done. Yellow: not over; "
    "with a red edge: repeated. Red: failed."
)


@dataclass(frozen=True)
class Bar:
    """A call in its lane."""

    call: Call
    lane: int


async def draw_picture(run: RunInfo) -> Markup | None:
    """Draw the calls of a run from its history; None if the server does not have it any more."""
    if run.handle is None:
        return None
    try:
        calls = await run.handle.calls()
    except ClientError:
        return None
    return draw(calls, datetime.now(tz=UTC).timestamp()) if calls else None


async def with_picture(html: str, run: RunInfo) -> str:
    """Add the picture under *Method* of a report that is shown, if the server still has the histories."""
    before, opening, after = html.partition(METHOD)
    if not opening or (picture := await draw_picture(run)) is None:
        return html
    return f"{before}<figure>{picture}</figure>{opening}{after}"


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


def draw(calls: Sequence[Call], now: float) -> Markup:
    """Return the picture as SVG: a band for each pool, a bar for each call, lighter where it waited for a worker."""
    start = min(call.scheduled for call in calls)
    end = max(call.ended or now for call in calls)
    scale = (WIDTH - LEFT - 8) / max(end - start, 1.0)
    parts = [HATCHED]
    top = GAP
    for pool in dict.fromkeys(call.pool for call in calls):
        bars = lanes([call for call in calls if call.pool == pool], now)
        height = (max(bar.lane for bar in bars) + 1) * ROW
        parts.append(f'<text class="pool" x="0" y="{top + ROW - 2}" {TEXT}>{escape(pool)}</text>')
        parts += [_bar(bar, top, start, scale, now) for bar in bars]
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
        f'<p class="quiet">{LEGEND}</p>{_table(calls, now)}'
    )


def _table(calls: Sequence[Call], now: float) -> str:
    """Return the longest calls in words, for those who cannot see or point at bars."""
    longest = sorted(calls, key=lambda call: call.scheduled - (call.ended or now))[:LISTED_CALLS]
    rows = "".join(f"<li>{escape(call.pool)}: {escape(printable(describe(call, now)))}</li>" for call in longest)
    return f'<details id="longest"><summary>The longest calls in words</summary><ol>{rows}</ol></details>'


def _bar(bar: Bar, top: int, start: float, scale: float, now: float) -> str:
    call = bar.call
    y = top + bar.lane * ROW
    begun = began(call)
    x = LEFT + (call.scheduled - start) * scale
    waited = (begun - call.scheduled) * scale
    worked = max(MIN_BAR, ((call.ended or now) - begun) * scale)
    wait = (
        f'<rect class="wait" x="{x:.1f}" y="{y}" width="{waited:.1f}" height="{ROW - 2}" fill="url(#waited)"></rect>'
        if waited >= 1
        else ""
    )
    kind = "failed" if call.failed else "repeated" if call.attempt > 1 else "open" if not call.ended else "done"
    edge = f' stroke="{FILLS["failed"]}"' if kind == "repeated" else ""
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
