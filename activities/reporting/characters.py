"""Characters that must not reach a report, and the escaping of foreign text in Markdown."""

import re

INVISIBLE = re.compile(
    "["
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f"  # controls, except tab and line feed
    "\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"  # no width, bidi
    "\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff"  # tags and private use: we keep these for ourselves
    "\ud800-\udfff"  # lone surrogates cannot be written as UTF-8
    "]"
)
VARIATION_RUN = re.compile("[\ufe00-\ufe0f]{2,}")
MARKDOWN_SIGN = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])")
TOP_DOMAIN = (
    r"(?:[a-z]{2}|com|org|net|edu|gov|biz|info|name|pro|web|xxx|aero|asia|coop|museum|shop|app|dev|рф|xn--[\w-]++)"
)
HOST_DOT = re.compile(rf"(?<=[^\W_])\.(?={TOP_DOMAIN}(?![\w-]))", re.IGNORECASE)
"""The dot of `example.com` in prose, which some renderers make a link of."""


def clean_characters(text: str) -> str:
    """The text with line feeds alone as line ends and without invisible, bidirectional and private characters."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return VARIATION_RUN.sub("", INVISIBLE.sub("", unified))


def one_line(text: str) -> str:
    """The text cleaned, with every run of white space as one blank."""
    return " ".join(clean_characters(text).split())


def escape_markdown(text: str) -> str:
    """One line of foreign text, so that Markdown shows it as it is."""
    return HOST_DOT.sub(r"\\.", MARKDOWN_SIGN.sub(r"\\\g<0>", one_line(text)))


def code_span(text: str) -> str:
    """A text as inline code, whatever backticks it holds."""
    line = one_line(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
