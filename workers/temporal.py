"""The connection to Temporal: a cluster if the configuration names one, else the dev server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.failure.v1 import Failure
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
    PayloadConverter,
)
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError
from temporalio.runtime import Runtime
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from contracts.base import CompactModel
from contracts.names import COST_ATTRIBUTE, KEYWORD_ATTRIBUTES
from contracts.texts import shorten
from providers.errors import KeyMissing
from workers.dev_server import ServerError, describe_server, ensure_server
from workers.encryption import KeyringCodec
from workers.settings.loading import Settings, child_environment, load_settings
from workers.tenants import TenantSigner

OS_MESSAGE = re.compile(r'Os \{[^{}]*?message: "([^"]++)"')
DEFAULT_ADDRESS = "localhost:7233"
DEFAULT_NAMESPACE = "default"
LOCAL_HOSTS = {"localhost", "127.0.0.1", "[::1]"}
CALL_TIMEOUT = timedelta(seconds=10)
SHOWN_ADDRESS = 100
"""Characters of an address in a message."""

SEARCH_ATTRIBUTES: Mapping[str, "IndexedValueType.ValueType"] = {
    **dict.fromkeys(KEYWORD_ATTRIBUTES, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
    COST_ATTRIBUTE: IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
}


class CompactJsonConverter(PydanticJSONPlainPayloadConverter):
    """The SDK's converter for pydantic, which writes compact models without their defaults."""

    def to_payload(self, value: Any) -> Payload | None:
        """Return a value as JSON."""
        if not isinstance(value, CompactModel):
            return super().to_payload(value)
        return Payload(metadata={"encoding": self.encoding.encode()}, data=value.compact_json().encode())


class CompactPayloadConverter(CompositePayloadConverter):
    """The SDK's converters, with ours for JSON."""

    def __init__(self) -> None:
        json_converter = CompactJsonConverter()
        others = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(
            *(json_converter if isinstance(other, JSONPlainPayloadConverter) else other for other in others)
        )


class ShortFailureConverter(DefaultFailureConverter):
    """The SDK's converter of failures, which writes no frames of those that code raised on purpose.

    Type, message and details of an `ApplicationError` say what happened; its frames are those of the line that raises
    it. Unforeseen errors carry their frames as details.
    """

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Write a failure."""
        if isinstance(exception, ApplicationError):
            exception.__traceback__ = None
        super().to_failure(exception, payload_converter, failure)


class EncodedFailureConverter(ShortFailureConverter):
    """The converter of failures, which moves messages and frames into a payload, as only payloads are encrypted.

    That a key is missing stays readable: who lacks the key must learn which one it is.
    """

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)
        self._readable = ShortFailureConverter()

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Write a failure."""
        if isinstance(exception, KeyMissing):
            self._readable.to_failure(exception, payload_converter, failure)
        else:
            super().to_failure(exception, payload_converter, failure)


DATA_CONVERTER = DataConverter(
    payload_converter_class=cache(CompactPayloadConverter),  # type: ignore[arg-type]
    failure_converter_class=ShortFailureConverter,
)
"""One converter of payloads per process. The SDK would create one per run and two per task, each of which would rebuild
its type adapters."""


def data_converter(settings: Settings | None = None) -> DataConverter:
    """Return the converter for clients and workers of a configuration, by default the user's, with its encryption keys.

    Raises `SettingsError`, `NotConfigured`.
    """
    keyring = (settings or load_settings()).keyring
    failures = EncodedFailureConverter if keyring.current else ShortFailureConverter
    return replace(DATA_CONVERTER, payload_codec=KeyringCodec(keyring), failure_converter_class=failures)


class ServerUnreachableError(ServerError):
    """No Temporal server answers at the address."""


@dataclass(frozen=True)
class Connection:
    """A connected client, and the addresses of the server and, if known, of its web UI."""

    client: Client
    address: str
    ui_url: str | None = None


