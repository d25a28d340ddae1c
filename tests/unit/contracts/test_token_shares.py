"""Shares of a run's tokens."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.outcome import Usage
from contracts.strategies import declared_roles, usage_by_share
from contracts.tokens import SHARE_PERCENT, TokenShare, tokens_left, tokens_of_share

MOST = 60_000


def test_the_shares_are_those_of_the_design_and_sum_up_to_all() -> None:
    """10 % for planning, 40 for analysis, 35 for synthesis, 15 for refinement (S0-165, C0-16)."""
    assert SHARE_PERCENT == {"planning": 10, "analysis": 40, "refinement": 15, "synthesis": 35}
    assert sum(SHARE_PERCENT.values()) == 100


@given(
    st.lists(st.tuples(st.sampled_from(TokenShare), st.integers(0, 40_000), st.booleans()), max_size=30),
)
def test_no_share_is_passed_and_the_report_keeps_its_own(calls: list[tuple[TokenShare, int, bool]]) -> None:
    """Whatever is called in whatever order: later shares get what is left, earlier ones never theirs."""
    taken = dict.fromkeys(TokenShare, 0)
    for share, tokens, written in calls:
        if tokens <= tokens_left(share, MOST, taken, written=written):
            taken[share] += tokens
    order, bound, used = list(TokenShare), 0, 0
    for share in order:
        bound, used = bound + tokens_of_share(share, MOST), used + taken[share]
        assert used <= bound
    if not taken[TokenShare.SYNTHESIS]:
        assert tokens_left(TokenShare.SYNTHESIS, MOST, taken, written=False) >= tokens_of_share(
            TokenShare.SYNTHESIS, MOST
        )


def test_what_a_share_leaves_goes_to_those_after_it() -> None:
    """Analysis may use what planning left; reflections before the first report have their own share alone."""
    nothing: dict[TokenShare, int] = {}
    assert tokens_left(TokenShare.ANALYSIS, MOST, {TokenShare.PLANNING: 2_000}, written=False) == 28_000
    assert tokens_left(TokenShare.PLANNING, MOST, {TokenShare.ANALYSIS: 28_000}, written=False) == 2_000
    assert tokens_left(TokenShare.REFINEMENT, MOST, nothing, written=False) == 9_000
    assert tokens_left(TokenShare.REFINEMENT, MOST, nothing, written=True) == 39_000
    assert tokens_left(TokenShare.SYNTHESIS, MOST, {TokenShare.REFINEMENT: 9_000}, written=False) == 51_000


def test_every_role_has_a_share() -> None:
    """Usage is counted by the share of its role; a role that is not known is part of the analysis."""
    used = usage_by_share(
        {role.name: Usage(input_tokens=1) for role in declared_roles()} | {"other": Usage(output_tokens=5)}
    )
    assert sum(used.values()) == len(declared_roles()) + 5
    assert all(used.values())
    writers = [role.share for role in declared_roles() if role.writes_report]
    assert set(writers) == {TokenShare.SYNTHESIS}
