"""Numbers that follow from numbers of the passages."""

import pytest

from contracts.evidence import Verdict
from providers.verification.derivations import derive
from providers.verification.quantities import find_quantities
from providers.verification.rules_checker import check, derivations_of

PASSAGE = "The archive grew from 40 GB to 50 GB. Of 400 members 48 voted by letter."


@pytest.mark.parametrize(
    ("claim", "formula"),
    [
        ("The archive grew by 25 %.", "(50 GB - 40 GB) / 40 GB"),
        ("The archive grew by 10 GB.", "50 GB - 40 GB"),
        ("Both together hold 90 GB.", "40 GB + 50 GB"),
        ("It is 1.25 times as large.", "50 GB / 40 GB"),
        ("12 % voted by letter.", "48 / 400"),
        ("The archive grew by 31 %.", None),
        ("The archive grew by 11 GB.", None),
    ],
)
def test_a_number_that_follows_keeps_formula_and_inputs(claim: str, formula: str | None) -> None:
    """Sum, difference, ratio and per cent of two numbers of one kind; nothing else."""
    wanted = find_quantities(claim, "en")[0]
    found = derive(wanted, find_quantities(PASSAGE, "en"))
    assert (found.formula if found else None) == formula
    assert not found or set(found.inputs) <= {"40 GB", "50 GB", "48", "400"}


def test_rules_leave_a_per_cent_that_follows_to_a_model() -> None:
    """It stands in no passage, yet is no invention: undecided; another one is not supported."""
    followed = check("The archive grew by 25 %.", ["The archive grew from 40 GB to 50 GB."])
    assert followed.verdict is Verdict.NOT_ENOUGH_INFORMATION
    told = derivations_of("The archive grew by 25 %.", ["The archive grew from 40 GB to 50 GB."])
    assert [one.reason for one in told] == ["“25 %” follows from “50 GB” and “40 GB”: (50 GB - 40 GB) / 40 GB."]
    assert check("The archive grew by 31 %.", ["The archive grew from 40 GB to 50 GB."]).verdict is Verdict.UNSUPPORTED
