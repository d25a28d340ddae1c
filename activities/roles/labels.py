"""Short names of things within one call: a model copies them without slips, and no page can know them."""

import hashlib
import hmac
from collections.abc import Iterable

from contracts.addresses import short_hash
from contracts.roles import RoleInput


def label_key(request: RoleInput) -> str:
    """What the short names of a run are made with: no page can know it, and a call that is made again has the same."""
    named = f"labels/{request.tenant}/{request.research_id}"
    return hmac.new(request.canary.encode(), named.encode(), hashlib.sha256).hexdigest()


def label_of(identity: str, key: str) -> str:
    """What an id is called in the prompts of a run: its kind and ten digits that the key is needed for.

    An id that is no longer than that keeps its name.
    """
    label = f"{identity.partition('-')[0]}-{short_hash(key, identity)}"
    return label if len(identity) > len(label) else identity


def label_all(identities: Iterable[str], key: str) -> dict[str, str]:
    """The ids of a call by their labels. A label that two ids share names neither."""
    named: dict[str, str] = {}
    shared: set[str] = set()
    for identity in dict.fromkeys(identities):
        label = label_of(identity, key)
        if label in named:
            shared.add(label)
        named[label] = identity
    return {label: identity for label, identity in named.items() if label not in shared}
