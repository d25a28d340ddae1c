"""What `run` and `start` are asked for."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class RunOptions:
    """The options as given; null means: not given."""

    question: str | None = None
    strategy: str | None = None
    depth: str | None = None
    engine: str | None = None
    model: str | None = None
    model_url: str | None = None
    corpus: str | None = None
    web: bool = False
    request_file: Path | None = None
    assignments: list[str] = field(default_factory=list)
    research_id: str | None = None
    out: Path | None = None
    as_json: bool = False
    quiet: bool = False
    dry_run: bool = False
