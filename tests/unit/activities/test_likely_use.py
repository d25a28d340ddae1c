"""Estimates: figures of runs that a real model answered, and what they say about other runs."""

import json

from activities.likely_use import MEASURED, TABLE
from benchmarks.likely import as_text, compare
from benchmarks.real_runs import REAL_RUNS, RealRun, cost_of, likely_figures

RUNS = {
    name: {
        depth: {
            "least": {"roles": {"analyzer": [2 * size, 1_000 * size, 500]}, "in_a_row": 2, "seconds": 20, "searches": 2, "pages": 4},
            "most": {"roles": {"analyzer": [8 * size, 1_000 * size, 500]}, "in_a_row": 2, "seconds": 80, "searches": 8, "pages": 4},
        }
        for depth, size in (("light", 1), ("medium", 2))
    }
    for name in ("supervisor", "reflective")
}  # fmt: skip
"""Of fakes: at medium depth twice as many calls, each twice as large."""
REAL = RealRun(
    "supervisor", "medium", "pages", calls=2, tokens=22_000, in_a_row=2, row_output_tokens=2_000,
    roles={"analyzer": [(9_000, 1_000), (11_000, 1_000)]},
)  # fmt: skip


def test_a_depth_with_real_runs_is_estimated_at_their_mean() -> None:
    """Calls, sizes and the time of the chain, from its calls and the tokens that it writes."""
    other = RealRun("supervisor", "medium", "pages", calls=4, tokens=44_000, roles={"analyzer": [(10_000, 1_000)] * 4})
    likely = likely_figures(RUNS, [REAL, other])["supervisor"]["medium"]
    assert likely["roles"] == {"analyzer": [3.0, 10_000, 1_000]}
    assert likely["seconds"] == round(2 * 2.0 + 2_000 / 70)
    source = "from 2 runs with a real model at this depth (each 0.7 to 1.3 times that)"
    assert likely["source"] == source


def test_another_depth_is_scaled_as_runs_of_fakes_differ() -> None:
    """Half the calls of half the size, as theirs; and the line says from where."""
    likely = likely_figures(RUNS, [REAL])["supervisor"]["light"]
    assert likely["roles"] == {"analyzer": [1.0, 5_000, 1_000]}
    assert likely["source"] == "scaled from 1 run with a real model at medium depth"


def test_a_strategy_whose_runs_read_excerpts_has_their_calls_and_the_sizes_of_others() -> None:
    """Its own sizes are those of an earlier version; without any run it is scaled as the others are."""
    old = RealRun("reflective", "light", "excerpts", calls=12, tokens=9_000)
    likely = likely_figures(RUNS, [REAL, old])["reflective"]
    assert [likely[depth]["roles"]["analyzer"][:2] for depth in ("light", "medium")] == [[12.0, 5_000], [24.0, 10_000]]
    assert "1 run with a real model at this depth of an earlier version" in likely["light"]["source"]
    alone = likely_figures(RUNS, [REAL])["reflective"]["medium"]
    assert alone["roles"]["analyzer"][0] == 2.0
    assert alone["source"] == "scaled from runs of supervisor with a real model"


def test_the_stored_table_is_that_of_the_real_runs() -> None:
    """Whoever adds a run derives the table again: `python -m benchmarks.likely --again --write`."""
    derived = likely_figures(MEASURED, REAL_RUNS)
    assert derived == {
        name: {depth: runs["likely"] for depth, runs in depths.items()} for name, depths in MEASURED.items()
    }
    stored = TABLE.read_text("utf-8")
    assert as_text(json.loads(stored)) == stored


def test_estimates_are_right_within_their_factor_for_runs_of_the_product() -> None:
    """In calls, tokens and US dollars, as they are made without the run where there are others of its kind; seven of ten
    within a factor of two.
    """
    compared = compare({"runs": MEASURED})
    assert len(compared) == len(REAL_RUNS)
    judged = [one for one in compared if one.run.reads_pages]
    assert all(one.is_right for one in judged)
    assert sum(max(one.error_factors()) <= 2 for one in judged) >= 0.7 * len(judged)
    assert sum(one.alone for one in judged) >= 5
    living = next(one for one in compared if one.run.strategy == "living")
    calls, tokens, usd = cost_of(MEASURED["living"]["medium"]["likely"])
    assert (round(calls), round(tokens, -4), round(usd, 1)) == (65, 470_000, 1.6)
    assert living.real[0] == 65
