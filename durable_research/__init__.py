"""Deep research from Python: `await research("…", corpus="folder")`.

What is named here is the interface for programs. Packages of strategies and search providers import what they extend
from `durable_research.contracts`, `durable_research.workflows` and `durable_research.providers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from durable_research import checkout  # noqa: F401  joins the folders beside this one; a wheel has them inside

if TYPE_CHECKING:
    from client.handle import ResearchClient, ResearchHandle
    from client.one_question import FinishedResearch, ResearchError, research
    from workers.temporal import data_converter

_PLACES: Final = {
    "research": ".client.one_question",
    "FinishedResearch": ".client.one_question",
    "ResearchError": ".client.one_question",
    "ResearchClient": ".client.handle",
    "ResearchHandle": ".client.handle",
    "data_converter": ".workers.temporal",
}

__all__ = ["FinishedResearch", "ResearchClient", "ResearchError", "ResearchHandle", "data_converter", "research"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: workflow code and a command line must not pay for it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name], __name__), name)
