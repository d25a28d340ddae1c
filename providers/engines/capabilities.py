"""What a model endpoint can do: data by host, and what refused calls have taught since."""

import tomllib
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from contracts.base import StrictContract
from providers.chat import ChatMode

WEAKER: Final = {ChatMode.NATIVE: ChatMode.TOOL, ChatMode.TOOL: ChatMode.TEXT}


class EndpointCapabilities(StrictContract):
    """The strongest way to ask for an answer of a schema, and the room that unseen reasoning needs."""

    mode: ChatMode = ChatMode.TOOL
    reasoning_tokens: int = 4_000


def capabilities_of(base_url: str) -> EndpointCapabilities:
    """The entry of the endpoint's host in `endpoints.toml`, else its default."""
    text = files("providers.engines").joinpath("endpoints.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    host = urlsplit(base_url).hostname or ""
    return EndpointCapabilities.model_validate(entries.get(host, entries["default"]))


class LearntModes:
    """The mode to use for each model: capabilities differ between models of one endpoint too."""

    def __init__(self, first: ChatMode) -> None:
        self._first = first
        self._modes: dict[str, ChatMode] = {}

    def mode_for(self, model: str) -> ChatMode:
        """The strongest mode that the model has not refused."""
        return self._modes.get(model, self._first)

    def refused(self, model: str, mode: ChatMode) -> bool:
        """Note a refusal; whether there is a weaker mode to try.

        Calls run side by side, so a refusal of a mode that has been left already changes nothing.
        """
        if mode not in WEAKER:
            return False
        if self.mode_for(model) is mode:
            self._modes[model] = WEAKER[mode]
        return True
