"""Files of the configuration: which are read, and what is refused of one that is no configuration."""

from pathlib import Path

import pytest

from tests.unit.workers.test_settings import Places
from workers.settings.loading import FILE_NAME, Flags, SettingsError


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Empty places."""
    return Places(tmp_path)


def test_a_file_of_the_working_directory_is_not_read(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloned folder may contain a stranger's: neither a model nor a host nor anything invalid in it counts."""
    monkeypatch.chdir(places.here)
    for text in ('[models]\ndefault = "planted"\n[web]\nallow_hosts = ["planted:80"]\n', "no configuration"):
        places.write(places.here, text)
        assert (places.load().models.default, places.load().web.allow_hosts) == (None, [])


def test_a_named_file_is_read_over_the_users_own(places: Places, tmp_path: Path) -> None:
    """By flag, which wins, or by variable."""
    places.write(places.user, "retention_days = 7\n[search]\nmax_results_per_query = 3\n")
    named, other = tmp_path / "named.toml", tmp_path / "other.toml"
    named.write_text('[corpus.a]\npath = "docs"\n[search]\nmax_results_per_query = 4\n')
    other.write_text('[corpus.b]\npath = "docs"\n')
    for settings in (
        places.load(RESEARCH_CONFIG=str(named)),
        places.load(Flags(config=named), RESEARCH_CONFIG=str(other)),
    ):
        assert {name: corpus.path for name, corpus in settings.corpus.items()} == {"a": tmp_path / "docs"}
        assert (settings.retention_days, settings.search.max_results_per_query) == (7, 4)
    assert "there is no such file" in places.problems(Flags(config=tmp_path / "nothing.toml"))


def test_a_variable_names_the_same_file_everywhere(places: Places) -> None:
    """It outlives the folder it was set in: a relative path would let the next folder's file in."""
    assert "RESEARCH_CONFIG: must be an absolute path" in places.problems(RESEARCH_CONFIG=FILE_NAME)


def test_only_a_regular_file_of_bounded_size_is_read(places: Places) -> None:
    """A link to an endless device, a file of any size and a folder of that name are refused."""
    (places.user / FILE_NAME).symlink_to("/dev/zero")
    assert "is not a regular file" in places.problems()
    (places.user / FILE_NAME).unlink()
    with (places.user / FILE_NAME).open("wb") as file:
        file.truncate(10_000_000)
    assert "is larger than" in places.problems()
    (places.user / FILE_NAME).unlink()
    (places.user / FILE_NAME).mkdir()
    assert "is not a regular file" in places.problems()


def test_names_of_a_file_drive_no_terminal(places: Places) -> None:
    """Control characters in the names of keys are not printed."""
    places.write(places.user, '"a\\u001b[2J" = 1\n')
    with pytest.raises(SettingsError, match="unknown key") as raised:
        places.load()
    assert "\x1b" not in str(raised.value)
