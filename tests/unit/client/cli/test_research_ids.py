"""Ids and their abbreviations."""

import re
from datetime import UTC, datetime

import pytest

from client.cli.command_errors import CommandError
from client.cli.research_ids import choose_id, new_id, resolve

KNOWN = ["r-20261121-7k3f", "r-20261121-9abc", "r-20261120-7zzz", "my-run"]


def test_a_new_id_has_its_day() -> None:
    """`r-YYYYMMDD-xxxx`, without signs that look alike."""
    made = new_id(datetime(2026, 11, 21, tzinfo=UTC))
    assert re.fullmatch(r"r-20261121-[2-9a-hjkmnp-z]{4}", made)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("last", "r-20261121-7k3f"),
        ("my-run", "my-run"),
        ("r-20261121-9", "r-20261121-9abc"),
        ("7k", "r-20261121-7k3f"),
        ("r-20261120", "r-20261120-7zzz"),
    ],
)
def test_a_unique_part_is_enough(given: str, meant: str) -> None:
    """The beginning of an id, the beginning of its end, or `last`."""
    assert resolve(given, KNOWN) == meant


def test_an_exact_id_wins_over_longer_ones() -> None:
    """An id that is the beginning of another one can still be named."""
    assert resolve("run", ["run-2", "run"]) == "run"


@pytest.mark.parametrize(
    ("given", "words"),
    [("r-20261121", "fits several runs"), ("7", "fits several runs"), ("nope", "no run 'nope'")],
)
def test_what_is_not_unique_or_not_known_is_refused_with_a_remedy(given: str, words: str) -> None:
    """Never a guess: the candidates or the command that lists them are named, exit code 2."""
    with pytest.raises(CommandError, match=words) as caught:
        resolve(given, KNOWN)
    assert caught.value.code == 2


def test_last_without_runs() -> None:
    """`last` says how to start the first run."""
    with pytest.raises(CommandError, match="research run"):
        resolve("last", [])


@pytest.mark.parametrize("given", ["last", "", "a/b", "../x", "-x", "x" * 65, "ä"])
def test_an_id_of_ones_own_is_a_plain_name(given: str) -> None:
    """An id becomes a file name and a workflow id."""
    with pytest.raises(CommandError):
        choose_id(given)
