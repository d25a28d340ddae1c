"""The runner of workflows: events that no workflow task has handled are refused."""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.bridge import worker as bridge
from temporalio.bridge._visitor import PayloadVisitor
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import PayloadCodec
from temporalio.worker import WorkflowInstance
from temporalio.worker._workflow import _WorkflowWorker
from temporalio.workflow import Info

from contracts.base import Contract
from contracts.failures import EVENTS_AFTER_TASK
from workers.pools import CheckedInstance, leave_out_external_storage, workflow_runner
from workers.temporal import DATA_CONVERTER


class Instance(WorkflowInstance):
    """An instance that handles everything."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return WorkflowActivationCompletion(run_id="done")

    def get_serialization_context(self, command_info: object) -> None:
        raise AssertionError

    def get_external_store_context(self, command_info: object) -> None:  # type: ignore[override]
        raise AssertionError

    def get_info(self) -> Info:
        raise NotImplementedError

    def get_thread_id(self) -> int:
        return 7


def activation(seconds: int, length: int, job: str) -> WorkflowActivation:
    made = WorkflowActivation(history_length=length)
    made.timestamp.FromSeconds(seconds)
    getattr(made.jobs.add(), job).SetInParent()
    return made


def test_events_after_a_task_are_refused_without_an_exception() -> None:
    """The SDK logs all frames of an exception, each time that a query comes early; a failed answer is enough."""
    activate = CheckedInstance(Instance()).activate
    assert activate(activation(1, 5, "fire_timer")).run_id == "done"
    refused = activate(activation(1, 7, "resolve_activity"))
    assert refused.failed.failure.message == EVENTS_AFTER_TASK
    assert activate(activation(1, 7, "query_workflow")).run_id == "done"
    assert activate(activation(2, 9, "resolve_activity")).run_id == "done"


def test_an_instance_has_no_payload_contexts() -> None:
    """The SDK compiles and runs code for each of them, and nothing of ours uses them; the thread is that of the SDK."""
    instance = CheckedInstance(Instance())
    assert instance.get_serialization_context(None) is instance.get_external_store_context(None) is None
    assert instance.get_thread_id() == 7


def test_validators_are_made_before_the_first_task() -> None:
    """Those of contracts wait for their first use, but not in a worker: no workflow task waits for one."""

    class Late(Contract):
        number: int = 0

    assert not Late.__pydantic_complete__
    workflow_runner()
    assert Late.__pydantic_complete__


class Turning(PayloadCodec):
    """Turns the bytes of payloads round, and counts them."""

    def __init__(self) -> None:
        self.turned = 0

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        self.turned += len(payloads)
        return [Payload(metadata=one.metadata, data=one.data[::-1]) for one in payloads]

    decode = encode


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The SDK's own module, whatever this process has put into the one that is in use."""
    spec = spec_from_file_location("temporalio.bridge.as_delivered", bridge.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return module


async def test_a_task_walks_through_its_payloads_for_the_codec_alone(
    sdk: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every payload is decoded and encoded as by the SDK's own functions, in one walk in place of three."""
    walks: list[object] = []
    visit = PayloadVisitor.visit
    monkeypatch.setattr(PayloadVisitor, "visit", lambda self, *call: walks.append(self) or visit(self, *call))
    leave_out_external_storage()
    act = activation(1, 5, "resolve_activity")
    act.jobs[0].resolve_activity.result.completed.result.data = b"answer"
    done = WorkflowActivationCompletion()
    command = done.successful.commands.add().schedule_activity
    command.arguments.add().data = b"request"
    command.headers["tenant"].data = b"proof"
    attributes = done.successful.commands.add().upsert_workflow_search_attributes
    attributes.search_attributes.indexed_fields["phase"].data = b"planning"
    for name, message in (("decode_activation", act), ("encode_completion", done)):
        results = []
        for module in (bridge, sdk):
            walks.clear()
            copied = type(message)()
            copied.CopyFrom(message)
            codec = Turning()
            await getattr(module, name)(copied, replace(DATA_CONVERTER, payload_codec=codec), False, 3)
            results.append((copied.SerializeToString(deterministic=True), codec.turned, len(walks)))
        (ours, turned, walked), (theirs, *others) = results
        assert ours == theirs != message.SerializeToString(deterministic=True)
        assert (turned, walked, others) == (1, 1, [1, 3])


def test_the_walks_of_the_sdk_are_still_where_they_were(sdk: ModuleType) -> None:
    """A version of the SDK that calls other functions before and after a task, or calls them otherwise, fails here."""
    leave_out_external_storage()
    for name in ("decode_activation", "encode_completion"):
        assert [*inspect.signature(getattr(sdk, name)).parameters] == [
            *inspect.signature(getattr(bridge, name)).parameters
        ]
    walks = inspect.getsource(sdk.decode_activation) + inspect.getsource(sdk.encode_completion)
    assert walks.count(".visit(") == 6
    handling = inspect.getsource(_WorkflowWorker)
    assert handling.count("bridge.worker.decode_activation(") == handling.count("bridge.worker.encode_completion(") == 1
