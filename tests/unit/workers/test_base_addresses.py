"""Addresses of models and search services: what is none is refused at the start, by the name of what holds it."""

from pathlib import Path

import pytest

from workers.settings.loading import FILE_NAME, Flags, Settings, SettingsError, load_settings

NONE = [
    *(
        "http://[::1",
        "http://[::::]",
        "http://127.0.0.1:abc",
        "http://host:80:90",
        "http://host:99999",
        "http://host:0",
    ),
    *("http://:8080", "https://?", "http:///x", "http://@", "http://a..b", f"http://{'a' * 70}", "http://ho st"),
    *("ftp://host", "//host:8080", "http://host\\path", "http://u:p@", f"http://host/{'a' * 2_000}"),
]
SOME = [
    *("http://localhost:8080", "http://localhost:65535/", "https://api.example.org/v1?x=1", "http://[::1]:11434/api"),
    *("http://user:p%40ss@127.0.0.1:1", "http://user:p@ss@host", "https://{language}.wikipedia.org", "http://my_model"),
    "https://m\u00fcller.example",
]


def loaded(folder: Path, flags: Flags | None = None, **environment: str) -> Settings:
    """The settings of these variables, and of the file in the folder if there is one."""
    return load_settings(flags, environment=environment, user_folder=folder)


@pytest.mark.parametrize("address", NONE)
def test_what_is_no_address_is_refused_by_the_name_of_its_variable(tmp_path: Path, address: str) -> None:
    """Host and port are looked at before anything is asked; the value, which may hold a password, is not repeated."""
    for variable in ("ANTHROPIC_BASE_URL", "SEARXNG_URL", "TAVILY_BASE_URL"):
        with pytest.raises(SettingsError, match=rf"^{variable}: ") as raised:
            loaded(tmp_path, **{variable: address})
        assert address not in str(raised.value)


@pytest.mark.parametrize("address", ["http://[::1", "http://host:99999", "https://?"])
def test_a_flag_and_a_file_are_named_too(tmp_path: Path, address: str) -> None:
    """A good variable is not blamed for the flag that goes before it."""
    with pytest.raises(SettingsError, match=r"^--model-url: must be an address such as "):
        loaded(tmp_path, Flags(model_url=address), ANTHROPIC_BASE_URL="http://localhost:1")
    text = f'[models.endpoints.own]\nbase_url = "{address}"'
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"models\.endpoints\.own\.base_url: must be an address such as "):
        loaded(tmp_path)


@pytest.mark.parametrize("address", SOME)
def test_addresses_of_every_kind_are_taken(tmp_path: Path, address: str) -> None:
    """With and without a port, a path, a user, and the mark that stands for a language."""
    settings = loaded(tmp_path, ANTHROPIC_BASE_URL=address, WIKIPEDIA_BASE_URL=address, RESEARCH_MODEL="m")
    assert settings.models.base_url == settings.web_search.addresses["WIKIPEDIA_BASE_URL"] == address
    assert settings.model_host
