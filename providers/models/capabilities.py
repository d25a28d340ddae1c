"""What a model endpoint can do: data by host and by model name, and what refused calls have taught since."""

import tomllib
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field

from contracts.base import StrictContract
from providers.models.chat import ChatMode, ToolUse
from providers.models.prices import without_date

WEAKER: Final = {
    ChatMode.NATIVE: ChatMode.TOOL,
    ChatMode.TOOL: ChatMode.TOOL_OFFERED,
    ChatMode.TOOL_OFFERED: ChatMode.TEXT,
}

STEP_DOWN: Final = 0.7
SMALLEST_WINDOW: Final = 3_000
SMALLEST_OUTPUT: Final = 500


class EndpointCapabilities(StrictContract):
    """What one model at one endpoint can do; all sizes are in tokens."""

    mode: ChatMode = ChatMode.TOOL
    """The strongest way to ask for an answer of a schema."""
    tools: ToolUse = ToolUse.FORCED
    """What it makes of the tools of a role that has some."""
    reasoning_tokens: int = 4_000
    """Room that unseen reasoning needs, above what can be seen."""
    reasons: bool = False
    """Whether it reasons by itself before it answers: it needs no tool to think with."""
    window: int = 32_000
    """Prompt and answer together."""
    output_limit: int | None = None
    caching: bool = False
    cacheable_tokens: int = 4_096
    """The shortest beginning of a prompt that the endpoint keeps."""
    counts_tokens: bool = False
    searches_web: bool = False
    """Whether it has a web search of its own."""
    token_factor: float = 1.0
    """Tokens for the same text, compared with the older tokenizers."""


class CapabilityOverrides(StrictContract):
    """An operator's or the table's own values; None leaves a capability as it is."""

    mode: ChatMode | None = None
    tools: ToolUse | None = None
    reasoning_tokens: int | None = Field(default=None, ge=0, le=200_000)
    reasons: bool | None = None
    window: int | None = Field(default=None, ge=2_000, le=10_000_000)
    output_limit: int | None = Field(default=None, ge=200, le=1_000_000)
    caching: bool | None = None
    cacheable_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    counts_tokens: bool | None = None
    searches_web: bool | None = None
    token_factor: float | None = Field(default=None, ge=0.3, le=5)


class ModelEntry(CapabilityOverrides):
    """What models have in common whose names fit one of the patterns."""

    names: list[str]


class CapabilityTable(StrictContract):
    """`endpoints.toml`."""

    default: EndpointCapabilities
    hosts: dict[str, CapabilityOverrides] = {}
    models: list[ModelEntry] = []


@cache
def capability_table() -> CapabilityTable:
    """The table that comes with the product."""
    text = files("providers.models").joinpath("endpoints.toml").read_text(encoding="utf-8")
    return CapabilityTable.model_validate(tomllib.loads(text))


@lru_cache(maxsize=1_000)
def capabilities_of(base_url: str, model: str = "", own: CapabilityOverrides | None = None) -> EndpointCapabilities:
    """What the table knows of the endpoint's host and of the model, with the operator's own values over it."""
    table = capability_table()
    name = without_date(model).lower()
    known = [
        table.hosts.get(urlsplit(base_url).hostname or "", CapabilityOverrides()),
        *(entry for entry in table.models if any(fnmatchcase(name, pattern) for pattern in entry.names)),
        own or CapabilityOverrides(),
    ]
    changes: dict[str, object] = {}
    for entry in known:
        changes |= entry.model_dump(exclude={"names"}, exclude_none=True)
    return table.default.model_copy(update=changes)


class LearntLimits:
    """Sizes learnt from refusals, by model: the table may lack the window of a model."""

    def __init__(self) -> None:
        self._windows: dict[str, int] = {}
        self._outputs: dict[str, int] = {}

    def apply(self, model: str, known: EndpointCapabilities) -> EndpointCapabilities:
        """The known capabilities, with the sizes that refusals have shown to be smaller."""
        window = min(known.window, self._windows.get(model, known.window))
        outputs = [limit for limit in (known.output_limit, self._outputs.get(model)) if limit is not None]
        return known.model_copy(update={"window": window, "output_limit": min(outputs, default=None)})

    def reduce_window(self, model: str, tokens: int) -> bool:
        """Note that so many tokens exceed the window; whether a smaller request is worth a try."""
        self._windows[model] = min(int(tokens * STEP_DOWN), self._windows.get(model, tokens))
        return self._windows[model] >= SMALLEST_WINDOW

    def reduce_output(self, model: str, tokens: int) -> bool:
        """Note that so many output tokens are refused; whether fewer are worth a try."""
        self._outputs[model] = min(int(tokens * STEP_DOWN), self._outputs.get(model, tokens))
        return self._outputs[model] >= SMALLEST_OUTPUT


class LearntModes:
    """The mode to use for each model: capabilities differ between models of one endpoint too."""

    def __init__(self) -> None:
        self._modes: dict[str, ChatMode] = {}

    def mode_for(self, model: str, first: ChatMode) -> ChatMode:
        """The strongest mode, from `first` on, that the model has not refused."""
        return self._modes.get(model, first)

    def weaken(self, model: str, mode: ChatMode) -> bool:
        """Note that the model refused a mode; whether there is a weaker one to try.

        Calls run side by side, so a refusal of a mode that has been left already changes nothing.
        """
        if mode not in WEAKER:
            return False
        order = list(ChatMode)
        known = self._modes.get(model, mode)
        self._modes[model] = max(known, WEAKER[mode], key=order.index)
        return True
