"""How runs ended, for the metrics of the worker that ends them; a replay counts nothing again."""

from collections import Counter

from temporalio import workflow

from contracts.outcome import ResearchResult
from contracts.state import ResearchState
from contracts.vocabulary import SourceStatus

MILLION = 1_000_000


def measure_ending(result: ResearchResult, state: ResearchState | None = None) -> None:
    """Count a run that has ended with what it used, and the sources that it could not read, by reason."""
    meter = workflow.metric_meter()
    ending = {"outcome": result.outcome.value, "stop_reason": result.stop_reason.value}
    meter.create_counter("research_runs", "Runs that ended, by outcome and stop reason").add(1, ending)
    meter.create_counter("research_tokens", "Tokens that runs used").add(result.usage.tokens)
    cost = round(result.usage.known_cost_usd * MILLION)
    meter.create_counter("research_cost_micro_usd", "What runs cost, as far as prices are known").add(cost)
    seconds = meter.create_histogram_float("research_run_seconds", "How long runs worked", "s")
    seconds.record(result.usage.active_seconds, {"outcome": result.outcome.value})
    dropped = meter.create_counter("research_sources_dropped", "Sources that could not be read, by reason")
    sources = state.sources.values() if state is not None else ()
    for reason, number in Counter(one.status_reason for one in sources if one.status is SourceStatus.FAILED).items():
        dropped.add(number, {"reason": reason})
