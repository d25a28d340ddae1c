"""Summaries of texts that a call has no room for, made before it is paid, by the models that the settings name."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import failures
from contracts.summaries import SummarizeInput, SummaryOrder
from workflows.run.calls import details_of
from workflows.run.context import RunContext
from workflows.run.host import abandon

NAME_DIGITS: Final = 8
"""Of a text's hash, in the name of a call."""
Make = Callable[[str, SummarizeInput], Awaitable[str | None]]
"""Has one model make one summary, under the name of an operation; None if it made none that can be used."""


class Summaries:
    """The summaries of a run, each made once."""

    def __init__(self, run: RunContext, make: Make) -> None:
        self._run = run
        self._make = make
        self._entries: dict[str, str] = {}
        """Hash of the entry by the key of its order; empty where no model made one."""

    async def gather(self, operation: str, orders: Sequence[SummaryOrder]) -> list[str]:
        """Have texts of a call summarised, at most `max_parallel` at a time; the entries of those that were."""
        run = self._run
        turns = asyncio.Semaphore(max(1, run.resolved.limits.max_parallel))
        calls = [asyncio.ensure_future(self._one(operation, order, turns)) for order in orders]
        try:
            await run.host.settle(calls)
        finally:
            await abandon(run.host, calls)
        for call in calls:
            call.result()  # raises where the run is to end
        return [entry for order in orders if (entry := self._entries[order.key])]

    async def _one(self, operation: str, order: SummaryOrder, turns: asyncio.Semaphore) -> None:
        run, tokens = self._run, self._run.resolved.tokens
        models = dict.fromkeys([tokens.summarization_provider, *tokens.summarization_providers])
        async with turns:
            for number, model in enumerate(filter(None, models), start=1):
                if self._entries.get(order.key) is not None:
                    return
                name = f"{operation}/summary/{order.text.hash[-NAME_DIGITS:]}/{order.level.value}/{number}"
                entry = await self._make(name, SummarizeInput(text=order.text, level=order.level, summarizer=model))
                if entry:
                    run.state.note_entry(entry)
                    self._entries[order.key] = entry
        if self._entries.setdefault(order.key, "") == "":
            run.degrade("summarizer: a text was shortened by its own sentences, since no model summarised it")


def orders_of(error: ActivityError) -> list[SummaryOrder]:
    """Return the summaries that a call needs first; empty for a failure of the call."""
    cause = error.cause
    if not isinstance(cause, ApplicationError) or cause.type != failures.SUMMARIES_NEEDED:
        return []
    return [SummaryOrder.model_validate(order) for order in details_of(cause)["orders"]]
