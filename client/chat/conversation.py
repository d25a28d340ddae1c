"""The meaning of a message of a conversation, by the conversation alone: which run it follows, and what that run asked.

Nothing is remembered. The id of a run is a keyed hash of the user, the model, the run before and the words since then,
so that one conversation leads to one run. The last line of each answer names its run, and what that run asks; clients
send it back with the conversation.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

from client.chat.protocol import ConversationMessage
from contracts.plan import Waiting, WaitKind
from contracts.request import Turn

FOOTING_CHARACTERS: Final = 400
"""At the end of an answer, in which its run is looked for."""
MAX_EARLIER_TURNS: Final = 5
QUESTION_CHARACTERS = 10_000
ANSWER_CHARACTERS = 20_000
"""Longest texts of an earlier turn in a request."""
USER_HEADERS: Final = ("x-openwebui-user-id", "x-librechat-user-id")
CONVERSATION_HEADERS: Final = ("x-openwebui-chat-id", "x-conversation-id")
ASKED: Final = {WaitKind.CLARIFICATION: "questions", WaitKind.APPROVAL: "plan version"}
KINDS: Final = {word: kind for kind, word in ASKED.items()}
POINTER: Final = re.compile(r"`(chat-[0-9a-f]{8}-[0-9a-f]{20})`(?: · (questions|plan version) ([0-9]{1,6}))?")

YES: Final = ("yes", "y")
NO: Final = ("no", "n")
STOP: Final = "stop"
AGAIN: Final = "again"
SKIP: Final = "skip"
OVERRULE: Final = "overrule"
THREAD: Final = "thread"
COMMANDS: Final = frozenset({*YES, *NO, STOP, AGAIN, SKIP, OVERRULE, THREAD})
"""Messages that are commands. Any other words change a plan, answer a question, guide a run or ask a new question."""


def command_of(text: str) -> str:
    """Return the command that a message is, in small letters; empty for other words."""
    command = text.strip(" \t\r\n.!").casefold()
    return command if command in COMMANDS else ""


@dataclass(frozen=True)
class Pointer:
    """A run that an answer names, and what it asked there."""

    research_id: str
    asked: WaitKind | None = None
    number: int = 0
    """Round of the questions, or version of the plan; 0 if it asked nothing."""

    @classmethod
    def of_wait(cls, research_id: str, waiting: Waiting) -> "Pointer":
        """Return the pointer to an open question."""
        is_plan = waiting.kind is WaitKind.APPROVAL
        return cls(research_id, waiting.kind, waiting.plan_version if is_plan else waiting.round)

    def line(self, *facts: str) -> str:
        """Return the last line of an answer: the run, what it asks, and some facts."""
        asks = [f"{ASKED[self.asked]} {self.number}"] if self.asked is not None else []
        return " · ".join([f"Run `{self.research_id}`", *asks, *filter(None, facts)])


@dataclass(frozen=True)
class Speaker:
    """Who speaks in which conversation, as the client says; runs of another speaker are never found."""

    secret: bytes = field(repr=False)
    user: str = ""
    conversation: str = ""
    """The client's own id of the conversation, which tells equal questions apart; empty if it sends none."""

    @classmethod
    def of(cls, secret: bytes, user: str | None, headers: Mapping[str, str]) -> "Speaker":
        """Return the speaker of a request; a user in its body comes before one in the headers."""
        named = user or next((headers[name] for name in USER_HEADERS if headers.get(name)), "")
        conversation = next((headers[name] for name in CONVERSATION_HEADERS if headers.get(name)), "")
        return cls(secret, named, conversation)

    @property
    def prefix(self) -> str:
        """The beginning of the ids of all runs of the user."""
        return f"chat-{self._digest(['user', self.user])[:8]}-"

    def run_id(self, model: str, before: str, words: Sequence[str]) -> str:
        """Return the id of the run that these words begin, after the run `before` (empty for none)."""
        return self.prefix + self._digest(["run", self.conversation, model, before, *words])[:20]

    def pointer_in(self, answer: str) -> Pointer | None:
        """Return the run that an answer names in its last line, if it is one of this user."""
        matches = list(POINTER.finditer(answer[-FOOTING_CHARACTERS:]))
        if not matches or not matches[-1][1].startswith(self.prefix):
            return None
        research_id, asked, number = matches[-1].groups()
        if asked is None:
            return Pointer(research_id)
        return Pointer(research_id, KINDS[asked], int(number))

    def _digest(self, values: list[str]) -> str:
        text = json.dumps(values, ensure_ascii=True)
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Thread:
    """A conversation as far as it matters: the last run that an answer names, and what the user has written since."""

    words: list[str]
    """Messages of the user since then, the newest last; at least one."""
    pointer: Pointer | None = None
    earlier: list[Turn] = field(default_factory=list)
    """Earlier turns without a run, as another model of the client answered them."""
    system: str = ""


def read_thread(messages: Sequence[ConversationMessage], speaker: Speaker) -> Thread:
    """Read a conversation, whose last message of the user is the one to answer."""
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    told = messages[: last + 1]
    pointer = None
    start = 0
    for index, message in enumerate(told):
        found = None
        if message.role == "assistant":
            found = speaker.pointer_in(message.text)
        if found is not None:
            pointer = found
            start = index + 1
    words = [message.text for message in told[start:] if message.role == "user" and message.text]
    system = "\n\n".join(message.text for message in messages if message.role in ("system", "developer"))
    return Thread(words, pointer, [] if pointer else _turns(told[:-1]), system)


def _turns(messages: Sequence[ConversationMessage]) -> list[Turn]:
    """Return questions with the answer that follows each, at most five, the newest last."""
    turns = []
    for message, following in pairwise(messages):
        if message.role == "user" and following.role == "assistant" and message.text and following.text:
            turns.append(Turn(question=message.text[:QUESTION_CHARACTERS], answer=following.text[:ANSWER_CHARACTERS]))
    return turns[-MAX_EARLIER_TURNS:]


@dataclass(frozen=True)
class RunMessage:
    """A message to a run: the name of a method of its handle, with the arguments."""

    method: Literal["answer", "approve_plan", "reject_plan", "revise_plan", "stop_and_report"]
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def reply_to(waiting: Waiting, text: str) -> RunMessage:
    """Return what a message says to the open question of a run."""
    command = command_of(text)
    if command == STOP:
        return RunMessage("stop_and_report")
    if waiting.kind is WaitKind.CLARIFICATION:
        return RunMessage("answer", (_answers(waiting, text), waiting.round))
    version = waiting.plan_version
    if waiting.is_phrase(text):
        return RunMessage("approve_plan", (version, text))
    if command in YES:
        return RunMessage("approve_plan", (version,))
    first, _, rest = text.partition(" ")
    if command == OVERRULE or (first.casefold() == OVERRULE and waiting.is_phrase(rest)):
        return RunMessage("approve_plan", (version, rest or None), {"overrule": True})
    if command in NO:
        return RunMessage("reject_plan")
    return RunMessage("revise_plan", ({"guidance": text}, version))


def _answers(waiting: Waiting, text: str) -> list[str]:
    """Return a line for each question if there are as many, else the whole message as the answer to the first."""
    if command_of(text) == SKIP:
        return []
    lines = [re.sub(r"^[0-9]{1,2}[.)]\s+", "", line.strip()) for line in text.splitlines() if line.strip()]
    if len(lines) == len(waiting.questions):
        return lines
    return [text]
