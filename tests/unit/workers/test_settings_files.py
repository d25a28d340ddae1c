"""Files of the configuration: what a stranger's may say, and how a user vouches for one."""

from pathlib import Path

import pytest

from contracts.request import Depth
from tests.unit.workers.test_settings import Places
from workers.settings.configuration_files import FILE_NAME, HARMLESS, TrustedFiles
from workers.settings.loading import Flags, SettingsError
from workers.settings.sections import FileSettings, PresetSettings, SearchSettings

REFUSED = {
    'home = "planted"': "home",
    'content_url = "s3://planted"': "content_url",
    "retention_days = 1": "retention_days",
    '[models]\ndefault = "planted"': "models.default",
    '[models]\nbase_url = "http://127.0.0.1:9/planted"': "models.base_url",
    '[models.endpoints.own]\nbase_url = "http://127.0.0.1:9/planted"': "models.endpoints",
    "[models.prices.planted]\ninput = 0\noutput = 0": "models.prices",
    '[search]\ndomains_allow = ["planted.example"]': "search.domains_allow",
    '[search]\ndomains_deny = ["planted.example"]': "search.domains_deny",
    "[search.requests_per_minute]\nwikipedia = 99999": "search.requests_per_minute",
    "[search.usd_per_1000]\ntavily = 0": "search.usd_per_1000",
    '[web]\nallow_hosts = ["planted:80"]': "web.allow_hosts",
    '[web]\ncontact = "planted@example.org"': "web.contact",
    '[web.authorities]\n"planted.example" = "high"': "web.authorities",
    "[workers.slots]\nreading = 999": "workers.slots",
    "[runs]\nat_once = 9999": "runs.at_once",
    '[corpus.planted]\npath = "/etc"': "corpus.planted",
    '[hooks.planted]\nactivity = "planted"\ntask_queue = "planted"': "hooks.planted",
    "[strategy.supervisor.light]\nmax_cost_usd = 99999": "strategy.supervisor.light.max_cost_usd",
    "[strategy.supervisor.light]\nmax_tokens = 99999": "strategy.supervisor.light.max_tokens",
    "[strategy.supervisor.light]\nmax_model_calls = 9999": "strategy.supervisor.light.max_model_calls",
}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Empty places."""
    return Places(tmp_path)


@pytest.mark.parametrize(("text", "key"), REFUSED.items(), ids=REFUSED.values())
def test_a_strangers_key_does_not_count_and_is_named(places: Places, text: str, key: str) -> None:
    """Each by itself: nothing changes but the notice, which names file, key and remedy, and repeats no value."""
    plain = places.load()
    path = places.write(places.here, text)
    settings = places.load()
    assert settings.model_copy(update={"left_out": None}) == plain
    told = settings.left_out or ""
    assert f"not used: {key};" in told
    assert f"--config {path};" in told
    assert told.endswith(f"research trust {path}")
    assert settings.notices() == [told]
    assert "planted" not in told.replace(key, "")
    assert "99999" not in told
    assert "\n" not in told


def test_every_key_of_a_file_is_harmless_or_tried_here() -> None:
    """A new key of the file does not count in a stranger's before somebody has decided so."""
    named = {key.split(".")[0] for key in REFUSED.values()}
    assert set(FileSettings.model_fields) <= named
    search = {key.split(".")[1] for key in REFUSED.values() if key.startswith("search.")}
    assert search | HARMLESS["search"] == set(SearchSettings.model_fields)
    preset = {key.split(".")[3] for key in REFUSED.values() if key.startswith("strategy.")}
    assert preset | HARMLESS["strategy"] == set(PresetSettings.model_fields)


def test_harmless_keys_count_without_a_word(places: Places) -> None:
    """How much is asked, and in which order, may come with a folder."""
    places.write(
        places.here,
        '[search]\nproviders = ["wikipedia"]\nmax_results_per_query = 3\n[strategy.supervisor.light]\nmax_sources = 3\n',
    )
    settings = places.load()
    assert settings.search.providers == ["wikipedia"]
    assert settings.search.max_results_per_query == 3
    assert settings.preset("supervisor", Depth.LIGHT).max_sources == 3
    assert settings.notices() == []


