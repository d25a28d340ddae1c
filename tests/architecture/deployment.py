"""The files of deploy/ and docker-compose.yml as their tests see them."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.repository import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?:(:[-?])([^}]*))?\}")
"""`${NAME}`, `${NAME:-default}`, `${NAME:?message}`."""
SECRET = re.compile(r"(?<!VAL)KEY|PASSWORD|PWD|SECRET|TOKEN")
SEARCH_KEYS = frozenset(
    {"TAVILY_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CSE_ID", "BRAVE_API_KEY", "SEMANTIC_SCHOLAR_API_KEY"}
)
SEARCH_ADDRESSES = frozenset(
    {f"{name}_BASE_URL" for name in ("TAVILY", "GOOGLE", "BRAVE", "SEMANTIC_SCHOLAR", "WIKIPEDIA")}
)
KEY_HOLDERS = {
    frozenset({"ANTHROPIC_API_KEY"}): ("models", "search", "records"),
    SEARCH_KEYS | SEARCH_ADDRESSES: ("search", "records"),
}
"""Variables with keys → the pools that need them: those that use them, and `records` tells a run what there is."""
FOLDERS = {
    "workflows": frozenset[str](),
    "models": frozenset({"/data", "/data/content"}),
    "search": frozenset({"/data", "/data/content", "/data/corpora"}),
    "reading": frozenset({"/data", "/data/content", "/data/corpora"}),
    "records": frozenset({"/data/content", "/data/corpora", "/data/sessions"}),
}
"""Pool → what is kept that it sees. `/data` itself holds what is shared while Redis is away, and nothing else."""
READ_DOCUMENTS = frozenset({"search", "reading", "records"})


@cache
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8")))


def services() -> dict[str, dict[str, Any]]:
    return dict(compose()["services"])


def ours() -> dict[str, dict[str, Any]]:
    """The services of our own image."""
    return {name: service for name, service in services().items() if "build" in service}


def with_defaults(text: str) -> str:
    return VARIABLE.sub(lambda found: found[3] if found[2] == ":-" else "", text)


def variables(text: str) -> set[str]:
    return {found[1] for found in VARIABLE.finditer(text)}


def ending() -> set[str]:
    """The services that do one thing and end: others wait for their success, or a person runs them."""
    waited = [
        name
        for service in services().values()
        for name, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    ]
    return {*waited, *(name for name, service in services().items() if service.get("profiles"))}


def networks(service: str) -> set[str]:
    return set(services()[service]["networks"])


@cache
def dockerfile() -> tuple[tuple[str, str], ...]:
    """Instructions in order: name and arguments, continued lines joined, comments left out."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    pairs = (line.strip().split(maxsplit=1) for line in lines.splitlines() if line.strip())
    return tuple((name, arguments) for name, arguments in pairs)


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each build stage, beginning with its FROM."""
    found: list[list[tuple[str, str]]] = []
    for name, arguments in dockerfile():
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, arguments))
    return found


def instruction(name: str) -> str:
    """The arguments of the only instruction of that name in the final stage."""
    (arguments,) = [arguments for found, arguments in stages()[-1] if found == name]
    return arguments


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in instruction("ENV").split())


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def policies() -> dict[str, dict[str, Any]]:
    """The NetworkPolicies by name: what each says."""
    found = [one for path in (KUBERNETES / "network").glob("*.yaml") for one in documents(path)]
    return {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "NetworkPolicy"}
