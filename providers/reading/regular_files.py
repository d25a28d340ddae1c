"""Opening files that may be anything: no device, pipe or link out of the folder is ever read."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.document_kinds import LARGEST_FILE_BYTES

REASONS: Final = {
    errno.ENOENT: ("not_found", "the file is not there"),
    errno.ENOTDIR: ("not_found", "the file is not there"),
    errno.EACCES: ("permission_denied", "the file may not be read"),
    errno.EPERM: ("permission_denied", "the file may not be read"),
    errno.ELOOP: ("symlink_loop", "a link that leads to itself"),
    errno.EISDIR: ("not_a_file", "not a regular file"),
    errno.ENXIO: ("not_a_file", "not a regular file"),
}


def unreadable(error: OSError) -> SourceUnreadable:
    """The typed reason for an error of the operating system."""
    return SourceUnreadable(*REASONS.get(error.errno or 0, ("malformed", "the file cannot be read from its disk")))


def read_regular_file(path: Path, root: Path | None = None) -> bytes:
    """The bytes of a regular file, which must lie below `root` if that is given. Raises `SourceUnreadable`."""
    try:
        real = path.resolve(strict=True)
        if root is not None and not real.is_relative_to(root.resolve()):
            raise SourceUnreadable("outside", "a link that leads out of the folder")
        # NONBLOCK: a pipe put in the file's place between listing and opening must not block.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            check_state(os.fstat(descriptor))
            return file.read(LARGEST_FILE_BYTES)
    except OSError as error:
        raise unreadable(error) from error
    except RuntimeError as error:  # what pathlib raises for a loop of links
        raise unreadable(OSError(errno.ELOOP, "")) from error


def check_state(state: os.stat_result) -> None:
    """Refuse a file that is no document by its kind or its size alone. Raises `SourceUnreadable`."""
    if stat.S_ISLNK(state.st_mode):
        raise SourceUnreadable("not_a_file", "a link: links are not followed")
    if not stat.S_ISREG(state.st_mode):
        raise SourceUnreadable("not_a_file", "not a regular file")
    if state.st_size == 0:
        raise SourceUnreadable("empty", "the file is empty")
    if state.st_size > LARGEST_FILE_BYTES:
        raise SourceUnreadable("too_large", f"larger than {LARGEST_FILE_BYTES} bytes")
