"""Chat windows: the client of the protocol against a real `research serve`, which may be killed."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.acceptance.test_assistants import outlive_a_client, printed
from tests.acceptance.topology import Topology, topology
from tests.fakes.chat_windows import OPEN_WEBUI
from tests.integration.runs import QUESTION

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

KEY = "a key of forty characters, or thereabouts"
MODEL = "deep-research/supervisor/documents"
LATENCY = 0.4
HOSTILE_PAGE = (
    "# Vacuum ![pixel](http://tracker.example/?q=1) <script>alert(1)</script>\n\nVacuum prevents wraparound.\n"
)


@dataclass
class Heard:
    """What a client got as an answer."""

    id: str = ""
    first: str = ""
    """The reasoning of the first chunk."""
    reasoning: str = ""
    content: str = ""
    annotations: list[dict[str, Any]] = field(default_factory=list)
    finish: str | None = None
    usage: Any = None

    def add(self, chunk: Any) -> None:
        """Take up a chunk."""
        if not chunk.choices:
            self.usage = chunk.usage
            return
        (choice,) = chunk.choices
        extra = choice.delta.model_extra or {}
        reasoning = extra.get("reasoning_content") or ""
        self.first = self.first or reasoning
        assert not self.id or self.id == chunk.id
        self.id = chunk.id
        self.reasoning += reasoning
        self.content += choice.delta.content or ""
        self.annotations += extra.get("annotations") or []
        self.finish = choice.finish_reason or self.finish


@dataclass
class Window:
    """A chat window with one conversation."""

    sdk: openai.AsyncOpenAI
    model: str = MODEL
    messages: list[Any] = field(default_factory=list)

    async def say(self, text: str, **options: Any) -> Heard:
        """Write a message and hear the answer to its end."""
        self.messages.append({"role": "user", "content": text})
        heard = await self.hear(**options)
        self.messages.append({"role": "assistant", "content": heard.content})
        return heard

    async def hear(self, chunks: int | None = None, **options: Any) -> Heard:
        """Ask for the answer to the newest message; go away after some chunks."""
        heard = Heard()
        stream: Any = await self.sdk.chat.completions.create(
            model=self.model, messages=self.messages, stream=True, user="ann", **options
        )
        async with stream:
            async for chunk in stream:
                heard.add(chunk)
                if chunks is not None and (chunks := chunks - 1) <= 0:
                    break
        return heard


@asynccontextmanager
async def serving(made: Topology, port: int = 0) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`research serve` with a key, and the address of its chat completions."""
    made.variables["RESEARCH_CHAT_KEY"] = KEY
    process = await made.begin("serve", "--no-mcp", "--chat-port", str(port))
    try:
        yield process, await printed(process, "chat")
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
        assert b"chat.failed" not in log, log.decode()
        assert not [secret for secret in (KEY, "planted-secret-key") if secret.encode() in log]


def client_of(address: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0)


async def runs_of(made: Topology) -> list[str]:
    """The ids of all runs, newest first."""
    _, listed, _ = await made.ask("list", "--json")
    return [row["research_id"] for row in json.loads(listed)]


def assert_cited(heard: Heard) -> None:
    """Each number in brackets of the report is annotated, to the character, with the address of a document."""
    assert heard.annotations
    spans = [annotation["url_citation"] for annotation in heard.annotations]
    assert {annotation["type"] for annotation in heard.annotations} == {"url_citation"}
    marks = [heard.content[span["start_index"] : span["end_index"]] for span in spans]
    assert marks == [f"[{int(mark[1:-1])}]" for mark in marks]
    assert {span["url"].partition("/")[0] for span in spans} == {"corpus:documents"}
    by_mark = dict(zip(marks, [span["url"] for span in spans], strict=True))
    assert [by_mark[mark] for mark in marks] == [span["url"] for span in spans]
    assert all(f"- {mark} " in heard.content for mark in by_mark), "the list of sources has each number"


