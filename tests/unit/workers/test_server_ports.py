"""Ports of dev servers: kept, held against other homes, and let go of."""

import multiprocessing
import socket
import time
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from workers.dev_server.ports import PortLeases, choose_ports, port_is_free
from workers.dev_server.server_files import ServerDescription

PORT = 41_233


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the leases of a test are."""
    return tmp_path / "ports"


def leases(home: str, folder: Path) -> PortLeases:
    """Those of a home, as another process would have them."""
    return PortLeases(Path("/homes") / home, folder)


def test_ports_are_those_of_last_time_if_they_are_free(folder: Path) -> None:
    """Known ports come first; a taken one is replaced; no two are the same."""
    held = leases("one", folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not port_is_free(port)
        chosen = choose_ports(ServerDescription(port=port, ui_port=port), held)
    assert port not in {chosen.port, chosen.ui_port}
    assert len({chosen.port, chosen.ui_port, chosen.http_port, chosen.metrics_port}) == 4
    again = choose_ports(chosen, held)
    assert again == replace(chosen, ui_server_host=again.ui_server_host, ui_server_port=again.ui_server_port)


def test_a_port_belongs_to_one_home(folder: Path) -> None:
    """Processes of a home share its port; no other home has it until the last of them lets go."""
    keeper, user, stranger = leases("one", folder), leases("one", folder), leases("other", folder)
    assert keeper.take(PORT)
    assert user.take(PORT)
    assert not stranger.take(PORT)
    keeper.release()
    assert not stranger.take(PORT)
    user.release()
    assert stranger.take(PORT)
    assert not keeper.take(PORT)


def test_ports_of_another_home_are_passed_over(folder: Path) -> None:
    """A port that is free only because its server is being restarted is not chosen, usual or known as it may be."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    owner, other = leases("one", folder), leases("other", folder)
    assert owner.take(port)
    assert choose_ports(ServerDescription(port=port), other).port != port
    assert choose_ports(ServerDescription(port=port), owner).port == port


def test_what_is_not_chosen_again_is_let_go(folder: Path) -> None:
    """A server that had to move does not keep its old ports from others."""
    mover, other = leases("one", folder), leases("other", folder)
    assert mover.take(PORT)
    assert mover.take(PORT + 1)
    mover.keep_only(PORT + 1)
    assert other.take(PORT)
    assert not other.take(PORT + 1)


def _hold(folder: Path, held: Event) -> None:
    assert leases("one", folder).take(PORT)
    held.set()
    time.sleep(600)


def test_a_killed_process_holds_nothing(folder: Path) -> None:
    """The kernel lets go of a port however its process ends."""
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=_hold, args=(folder, held))
    process.start()
    assert held.wait(30)
    assert not leases("other", folder).take(PORT)
    process.kill()
    process.join(30)
    assert leases("other", folder).take(PORT)


def test_a_folder_of_somebody_else_is_not_used(folder: Path, tmp_path: Path) -> None:
    """Anybody may put something in the way among temporary files: then ports are not held, and nothing is written."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    assert leases("one", folder).take(PORT)
    assert leases("other", folder).take(PORT)
    assert not list(elsewhere.iterdir())
