"""Notices on their way: signature, guard, and which answers are final."""

import base64
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from providers.errors import InvalidCall, NotConfigured, RateLimited, Unavailable
from providers.reading.egress.client import Egress
from providers.webhook import Webhook, read_key, sign
from tests.architecture.repository import ROOT
from tests.fakes.webhook_receiver import WebhookReceiver
from workers.composition import open_webhook
from workers.settings.loading import Settings, SettingsError, load_settings
from workers.settings.sections import NotifySettings

KEY = "a key of more than sixteen bytes"


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as one:
        yield one


def settings_for(receiver: WebhookReceiver, path: str = "/hook?token=t0k", **more: Any) -> Settings:
    notify = NotifySettings(url=receiver.base_url + path, allow_hosts=[receiver.place])
    return Settings(notify=notify, notify_key=SecretStr(KEY), **more)


def verification() -> Any:
    """The function of the page, as a reader copies it."""
    page = (ROOT / "docs" / "notifications.md").read_text(encoding="utf-8")
    match = re.search(r"<!-- verification -->\n```python\n(.*?)```", page, re.DOTALL)
    assert match is not None
    names: dict[str, Any] = {}
    exec(match[1], names)
    return names["verify"]


async def test_the_documented_check_takes_a_notice_and_no_other(receiver: WebhookReceiver) -> None:
    """The function of the page accepts what comes, and refuses another key, id, time or body, and an old notice."""
    verify = verification()
    async with open_webhook(settings_for(receiver)) as webhook:
        assert webhook is not None
        assert await webhook.send("notice-1", b'{"id": 1}') == 204
    (came,) = receiver.requests
    assert (came.method, came.target, came.body) == ("POST", "/hook?token=t0k", b'{"id": 1}')
    assert came.headers["content-type"] == "application/json"
    assert came.headers["webhook-id"] == "notice-1"
    key = KEY.encode()
    assert verify(key, came.headers, came.body)
    assert not verify(b"another key of sixteen bytes", came.headers, came.body)
    assert not verify(key, came.headers, came.body + b" ")
    assert not verify(key, came.headers | {"webhook-id": "notice-2"}, came.body)
    old = str(int(time.time()) - 1_000)
    aged = {"webhook-timestamp": old, "webhook-signature": sign(key, "notice-1", old, came.body)}
    assert not verify(key, came.headers | {"webhook-timestamp": old}, came.body)
    assert not verify(key, came.headers | aged, came.body)
    assert verify(key, came.headers | aged, came.body, max_age_seconds=2_000)


def test_a_signature_is_that_of_standard_webhooks() -> None:
    """The example of that specification: its key, id, time and body give its signature."""
    key = read_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "X")
    body = b'{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body) == expected


@pytest.mark.parametrize("text", ["short", "whsec_" + base64.b64encode(b"short").decode(), "whsec_###"])
def test_a_key_that_is_none_is_refused_without_being_shown(text: str) -> None:
    """The message names the variable and the remedy, and never the value."""
    with pytest.raises(NotConfigured, match="RESEARCH_NOTIFY_KEY") as raised:
        read_key(text, "RESEARCH_NOTIFY_KEY")
    assert text not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidCall),
        (401, InvalidCall),
        (404, InvalidCall),
        (302, InvalidCall),
        (408, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
        (429, RateLimited),
    ],
)
async def test_an_answer_is_final_or_worth_another_try(
    receiver: WebhookReceiver, status: int, error: type[Exception]
) -> None:
    """4xx and redirects are final, and a redirect is not followed; outages and limits of rate may pass."""
    receiver.statuses = [status]
    receiver.headers = {"retry-after": "7", "location": "/elsewhere"}
    async with open_webhook(settings_for(receiver)) as webhook:
        assert webhook is not None
        with pytest.raises(error) as raised:
            await webhook.send("notice-1", b"{}")
    assert len(receiver.requests) == 1
    assert "t0k" not in str(raised.value)
    assert ("name the address to which it leads" in str(raised.value)) == (status == 302)
    if isinstance(raised.value, (RateLimited, Unavailable)):
        assert raised.value.retry_after == 7


async def test_a_private_receiver_is_reached_only_where_it_is_allowed_by_name() -> None:
    """Without its name in `allow_hosts` no connection is opened, whatever `web.allow_hosts` may say; with it, one is."""
    async with WebhookReceiver() as receiver:
        egress = Egress("test")
        with pytest.raises(InvalidCall) as raised:
            await Webhook(egress, receiver.base_url, None).send("notice-1", b"{}")
        await egress.close()
        assert raised.value.kind.startswith("refused_")
        assert receiver.requests == []


async def test_a_receiver_that_is_away_or_silent_may_come_back() -> None:
    """A refused connection and an answer that never comes are outages, so that the notice is tried again."""
    async with WebhookReceiver() as receiver:
        gone = receiver.base_url
        place = receiver.place
    async with open_webhook(Settings(notify=NotifySettings(url=gone, allow_hosts=[place]))) as webhook:
        assert webhook is not None
        with pytest.raises(Unavailable):
            await webhook.send("notice-1", b"{}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('url = "http://hooks.example.org/a"', "must begin with https://"),
        ('url = "http://127.0.0.1:9/a"', "needs `host:port` in notify.allow_hosts"),
        ('url = "https://user:secret@example.org/a"', "user name"),
        ('url = "https://localhost/a"', "local network"),
        ('url = "ftp://example.org/a"', "only http and https"),
        ('url = "https://example.org/a"\ninclude = ["plan"]', "include"),
    ],
)
def test_an_address_that_notices_cannot_have_is_refused_when_it_is_read(
    text: str, problem: str, tmp_path: Path
) -> None:
    """One line names the setting and the remedy."""
    file = tmp_path / "research.toml"
    file.write_text(f"[notify]\n{text}\n")
    with pytest.raises(SettingsError) as raised:
        load_settings(environment={}, user_folder=tmp_path)
    assert problem in str(raised.value)
    assert "secret" not in str(raised.value)


def test_the_path_of_the_address_is_a_secret_and_shapes_no_run(tmp_path: Path) -> None:
    """Many services have a token there: logs and the description leave it out; the digest of runs stays the same."""
    url = "https://hooks.example.org/services/T0K3N"
    variables = {"RESEARCH_NOTIFY_URL": url, "RESEARCH_NOTIFY_KEY": KEY}
    settings = load_settings(environment=variables, user_folder=tmp_path)
    assert {url, KEY} <= set(settings.secrets())
    assert settings.describe()["notify"]["url"] == "hooks.example.org"
    assert settings.digest() == load_settings(environment={}, user_folder=tmp_path).digest()