def test_every_key_counts_in_a_file_that_the_user_names(places: Places, tmp_path: Path) -> None:
    """By flag, which wins, or by variable; then the working directory's is not looked at."""
    places.write(places.here, "[workers.slots]\nreading = 1\n[search]\nmax_results_per_query = 3\n")
    places.write(places.user, "retention_days = 7\n")
    named, other = tmp_path / "named.toml", tmp_path / "other.toml"
    named.write_text('[corpus.a]\npath = "docs"\n')
    other.write_text('[corpus.b]\npath = "docs"\n')
    for settings in (
        places.load(RESEARCH_CONFIG=str(named)),
        places.load(Flags(config=named), RESEARCH_CONFIG=str(other)),
    ):
        assert {name: corpus.path for name, corpus in settings.corpus.items()} == {"a": tmp_path / "docs"}
        assert (settings.retention_days, settings.search.max_results_per_query) == (7, 10)
        assert settings.left_out is None
    assert "there is no such file" in places.problems(Flags(config=tmp_path / "nothing.toml"))


def test_a_variable_names_the_same_file_everywhere(places: Places) -> None:
    """It outlives the folder it was set in: a relative path would let the next folder's file in."""
    assert "RESEARCH_CONFIG: must be an absolute path" in places.problems(RESEARCH_CONFIG=FILE_NAME)


def test_every_key_counts_where_the_working_directory_is_the_users_own(places: Places) -> None:
    """Also by a link to the folder."""
    places.write(places.user, "retention_days = 7\n")
    places.here.rmdir()
    places.here.symlink_to(places.user)
    settings = places.load()
    assert (settings.retention_days, settings.left_out) == (7, None)


def test_a_trusted_file_counts_until_it_changes(places: Places) -> None:
    """These bytes at this place: neither other bytes there, nor these elsewhere."""
    text = '[corpus.a]\npath = "docs"\n'
    path = places.write(places.here, text)
    trusted = TrustedFiles(places.user)
    trusted.record(path, text.encode())
    assert (places.load().corpus.keys(), places.load().left_out) == ({"a"}, None)
    places.write(places.here, "retention_days = 1\n" + text)
    assert not places.load().corpus
    assert "corpus.a" in (places.load().left_out or "")
    places.write(places.here, text)
    assert trusted.forget(path)
    assert not places.load().corpus
    assert not trusted.forget(path)


def test_a_link_to_a_trusted_file_is_not_trusted(places: Places, tmp_path: Path) -> None:
    """A stranger's folder may hold a link: folders in the file would then be the stranger's."""
    text = '[corpus.a]\npath = "docs"\n'
    own = tmp_path / FILE_NAME
    own.write_text(text)
    TrustedFiles(places.user).record(own, text.encode())
    (places.here / FILE_NAME).symlink_to(own)
    assert not places.load().corpus


@pytest.mark.parametrize("text", ["no json", "[]", "[" * 100_000])
def test_a_damaged_record_of_trust_is_told(places: Places, text: str) -> None:
    """It is not taken for an empty one."""
    places.write(places.here, "retention_days = 1\n")
    (places.user / "trusted.json").write_text(text)
    assert "trusted.json: is damaged" in places.problems()


def test_a_strangers_file_cannot_hold_the_program_up(places: Places) -> None:
    """A link to an endless device, and a file of any size, are refused; so is a folder of that name."""
    (places.here / FILE_NAME).symlink_to("/dev/zero")
    assert "is not a regular file" in places.problems()
    (places.here / FILE_NAME).unlink()
    with (places.here / FILE_NAME).open("wb") as file:
        file.truncate(10_000_000)
    assert "is larger than" in places.problems()
    (places.here / FILE_NAME).unlink()
    (places.here / FILE_NAME).mkdir()
    assert "is not a regular file" in places.problems()


def test_names_of_a_file_drive_no_terminal(places: Places) -> None:
    """What a stranger writes is told without control characters."""
    places.write(places.here, '"a\\u001b[2J" = 1\n')
    with pytest.raises(SettingsError, match="unknown key") as raised:
        places.load()
    assert "\x1b" not in str(raised.value)
