"""Encrypted payloads and failures, and where the keys of an operator come from."""

import sys
from base64 import b64encode
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from temporalio.api.common.v1 import GrpcStatus, Payload
from temporalio.api.errordetails.v1 import QueryFailedFailure
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client, RPCError, RPCStatusCode, WorkflowQueryFailedError
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from client.handle import ResearchClient
from providers.encryption import Keyring
from providers.errors import ContentCorrupt, KeyMissing, NotConfigured
from workers import encryption
from workers.settings.loading import Settings, SettingsError, load_settings
from workers.settings.sections import EncryptionSettings
from workers.temporal import data_converter

WORD = "quindlebrack"
OLD = b64encode(bytes(range(32))).decode()
NEW = b64encode(bytes(range(1, 33))).decode()


def settings_of(folder: Path, text: str = "", **environment: str) -> Settings:
    (folder / "research.toml").write_text(text, encoding="utf-8")
    return load_settings(environment=environment, user_folder=folder)


def converter_of(folder: Path, current: str, *ids: str, required: bool = False) -> DataConverter:
    pairs = ",".join(f"{key_id}={ {'k1': OLD, 'k2': NEW}[key_id] }" for key_id in ids)
    text = f"[encryption]\nrequired = {str(required).lower()}\n" + (f'current = "{current}"\n' if current else "")
    return data_converter(settings_of(folder, text, RESEARCH_ENCRYPTION_KEYS=pairs))


async def test_payloads_are_encrypted_with_the_id_of_their_key(tmp_path: Path) -> None:
    """A payload has no word in it, says with which key it is encrypted, and is read with that key, current or not."""
    (payload,) = await converter_of(tmp_path, "k1", "k1").encode([{"query": WORD}])
    assert WORD.encode() not in payload.SerializeToString()
    assert dict(payload.metadata) == {"encoding": b"binary/encrypted", "encryption-key-id": b"k1"}
    rotated = converter_of(tmp_path, "k2", "k1", "k2")
    assert await rotated.decode([payload]) == [{"query": WORD}]
    switched_off = converter_of(tmp_path, "", "k1")
    assert await switched_off.decode([payload]) == [{"query": WORD}]
    (plain,) = await switched_off.encode([{"query": WORD}])
    assert plain.metadata["encoding"] == b"json/plain"


async def test_a_missing_key_is_named_by_every_reader(tmp_path: Path) -> None:
    """Without the key of a payload the error has its id, whether other keys are configured or none."""
    (payload,) = await converter_of(tmp_path, "k1", "k1").encode([WORD])
    for without in (converter_of(tmp_path, "k2", "k2"), converter_of(tmp_path, "")):
        with pytest.raises(KeyMissing, match="the encryption key k1 is missing"):
            await without.decode([payload])


async def test_nothing_is_downgraded_where_encryption_is_required(tmp_path: Path) -> None:
    """Plain payloads are read, until encryption is required; one that only pretends to be encrypted never is."""
    (plain,) = await converter_of(tmp_path, "").encode([WORD])
    assert await converter_of(tmp_path, "k1", "k1").decode([plain]) == [WORD]
    required = converter_of(tmp_path, "k1", "k1", required=True)
    with pytest.raises(ContentCorrupt, match=r"encryption\.required refuses it"):
        await required.decode([plain])
    pretended = Payload(metadata={"encoding": b"binary/encrypted"}, data=plain.SerializeToString())
    with pytest.raises(ContentCorrupt, match="another program"):
        await converter_of(tmp_path, "k1", "k1").decode([pretended])


async def test_messages_and_frames_of_failures_are_encrypted(tmp_path: Path) -> None:
    """Neither message nor frames nor details of a failure and its causes are readable; its type is."""
    converter = converter_of(tmp_path, "k1", "k1")
    failure = Failure()
    try:
        try:
            raise ValueError(WORD)
        except ValueError as error:
            raise ApplicationError(WORD, {"problem": WORD}, type="InvalidModelOutput") from error
    except ApplicationError as error:
        await converter.encode_failure(error, failure)
    assert WORD.encode() not in failure.SerializeToString()
    assert b"test_encryption.py" not in failure.SerializeToString()
    assert failure.application_failure_info.type == "InvalidModelOutput"
    decoded = await converter.decode_failure(failure)
    assert isinstance(decoded, ApplicationError)
    assert (decoded.message, decoded.details) == (WORD, ({"problem": WORD},))
    assert WORD in str(decoded.cause)


async def test_who_lacks_a_key_can_read_which(tmp_path: Path) -> None:
    """The failure of a missing key is not encrypted, and a handle shows it as the last failure of a call."""
    converter = converter_of(tmp_path, "k2", "k2")
    failure = Failure()
    try:
        raise ApplicationError("Failed decoding arguments") from KeyMissing("k1")
    except ApplicationError as error:
        await converter.encode_failure(error, failure)
    assert failure.message == "Encoded failure"
    assert failure.cause.message.startswith("the encryption key k1 is missing")
    client = await Client.connect("127.0.0.1:1", lazy=True, data_converter=converter)
    shown = await ResearchClient(client).handle("r-1")._failure_text(failure)
    assert shown.startswith("Failed decoding arguments: the encryption key k1 is missing")


