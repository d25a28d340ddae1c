"""What the fake endpoint would bill: its own sum over the calls that it answered, independent of any client."""

import json
from dataclasses import dataclass

from contracts.resolved import ModelPrice
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_scenarios import reply_to


@dataclass(frozen=True)
class Bill:
    """Answered calls, their tokens by kind, and the price of them in US dollars."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    usd: float = 0.0

    @property
    def all_input(self) -> int:
        """The whole input, cached or not."""
        return self.input + self.cache_read + self.cache_write


def bill_of(api: MessagesApi, price: ModelPrice, *, read_factor: float = 1.0, write_factor: float = 1.0) -> Bill:
    """Every answer that arrived is billed, usable or not; an error, and one that did not arrive whole, are not."""
    total = Bill()
    for request, call in zip(api.requests, api.calls, strict=True):
        reply = reply_to(request, call.scenario)
        if not reply.is_charged:
            continue
        used = json.loads(reply.body)["usage"]
        read, written = used.get("cache_read_input_tokens") or 0, used.get("cache_creation_input_tokens") or 0
        weighted = used["input_tokens"] + read * read_factor + written * write_factor
        total = Bill(
            total.calls + 1,
            total.input + used["input_tokens"],
            total.output + used["output_tokens"],
            total.cache_read + read,
            total.cache_write + written,
            total.usd + (weighted * price.input + used["output_tokens"] * price.output) / 1e6,
        )
    return total
