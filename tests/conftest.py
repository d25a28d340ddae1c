"""What every test may rely on: an environment without our variables, and a home of its own."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

OURS = re.compile(
    r"^(RESEARCH|ANTHROPIC|TEMPORAL|TAVILY|GOOGLE|SEMANTIC_SCHOLAR|BRAVE|SEARXNG|WIKIPEDIA)_|^REDIS_URL$|^(HTTPS?|ALL|NO)_PROXY$",
    re.IGNORECASE,
)
"""Variables that would change what the code under test does; proxies would catch calls to loopback servers."""


settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("exploring", deadline=None, max_examples=500)
"""`pytest --hypothesis-profile=exploring` looks for what nobody has found yet; the gate says the same twice."""
settings.load_profile("gate")


def pytest_configure() -> None:
    """Forget the developer's settings before anything is imported, so that child processes do not see them either."""
    for name in [name for name in os.environ if OURS.match(name)]:
        del os.environ[name]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty RESEARCH_HOME that only this test uses."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("RESEARCH_HOME", str(folder))
    return folder
