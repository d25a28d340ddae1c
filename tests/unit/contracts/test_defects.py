"""Descriptions of unforeseen errors: the place in the product's code, and frames without messages."""

import pytest
from pydantic import BaseModel

from contracts.defects import FIRST_FRAMES, LAST_FRAMES, Defect, checked_frames, describe_error
from contracts.texts import shorten


class Model(BaseModel):
    number: int


def described(action: object, *packages: str) -> Defect:
    try:
        assert callable(action)
        action()
    except Exception as error:  # noqa: BLE001  any error is described
        return describe_error(error, packages)
    raise AssertionError("nothing was raised")


def test_the_place_is_the_innermost_frame_of_the_product_or_of_the_strategy() -> None:
    """An error that a library raises is described by the line that called the library."""
    ours = described(lambda: shorten(3, 4))  # type: ignore[arg-type]
    assert ours.place.startswith("contracts/texts.py:")
    strategy = described(lambda: vars(Model(number=1))["other"], "tests")
    assert strategy.place.startswith("tests/unit/contracts/test_defects.py:")
    library = described(lambda: Model.model_validate_json(b"{}").other, "tests")  # type: ignore[attr-defined]
    assert library.place.startswith("tests/unit/contracts/test_defects.py:")
    assert library.frames[-1].startswith("pydantic/main.py:")


def test_endless_recursion_has_its_ends() -> None:
    """The frames of a recursion are its first and its last ones."""

    def recurse() -> None:
        recurse()

    defect = described(recurse)
    assert (defect.error, len(defect.frames)) == ("RecursionError", FIRST_FRAMES + LAST_FRAMES)


@pytest.mark.parametrize("line", ["words of a page", "a/b.py:1 in c\nmore", "a/b.py:x in c", 3, "x" * 400 + ":1 in c"])
def test_a_child_that_was_taken_over_states_frames_only(line: object) -> None:
    """What is no frame is dropped, so that no text of a page reaches the log."""
    assert checked_frames([line, "a/b.py:1 in c"]) == ["a/b.py:1 in c"]
