"""The keys of tenants, and which starts a client signs."""

import json
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio import client as sdk

from contracts import names
from contracts.messages import PrepareRequest
from contracts.tenants import TENANT_HEADER, TenantRules
from workers.settings.loading import Settings, SettingsError, load_settings
from workers.tenants import TenantSigner, tenant_here

KEY = "1f6c0d5c6a0b4f1e"


class Sent(sdk.OutboundInterceptor):
    """Remembers the headers of what a client starts, in place of sending it."""

    def __init__(self) -> None:
        self.headers: Any = None

    async def start_workflow(self, input: Any) -> Any:  # noqa: A002
        self.headers = input.headers

    async def create_schedule(self, input: Any) -> Any:  # noqa: A002
        self.headers = input.schedule.action.headers


async def signed(workflow: str, argument: Any, workflow_id: str = "w-1") -> dict[str, str]:
    """Return the proof of a start, empty without one."""
    sent = Sent()
    start: Any = type("Start", (), {"workflow": workflow, "id": workflow_id, "args": [argument], "headers": {}})()
    await TenantSigner({"lab": KEY.encode()}).intercept_client(sent).start_workflow(start)
    return json.loads(sent.headers[TENANT_HEADER].data) if TENANT_HEADER in sent.headers else {}


def tenant(proof: dict[str, str], *ids: str) -> str | None:
    rules = TenantRules(needs_proof=True, refuses=True, keys={"lab": KEY.encode()})
    return rules.tenant_of("default", json.dumps(proof), ids, "default")


async def test_each_start_of_a_run_is_signed_for_its_id() -> None:
    """Runs and plans by their own id, previews and refreshes by that of the run; other workflows have no proof."""
    asked = {"query": "x", "tenant": "lab"}
    assert tenant(await signed(names.DEEP_RESEARCH, asked), "w-1") == "lab"
    assert tenant(await signed(names.DEEP_RESEARCH_PLAN, asked), "w-1") == "lab"
    preview = PrepareRequest(research_id="r-1", request_json=json.dumps(asked))
    assert tenant(await signed(names.RESEARCH_PREVIEW, preview), "r-1") == "lab"
    assert tenant(await signed(names.RESEARCH_REFRESH, asked | {"continue_from": "r-1"}), "r-1") == "lab"
    assert tenant(await signed(names.RESEARCH_DOCUMENT, {"research_id": "r-1", "name": "draft.md"}), "r-1") == "lab"
    assert tenant(await signed(names.RESEARCH_METADATA, None), "w-1") == "lab"
    assert await signed(names.RESEARCH_NOTICE, asked) == {}
    assert await signed(names.DEEP_RESEARCH, "hostile") == {}


async def test_a_schedule_of_refreshes_is_signed_for_its_run() -> None:
    """So that each refresh that the server starts is of the tenant that asked for it."""
    sent = Sent()
    request = {"query": "x", "tenant": "lab", "continue_from": "r-1", "refresh": True}
    action = sdk.ScheduleActionStartWorkflow(names.RESEARCH_REFRESH, request, id="r-1-refresh", task_queue="q")
    schedule = sdk.Schedule(action=action, spec=sdk.ScheduleSpec())
    made: Any = type("Create", (), {"schedule": schedule})()
    await TenantSigner({"lab": KEY.encode()}).intercept_client(sent).create_schedule(made)
    assert tenant(json.loads(sent.headers[TENANT_HEADER].data), "r-1") == "lab"


def test_keys_of_tenants_are_read_and_are_secret() -> None:
    """From the environment alone, each with its tenant; they count as secrets, and are no part of the digest."""
    settings = load_settings(environment={"RESEARCH_TENANT_KEYS": f"lab={KEY}, *=another-{KEY}"})
    assert settings.keys_of_tenants() == {"lab": KEY.encode(), "*": f"another-{KEY}".encode()}
    assert {KEY, f"another-{KEY}"} <= set(settings.secrets())
    assert KEY not in repr(settings) + repr(settings.tenant_rules()) + json.dumps(settings.describe())
    assert settings.digest() == load_settings(environment={}).digest()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (KEY, "RESEARCH_TENANT_KEYS: write it as TENANT=KEY, with commas between tenants"),
        ("lab=short", "RESEARCH_TENANT_KEYS: a key must have 16 characters or more, as "),
    ],
)
def test_a_malformed_key_is_refused_without_its_value(text: str, line: str) -> None:
    """The line names the variable and the form, and no key."""
    with pytest.raises(SettingsError, match=line) as refused:
        load_settings(environment={"RESEARCH_TENANT_KEYS": text})
    assert text.rpartition("=")[2] not in str(refused.value)


def test_a_proof_is_needed_where_tenants_have_limits_of_their_own() -> None:
    """Limits, money, places or a namespace of a tenant, or the operator's word; else requests are believed."""
    needing: list[dict[str, Any]] = [
        {"limits": {"tenants": {"lab": {"max_cost_usd": 1}}}},
        {"budgets": {"tenants": {"lab": 1}}},
        {"runs": {"tenants": {"lab": {"at_once": 9}}}},
        {"tenants": {"namespaces": {"n": "lab"}}},
        {"tenants": {"proof": True}},
    ]
    for values in needing:
        assert Settings.model_validate(values).tenant_rules().needs_proof, values
    believing: list[dict[str, Any]] = [{}, {"limits": {"ceiling": {"max_cost_usd": 1}}, "budgets": {"usd_per_day": 1}}]
    for values in believing:
        assert not Settings.model_validate(values).tenant_rules().needs_proof


def test_a_process_knows_which_tenant_its_runs_will_have() -> None:
    """By its keys, by the mapping of its namespace, and none where what is not proven is refused."""
    lab = Settings.model_validate({"tenants": {"proof": True, "unproven": "refuse"}, "tenant": "lab"})
    assert tenant_here(lab, None, "default") is None
    proven = lab.with_fields(tenant_keys=SecretStr(f"lab={KEY}"))
    assert tenant_here(proven, None, "default") == "lab"
    assert tenant_here(proven, "other", "default") == "lab"
    every = lab.with_fields(tenant_keys=SecretStr(f"*={KEY}"))
    assert (tenant_here(every, "alice", "default"), tenant_here(every, None, "default")) == ("alice", "lab")
    mapped = Settings.model_validate({"tenants": {"namespaces": {"n": "lab"}}})
    assert (tenant_here(mapped, "x", "n"), tenant_here(mapped, "x", "default")) == ("lab", "default")
    assert tenant_here(Settings(), "x", "default") == "x"
