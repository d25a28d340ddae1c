"""Who a run's tenant is: proofs, what is no proof, and what becomes of a run without one."""

import json
from typing import Any

import pytest

from contracts.tenants import ANY_TENANT, TenantRules, proof, sign

LAB, DOOR = b"the key of the lab", b"the key of our door"
KEYS = {"lab": LAB, "other": b"the key of others", ANY_TENANT: DOOR}
RULES = TenantRules(needs_proof=True, keys=KEYS, namespaces={"of-the-lab": "lab"})
REFUSING = TenantRules(needs_proof=True, refuses=True, keys=KEYS)


def found(rules: TenantRules, given: str, named: str = "lab", ids: tuple[str, ...] = ("r-1",), at: str = "d") -> Any:
    return rules.tenant_of(named, given, ids, at)


def test_a_proof_is_for_one_run_and_one_tenant() -> None:
    """It counts more than the name in the request, and for no other run; a workflow that starts a run hands it on."""
    given = proof({"lab": LAB}, "r-1", "lab")
    assert found(REFUSING, given, named="other") == "lab"
    assert found(REFUSING, given, ids=("r-2",)) is None
    assert found(REFUSING, given, ids=("r-2", "r-1")) == "lab"


def test_a_key_of_a_door_signs_for_its_users() -> None:
    """A door that knows its users has one key for all; its own sign is no tenant."""
    assert found(REFUSING, proof({ANY_TENANT: DOOR}, "r-1", "anna"), named="anna") == "anna"
    assert found(REFUSING, json.dumps({"tenant": "*", "signature": sign(DOOR, "r-1", "*")})) is None


def test_a_client_with_one_key_need_not_name_its_tenant() -> None:
    """All that it starts is of that tenant; with several keys the request says which, and without one nothing is signed."""
    assert json.loads(proof({"lab": LAB}, "r-1", "default"))["tenant"] == "lab"
    assert proof({"lab": LAB, "other": LAB}, "r-1", "nobody") == ""
    assert proof({}, "r-1", "lab") == ""


@pytest.mark.parametrize(
    "given",
    [
        "",
        "lab",
        "[]",
        "[" * 900,
        '{"tenant": "lab"}',
        '{"tenant": "lab", "signature": ""}',
        '{"tenant": "lab", "signature": "\\ud800"}',
        '{"tenant": ["lab"], "signature": {}}',
        json.dumps({"tenant": "lab", "signature": sign(LAB, "r-1", "lab").upper()}),
        json.dumps({"tenant": "lab", "signature": sign(b"the key of others", "r-1", "lab")}),
        json.dumps({"tenant": "other", "signature": sign(LAB, "r-1", "other")}),
        json.dumps({"tenant": "unknown", "signature": sign(b"", "r-1", "unknown")}),
        " " * 1_000 + proof({"lab": LAB}, "r-1", "lab"),
    ],
)
def test_what_proves_nothing_does_not_count(given: str) -> None:
    """The operator chooses: it is of the tenant default, whatever it names, or refused."""
    assert found(REFUSING, given) is None
    assert found(RULES, given, named="lab") == "default"


def test_a_namespace_is_a_proof_of_its_own() -> None:
    """Where the engine keeps tenants apart by namespace, nothing else counts."""
    given = proof({"other": KEYS["other"]}, "r-1", "other")
    assert (found(RULES, given), found(RULES, given, at="of-the-lab")) == ("other", "lab")


def test_without_rules_the_request_is_believed() -> None:
    """An operator who limits no tenant needs no keys."""
    assert found(TenantRules(), "", named="anybody") == "anybody"
