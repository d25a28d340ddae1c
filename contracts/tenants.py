"""Who a run's tenant is: the proof that a starter gives, and the rules by which workers believe it."""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from contracts.request import ResearchRequest

TENANT_HEADER: Final = "research-tenant"
"""Header of a start with the proof, as JSON; a run that another workflow starts has it in its memo."""
MAX_PROOF_BYTES: Final = 1_000
ANY_TENANT: Final = "*"
"""In place of a tenant's name: a key that may sign for all, for doors that know their users by themselves."""
DEFAULT_TENANT: Final[str] = ResearchRequest.model_fields["tenant"].default


def sign(key: bytes, research_id: str, tenant: str) -> str:
    """Return the signature of a start, in hexadecimal digits: HMAC-SHA256 over id and tenant, a line end between."""
    return hmac.new(key, f"{research_id}\n{tenant}".encode(), hashlib.sha256).hexdigest()


def proof(keys: Mapping[str, bytes], research_id: str, tenant: str) -> str:
    """Return the proof for a start by the keys of a starter; empty if it has none for the tenant.

    A starter with the key of one tenant alone starts all runs for it, whatever a request names.
    """
    own = [name for name in keys if name != ANY_TENANT]
    if tenant not in keys and len(own) == 1 and ANY_TENANT not in keys:
        tenant = own[0]
    key = keys.get(tenant) or keys.get(ANY_TENANT)
    if key is None:
        return ""
    return json.dumps({"tenant": tenant, "signature": sign(key, research_id, tenant)})


@dataclass(frozen=True)
class TenantRules:
    """How workers find a run's tenant."""

    needs_proof: bool = False
    """True if the name in a request does not count by itself."""
    refuses: bool = False
    """True if a run without proof is refused; else it is of the default tenant."""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """By namespace of the engine: the tenant of all of its runs."""
    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """By tenant, and of `ANY_TENANT`: the key that signs its starts."""

    def tenant_of(self, named: str, given: str, ids: Iterable[str], namespace: str) -> str | None:
        """Return the tenant of a run that names one and gives a proof; None: it must be refused.

        `ids` are those that may be signed: of the run, and of the workflow that started it.
        """
        if not self.needs_proof:
            return named
        if namespace in self.namespaces:
            return self.namespaces[namespace]
        return self._proven(given, ids) or (None if self.refuses else DEFAULT_TENANT)

    def _proven(self, given: str, ids: Iterable[str]) -> str | None:
        try:
            said = json.loads(given[:MAX_PROOF_BYTES])
            tenant = str(said["tenant"])
            signature = str(said["signature"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        keys = [key for key in (self.keys.get(tenant), self.keys.get(ANY_TENANT)) if key is not None]
        known = [sign(key, research_id, tenant) for key in keys for research_id in ids]
        # All are compared, so that the time says nothing about which one is nearly right.
        matches = [hmac.compare_digest(signature.encode(errors="replace"), one.encode()) for one in known]
        return tenant if any(matches) and tenant != ANY_TENANT else None