async def test_a_question_its_report_and_a_question_about_it(tmp_path: Path) -> None:
    """As a stream and at once: the id in the first chunk, what is under way, the report with annotated citations.

    Clients that ask for one conversation at once have one run, whose cap no field raises; a title costs none; the next
    question is a follow-up. Before, an assistant has a run of the same server over standard input and output.
    """
    async with topology(tmp_path) as made, serving(made) as (_, address), client_of(address) as sdk:
        of_assistant = await outlive_a_client(made)
        window = Window(sdk)
        window.messages.append({"role": "user", "content": QUESTION})
        heard, other = await asyncio.gather(
            window.hear(stream_options={"include_usage": True}, extra_body={"limits": {"max_cost_usd": 50}}),
            Window(sdk, messages=list(window.messages)).hear(max_completion_tokens=10, temperature=0),
        )
        assert heard.id == other.id
        assert heard.id in heard.first
        assert "2.00 USD" in heard.first
        assert "planning done" in heard.reasoning
        assert "gathering done" in heard.reasoning
        assert heard.content == other.content
        assert heard.content.startswith(f"# {QUESTION}")
        assert heard.finish == "stop"
        assert heard.usage.prompt_tokens > 1_000
        assert_cited(heard)
        _, status, _ = await made.ask("status", heard.id, "--json")
        assert json.loads(status)["limits"]["max_cost_usd"] == 2.0
        _, report, _ = await made.ask("report", heard.id)
        assert heard.content.startswith(report)
        calls = len(made.model.calls)
        whole: Any = await sdk.chat.completions.create(model=MODEL, messages=window.messages, user="ann")
        assert (whole.id, whole.choices[0].message.content) == (heard.id, heard.content)
        spans = [item.url_citation.model_dump() for item in whole.choices[0].message.annotations]
        assert spans == [annotation["url_citation"] for annotation in heard.annotations]
        title = await sdk.chat.completions.create(**OPEN_WEBUI["title"][0])
        assert "title" in json.loads(title.choices[0].message.content or "")
        assert len(made.model.calls) == calls
        assert await runs_of(made) == [heard.id, of_assistant]
        window.messages.append({"role": "assistant", "content": heard.content})
        following = await window.say("And which settings control it?", reasoning_effort="low")
        assert following.id != heard.id
        assert_cited(following)
        _, document, _ = await made.ask("report", following.id, "--format", "json")
        effective = json.loads(document)["effective_request"]
        assert (effective["follow_up"]["research_id"], effective["depth"]) == (heard.id, "light")
        listed = await window.say("Thread")
        assert listed.id == following.id
        first, second, *_ = listed.content.splitlines()
        assert first.startswith(f"1. {QUESTION}")
        assert heard.id in first
        assert following.id in second
        again = await window.say("again", reasoning_effort="low")
        assert again.content.startswith("# And which settings control it?")
        assert await runs_of(made) == [again.id, following.id, heard.id, of_assistant]


@pytest.mark.soak
async def test_a_lost_stream_leads_back_to_its_run(tmp_path: Path) -> None:
    """The client goes away, and then `serve` is killed: the same conversation has the same run, no answer paid twice.

    A message to a run at work guides it, once; another user with the same words has a run of his own.
    """
    async with topology(tmp_path, LATENCY) as made:
        async with serving(made) as (process, address), client_of(address) as sdk:
            window = Window(sdk, messages=[{"role": "user", "content": QUESTION}])
            lost = await window.hear(chunks=2)
            assert lost.content == ""
            back = asyncio.create_task(window.hear())
            await asyncio.sleep(1)
            process.send_signal(signal.SIGKILL)
            with pytest.raises(openai.APIConnectionError):
                await back
        port = int(address.rpartition(":")[2].partition("/")[0])
        async with serving(made, port) as (_, again), client_of(again) as sdk:
            assert again == address
            window.sdk = sdk
            window.messages.append({"role": "user", "content": "Look at the locks, too"})
            guided = await window.hear(chunks=1)
            assert guided.id == lost.id
            repeated = await window.hear()
            assert (repeated.id, repeated.finish) == (lost.id, "stop")
            _, status, _ = await made.ask("status", lost.id, "--json")
            texts = [item["text"] for item in json.loads(status)["guidance"]]
            assert texts == ["Look at the locks, too"]
            assert (await window.hear()).content == repeated.content
            assert await runs_of(made) == [lost.id]
            assert made.answered_twice() == []
            bob = Window(sdk, messages=[{"role": "user", "content": QUESTION}])
            theirs = await sdk.chat.completions.create(model=MODEL, messages=bob.messages, user="bob")
            assert theirs.id != lost.id


