"""Text about a run for a person: figures, statuses and events, each on one line without control characters."""

import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from contracts.outcome import AgentProgress, Counts, Event, ResearchResult, ResearchStatus
from contracts.report import ChangeKind, ReportChanges, ReportFidelity, SourceChangeKind, ThreadAnswer
from contracts.resolved import ProviderChoice, ResolvedResearch
from contracts.texts import from_markdown, plural, shorten
from contracts.tokens import LOW_FIDELITY, FidelityTotals, Level, sum_totals
from contracts.vocabulary import NATURAL_STOPS, EngineKind, Outcome

MAX_LINE_LENGTH: Final = 240  # characters
MAX_TASK_LENGTH: Final = 120  # characters
LOW_FIDELITY_ADVICE: Final = "fewer sources (limits.max_sources_per_query) or a model with a larger window shows more"
CLOCK: Final = "%H:%M:%S"


def thread_words(counts: Counts | ThreadAnswer) -> str:
    """Say how many passages of an answer its thread already had, and how many pages are new; empty for no follow-up."""
    if not counts.sources_offered:
        return ""
    new = counts.sources - counts.sources_earlier
    verb = "was" if new == 1 else "were"
    return (
        f"{counts.passages_earlier} of {plural(counts.passages_cited, 'passage')} came from earlier answers of this "
        f"thread, {plural(new, 'new page')} {verb} read"
    )


def printable(text: str) -> str:
    """Return one line without control characters: titles and questions are untrusted and must not drive a terminal."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def pasteable(text: str) -> str:
    """Write commands in a text as this shell finds them: `.venv/bin/research` if that is not on the PATH."""
    executable = Path(sys.argv[0])
    installed = shutil.which("research")
    if executable.name != "research" or (installed and Path(installed).resolve() == executable.resolve()):
        return text
    return re.sub(r"(?<![\w./-])research(?= [a-z]+\b)", shlex.quote(str(executable)), text)


def local_time(time: str, form: str = "%Y-%m-%d %H:%M %Z") -> str:
    """Return `2026-11-22 21:16 CET`, the local time with its zone; empty without a time."""
    try:
        return datetime.fromisoformat(time).astimezone().strftime(form)
    except ValueError:
        return ""


def duration(seconds: float) -> str:
    """Format seconds as `0:07`, `12:30` or `1:05:00`."""
    minutes, remainder = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{remainder:02d}"
    return f"{minutes}:{remainder:02d}"


def seconds_since(time: str, now: datetime) -> float:
    """Return the seconds since an instant; 0 for one in the future, because two clocks never agree."""
    return max(0.0, (now - datetime.fromisoformat(time)).total_seconds())


# --- a status ------------------------------------------------------------------------------------------------------


def elapsed_at(status: ResearchStatus, now: datetime) -> float:
    """Return the active seconds by now; the status counts them up to the run's last event."""
    if status.outcome is not None or not status.as_of or status.waiting is not None:
        return status.elapsed_seconds
    return status.elapsed_seconds + seconds_since(status.as_of, now)


def waits_of(status: ResearchStatus, now: datetime) -> list[str]:
    """Return the pending calls, the longest wait first: `0:12 analyze: How are backups made?`.

    A retried call has its attempt and last failure: `0:42 plan (attempt 5: 503 Service Unavailable)`.
    """
    if status.outcome is not None:
        return []
    waits = sorted(status.awaiting, key=lambda call: call.since)
    return [
        f"{duration(seconds_since(call.since, now))} {from_markdown(call.what)}"
        + (f" (attempt {call.attempt}: {call.last_failure})" if call.attempt > 1 else "")
        for call in waits
    ]


def retries_of(status: ResearchStatus, now: datetime) -> tuple[float, str]:
    """Return the longest wait in seconds of a call that is retried, and a line about it with the last failure.

    0 and empty if no call is.
    """
    retried = [call for call in status.awaiting if call.attempt > 1]
    if not retried or status.outcome is not None:
        return 0.0, ""
    longest = min(retried, key=lambda call: call.since)
    waited = seconds_since(longest.since, now)
    others = f", and for {plural(len(retried) - 1, 'more call')}" if len(retried) > 1 else ""
    what = f"{from_markdown(longest.what)}{others} (attempt {longest.attempt}: {longest.last_failure})"
    return waited, f"waiting for {duration(waited)}: {what}"


def queue_text(status: ResearchStatus) -> str:
    """Return the place in the queue of a run that waits for its turn; empty for any other."""
    if status.queue_place is None:
        return ""
    return f"queued: place {status.queue_place} of {status.queue_length}; its clock starts when it begins"


