"""Signs the starts of runs for their tenants, as `contracts.tenants` describes; for every client that has the keys."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from temporalio import client as sdk
from temporalio.api.common.v1 import Payload

from contracts import names
from contracts.messages import PrepareRequest
from contracts.tenants import DEFAULT_TENANT, TENANT_HEADER, proof
from workers.settings.loading import Settings


class TenantSigner(sdk.Interceptor):
    """Adds the proof of its tenant to each start of a run, preview, description, schedule or read of a client."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """`keys` are by tenant; the name `*` has a key that signs for any."""
        self._keys = keys

    def intercept_client(self, next: sdk.OutboundInterceptor) -> sdk.OutboundInterceptor:  # noqa: A002  the SDK's name
        """Return the interceptor of a client's calls."""
        return _SigningCalls(next, self._keys)


class _SigningCalls(sdk.OutboundInterceptor):
    def __init__(self, next_call: sdk.OutboundInterceptor, keys: Mapping[str, bytes]) -> None:
        super().__init__(next_call)
        self._keys = keys

    async def start_workflow(self, input: sdk.StartWorkflowInput) -> sdk.WorkflowHandle[Any, Any]:  # noqa: A002
        input.headers = {**input.headers, **self._headers(input.workflow, input.id, input.args)}
        return await super().start_workflow(input)

    async def create_schedule(self, input: sdk.CreateScheduleInput) -> sdk.ScheduleHandle:  # noqa: A002
        action = input.schedule.action
        if isinstance(action, sdk.ScheduleActionStartWorkflow):
            action.headers = {**(action.headers or {}), **self._headers(action.workflow, action.id, action.args)}
        return await super().create_schedule(input)

    def _headers(self, workflow: str, workflow_id: str, arguments: Sequence[Any]) -> dict[str, Payload]:
        """Return the header of a start; none for other workflows, and without a key of the tenant."""
        request = {} if workflow == names.RESEARCH_METADATA else next(iter(arguments), None)
        signed = workflow_id
        if isinstance(request, PrepareRequest):
            signed = request.research_id
            request = json.loads(request.request_json)
        if workflow not in SIGNED or not isinstance(request, Mapping):
            return {}
        if workflow in NAMED_BY:
            signed = str(request.get(NAMED_BY[workflow]))
        given = proof(self._keys, signed, str(request.get("tenant", DEFAULT_TENANT)))
        if not given:
            return {}
        return {TENANT_HEADER: Payload(metadata={"encoding": b"json/plain"}, data=given.encode())}


TRIAL: Final = "trial"
"""Id of a run that is not started, signed and checked in one process."""
NAMED_BY: Final = {names.RESEARCH_REFRESH: "continue_from", names.RESEARCH_DOCUMENT: "research_id"}
"""Workflows about a run under another id: the field of their argument that names the run."""
SIGNED: Final = frozenset(
    {names.DEEP_RESEARCH, names.DEEP_RESEARCH_PLAN, names.RESEARCH_PREVIEW, names.RESEARCH_METADATA, *NAMED_BY}
)
"""Workflows whose starts are signed."""


def tenant_here(settings: Settings, named: str | None, namespace: str) -> str | None:
    """Return the tenant of what this process starts in a namespace, as workers find it; None: they refuse it.

    `named` is the tenant of the request, None for the one of these settings. Workers are taken to have these settings.
    """
    rules = settings.tenant_rules()
    tenant = named or settings.tenant or DEFAULT_TENANT
    return rules.tenant_of(tenant, proof(rules.keys, TRIAL, tenant), [TRIAL], namespace)
