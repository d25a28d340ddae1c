"""Fitting requests into a model's context window. Pure.

`fit_request` shows the whole content of a task if there is room, else its items at the levels chosen by `allot`.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.roles import AnalyzeInput
from contracts.summaries import MIN_SUMMARY_CHARACTERS, SUMMARY_LEVELS, summary_characters
from contracts.tokens import CallFidelity, ItemFidelity, Level
from contracts.tool_turns import THINKING
from providers.errors import InvalidCall, ReservationTooSmall, SummariesNeeded
from providers.interfaces import EngineTask, PromptMessage, RenderedPrompt
from providers.models.answers import schema_text, tool_definitions
from providers.models.chat import ChatMode, ChatRequest, ToolUse
from providers.models.endpoints import ModelCandidate
from providers.tokens.allotment import (
    MAX_OUTPUT_SHARE,
    REDUCED_OUTPUT_SHARE,
    ContentItem,
    ContextBudgetExceeded,
    allot,
    available_tokens,
    call_fidelity,
    estimated_tokens,
    fidelity_of,
)
from providers.tokens.shown_sources import token_size

FRAME: Final = "frame"  # all of a prompt but its items
REMEDIES: Final = {
    "source": "lower limits.analysis_tokens",
    "finding": "research less in one run (limits.max_sources, limits.max_sub_queries)",
    "list": "research less in one run (limits.max_sources, limits.max_sub_queries)",
    "draft": "lower output.target_words",
    "turn": "continue from fewer earlier turns",
    FRAME: "shorten the question, its context or its instructions",
}
"""What to change where a kind of content fills the window even at its lowest level."""
REPAIR_TOKENS: Final = 200  # for the longest reasons of a repair
MIN_SHOWN_TOKENS: Final = 1_000
"""Fewest tokens of texts that are chosen anew for an analysis, however small the room."""
FITTING_ROUNDS: Final = 3  # attempts to allot the room, each with the overhead that the last one had around the items
BREVITY_TOKENS: Final = 20
BREVITY: Final = "\n\nKeep the whole answer under {words} words."
JSON_INSTRUCTION: Final = """

Reply with one JSON object and nothing before or after it. It must fit this JSON schema:
{schema}"""
REPAIR_INSTRUCTION: Final = """