def usage_text(status: ResearchStatus) -> str:
    """Return model calls, tokens and cost so far, with the cost cap."""
    usage = status.usage
    cap = status.limits.max_cost_usd if status.limits else None
    if status.engine == EngineKind.EXTRACTIVE and not usage.model_calls:
        known_cost = usage.known_cost_usd
        if not known_cost:
            return "no model, no cost"
        return f"cost {known_cost:.2f} USD (no model)"
    if usage.cost_usd is not None:
        cost = f"cost {usage.cost_usd:.2f} USD"
    else:
        known_cost = usage.known_cost_usd
        cost = "cost unknown"
        if known_cost:
            cost = f"cost {known_cost:.2f} USD and what has no known price"
    cap_text = f" of at most {cap:.2f}" if cap is not None and usage.known_cost_usd else ""
    return f"{plural(usage.model_calls, 'model call')} · {usage.tokens:,} tokens · {cost}{cap_text}"


def fidelity_text(totals: FidelityTotals | None) -> str:
    """Return the share of content that models were shown, with advice below one half; empty before the first call."""
    if totals is None:
        return ""
    text = f"{totals.words()} of the content of the calls to models, {totals.lowest:.0%} of one of them"
    if totals.fidelity < LOW_FIDELITY:
        return f"{text}: {LOW_FIDELITY_ADVICE}"
    return text


def levels_shown(fidelity: ReportFidelity) -> dict[str, int]:
    """Count the items of all calls by the level at which they were shown."""
    levels = [item.current_level for call in fidelity.shortened_calls for item in call.items]
    counts = Counter(levels) + Counter({Level.FULL: sum_totals(fidelity.phases.values()).items - len(levels)})
    return {level.value: counts[level] for level in Level if counts[level]}


def fidelity_lines(fidelity: ReportFidelity | None, titles: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield the share that models were shown in a run, in total, by phase and by level, and the content never shown.

    `titles` are those of sources by id.
    """
    if fidelity is None:
        yield "shown to models: nothing is recorded (no model, a draft, or tokens.token_management_enabled = false)"
        return
    yield f"shown to models: {fidelity_text(sum_totals(fidelity.phases.values()))}"
    share = fidelity.considered_share
    considered = f"; considered of the texts: {share:.0%}" if share is not None else ""
    yield f"mean of the items: {fidelity.item_mean:.0%}{considered}"
    for phase, totals in fidelity.phases.items():
        shortened = f"{totals.shortened} of {plural(totals.items, 'item')} shortened in {plural(totals.calls, 'call')}"
        yield f"{phase or 'other calls'}: {totals.words()}, {totals.lowest:.0%} in one call; {shortened}"
    levels = (f"{count} {level.replace('_', ' ')}" for level, count in levels_shown(fidelity).items())
    yield f"levels: {', '.join(levels)}"
    if fidelity.dropped_content_ids:
        named = [f"{name} “{titles[name]}”" if name in titles else name for name in fidelity.dropped_content_ids]
        yield f"dropped: {', '.join(named)}"
    if fidelity.not_analyzed:
        yield f"not analyzed: {plural(fidelity.not_analyzed, 'source')}"


def agent_text(agent: AgentProgress) -> str:
    """Return the state and the results of an agent: `running, looking · 3 sources · 5 findings`."""
    state = agent.status.value.replace("_", " ")
    parts = [f"{state}, {agent.phase}" if agent.phase else state]
    if agent.counts.sources or agent.counts.findings:
        parts += [plural(agent.counts.sources, "source"), plural(agent.counts.findings, "finding")]
    if agent.problem:
        parts.append(printable(agent.problem))
    return " · ".join(parts)


def task_text(agent: AgentProgress) -> str:
    """Return the beginning of an agent's task, at most MAX_TASK_LENGTH characters; `--json` has it whole."""
    return shorten(" ".join(printable(agent.task).split()), MAX_TASK_LENGTH)


# --- a resolved request and a result -------------------------------------------------------------------------------


def engine_text(resolved: ResolvedResearch) -> str:
    """Return the engine that writes the report: `model NAME`, or that there is none."""
    if resolved.engine is EngineKind.MODEL:
        return f"model {', '.join(sorted(set(resolved.models.values())))}"
    return f"{resolved.engine.value}, no model: passages are quoted word for word"


def providers_text(providers: Sequence[ProviderChoice]) -> str:
    """Return the search providers of a run, and the unavailable ones with the reason."""
    available = ", ".join(choice.name for choice in providers if choice.available)
    others = [f"{choice.name} ({choice.reason})" for choice in providers if not choice.available]
    if not others:
        return f"with {available}"
    return f"with {available}; not with {', '.join(others)}"


def ending_text(result: ResearchResult) -> str:
    """Return the end of a run in one line: `completed in 11 s · 4 sources cited · 14 passages quoted · no gaps`."""
    counts = result.counts
    seconds = result.usage.active_seconds
    time = ""
    if seconds:
        time = f" in {f'{seconds:.0f} s' if seconds < 120 else duration(seconds)}"
    parts = [result.outcome.value.replace("_", " ") + time]
    if result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL):
        parts += [
            f"{plural(counts.sources_cited, 'source')} cited",
            f"{plural(counts.passages_cited, 'passage')} quoted",
            f"{plural(counts.gaps_open, 'gap')} stated",
        ]
    if origin := thread_words(counts):
        parts.append(origin)
    if result.outcome is Outcome.EMPTY:
        where = ""
        if counts.documents_searched is not None:
            where = f" in {plural(counts.documents_searched, 'document')}"
        parts.append(f"no answer found{where}")
    natural = result.outcome is Outcome.PARTIAL and result.stop_reason in NATURAL_STOPS
    if result.outcome is not Outcome.COMPLETED and not natural:
        parts.append(result.stop_reason.text)
    return " · ".join(parts)


