"""Which small changes of a file are worth making."""

from benchmarks.mutant_finder import Finder

SOURCE = """
I = TypeVar("I", bound=Base)

class Host(Protocol):
    def sleep(self, seconds: float, summary: str = "") -> None: ...

def least(count: int) -> bool:
    return count < 3
"""


def test_what_only_a_type_checker_reads_is_not_changed() -> None:
    """No test could notice a change of a type variable or of a protocol; one of a function is found."""
    assert {(mutant.line, mutant.kind) for mutant in Finder("x.py", SOURCE).found} == {
        (8, "comparison"),
        (8, "number"),
        (8, "return"),
    }
