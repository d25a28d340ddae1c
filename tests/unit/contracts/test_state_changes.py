"""A JSON value as a change of another one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.state_changes import NOTHING, apply_change, change_between, digest_of, pack_json, unpack_json

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_change_makes_the_one_of_the_other(before: object, after: object) -> None:
    """Applied to what it was made for, a change gives the value it was made of, also after being packed."""
    change = unpack_json(pack_json(change_between(before, after)))
    assert digest_of(apply_change(before, change)) == digest_of(after)


def test_what_did_not_change_is_not_sent() -> None:
    """A long list that grew by one item, and one item of an object that changed: the change holds nothing else."""
    before = {"sources": {str(number): {"title": "t" * 100} for number in range(50)}, "decisions": ["d" * 100] * 50}
    after = {
        "sources": before["sources"] | {"7": {"title": "other"}},
        "decisions": [*before["decisions"], "new"],
    }
    assert change_between(before, before) == NOTHING
    assert len(str(change_between(before, after))) < 150


@pytest.mark.parametrize("change", [["?", 1, 2], ["["], ["[", {"9": ["=", 1]}, []], ["{", {}, []], [], "="])
def test_a_change_that_does_not_fit_is_an_error(change: object) -> None:
    """An unfit change raises an error."""
    with pytest.raises(ValueError):
        apply_change([1], change)  # type: ignore[arg-type]


def test_a_digest_knows_no_order_of_keys() -> None:
    """The same value, the same digest; another one, another."""
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1}) != digest_of({"a": 1, "b": [3]})
