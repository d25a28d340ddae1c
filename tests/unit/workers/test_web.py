"""The reader of the web from the configuration: exceptions for private hosts, and who we say we are."""

from pathlib import Path

import pytest

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from tests.fakes.web import WebServer, page
from workers.settings.loading import FILE_NAME, Settings, SettingsError, load_settings
from workers.web_access import open_web_reader, user_agent


def load(folder: Path, **environment: str) -> Settings:
    """The settings from these variables and a file, if the folder holds one."""
    return load_settings(environment=environment, user_folder=folder)


def test_exceptions_come_from_the_environment_or_the_file(tmp_path: Path) -> None:
    """A list of exact pairs; without one there is no exception."""
    assert load(tmp_path).web.allow_hosts == []
    assert load(tmp_path, RESEARCH_ALLOW_HOSTS="wiki:80, [::1]:81,127.0.0.1:8080").web.allow_hosts == [
        "wiki:80",
        "[::1]:81",
        "127.0.0.1:8080",
    ]
    (tmp_path / FILE_NAME).write_text('[web]\nallow_hosts = ["wiki:80"]\ncontact = "+https://example.org/bot"\n')
    web = load(tmp_path).web
    assert (web.allow_hosts, web.contact) == (["wiki:80"], "+https://example.org/bot")


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
def test_what_is_no_exact_pair_is_refused(tmp_path: Path, name: str, value: str) -> None:
    """No wildcard, no network, no URL; a contact fits into a header."""
    with pytest.raises(SettingsError, match=name):
        load(tmp_path, **{name: value})


async def test_pages_are_read_with_an_honest_name(tmp_path: Path) -> None:
    """Every request says what we are, and whom to turn to."""
    async with WebServer({"/": page("Vacuum removes dead rows.")}) as server, SubprocessPool(1) as pool:
        settings = load(tmp_path, RESEARCH_ALLOW_HOSTS=server.host, RESEARCH_CONTACT="bot@example.org")
        async with open_web_reader(settings, pool) as reader:
            assert "dead rows" in (await reader.read(server.url())).text
        async with open_web_reader(load(tmp_path), pool) as reader:
            with pytest.raises(SourceUnreadable):
                await reader.read(server.url())
    assert {head["user-agent"] for head in server.heads} == {user_agent("bot@example.org")}
    assert [path for _, path in server.asked] == ["/robots.txt", "/"]
