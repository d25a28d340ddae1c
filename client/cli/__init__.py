"""The `research` command: the top layer; it may import every package, lazily per command."""


def main() -> None:
    """Entry point of the console script."""
    from client.cli.app import app  # noqa: PLC0415  importing this package must not cost a command line

    app()
