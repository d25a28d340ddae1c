"""Addresses of the configuration: bad ones are refused, no key goes in clear, and the reader of the web has a name."""

from pathlib import Path

import pytest

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from tests.fakes.web import WebServer, page
from workers.composition import open_web_reader, user_agent
from workers.settings.loading import FILE_NAME, Flags, Settings, SettingsError, load_settings

BAD = (
    *("http://[::1", "http://[::::]", "http://127.0.0.1:abc", "http://host:99999", "http://host:0", "http://:8080"),
    *("https://?", "http://@", "http://a..b", f"http://{'a' * 70}", "http://ho st", "ftp://host", "//host:8080"),
    *("http://host\\path", "http://u:p@", f"http://host/{'a' * 2_000}"),
)
GOOD = (
    *("http://localhost:8080", "https://api.example.org/v1?x=1", "http://[::1]:11434/api", "http://user:p@ss@host"),
    *("https://{language}.wikipedia.org", "http://my_model", "https://m\u00fcller.example"),
)
KEY = "planted-key"
CLEAR = "http://192.0.2.1:8080"


def loaded(folder: Path, flags: Flags | None = None, **environment: str) -> Settings:
    """The settings of these variables, and of the file in the folder if there is one."""
    return load_settings(flags, environment=environment, user_folder=folder)


@pytest.mark.parametrize("address", BAD)
def test_a_bad_address_is_refused_by_the_name_of_its_place(tmp_path: Path, address: str) -> None:
    """Variable, flag or key of the file; the value, which may hold a password, is not repeated."""
    (tmp_path / FILE_NAME).write_text(f"[models.endpoints.own]\nbase_url = '{address}'", encoding="utf-8")
    for place, folder, flags, variables in (
        ("ANTHROPIC_BASE_URL", tmp_path / "none", None, {"ANTHROPIC_BASE_URL": address}),
        ("SEARXNG_URL", tmp_path / "none", None, {"SEARXNG_URL": address}),
        ("--model-url", tmp_path / "none", Flags(model_url=address), {"ANTHROPIC_BASE_URL": "http://localhost:1"}),
        (r".*models\.endpoints\.own\.base_url", tmp_path, None, {}),
    ):
        with pytest.raises(SettingsError, match=rf"^{place}: ") as raised:
            loaded(folder, flags, **variables)
        assert address not in str(raised.value)


@pytest.mark.parametrize("address", GOOD)
def test_addresses_of_every_kind_are_taken(tmp_path: Path, address: str) -> None:
    """With and without a port, a path, a user, and the mark that stands for a language."""
    settings = loaded(tmp_path, ANTHROPIC_BASE_URL=address, WIKIPEDIA_BASE_URL=address, RESEARCH_MODEL="m")
    assert settings.models.base_url == settings.search_addresses["WIKIPEDIA_BASE_URL"] == address
    assert settings.model_host


@pytest.mark.parametrize(
    ("flags", "environment", "place"),
    [
        (None, {"ANTHROPIC_BASE_URL": CLEAR, "RESEARCH_MODEL": "m"}, "ANTHROPIC_BASE_URL"),
        (Flags(model="m", model_url=CLEAR), {"ANTHROPIC_BASE_URL": "https://models.example"}, "--model-url"),
    ],
)
def test_a_model_that_would_get_its_key_in_clear_is_refused(
    tmp_path: Path, flags: Flags | None, environment: dict[str, str], place: str
) -> None:
    """Before anything is asked, with the place, the remedy and no value; without a key it may be asked."""
    with pytest.raises(SettingsError, match=rf"^{place}: begins with http://.*write https://") as raised:
        loaded(tmp_path, flags, ANTHROPIC_API_KEY=KEY, **environment)
    assert KEY not in str(raised.value)
    assert "192.0.2.1" not in str(raised.value)
    assert loaded(tmp_path, flags, **environment).model_host == "192.0.2.1:8080"


def test_an_endpoint_has_its_own_key_alone(tmp_path: Path) -> None:
    """A key goes to the endpoint whose variable holds it, and to none while no model is named."""
    alone = loaded(tmp_path, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=CLEAR)
    assert not alone.model_configured
    assert alone.models.host_for("m", alone.model_keys()) is None
    text = f'[models]\ndefault = "own:m"\n[models.endpoints.own]\nbase_url = "{CLEAR}"\n'
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8")
    settings = loaded(tmp_path, ANTHROPIC_API_KEY=KEY)
    assert settings.model_keys().keys() == {"default"}
    assert settings.model_host == "192.0.2.1:8080"
    place = r"research\.toml: models\.endpoints\.own\.base_url: .*RESEARCH_ENDPOINT_OWN_KEY"
    with pytest.raises(SettingsError, match=place):
        loaded(tmp_path, RESEARCH_ENDPOINT_OWN_KEY=KEY)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RESEARCH_ALLOW_HOSTS", "wiki"),
        ("RESEARCH_ALLOW_HOSTS", "http://wiki:80"),
        ("RESEARCH_ALLOW_HOSTS", "*:80"),
        ("RESEARCH_ALLOW_HOSTS", "10.0.0.0/8:80"),
        ("RESEARCH_CONTACT", "a\r\nX-Header: b"),
        ("RESEARCH_CONTACT", "me (at) home"),
        ("RESEARCH_CONTACT", "ü@example.org"),
    ],
)
def test_an_exception_is_an_exact_pair(tmp_path: Path, name: str, value: str) -> None:
    """No wildcard, no network, no URL; a contact fits into a header."""
    with pytest.raises(SettingsError, match=name):
        loaded(tmp_path, **{name: value})


async def test_pages_are_read_with_an_honest_name_from_hosts_that_are_allowed(tmp_path: Path) -> None:
    """Every request says what we are, and whom to turn to; a private host without an exception is not read."""
    async with WebServer({"/": page("Vacuum removes dead rows.")}) as server, SubprocessPool(1) as pool:
        settings = loaded(tmp_path, RESEARCH_ALLOW_HOSTS=f"wiki:80, {server.host}", RESEARCH_CONTACT="bot@example.org")
        async with open_web_reader(settings, pool) as reader:
            assert "dead rows" in (await reader.read(server.url())).text
        async with open_web_reader(loaded(tmp_path), pool) as reader:
            with pytest.raises(SourceUnreadable):
                await reader.read(server.url())
    assert {head["user-agent"] for head in server.heads} == {user_agent("bot@example.org")}
    assert [path for _, path in server.asked] == ["/robots.txt", "/"]
