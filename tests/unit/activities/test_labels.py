"""Short names of things within one call."""

import pytest

from activities.roles import labels
from activities.roles.labels import label_all, label_of
from contracts.addresses import evidence_id

IDS = [evidence_id("src-1", place, place + 9) for place in range(300)]


def test_a_label_is_of_its_call_alone() -> None:
    """Every id has another label in another call, and each label leads back to its id."""
    assert label_all(IDS, "one") == {label_of(identity, "one"): identity for identity in IDS}
    assert len(label_all(IDS, "one")) == len(IDS)
    assert not label_all(IDS, "one").keys() & label_all(IDS, "other").keys()


def test_a_label_that_two_ids_share_names_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not clear is no citation."""
    monkeypatch.setattr(labels, "short_hash", lambda mark, identity: "00" if identity in IDS[:2] else identity[-8:])
    assert set(label_all(IDS[:4], "one").values()) == set(IDS[2:4])
