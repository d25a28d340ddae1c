"""Fits a task to a model: to its context window, and to the time that its pace allows. Pure."""

from dataclasses import dataclass, field
from typing import Any, Final

from providers.errors import InvalidCall
from providers.interfaces import EngineTask, ShortPrompt
from providers.models.capabilities import EndpointCapabilities
from providers.models.model_speed import Pace
from providers.models.tokens import estimated_tokens, text_of
from providers.models.tool_calls import messages_for

RUNTIME_OVERHEAD: Final = 10_000
"""Tokens kept free of every window, never more than a quarter of it."""
NEAR_LIMIT: Final = 0.7
"""From this share of the room on a count is worth a request."""
SHARE_OF_TIME: Final = 0.9
SHORTEST_SECONDS: Final = 1.0
FEWEST_VISIBLE: Final = 300
WORDS_PER_TOKEN: Final = 0.5
SHORT_ANSWER: Final = 0.5
"""A cap below this share of the role's own is worth a word to the model and a line in the account."""
STEPS: Final = 4
CLOSE_ENOUGH: Final = 0.92

BREVITY: Final = "\n\nKeep the whole answer under {words} words."


@dataclass(frozen=True)
class Room:
    """Tokens for the whole prompt, for the visible answer, and for everything that the model generates."""

    prompt: int
    visible: int
    output: int


@dataclass(frozen=True)
class FittedPrompt:
    """What is sent of a task."""

    prompt: str
    common_length: int
    messages: list[dict[str, Any]]
    """What was said since, of a role with tools."""
    end: str
    """What is said to the model last: that it should be brief, or nothing."""
    max_tokens: int
    estimate: int
    """Input tokens, rather too many than too few."""
    raw_estimate: float
    """The same by the estimate that all ratios refer to."""
    share: float = 1.0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PromptFitter:
    """Fits one task to one model. `extra` is what is sent besides the task's own texts: schema, instructions."""

    task: EngineTask
    model: str
    """Its name, fit for a message."""
    author: str
    """What its own earlier turns are known by."""
    capabilities: EndpointCapabilities
    extra: str
    pace: Pace | None
    seconds: float

    def estimate(self) -> float:
        """The whole request by the estimate that all ratios refer to."""
        return self._overhead() + self._said(self._whole())

    def is_near_limit(self, ratio: float) -> bool:
        """Whether knowing the number of tokens better could change anything."""
        tokens = self.estimate() * ratio
        return tokens >= NEAR_LIMIT * self._room(tokens).prompt

    def fit(self, ratio: float) -> FittedPrompt:
        """The prompt and the cap, with `ratio` counted tokens per estimated token.

        Raises `InvalidCall` of kind context_too_long when the window does not hold what a sensible answer needs.
        """
        tokens = self.estimate() * ratio
        by_window = self._room(tokens)
        room = self._limit_to_pace(by_window, tokens)
        warnings = self._explain_short_answer(room, by_window)
        short, share = self._whole(), 1.0
        if tokens > room.prompt:
            short, share, tokens = self._shorten(room.prompt, by_window.prompt, ratio)
            warnings.append(f"shown {share:.0%} of the content: {self.model} has room for {room.prompt} tokens")
        words = int(room.visible * WORDS_PER_TOKEN)
        brevity = BREVITY.format(words=words) if self._is_short(room.visible) else ""
        return FittedPrompt(
            short.prompt,
            short.common_length,
            messages_for(self.author, short.messages),
            brevity,
            room.output,
            int(tokens),
            tokens / ratio,
            share,
            [*warnings, *short.left_out],
        )

    def _overhead(self) -> float:
        return estimated_tokens(self.task.system) + estimated_tokens(self.extra) + estimated_tokens(BREVITY)

    def _is_short(self, visible: int) -> bool:
        return visible < SHORT_ANSWER * self.task.role.output_tokens

    def _room(self, prompt_tokens: float) -> Room:
        """The answer has all that the prompt leaves, or half of what there is."""
        window, visible = self.capabilities.window, self.task.role.output_tokens
        available = window - min(RUNTIME_OVERHEAD, window // 4)
        wanted = visible + self.capabilities.reasoning_tokens
        limit = min(wanted, self.capabilities.output_limit or wanted)
        output = int(min(limit, max(available // 2, available - prompt_tokens)))
        return Room(available - output, visible * output // wanted, output)

    def _limit_to_pace(self, room: Room, prompt_tokens: float) -> Room:
        """A model too slow for the whole answer writes less; if reading alone takes too long, it also reads less."""
        time = max(SHORTEST_SECONDS, self.seconds * SHARE_OF_TIME)
        reads = min(prompt_tokens, room.prompt)
        if self.pace is None or self.pace.seconds(reads, room.visible) <= time:
            return room
        reading, prompt = self.pace.seconds(reads, 0), room.prompt
        if reading > time / 2:
            reading, prompt = time / 2, min(room.prompt, int(time / 2 / self.pace.reading))
        visible = min(room.visible, max(FEWEST_VISIBLE, int((time - reading) / self.pace.writing)))
        return Room(prompt, visible, max(visible, room.output * visible // room.visible))

    def _explain_short_answer(self, room: Room, by_window: Room) -> list[str]:
        if self.pace is not None and room.visible < by_window.visible:
            pace = self.pace.tokens_per_second
            figure = f"{pace:.0f}" if pace >= 1 else f"{pace:.1g}"
            return [f"the model gives about {figure} tokens a second: shorter answers are asked for"]
        if self._is_short(room.visible):
            return [f"the model's window has {self.capabilities.window} tokens: shorter answers are asked for"]
        return []

    def _shorten(self, room: int, window_room: int, ratio: float) -> tuple[ShortPrompt, float, float]:
        """The most content that fits; where time is short, at least the least that makes sense."""
        shorten = self.task.shortened or (lambda _: self._whole())
        least = shorten(0.0)
        least_tokens = self._tokens_of(least, ratio)
        if least_tokens > window_room:
            raise InvalidCall(
                f"the prompt needs about {least_tokens:.0f} tokens and {self.model} has room for {window_room} "
                f"(window {self.capabilities.window}): use a model with a larger window{self._other_remedy()}",
                kind="context_too_long",
            )
        best, share, tokens = least, 0.0, least_tokens
        above, above_tokens = 1.0, self.estimate() * ratio
        for _ in range(STEPS):
            if tokens >= CLOSE_ENOUGH * room or above_tokens <= tokens:
                break
            tried = share + (above - share) * (CLOSE_ENOUGH + 1) / 2 * (room - tokens) / (above_tokens - tokens)
            candidate = shorten(tried)
            needed = self._tokens_of(candidate, ratio)
            if needed <= room:
                best, share, tokens = candidate, tried, needed
            else:
                above, above_tokens = tried, needed
        return best, share, tokens

    def _other_remedy(self) -> str:
        return "" if self.task.role.tools else ", or lower limits.max_sources_per_query"

    def _tokens_of(self, short: ShortPrompt, ratio: float) -> float:
        return (self._overhead() + self._said(short)) * ratio

    def _whole(self) -> ShortPrompt:
        return ShortPrompt(self.task.prompt, self.task.common_length, messages=self.task.messages)

    def _said(self, short: ShortPrompt) -> float:
        said = text_of(messages_for(self.author, short.messages))
        return estimated_tokens(short.prompt) + estimated_tokens(said)