async def test_a_refused_query_is_readable(tmp_path: Path) -> None:
    """The reason for which a run does not answer is decrypted from the details of the server's answer."""
    converter = converter_of(tmp_path, "k1", "k1")
    failure = Failure()
    await converter.encode_failure(ApplicationError(WORD, type="NoSuchDocument"), failure)
    status = GrpcStatus(code=3, message=failure.message)
    status.details.add().Pack(QueryFailedFailure(failure=failure))
    client = await Client.connect("127.0.0.1:1", lazy=True, data_converter=converter)
    handle = ResearchClient(client).handle("r-1")
    error = WorkflowQueryFailedError(failure.message)
    error.__context__ = RPCError(failure.message, RPCStatusCode.INVALID_ARGUMENT, status.SerializeToString())
    assert error.message == "Encoded failure"
    assert await handle._query_failure(error) == WORD


def test_keys_come_from_files_the_environment_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is named relative to the configuration; all sources add up, and none of it is shown."""
    (tmp_path / "first.key").write_text(OLD + "\n", encoding="utf-8")
    entry = EntryPoint("service", f"{__name__}:keys_of_a_service", encryption.KEY_ENTRY_POINTS)
    monkeypatch.setattr(encryption, "entry_points", lambda **chosen: EntryPoints([entry]).select(**chosen))
    sys.modules.setdefault(__name__, sys.modules[keys_of_a_service.__module__])
    text = '[encryption]\ncurrent = "k3"\nsource = "service"\nkeys = { k1 = "first.key" }\n'
    settings = settings_of(tmp_path, text, RESEARCH_ENCRYPTION_KEYS=f"k2={NEW}")
    assert settings.keyring.ids == ["k3", "k1", "k2"]
    assert {OLD, NEW} <= set(settings.secrets())
    for shown in (repr(settings), str(settings.describe()), repr(settings.keyring), settings.model_dump_json()):
        assert OLD not in shown
        assert NEW not in shown
        assert repr(bytes(range(32)))[2:-1] not in shown


def keys_of_a_service() -> dict[str, bytes]:
    return {"k3": bytes(32)}


@pytest.mark.parametrize(
    ("text", "variable", "problem"),
    [
        ('keys = { k1 = "absent.key" }', "", "encryption.keys.k1: .*absent.key cannot be read: No such file"),
        ('current = "k9"', f"k1={OLD}", "there is no key k9: name its file in"),
        ('current = "k1"', "k1=c2hvcnQ=", "the encryption key k1 has 5 bytes: write 32 bytes in base64"),
        ('current = "k1"', "k1=***", "the encryption key k1 is no key"),
        ("", "justakey", "RESEARCH_ENCRYPTION_KEYS: write it as ID=KEY"),
        ("", f"K_1={OLD}", "its id small letters"),
        ("required = true", f"k1={OLD}", "encryption.required: there is no current key"),
        ('source = "no-such"', "", "encryption.source: the keys of no-such: no installed package"),
    ],
)
def test_a_bad_key_is_named_and_not_shown(tmp_path: Path, text: str, variable: str, problem: str) -> None:
    """A process whose keys are not all there does not start: it says which one, and takes no work that it cannot read."""
    with pytest.raises(SettingsError, match=problem) as caught:
        settings_of(tmp_path, f"[encryption]\n{text}\n", RESEARCH_ENCRYPTION_KEYS=variable)
    assert OLD not in str(caught.value)


def test_a_failing_source_shows_nothing_of_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of a key service may hold a secret: its kind is shown alone."""
    entry = EntryPoint("service", f"{__name__}:failing_service", encryption.KEY_ENTRY_POINTS)
    monkeypatch.setattr(encryption, "entry_points", lambda **chosen: EntryPoints([entry]).select(**chosen))
    sys.modules.setdefault(__name__, sys.modules[failing_service.__module__])
    with pytest.raises(NotConfigured, match="the keys of service cannot be read: PermissionError") as caught:
        encryption.make_keyring(EncryptionSettings(source="service"), {})
    assert WORD not in str(caught.value)


def failing_service() -> dict[str, bytes]:
    raise PermissionError(WORD)


def test_workers_with_other_keys_differ_in_their_mark_alone_by_the_current_one(tmp_path: Path) -> None:
    """`doctor` names workers that encrypt with another key; where a key lies on a host does not count."""
    for name in ("a.key", "b.key"):
        (tmp_path / name).write_text(OLD, encoding="utf-8")
    one, other, off = (
        settings_of(tmp_path, f"[encryption]\n{text}\n").digest()
        for text in ('current = "k1"\nkeys = { k1 = "a.key" }', 'current = "k1"\nkeys = { k1 = "b.key" }', "")
    )
    assert one == other != off


def test_the_default_encrypts_nothing() -> None:
    """Without `[encryption]` texts are stored as they are, and no key is needed."""
    keyring = Settings().keyring
    assert (keyring.current, keyring.ids) == ("", [])
    assert isinstance(keyring, Keyring)
