"""Which small changes of a file are worth making."""

from benchmarks.mutant_finder import Finder

SOURCE = """
I = TypeVar("I", bound=Base)

class Host(Protocol):
    def sleep(self, seconds: float, summary: str = "") -> None: ...

def least(count: int) -> bool:
    return count < 3

def pairs(left: list[int], right: list[int]) -> None:
    both.extend(zip(left, right, strict=True))
"""


def test_what_no_test_could_notice_is_not_changed() -> None:
    """Type variables, protocols and the `strict` of a `zip` are left alone; what a function does is changed."""
    assert {(mutant.line, mutant.kind) for mutant in Finder("x.py", SOURCE).found} == {
        (8, "comparison"),
        (8, "number"),
        (8, "return"),
        (11, "removed call"),
        (11, "swapped arguments"),
    }
