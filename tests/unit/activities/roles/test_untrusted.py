"""The guard of texts from outside, before they go into prompts."""

import sys

from activities.roles.untrusted import IMITATED_SIGN, INVISIBLE, TAG, guard


def test_the_guard_looks_only_where_something_can_be() -> None:
    """No printable character is invisible, so a printable text is not searched; what is searched is disarmed."""
    invisible = [character for character in map(chr, range(sys.maxunicode + 1)) if INVISIBLE.match(character)]
    assert len(invisible) > 100
    assert not any(character.isprintable() for character in invisible)
    for text in ("plain — 窯 text\nof two lines", "a\u200bb", "<source>", "＜ / finding", "0a¦ line", "<b>\x00¦"):
        assert guard(text) == IMITATED_SIGN.sub("|", TAG.sub("‹", INVISIBLE.sub("", text)))