An earlier reply to this request could not be used, for these reasons:
{problem}
Do the work again and avoid them."""


@dataclass(frozen=True)
class FittedRequest:
    """A request that fits, and the content that it shows."""

    request: ChatRequest
    estimate: int  # input tokens, erring on the high side
    items: Sequence[ItemFidelity]  # the items of the content; empty if all are whole
    fidelity: CallFidelity | None  # None if the content has no items
    warnings: list[str]
    shown_tokens: int | None  # with which the texts of the sources were chosen anew; None: as the task has them


@dataclass(frozen=True)
class AnswerForm:
    """How a model is asked for an answer of the right form."""

    mode: ChatMode
    schema: str
    """The JSON schema of the answer; empty for plain text and for turns with tools."""
    tools: list[dict[str, Any]]
    """The tools of the role; with them the answer is a call of one."""

    @property
    def instruction(self) -> str:
        """Return what the prompt must say of the form: nothing where the request itself demands it."""
        if self.schema and self.mode is ChatMode.TEXT:
            return JSON_INSTRUCTION.format(schema=self.schema)
        return ""

    def text(self, system: str) -> str:
        """Return all of a request but its prompt, to count its tokens."""
        return system + self.schema + self.instruction + (json.dumps(self.tools) if self.tools else "")


def answer_form(task: EngineTask, candidate: ModelCandidate) -> AnswerForm:
    """Return the strongest form that the model supports."""
    capabilities = candidate.capabilities
    tools = tool_definitions(task)
    if task.role.plain_text or tools:
        return AnswerForm(ChatMode.TEXT, "", tools)
    mode = capabilities.mode
    if mode is ChatMode.TOOL and capabilities.tools is ToolUse.NONE:
        mode = ChatMode.TEXT
    return AnswerForm(mode, schema_text(task.role.answer, task.input.fields_left_out), tools)


def fit_request(task: EngineTask, candidate: ModelCandidate) -> FittedRequest:
    """Build the request of a task in the strongest form that the model supports.

    Raises `SummariesNeeded` if texts that it shortens are to be summarised and the task refers to no summaries yet,
    `InvalidCall` of kind context_too_long, with need, room and remedy, if even the least content does not fit, and
    `ReservationTooSmall` if it would fit but needs more tokens than are reserved.
    """
    capabilities = candidate.capabilities
    form = answer_form(task, candidate)
    repair = ""
    if task.input.repair is not None:
        repair = REPAIR_INSTRUCTION.format(problem=task.input.repair)
    surroundings = form.text(task.system)
    chosen = _with_fitting_texts(task, candidate, surroundings, repair)
    rendered, levels, used, (room, output) = _fit(chosen, candidate, surroundings, repair)
    brevity, warnings = _brevity(task, candidate, output)
    ending = brevity + form.instruction + repair
    reserved = task.input.reserved_output_tokens
    messages = messages_for(candidate.key, rendered.messages)
    if messages and ending:
        messages[-1]["content"].append({"type": "text", "text": ending.strip()})
    request = ChatRequest(
        model=candidate.model,
        system=task.system,
        prompt=rendered.prompt if messages else rendered.prompt + ending,
        max_tokens=output if reserved is None else min(output, reserved),
        timeout_seconds=task.input.time_limit_seconds,
        json_schema=json.loads(form.schema) if form.schema else None,
        mode=form.mode,
        common_ends=rendered.common_ends,
        cache=capabilities.caching,
        messages=messages,
        tools=form.tools,
        must_call=(form.mode is ChatMode.TOOL or bool(form.tools)) and capabilities.tools is ToolUse.FORCED,
        refuses=capabilities.refuses,
    )
    items = fidelity_of(task.whole.items, levels, capabilities.token_factor, chosen.whole.items)
    is_chosen_anew = chosen is not task
    fidelity = None
    if items:
        fidelity = call_fidelity(items, room, used).with_fields(
            stored_characters=task.whole.stored_characters, considered_characters=task.whole.considered_characters
        )
    is_shortened = is_chosen_anew or bool(levels)
    if is_shortened and fidelity:
        warnings.insert(0, _shortening(items, fidelity, candidate))
    tokens = None
    if is_chosen_anew and isinstance(chosen.input, AnalyzeInput):
        tokens = chosen.input.shown_tokens
    return FittedRequest(request, used, items if is_shortened else (), fidelity, warnings, tokens)


def _brevity(task: EngineTask, candidate: ModelCandidate, output: int) -> tuple[str, list[str]]:
    """Return the request for an answer shorter than usual where `output` tokens or the reserved ones are fewer.

    An answer that does not know of its limit is cut by it. With it comes the warning for the report, if it needs one.
    """
    needed = task.role.output_tokens + candidate.capabilities.reasoning_tokens
    reserved = task.input.reserved_output_tokens
    if reserved is not None and reserved < output:
        warnings = []
        if task.input.shorten:
            warnings.append(f"the budget has {reserved} tokens of output: a shorter answer is requested")
        # One number for one size of answer, whatever its model may use before it.
        asked = 0 if task.input.more else task.input.asked_output_tokens
        return BREVITY.format(words=(min(reserved, asked) if asked else reserved) // 2), warnings
    if output < needed // 2:
        words = task.role.output_tokens * output // needed // 2
        return BREVITY.format(words=words), [
            f"the model allows {output} tokens of output: a shorter answer is requested"
        ]
    return "", []


def fewer_tokens(task: EngineTask) -> int:
    """Return half of the tokens that an analysis may show of its sources' texts; 0 if it cannot show less."""
    if not isinstance(task.input, AnalyzeInput):
        return 0
    fewer = max(MIN_SHOWN_TOKENS, task.input.shown_tokens // 2)
    if fewer >= task.input.shown_tokens:
        return 0
    return fewer


def _with_fitting_texts(task: EngineTask, candidate: ModelCandidate, surroundings: str, repair: str) -> EngineTask:
    """Return the task with as much of its sources' texts as fits, chosen anew.

    Unchanged if all fits, and if not even the best part of each source does: then items are shown at lower levels.
    Levels are steps: where two thirds of a page fit, the highest one below that shows two fifths.
    """
    if task.narrower is None or task.choose is None:
        return task
    room, _ = _room_to_use(task, candidate, REDUCED_OUTPUT_SHARE)
    spare = _spare_tokens(task.whole, candidate, repair)
    shown = task.choose()
    tokens = sum(token_size(one.excerpt()) for one in shown)
    chosen = task
    for _ in range(FITTING_ROUNDS):
        excess = _prompt_tokens(chosen.whole, candidate, surroundings + repair) + spare - room
        if excess <= 0:
            return chosen
        tokens -= excess / candidate.capabilities.token_factor
        if tokens < MIN_SHOWN_TOKENS:
            return task
        chosen = task.narrower(math.floor(tokens))
        if chosen.choose is None or len(chosen.choose()) < len(shown):
            return task
    if _prompt_tokens(chosen.whole, candidate, surroundings + repair) + spare > room:
        return task
    return chosen


def _prompt_tokens(rendered: RenderedPrompt, candidate: ModelCandidate, surroundings: str) -> int:
    """Return the estimated tokens of a whole request with this prompt; `surroundings` is the text around it."""
    messages = messages_for(candidate.key, rendered.messages)
    content = rendered.prompt + (json.dumps(messages, ensure_ascii=False) if messages else "")
    tokens = estimated_tokens(surroundings) + BREVITY_TOKENS + estimated_tokens(content)
    return int(candidate.capabilities.token_factor * tokens)


def _spare_tokens(whole: RenderedPrompt, candidate: ModelCandidate, repair: str) -> float:
    """Return the tokens that a first call leaves for the reasons of a repair, so that this shows the same content."""
    if not whole.items:
        return 0.0
    return candidate.capabilities.token_factor * max(0.0, REPAIR_TOKENS - estimated_tokens(repair))


def _fit(
    task: EngineTask, candidate: ModelCandidate, surroundings: str, repair: str
) -> tuple[RenderedPrompt, dict[str, Level], int, tuple[int, int]]:
    """Show the content whole, or its items at the levels that fit; `surroundings` and `repair` are the text around it.

    Returns the prompt, the levels of shortened items, the total tokens, and the room for them and for the answer. A
    first call reserves room for the reasons of a repair, so that the repair shows the same content.
    """
    whole = task.whole
    factor = candidate.capabilities.token_factor
    frame_text = surroundings + repair
    spare = _spare_tokens(whole, candidate, repair)
    rendered = whole
    used = _prompt_tokens(whole, candidate, frame_text)
    room, output = _room_to_use(task, candidate, MAX_OUTPUT_SHARE)
    levels: dict[str, Level] = {}
    if used + spare > room:
        room, output = _room_to_use(task, candidate, REDUCED_OUTPUT_SHARE)
    if used + spare > room:
        for _ in range(FITTING_ROUNDS if task.render else 0):
            # The marks of a prompt depend on its content, so the overhead around the items differs a little each time.
            frame = used + spare - factor * sum(item.size(levels.get(item.id, Level.FULL)) for item in whole.items)
            try:
                levels = allot(whole.items, room - frame, factor)
            except ContextBudgetExceeded as error:
                raise _does_not_fit(task, candidate, int(frame + error.needed)) from None
            rendered = task.render(levels)  # type: ignore[misc]
            used = _prompt_tokens(rendered, candidate, frame_text)
            if used + spare <= room:
                break
        else:
            raise _does_not_fit(task, candidate, used)
    if task.input.reserved_input_tokens is not None and used > task.input.reserved_input_tokens:
        # With less than the room for a repair, a call that is held to its size would be shortened for that alone.
        raise ReservationTooSmall(math.ceil(used + spare))
    if task.input.tokens.summarization_provider and task.input.summaries is None and not task.input.shorten:
        _require_summaries(whole.items, levels)
    return rendered, levels, used, (room, output)


def _require_summaries(items: Sequence[ContentItem], levels: dict[str, Level]) -> None:
    """Raise `SummariesNeeded` if summaries may replace texts of lowered items; short texts need none."""
    lowered = [item for item in items if levels.get(item.id) in SUMMARY_LEVELS]
    texts = dict.fromkeys((text, levels[item.id]) for item in lowered for text in item.originals())
    long = [(text, level) for text, level in texts if summary_characters(len(text), level) >= MIN_SUMMARY_CHARACTERS]
    if long:
        raise SummariesNeeded(long)


def _shortening(items: Sequence[ItemFidelity], figures: CallFidelity, candidate: ModelCandidate) -> str:
    counts = Counter(item.current_level.value.replace("_", " ") for item in items)
    levels = ", ".join(f"{count} {level}" for level, count in counts.items())
    share = figures.shown / max(1, figures.considered)
    return f"shown {share:.0%} of the content ({levels}): {candidate.label} has room for {figures.available} tokens"


def larger_first(task: EngineTask, candidates: Sequence[ModelCandidate]) -> list[ModelCandidate]:
    """Return the candidates in order, those with room for the whole content first."""
    if not task.whole.items:
        return list(candidates)
    schema = ""
    if not task.role.plain_text:
        schema = schema_text(task.role.answer, task.input.fields_left_out)
    text = task.system + schema + task.whole.prompt
    text += json.dumps([tool_definitions(task), *(item.content for item in task.whole.messages)], ensure_ascii=False)
    tokens = estimated_tokens(text) + REPAIR_TOKENS

    def is_too_small(candidate: ModelCandidate) -> bool:
        return tokens * candidate.capabilities.token_factor > room_for(task, candidate, REDUCED_OUTPUT_SHARE)[0]

    return sorted(candidates, key=is_too_small)


def _room_to_use(task: EngineTask, candidate: ModelCandidate, share: float) -> tuple[int, int]:
    """Return the room of the window, at most what is reserved if the task may show less content."""
    room, output = room_for(task, candidate, share)
    reserved = task.input.reserved_input_tokens
    return (min(room, reserved) if task.input.shorten and reserved is not None else room), output


def _does_not_fit(task: EngineTask, candidate: ModelCandidate, needed: int) -> Exception:
    """Return the error for a prompt whose least content needs this many tokens."""
    if task.input.shorten and needed <= room_for(task, candidate, REDUCED_OUTPUT_SHARE)[0]:
        return ReservationTooSmall(needed)
    return too_long(task, candidate, needed)


def too_long(task: EngineTask, candidate: ModelCandidate, needed: int) -> InvalidCall:
    """Return the error for a prompt that does not fit: need, room and remedy."""
    room, _ = room_for(task, candidate, REDUCED_OUTPUT_SHARE)
    settings = task.input.tokens
    margin = ""
    if settings.token_management_enabled:
        margin = f"with a margin of {settings.token_safety_margin:.0%} "
    advice = f", or {remedy}" if (remedy := remedy_for(task)) else ""
    return InvalidCall(
        f"the prompt needs about {needed} tokens and {candidate.label} has {margin}room for {room} "
        f"(window {window_of(task, candidate)}): use a model with a larger window{advice}",
        kind="context_too_long",
    )


def remedy_for(task: EngineTask) -> str:
    """Return what makes the largest part of a prompt smaller, at its lowest level; empty if no setting does."""
    if task.role.tools:
        return ""  # a conversation grows by its turns
    sizes = Counter[str]()
    for item in task.whole.items:
        sizes[item.kind] += math.ceil(item.size(item.ladder[-1]))
    sizes[FRAME] = math.ceil(estimated_tokens(task.system + task.whole.prompt)) - sum(
        math.ceil(item.size(Level.FULL)) for item in task.whole.items
    )
    kind = max(sizes, key=lambda name: (sizes[name], name))
    if kind == "source" and task.input.protected_source_ids:
        return "protect fewer sources"
    return REMEDIES.get(kind, "")


def window_of(task: EngineTask, candidate: ModelCandidate) -> int:
    """Return the tokens of a model's window: as set for the run, else as known."""
    own = task.input.tokens.model_context_overrides
    return own.get(candidate.name) or own.get(candidate.model) or candidate.capabilities.window


def room_for(task: EngineTask, candidate: ModelCandidate, share: float = MAX_OUTPUT_SHARE) -> tuple[int, int]:
    """Divide a model's window into tokens for the prompt and for all output of a task, which gets `share`."""
    needed = task.role.output_tokens + candidate.capabilities.reasoning_tokens
    window = window_of(task, candidate)
    return available_tokens(window, needed, candidate.capabilities.output_limit, task.input.tokens, share)


def messages_for(author: str, messages: Sequence[PromptMessage]) -> list[dict[str, Any]]:
    """Return the conversation for one model: thinking blocks go back unchanged, and only to their author."""
    conversation: list[dict[str, Any]] = []
    for message in messages:
        blocks = [block for block in message.content if message.author == author or block.get("type") not in THINKING]
        conversation.append({"role": message.role, "content": blocks})
    return conversation
