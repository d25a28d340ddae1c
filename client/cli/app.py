"""The command line itself: names, options and help. What a command does is loaded only when it is called."""

from client.cli import (
    corpus_commands,
    message_commands,
    part_commands,
    reading_commands,
    run_commands,
    trust_commands,
)
from client.cli.options import CommandLine

HELP = """Deep research on your own machine: a question goes in, a report comes out whose every citation
resolves to an exact passage of an archived source.

\b
First steps:
  research run "How does vacuum work?" --corpus ./manual
  research open last
  research audit last

\b
An id (r-20261121-7k3f) may be shortened to any unique beginning, to its end (7k3f), or be written `last`.

\b
Exit codes: 0 completed, 1 internal error or a difference found by audit, 2 wrong usage or input, 3 partial,
4 failed, 5 cancelled, 6 timed out without a report, 7 nothing to work with, 8 nothing in the sources answers,
12 stood still and was ended: the message says how to go on.
"""

app = CommandLine(
    name="research",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
run_commands.register(app)
message_commands.register(app)
reading_commands.register(app)
corpus_commands.register(app)
part_commands.register(app)
trust_commands.register(app)
