"""Keys that lie in a folder of documents: skipped with a reason, under any name, and never read."""

import os

import pytest

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusLibrary
from providers.search.corpus.scanning import is_key_name

PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nYSBwbGFudGVkIHNlY3JldA==\n-----END OPENSSH PRIVATE KEY-----\n"
ACCOUNT = '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\nYSBwbGFudGVk"}'
CERTIFICATES = "# Certificates\n\nA key file begins with `-----BEGIN PRIVATE KEY-----`; keep it for yourself.\n"


@pytest.fixture
async def pool():
    """One child."""
    async with SubprocessPool(1) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    """Documents, and keys between them."""
    made = tmp_path / "project"
    for place in ("keys", ".ssh", "notes"):
        (made / place).mkdir(parents=True)
    (made / "certificates.md").write_text(CERTIFICATES)
    (made / "id_ed25519").write_text("planted without its first line")
    (made / "keys" / "Server.PEM").write_text("planted")
    (made / ".env").write_text("TOKEN=planted")
    (made / ".env.local").write_text("TOKEN=planted")
    (made / ".ssh" / "config").write_text("planted")
    (made / ".hidden.md").write_text("hidden, and no key")
    (made / "credentials").write_text("planted")
    (made / "notes" / "backup.txt").write_text("\n" + PEM)
    (made / "notes" / "wide.txt").write_text(PEM, encoding="utf-16")
    (made / "notes" / "account.json").write_text(ACCOUNT)
    (made / "notes" / "linked.md").symlink_to("../credentials")
    (made / "notes" / "out").symlink_to("/etc")
    return made


SECRET = {
    *("id_ed25519", "keys/Server.PEM", ".env", ".env.local", ".ssh", "credentials", "notes/backup.txt"),
    *("notes/wide.txt", "notes/account.json"),
}


async def test_keys_are_skipped_and_never_read(tmp_path, folder, pool):
    """By name or by content, hidden or linked, by the index or by address; a page about keys is a document until it is one."""
    library = CorpusLibrary(tmp_path / "home", pool)
    library.add("project", folder)
    snapshot = await library.refresh("project")
    skipped = {one.path: one.kind for one in await library.skipped("project")}
    assert {path for path, kind in skipped.items() if kind == "secret"} == SECRET
    assert skipped["notes/out"] == skipped["notes/linked.md"] == "not_a_file"
    assert snapshot.files == 1
    assert "keep it for yourself" in (await library.read("corpus:project/certificates.md")).text
    for path in sorted(SECRET):
        with pytest.raises(SourceUnreadable) as caught:
            await library.read(f"corpus:project/{path}")
        assert caught.value.kind in {"secret", "not_found"}, path
    (folder / "certificates.md").write_text(PEM)
    os.utime(folder / "certificates.md", (1, 1))
    assert (await library.refresh("project")).files == 0


@pytest.mark.parametrize("name", ["keys.md", "environment.md", "credentials.md", "pem.html", "id_rsa.md", "monkey.txt"])
def test_documents_about_keys_are_no_keys(name):
    """A name counts as a whole."""
    assert not is_key_name(name)
