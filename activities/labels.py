"""Short names of things within one call: a model copies them without slips, and no page can know them."""

from collections.abc import Iterable

from contracts.identity import short_hash


def label_of(identity: str, mark: str) -> str:
    """What an id is called in the prompt with this mark: its kind and ten digits that the mark is needed for.

    An id that is no longer than that keeps its name.
    """
    label = f"{identity.partition('-')[0]}-{short_hash(mark, identity)}"
    return label if len(identity) > len(label) else identity


def labelled(identities: Iterable[str], mark: str) -> dict[str, str]:
    """The ids of a call by their labels. A label that two ids share names neither."""
    named: dict[str, str] = {}
    shared: set[str] = set()
    for identity in dict.fromkeys(identities):
        label = label_of(identity, mark)
        if label in named:
            shared.add(label)
        named[label] = identity
    return {label: identity for label, identity in named.items() if label not in shared}
