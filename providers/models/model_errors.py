"""What an error response of a model endpoint means. Messages are ours: an endpoint's own may echo the prompt."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.retry_after import retry_after_seconds

CREDENTIAL_VARIABLE: Final = "ANTHROPIC_API_KEY"
ADDRESS_VARIABLE: Final = "ANTHROPIC_BASE_URL"
MODEL_VARIABLE: Final = "RESEARCH_MODEL"


@dataclass(frozen=True)
class EndpointPlaces:
    """Where an operator sets what an endpoint needs."""

    credential: str
    address: str


DEFAULT_PLACES: Final = EndpointPlaces(CREDENTIAL_VARIABLE, ADDRESS_VARIABLE)

WORTH_TRYING_AGAIN: Final = {408, 409, 425, 499}

CONTEXT_TOO_LONG: Final = re.compile(
    r"prompt is too long|context (length|window|size|limit)|too many (input )?tokens|request.{0,20} too large"
)
UNSUPPORTED_PARAMETER: Final = re.compile(
    r"output_config|output_format|response_format|json_schema|structured output|tool_choice|\btools?\b|input_schema"
)
OUTPUT_TOO_LONG: Final = re.compile(r"max_(completion_|output_)?tokens")
UNSUPPORTED_CACHING: Final = re.compile(
    r"cache_control|prompt.caching|(system|content)\W.{0,20}should be a valid string"
)
ODD_IN_NAMES: Final = re.compile(r"[^\w.:/@-]")
LONGEST_NAME: Final = 80
UNKNOWN_MODEL: Final = re.compile(r"\bmodel\b")
NO_CREDIT: Final = re.compile(r"credit balance|billing|payment|quota exceeded")


def error_for_status(
    status: int,
    headers: Iterable[tuple[str, str]],
    detail: str,
    model: str,
    places: EndpointPlaces = DEFAULT_PLACES,
) -> ProviderError:
    """The error that a response of this status stands for.

    `detail` is the endpoint's own wording: it is only looked at, never passed on. `model` is the name that was asked
    for; it is repeated to the operator, who chose it. `places` say where the endpoint's settings are.
    """
    said = detail[:4_000].lower()
    if status == 429:
        return RateLimited("the model endpoint asks to wait (429)", retry_after=retry_after_seconds(headers))
    if status in WORTH_TRYING_AGAIN or status >= 500:
        wait = retry_after_seconds(headers)
        return Unavailable(f"the model endpoint is not available ({status})", retry_after=wait)
    if status in {401, 403}:
        return NotConfigured(f"the model endpoint refuses the credentials ({status}): set {places.credential}")
    if status == 402 or (status == 400 and NO_CREDIT.search(said)):
        return NotConfigured(f"the account behind {places.credential} cannot pay for the call ({status})")
    if 300 <= status < 400:
        return NotConfigured(f"the model endpoint has moved ({status}): set {places.address} to its new address")
    return _invalid_call(status, said, model, places)


def shown_name(model: str) -> str:
    """A model's name as it may stand in a message: a request may name anything."""
    return ODD_IN_NAMES.sub("?", model)[:LONGEST_NAME]


def _invalid_call(status: int, said: str, model: str, places: EndpointPlaces) -> InvalidCall:
    if status == 413 or CONTEXT_TOO_LONG.search(said):
        return InvalidCall(
            f"the prompt is too long for the model ({status}): use one with a larger window, "
            "or lower limits.max_sources_per_query",
            kind="context_too_long",
        )
    if status in {400, 422} and OUTPUT_TOO_LONG.search(said):
        return InvalidCall(f"the model endpoint allows no answer as long as that ({status})", kind="output_too_long")
    if status in {400, 422} and UNSUPPORTED_CACHING.search(said):
        return InvalidCall(f"the model endpoint keeps no beginnings of prompts ({status})", kind="unsupported_caching")
    if status in {400, 422} and UNSUPPORTED_PARAMETER.search(said):
        return InvalidCall(
            f"the model endpoint lacks a parameter for answers of a schema ({status})", kind="unsupported_parameter"
        )
    if status in {400, 404, 422} and UNKNOWN_MODEL.search(said):
        name = shown_name(model)
        return InvalidCall(
            f"the model endpoint does not know the model {name} ({status}): see {MODEL_VARIABLE}", kind="unknown_model"
        )
    if status == 404:
        return InvalidCall(
            f"nothing speaks the Messages API at {places.address} (404): it is written without /v1",
            kind="unknown_address",
        )
    return InvalidCall(f"the model endpoint refuses the request ({status})")
