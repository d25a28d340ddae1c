"""What a cancelled call still does, and what it does not."""

import asyncio

import pytest

from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatRequest
from providers.shared.cancellation_grace import begin_request, finish_within_grace
from tests.fakes.messages_api import MessagesApi

SOON = 30.0


async def cancelled_while(work_begun: asyncio.Event, call: "asyncio.Task[object]") -> None:
    """Cancel a call once its work has begun, and see that it ends as cancelled."""
    await work_begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_work_that_ends_in_its_last_moment_is_done() -> None:
    """Its effects stay, and the caller is cancelled all the same."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(0.01)
        done.set()

    await cancelled_while(begun, asyncio.create_task(finish_within_grace(work(), SOON)))
    assert done.is_set()


async def test_work_that_goes_on_is_cancelled() -> None:
    """A last moment is short, and the work hears of the cancellation before its caller does."""
    begun, told = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    await cancelled_while(begun, asyncio.create_task(finish_within_grace(work(), 0.01)))
    assert told.is_set()


async def test_errors_and_results_pass() -> None:
    """Without a cancellation nothing is different; an error in the last moment is nobody's any more."""

    async def fail() -> None:
        raise KeyError("own")

    async def give() -> int:
        begin_request()
        return 3

    assert await finish_within_grace(give()) == 3
    with pytest.raises(KeyError):
        await finish_within_grace(fail())

    begun = asyncio.Event()

    async def fail_later() -> None:
        begun.set()
        await asyncio.sleep(0.01)
        raise KeyError("own")

    await cancelled_while(begun, asyncio.create_task(finish_within_grace(fail_later(), SOON)))


async def test_no_request_begins_in_a_last_moment() -> None:
    """A call that was waiting for its turn when it was cancelled asks the endpoint nothing."""
    begun, turn = asyncio.Event(), asyncio.Event()
    request = ChatRequest(model="m", system="s", prompt="p", max_tokens=10, timeout_seconds=SOON)
    async with MessagesApi() as api:
        chat = AnthropicChat(api_key="k", base_url=api.base_url)

        async def work() -> None:
            begun.set()
            await turn.wait()
            await chat.complete(request)

        call = asyncio.create_task(finish_within_grace(work(), SOON))
        await begun.wait()
        call.cancel()
        await asyncio.sleep(0)
        turn.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not api.calls
        await chat.close()