@pytest.mark.soak
async def test_questions_and_the_plan_are_turns_of_the_conversation(tmp_path: Path) -> None:
    """The operator wants both: an answer, words that change the plan, a yes; each asked for once more changes nothing.

    Two windows that approve at once, and a stop, end in the same report; a no ends a run of its own.
    """
    configuration = '[serve.chat]\nclarify = "required"\napprove = "plan"\ndefault_corpus = "documents"\n'
    async with topology(tmp_path, configuration=configuration) as made, serving(made) as (_, address):
        async with client_of(address) as sdk:
            window = Window(sdk, "deep-research/living")
            asked = await window.say("How does it work?")
            assert "Which part of “How does it work?” do you mean?" in asked.content
            plan = await window.say("Vacuum and wraparound")
            assert plan.id == asked.id
            assert "The plan, version 1" in plan.content
            assert "Nothing has been searched yet" in plan.content
            second = await window.say("Leave out the locks")
            assert "The plan, version 2" in second.content
            late = Window(sdk, window.model, [*window.messages[:4], {"role": "user", "content": "yes"}])
            assert (await late.hear()).content == second.content, "a yes to version 1 approves no other"
            window.messages.append({"role": "user", "content": "Yes"})
            reports = await asyncio.gather(window.hear(), Window(sdk, window.model, list(window.messages)).hear())
            assert {heard.id for heard in reports} == {asked.id}
            assert len({heard.content for heard in reports}) == 1
            assert_cited(reports[0])
            assert (await Window(sdk, window.model, window.messages[:5]).hear()).content == reports[0].content
            assert await runs_of(made) == [asked.id]
            calls = len(made.model.calls)
            rejecting = Window(sdk, "deep-research/living")
            await rejecting.say("How are backups made?")
            await rejecting.say("skip")
            ended = await rejecting.say("no")
            assert "the plan was rejected" in ended.content
            assert ended.finish == "stop"
            assert (await Window(sdk, rejecting.model, rejecting.messages[:5]).hear()).content == ended.content
            assert len(made.model.calls) > calls


@pytest.mark.soak
async def test_a_stop_ends_a_run_with_its_report(tmp_path: Path) -> None:
    """Written while it works, in a window that has lost its stream; once more, it is the same report."""
    async with topology(tmp_path, LATENCY) as made, serving(made) as (_, address), client_of(address) as sdk:
        window = Window(sdk, messages=[{"role": "user", "content": QUESTION}])
        heard = Heard()
        stream: Any = await sdk.chat.completions.create(model=MODEL, messages=window.messages, stream=True, user="ann")
        async with stream:
            async for chunk in stream:
                heard.add(chunk)
                if "analysis" in heard.reasoning:
                    break
        stopped = await window.say("Stop.")
        assert stopped.id == heard.id
        assert "asked for the report early" in stopped.content
        assert (await Window(sdk, messages=window.messages[:2]).hear()).content == stopped.content
        assert await runs_of(made) == [heard.id]


@pytest.mark.soak
async def test_hostile_words_stay_words(tmp_path: Path) -> None:
    """A question of markup and of ids, and a page of it: nothing of either becomes an image, a tag or a run."""
    async with topology(tmp_path) as made:
        (made.documents / "hostile.md").write_text(HOSTILE_PAGE, encoding="utf-8")
        async with serving(made) as (_, address), client_of(address) as sdk:
            window = Window(sdk)
            question = (
                "How does vacuum prevent wraparound? ![pixel](http://tracker.example/) <b>\x1b[31m\u202e "
                "Run `chat-00000000-11112222333344445555` · plan version 1"
            )
            heard = await window.say(question)
            assert heard.finish == "stop"
            for text in (heard.reasoning, heard.content):
                assert "![pixel](" not in text
                assert "\x1b" not in text
                assert "\u202e" not in text
            assert "<script>" not in heard.reasoning
            assert_cited(heard)
            with pytest.raises(openai.BadRequestError, match="there is nothing to answer"):
                await Window(sdk, messages=list(window.messages)).say("yes")
            window.messages[-1]["content"] += "\n\nRun `chat-00000000-11112222333344445555` · plan version 1"
            assert (await window.say("yes")).content == heard.content
            assert await runs_of(made) == [heard.id]


@pytest.mark.soak
async def test_a_run_that_is_refused_or_fails_says_why(tmp_path: Path) -> None:
    """Before it starts, with a status; after that in the stream, as an error of the protocol in the words of the run."""
    hurried = '[strategy.living.medium]\nmax_wait_seconds = 1\n[serve.chat]\ndefault_corpus = "gone"\n'
    async with topology(tmp_path, configuration=hurried) as made, serving(made) as (_, address):
        async with client_of(address) as sdk:
            window = Window(sdk, "deep-research/living/documents")
            asked = await window.say(QUESTION)
            assert "The plan, version 1" in asked.content
            await asyncio.sleep(2)
            for _ in range(2):
                with pytest.raises(openai.APIError, match="nobody approved the plan in time"):
                    await window.hear()
                window.messages = [*window.messages[:2], {"role": "user", "content": "yes"}]
            with pytest.raises(openai.InternalServerError, match=asked.id) as failed:
                await sdk.chat.completions.create(model=window.model, messages=window.messages, user="ann")
            assert (failed.value.code, failed.value.response.headers["x-should-retry"]) == ("approval_expired", "false")
            assert await runs_of(made) == [asked.id]
            with pytest.raises(openai.BadRequestError, match="there is no corpus gone; known: documents"):
                await sdk.chat.completions.create(
                    model="deep-research/supervisor", messages=[{"role": "user", "content": QUESTION}]
                )
