"""Questions to the server of a model, none of which costs anything: its protocols, and the real window of a model.

A server of one's own often runs a model with a smaller window than it was trained with, and some cut longer prompts
without a word. llama.cpp, vLLM, LM Studio and OpenRouter say the window in their list of models, Ollama elsewhere.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from providers.bounded_request import send_once
from providers.certificates import trusted_certificates
from providers.models.answers import is_count
from providers.models.chat import ChatApi, safe_name

ASK_SECONDS: Final = 5.0
LOAD_SECONDS: Final = 120.0
"""Enough for Ollama to load a model; it says the window of loaded models alone."""
MAX_LIST_BYTES: Final = 4_000_000
"""More than the longest list of models, OpenRouter's of 2026, by a factor of five."""


@dataclass(frozen=True)
class ModelWindow:
    """Tokens of prompt and answer together, as a server runs a model, and as it was trained if that is known."""

    tokens: int
    trained: int | None = None

    @property
    def is_reduced(self) -> bool:
        """True if the model was trained with a larger window."""
        return self.trained is not None and self.tokens < self.trained

    def describe(self, model: str) -> str:
        """Return how large the window of a model is, as it runs and as it was trained."""
        trained = f", trained with {self.trained:,}" if self.is_reduced else ""
        return f"{safe_name(model)} has a window of {self.tokens:,} tokens{trained}"


@dataclass(frozen=True)
class ModelServer:
    """A server that can be asked. Its methods raise nothing where it does not answer."""

    base_url: str
    api_key: str | None = None

    @property
    def _root(self) -> str:
        return self.base_url.rstrip("/").removesuffix("/v1")

    def _client(self) -> httpx2.AsyncClient:
        headers = {}
        if self.api_key:
            headers = {"authorization": f"Bearer {self.api_key}", "x-api-key": self.api_key}
        return httpx2.AsyncClient(
            trust_env=False, follow_redirects=False, headers=headers, verify=trusted_certificates(), timeout=ASK_SECONDS
        )

    async def protocols(self) -> list[ChatApi]:
        """Return the protocols that it speaks: addresses that do not answer an empty request with 404 or 405."""
        addresses = {
            ChatApi.MESSAGES: f"{self._root}/v1/messages",
            ChatApi.CHAT: f"{completions_address(self.base_url)}/chat/completions",
        }
        spoken = []
        async with self._client() as client:
            for protocol, address in addresses.items():
                try:
                    response = await client.post(address, json={})
                except (httpx2.HTTPError, httpx2.InvalidURL):
                    continue
                if response.status_code not in {404, 405}:
                    spoken.append(protocol)
        return spoken

    async def window(self, model: str) -> ModelWindow | None:
        """Return the window that the server gives a model; None if it does not say, or does not answer."""
        root = self._root
        async with self._client() as client:
            if window := listed_window(await _read(client, "GET", f"{root}/v1/models"), model):
                return window
            shown = await _read(client, "POST", f"{root}/api/show", {"model": model})
            if not isinstance(shown, dict) or not shown.get("model_info"):
                return None  # not Ollama
            running = await _read(client, "GET", f"{root}/api/ps")
            if loaded_tokens(running, model) is None:
                await _read(client, "POST", f"{root}/api/generate", {"model": model, "stream": False}, LOAD_SECONDS)
                running = await _read(client, "GET", f"{root}/api/ps")
            tokens = loaded_tokens(running, model) or _parameter(shown, "num_ctx")
            if not tokens:
                return None
            return ModelWindow(tokens, _trained_tokens(shown))


def completions_address(base_url: str) -> str:
    """Return the address below which `chat/completions` is: as written if it has a version or `openai`, else `/v1`."""
    address = base_url.rstrip("/")
    last = urlsplit(address).path.rpartition("/")[2]
    is_complete = last == "openai" or (last.startswith("v") and last[1:2].isdigit())
    if is_complete:
        return address
    return f"{address}/v1"


async def _read(
    client: httpx2.AsyncClient, method: str, address: str, body: object = None, seconds: float = ASK_SECONDS
) -> Any:
    """Return the JSON at an address; None where there is none, as on most servers."""
    try:
        answer = await send_once(
            client, method, address, seconds=seconds, max_bytes=MAX_LIST_BYTES, service="model", json=body
        )
        return None if answer.is_refused or answer.failure else json.loads(answer.body)
    except (httpx2.InvalidURL, ValueError, RecursionError):
        return None


def listed_window(listed: Any, model: str) -> ModelWindow | None:
    """Return the window of a model in a list of models; of the only model, whatever its name."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if not isinstance(entry, dict) or (entry.get("id") != model and len(entries) > 1):
            continue
        meta = entry["meta"] if isinstance(entry.get("meta"), dict) else {}
        trained = meta.get("n_ctx_train")
        for value in (
            meta.get("n_ctx"),  # llama.cpp
            entry.get("max_model_len"),  # vLLM
            entry.get("loaded_context_length"),  # LM Studio
            entry.get("context_length"),  # OpenRouter
        ):
            if is_count(value) and value:
                return ModelWindow(value, trained if is_count(trained) else None)
    return None


def loaded_tokens(running: Any, model: str) -> int | None:
    """Return the window of a model that Ollama has loaded; a name without a tag means the tag `latest`."""
    loaded = running.get("models") if isinstance(running, dict) else None
    if not isinstance(loaded, list):
        return None
    names = {model, f"{model}:latest"}
    for entry in loaded:
        if isinstance(entry, dict) and names & {entry.get("name"), entry.get("model")}:
            tokens = entry.get("context_length")
            if is_count(tokens) and tokens:
                return tokens
            return None
    return None


def _trained_tokens(shown: Mapping[str, Any]) -> int | None:
    information = shown["model_info"]
    if not isinstance(information, dict):
        return None
    for name, value in information.items():
        if name.endswith(".context_length") and is_count(value):
            return value
    return None


def _parameter(shown: Mapping[str, Any], wanted: str) -> int | None:
    parameters = shown.get("parameters")
    if not isinstance(parameters, str):
        return None
    for line in parameters.splitlines():
        name, _, value = line.strip().partition(" ")
        if name == wanted and value.strip().isdecimal():
            return int(value)
    return None
