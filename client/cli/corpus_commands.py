"""`corpus add|list|status|remove`: folders of documents."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from typing import Annotated

import typer

from client.cli.options import AsJson, CommandLine, Quiet, finish

Name = Annotated[str, typer.Argument(metavar="NAME", help="the name of the corpus")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = CommandLine(no_args_is_help=True, rich_markup_mode=None, help=CORPUS_HELP)
    group.command("add", help="Register a folder under a name and index it.")(add)
    group.command("list", help="The corpora known here.")(list_corpora)
    group.command("status", help="What the index holds, and which files were left out and why.")(status)
    group.command("remove", help="Forget a folder and its index; the documents themselves stay.")(remove)
    app.add_typer(group, name="corpus")


CORPUS_HELP = """Folders of documents that runs may search.

\b
  research corpus add ./manual --name manual
  research corpus status manual
  research run "…" --corpus manual
"""


def add(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="the folder")],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="[the folder's name]")] = None,
    quiet: Quiet = False,
) -> None:
    """Register and index."""
    from client.cli.corpus import add as work

    finish(work(folder, name=name, quiet=quiet))


def list_corpora(as_json: AsJson = False) -> None:
    """All corpora."""
    from client.cli.corpus import list_corpora as work

    finish(work(as_json=as_json))


def status(name: Name, as_json: AsJson = False) -> None:
    """One corpus."""
    from client.cli.corpus import status as work

    finish(work(name, as_json=as_json))


def remove(name: Name) -> None:
    """Forget a corpus."""
    from client.cli.corpus import remove as work

    finish(work(name))
