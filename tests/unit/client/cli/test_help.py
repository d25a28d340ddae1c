"""The command line itself: help, completion, start-up cost."""

import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import ROOT
from workers.settings.loading import child_environment


def test_help_loads_nothing_heavy() -> None:
    """`research --help` answers at once because server, contracts and terminal library stay unloaded."""
    program = (
        "import sys, client.cli.app\n"
        "print([name for name in ('temporalio', 'pydantic', 'workers', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_folders_of_a_person_are_no_code(tmp_path: Path) -> None:
    """A working directory with folders named like our packages changes nothing: they are not imported."""
    for name in ("contracts", "activities", "workers", "providers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('a folder of yours was run')\n")
    environment = child_environment() | {"PYTHONPATH": f":{ROOT}", "RESEARCH_HOME": str(tmp_path / "home")}
    for start in (["-c", "from client.cli import main; main()"], ["-m", "client.cli"]):
        command = [sys.executable, *start, "list"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.startswith("there is no run yet")) == (0, True), done.stderr
