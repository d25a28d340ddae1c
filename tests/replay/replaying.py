"""Replays a recorded history and keeps what the workflow did: every command, and its answers to every query."""

import base64
import json
from dataclasses import replace
from typing import Any

from google.protobuf.json_format import MessageToDict
from temporalio.bridge.proto.workflow_activation import QueryWorkflow, WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, WorkflowInstance
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

from contracts import names
from tests.fakes.failing_strategy import failing_strategy
from tests.fakes.noting_meter import NotingMeter
from tests.toy.party import party_declared
from workers.workflow_runner import PASSED_THROUGH
from workflows.registry import WORKFLOWS

SOON = 3
"""Activations until a run that must wait for its turn does so."""
GLANCE = (names.STATUS, "__temporal_workflow_metadata")
QUESTIONS = (*GLANCE, names.PLAN, names.REPORT, names.DECISIONS, names.SOURCES, names.EVENTS)
SCHEDULED = ("activityId", "retryPolicy", "priority")


class NotingRunner(SandboxedWorkflowRunner):
    """Notes what a replayed run does and measures, and asks it twice how it stands, and every question at the end."""

    def __init__(self, halfway: int = 0) -> None:
        super().__init__(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
        self.halfway = halfway
        self.activations = 0
        self.commands: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.meter = NotingMeter()

    def create_instance(self, det: Any) -> WorkflowInstance:
        """As for a worker, but watched."""
        measured = {**det.extern_functions, "__temporal_get_metric_meter": lambda: self.meter}
        return _Noted(super().create_instance(replace(det, extern_functions=measured)), self)


class _Noted(WorkflowInstance):
    def __init__(self, instance: WorkflowInstance, notes: NotingRunner) -> None:
        self._instance = instance
        self._notes = notes

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        act.is_replaying = False  # a replay measures nothing
        completion = self._instance.activate(act)
        commands = [MessageToDict(command) for command in completion.successful.commands]
        self._notes.commands += commands
        self._notes.activations += 1
        ended = any(name.endswith("WorkflowExecution") for command in commands for name in command)
        if ended:
            self._notes.answers["at the end"] = self._ask(act, QUESTIONS)
        elif self._notes.activations in (SOON, self._notes.halfway) and not self._notes.answers.get("at the end"):
            self._notes.answers[f"after {self._notes.activations} activations"] = self._ask(act, GLANCE)
        return completion

    def _ask(self, act: WorkflowActivation, questions: tuple[str, ...]) -> dict[str, Any]:
        given = {}
        for name in questions:
            query = QueryWorkflow(query_id=name, query_type=name)
            asked = WorkflowActivation(
                run_id=act.run_id,
                timestamp=act.timestamp,
                history_length=act.history_length,
                is_replaying=act.is_replaying,
                jobs=[WorkflowActivationJob(query_workflow=query)],
            )
            [command] = self._instance.activate(asked).successful.commands
            answer = MessageToDict(command.respond_to_query)
            if "succeeded" in answer:  # a workflow is not asked what it does not declare
                given[name.strip("_")] = _decoded(answer["succeeded"]["response"])
        return given

    def get_serialization_context(self, command_info: Any) -> None:
        del command_info

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._instance.get_external_store_context(command_info)

    def get_info(self) -> Info:
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()


async def replay(document: dict[str, Any]) -> NotingRunner:
    """A run from its history. Raises what the replayer raises, such as NondeterminismError."""
    tasks = sum(event["eventType"] == "EVENT_TYPE_WORKFLOW_TASK_COMPLETED" for event in document["history"]["events"])
    runner = NotingRunner(max(SOON, tasks // 2))
    replayer = Replayer(workflows=WORKFLOWS, workflow_runner=runner, data_converter=pydantic_data_converter)
    with failing_strategy(), party_declared():
        await replayer.replay_workflow(
            WorkflowHistory.from_json(document["workflow_id"], json.dumps(document["history"]))
        )
    runner.answers["measured"] = runner.meter.told
    return runner


def asked_by_the_workflow(commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the commands of a replay say, by kind and without the numbers that only the worker knows."""
    return [
        {"kind": kind, "summary": _decoded(command.get("userMetadata", {}).get("summary"))} | SAID[kind](content)
        for command in commands
        for kind, content in command.items()
        if kind in SAID
    ]


def kept_by_the_server(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What a history says of the same commands."""
    events = [
        (event, content)
        for event in document["history"]["events"]
        for name, content in event.items()
        if name.endswith("EventAttributes")
    ]
    return [
        {"kind": KEPT[event["eventType"]][0], "summary": _decoded(event.get("userMetadata", {}).get("summary"))}
        | KEPT[event["eventType"]][1](content)
        for event, content in events
        if event["eventType"] in KEPT
    ]


def _decoded(payload: dict[str, Any] | None) -> Any:
    if payload is None:
        return None
    data = base64.b64decode(payload.get("data", ""))
    return json.loads(data) if data else None


def _without_packed(value: Any) -> Any:
    """Packed states depend on the version of a compressor."""
    if isinstance(value, dict):
        return {key: _without_packed(item) for key, item in value.items() if not key.startswith("packed")}
    return [_without_packed(item) for item in value] if isinstance(value, list) else value


def _arguments(payloads: list[dict[str, Any]]) -> Any:
    return _without_packed([_decoded(payload) for payload in payloads])


def _scheduled(activity: dict[str, Any]) -> dict[str, Any]:
    """The server writes 0 s for no limit, and lets no attempt last longer than the whole."""
    attempt, whole = (
        float(activity.get(name, "0s").removesuffix("s")) for name in ("startToCloseTimeout", "scheduleToCloseTimeout")
    )
    attempt = min(attempt, whole or attempt)
    beat = min(attempt, float(activity.get("heartbeatTimeout", "0s").removesuffix("s")))
    return {"attempt": attempt, "whole": whole, "beat": beat, **{name: activity.get(name) for name in SCHEDULED}}


def _failure(failure: dict[str, Any]) -> dict[str, Any]:
    told = failure.get("applicationFailureInfo", {})
    details = [_decoded(payload) for payload in told.get("details", {}).get("payloads", [])]
    final = told.get("nonRetryable")
    return {"message": failure.get("message"), "type": told.get("type"), "non_retryable": final, "details": details}


SAID = {
    "scheduleActivity": lambda said: {
        "what": said["activityType"],
        "queue": said["taskQueue"],
        "arguments": _arguments(said.get("arguments", [])),
        **_scheduled(said),
    },
    "startTimer": lambda said: {"seconds": said["startToFireTimeout"]},
    "startChildWorkflowExecution": lambda said: {
        "what": said["workflowType"],
        "id": said["workflowId"],
        "queue": said["taskQueue"],
        "arguments": _arguments(said["input"]),
        "closes": said["parentClosePolicy"].removeprefix("PARENT_CLOSE_POLICY_"),
    },
    "completeWorkflowExecution": lambda said: {"result": _without_packed(_decoded(said["result"]))},
    "failWorkflowExecution": lambda said: _failure(said["failure"]),
    "continueAsNewWorkflowExecution": lambda said: {"arguments": _arguments(said["arguments"])},
    "upsertWorkflowSearchAttributes": lambda said: {
        name: _decoded(value) for name, value in said["searchAttributes"]["indexedFields"].items()
    },
    "updateResponse": lambda said: (
        {"accepted": True} if "accepted" in said else {"answer": _decoded(said["completed"])}
    ),
}
KEPT = {
    "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED": ("scheduleActivity", lambda kept: {
        "what": kept["activityType"]["name"],
        "queue": kept["taskQueue"]["name"],
        "arguments": _arguments(kept.get("input", {}).get("payloads", [])),
        **_scheduled(kept),
    }),
    "EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED": ("startChildWorkflowExecution", lambda kept: {
        "what": kept["workflowType"]["name"],
        "id": kept["workflowId"],
        "queue": kept["taskQueue"]["name"],
        "arguments": _arguments(kept["input"]["payloads"]),
        "closes": kept["parentClosePolicy"].removeprefix("PARENT_CLOSE_POLICY_"),
    }),
    "EVENT_TYPE_TIMER_STARTED": ("startTimer", lambda kept: {"seconds": kept["startToFireTimeout"]}),
    "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED": (
        "completeWorkflowExecution",
        lambda kept: {"result": _without_packed(_decoded(kept["result"]["payloads"][0]))},
    ),
    "EVENT_TYPE_WORKFLOW_EXECUTION_FAILED": ("failWorkflowExecution", lambda kept: _failure(kept["failure"])),
    "EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW": (
        "continueAsNewWorkflowExecution", lambda kept: {"arguments": _arguments(kept["input"]["payloads"])},
    ),
    "EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES": ("upsertWorkflowSearchAttributes", lambda kept: {
        name: _decoded(value) for name, value in kept["searchAttributes"]["indexedFields"].items()
    }),
    "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED": ("updateResponse", lambda _: {"accepted": True}),
    "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED": (
        "updateResponse", lambda kept: {"answer": _decoded(kept["outcome"]["success"]["payloads"][0])},
    ),
}  # fmt: skip