def namespace_of(settings: Settings) -> str:
    """Return the namespace in which this process starts and works, without connecting. Raises `ServerError`."""
    if not settings.uses_cluster:
        return DEFAULT_NAMESPACE
    return str(_cluster_options(settings).get("namespace", DEFAULT_NAMESPACE))


def _cluster_options(settings: Settings) -> dict[str, object]:
    """Return how to connect to the cluster, as Temporal's own variables and files say. Raises `ServerError`."""
    variables = {name: secret.get_secret_value() for name, secret in settings.temporal_variables.items()}
    try:
        options = dict(ClientConfig.load_client_connect_config(override_env_vars=child_environment() | variables))
    except (RuntimeError, ValueError, OSError) as error:
        raise ServerUnreachableError(f"the Temporal configuration cannot be used: {error}") from None
    return {"target_host": DEFAULT_ADDRESS, **options}


async def open_connection(
    settings: Settings, *, runtime: Runtime | None = None, start: bool = True, ui: bool = False
) -> Connection:
    """Connect to the cluster, else to the dev server, which `start` starts. Raises `ServerError`."""
    if settings.uses_cluster:
        options = _cluster_options(settings)
        return Connection(await _connect(options, runtime, settings), str(options["target_host"]))
    if not start and describe_server(settings.home) is None:
        raise ServerUnreachableError("no dev server is running: start one with `research serve` or `research run`")
    server = await ensure_server(settings.home, ui=ui)
    client = await _connect({"target_host": server.address}, runtime, settings)
    return Connection(client, server.address, server.ui_url or None)


async def missing_search_attributes(client: Client) -> set[str]:
    """Return the search attributes that the namespace lacks or defines with another type. Raises `RPCError`."""
    request = ListSearchAttributesRequest(namespace=client.namespace)
    known = await client.operator_service.list_search_attributes(request, timeout=CALL_TIMEOUT)
    return {name for name, kind in SEARCH_ATTRIBUTES.items() if known.custom_attributes.get(name) != kind}


async def has_search_attributes(client: Client) -> bool:
    """Return whether runs may set search attributes; false if the account may not list them. Raises `RPCError`."""
    try:
        return not await missing_search_attributes(client)
    except RPCError as error:
        if error.status in {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED}:
            return False
        raise


async def register_search_attributes(client: Client) -> set[str]:
    """Add the missing search attributes and return their names. Raises `RPCError`."""
    missing = await missing_search_attributes(client)
    if missing:
        added = {name: SEARCH_ATTRIBUTES[name] for name in missing}
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=added)
        await client.operator_service.add_search_attributes(request, timeout=CALL_TIMEOUT)
    return missing


async def _connect(options: Mapping[str, object], runtime: Runtime | None, settings: Settings) -> Client:
    keys = settings.keys_of_tenants()
    address = shorten(str(options["target_host"]), SHOWN_ADDRESS)
    if "://" in address:
        raise ServerUnreachableError(
            f"the address of Temporal is written {address}: write host:port, without {address.partition('://')[0]}://, "
            "in TEMPORAL_ADDRESS or Temporal's own configuration"
        )
    # Locally, compression gains nothing and costs a twentieth of the work of server and worker per call.
    is_local = address.rpartition(":")[0] in LOCAL_HOSTS
    compression = {"grpc_compression": GrpcCompression.NONE} if is_local else {}
    try:
        return await Client.connect(
            **{**compression, **options},  # type: ignore[arg-type]  # the SDK's typed dictionary, or just a target host
            data_converter=data_converter(settings),
            runtime=runtime,
            interceptors=[TenantSigner(keys)] if keys else [],
        )
    except (RuntimeError, ValueError) as error:  # no answer, or no address
        line = str(error).split("\n", 1)[0]
        match = OS_MESSAGE.search(line)
        reason = match[1].lower() if match else line[:200]
        raise ServerUnreachableError(
            f"no Temporal server answers at {address} ({reason}): check TEMPORAL_ADDRESS and the network"
        ) from None
