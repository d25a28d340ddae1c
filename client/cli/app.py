"""The command line: its help, its version, and the commands of the other files, each loaded on use."""

import gc
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

DISTRIBUTION: Final = "durable-research"
HELP: Final = """Deep research on your own machine: a question goes in, a report comes out whose every citation
resolves to an exact passage of an archived source.

\b
First steps:
  research demo
  research run "How does vacuum work?" --corpus ./manual
  research open last
  research audit last

\b
An id (r-20261121-7k3f) may be shortened to a unique beginning or to its end (7k3f), or be written `last`.

\b
Exit codes: 0 completed, 1 internal error or a difference found by audit, 2 invalid usage or request, 3 partial,
4 failed, 5 cancelled, 6 timed out without a report, 7 no model, or nothing to search, 8 nothing found.
"""
COMMANDS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Research": {
        "run": ("run", "Start a run, show it live, write the report."),
        "ask": ("ask", "Ask one question after another; each begins with what the thread has read."),
        "start": ("run", "Start a run on a running server and print its id."),
        "resume": ("run", "Continue a run that was cancelled, failed, timed out or is partial."),
        "refresh": ("run", "Read the sources of a finished run again, and update its report."),
    },
    "Follow runs": {
        "watch": ("watch", "Show a run live; Ctrl-C only detaches."),
        "status": ("watch", "Print the state of a run, with or without a server."),
        "list": ("watch", "List runs, newest first."),
    },
    "Talk to a run": {
        "plan": ("talk", "Print or edit the plan of a run."),
        "approve": ("talk", "Approve the plan and start the searches."),
        "reject": ("talk", "Reject the plan: the run ends without any work."),
        "answer": ("talk", "Answer the open questions of a run or of its plan."),
        "steer": ("talk", "Guide a running run."),
        "stop": ("talk", "Write the report now, from the findings so far."),
        "cancel": ("talk", "Stop a run without a report; its state is saved."),
    },
    "Read reports": {
        "report": ("read", "Print the report of a run, or write it to a file."),
        "open": ("read", "Open the report of a run in the browser."),
        "sources": ("read", "List the sources of a run, or print the archived text of one."),
        "decisions": ("read", "Print the decisions of a run and their reasons."),
        "audit": ("audit", "Check every citation, quote and verdict of a report."),
        "diff": ("audit", "Compare two reports claim by claim."),
        "thread": ("thread", "Show a thread of questions, or write it as one document."),
        "export": ("audit", "Write a bundle that others can audit, a document, or a bibliography."),
    },
    "First use": {
        "demo": ("demo", "Ask two questions without a key or a network."),
        "init": ("init", "Name a model, a key, a search service, a cap and a folder; try each once."),
    },
    "This machine": {
        "corpus": ("corpus", "Add, list, inspect or remove folders of documents."),
        "archive": ("stored", "List, show, restore or verify content that models were not shown."),
        "serve": ("serve", "Run server and workers on this machine until stopped."),
        "mcp": ("assistants", "Serve tools for an assistant, which starts this command itself."),
        "worker": ("serve", "Run worker pools against a cluster until stopped."),
        "workers": ("workers", "List, promote, ramp or drain versions of the workflow code in a cluster."),
        "codec-server": ("codec_server", "Decrypt payloads for the server's web UI and command line."),
        "budget": ("budget", "Print what is left of the money of today, by tenant."),
        "doctor": ("doctor", "Report what is configured, reachable or missing; try one read or search."),
        "delete": ("stored", "Remove runs: session, journal of calls, history and documents."),
    },
}


class LazyCommand(TyperCommand):
    """A command whose module is imported on first use, so that `research --help` is fast."""

    def __init__(self, name: str, module: str, summary: str) -> None:
        super().__init__(name, help=summary, short_help=summary)
        self._module = module

    def load(self) -> Any:
        """Import the command itself; without collections of garbage, which took a tenth of the start and found none."""
        gc.disable()
        module = import_module(f".{self._module}", __package__)
        gc.freeze()
        gc.enable()
        return typer.main.get_group(module.commands).commands[str(self.name)]

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments of the command itself, or of its description while a shell completes them."""
        if extra.get("resilient_parsing"):
            from client.cli.completion import completing_command  # noqa: PLC0415  not needed otherwise

            command = completing_command(str(self.name))
        else:
            command = self.load()
        return command.make_context(info_name, args, parent=parent, **extra)


class ResearchGroup(TyperGroup):
    """All commands, listed by purpose."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for group in COMMANDS.values():
            self.commands.update({name: LazyCommand(name, *location) for name, location in group.items()})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section of the help for each purpose."""
        del ctx
        for purpose, group in COMMANDS.items():
            with formatter.section(purpose):
                formatter.write_dl([(f"{name:<9}", summary) for name, (_, summary) in group.items()])


app = typer.Typer(
    name="research",
    cls=ResearchGroup,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def installed_version() -> str:
    """Return the version of the installed product."""
    from importlib.metadata import version  # noqa: PLC0415  a shell that completes a word does not wait for it

    return version(DISTRIBUTION)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"research {installed_version()}")
        raise typer.Exit


@app.callback()
def research(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Take the options before a command."""
    del show_version