CHANGED_CLAIMS: Final = {
    ChangeKind.NEW: "new",
    ChangeKind.GONE: "gone",
    ChangeKind.WORDED_ANEW: "worded anew",
    ChangeKind.OTHER_VERDICT: "judged otherwise",
}
MAX_CHANGE_LENGTH: Final = 600
"""Limit of a statement or a passage, in characters."""


def change_lines(changes: ReportChanges) -> list[str]:
    """Return the differences between two reports: each claim with its text before and after, then each source."""
    lines = []
    for claim in changes.claims:
        lines.append(f"{CHANGED_CLAIMS[claim.kind]}, under “{claim.section}”:")
        verdicts = {"-": (claim.before, claim.verdict_before), "+": (claim.after, claim.verdict_after)}
        if claim.kind is ChangeKind.OTHER_VERDICT:
            lines += [f"= {shorten(claim.after, MAX_CHANGE_LENGTH)}"]
            lines += [f"{claim.verdict_before} → {claim.verdict_after}"]
            continue
        for sign, (text, verdict) in verdicts.items():
            if text:
                lines += [f"{sign} {shorten(text, MAX_CHANGE_LENGTH)} ({verdict})"]
    for source in changes.sources:
        reason = f" ({source.reason})" if source.reason else ""
        lines.append(f"source {source.kind.value}{reason}: {source.title} {source.url}")
        lines += [f"archived: {shorten(' '.join(passage.split()), MAX_CHANGE_LENGTH)}" for passage in source.passages]
    return lines or ["no difference"]


def change_summary(changes: ReportChanges) -> str:
    """Summarize the differences from an earlier report in one line."""
    claims = {CHANGED_CLAIMS[kind]: sum(change.kind is kind for change in changes.claims) for kind in ChangeKind}
    sources = {kind.value: sum(change.kind is kind for change in changes.sources) for kind in SourceChangeKind}
    parts = [f"{number} {label}" for label, number in claims.items() if number]
    parts += [f"{plural(number, 'source')} {label}" for label, number in sources.items() if number]
    return ", ".join(parts) or "nothing"


# --- events --------------------------------------------------------------------------------------------------------

AGENT_EVENTS: Final = ("tool.called", "leaf.read", "source.examined", "node.checked", "node.corrected")
"""Types of agent events that are shown beside those of the run."""
COURSE_CHANGES: Final = (
    *("retry", "iterate", "complete", "continue", "adjust", "decide_iteration", "gap_opened", "gap_pursued", "think"),
)
"""Decision actions that change the course of a run; other events report phases and gates."""
REPEATED: Final = ("plan.drafted", "claim.verified", "verification.summary", "report.updated", "tool.returned")
"""Types of events whose content another event repeats."""


def event_lines(events: Iterable[Event], *, in_terminal: bool = True) -> list[str]:
    """Return the lines of these events, each prefixed with its local time; in a terminal, commands can be pasted."""
    lines = []
    for event in events:
        text = shorten(printable(event_text(event)), MAX_LINE_LENGTH)
        if text:
            # Only waits name commands; titles may contain the word research.
            text = pasteable(text) if in_terminal and event.type.startswith("wait.") else text
            lines.append(f"{local_time(event.time, CLOCK)} {text}".lstrip())
    return lines


def event_text(event: Event) -> str:
    """Return the text of an event: empty if it repeats another, its type if it has no text."""
    data = event.data
    repeats = {
        "decision.recorded": data.get("action") not in COURSE_CHANGES,
        "gate.evaluated": not event.text,
        "guidance.given": data.get("origin") == "rules",  # the gate has reported what the rules demand
        "task.finished": not data.get("error"),
        "status": data.get("level") == "error",  # the end of the run reports its failure
    }
    if event.type in REPEATED or repeats.get(event.type, False):
        return ""
    sender = f"{data['scope']}: " if event.type in AGENT_EVENTS and "scope" in data else ""
    return sender + (event.text or event.type)
