"""Opening files that may be anything: no device, pipe or link out of the folder is ever read."""

import errno
import os
import stat
from pathlib import Path

from providers.errors import SourceUnreadable
from providers.reading.document_kinds import LARGEST_FILE_BYTES


def unreadable(error: OSError) -> SourceUnreadable:
    """The typed reason for what the operating system said."""
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return SourceUnreadable("not_found", "the file is not there")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return SourceUnreadable("permission_denied", "the file may not be read")
    if error.errno == errno.ELOOP:
        return SourceUnreadable("symlink_loop", "a link that leads to itself")
    if error.errno in {errno.EISDIR, errno.ENXIO}:
        return SourceUnreadable("not_a_file", "not a regular file")
    return SourceUnreadable("malformed", "the file cannot be read from its disk")


def read_regular_file(path: Path, root: Path | None = None) -> bytes:
    """The bytes of a regular file, which must lie below `root` if that is given. Raises `SourceUnreadable`."""
    try:
        return _read(path, root)
    except OSError as error:
        raise unreadable(error) from error
    except RuntimeError as error:  # what pathlib raises for a loop of links
        raise SourceUnreadable("symlink_loop", "a link that leads to itself") from error


def _read(path: Path, root: Path | None) -> bytes:
    real = path.resolve(strict=True)
    if root is not None and not real.is_relative_to(root.resolve()):
        raise SourceUnreadable("outside", "a link that leads out of the folder")
    # NONBLOCK: a pipe put in the file's place between listing and opening must not block.
    descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        check_state(os.fstat(descriptor))
        raw = file.read(LARGEST_FILE_BYTES + 1)
    if len(raw) > LARGEST_FILE_BYTES:  # it has grown meanwhile
        raise SourceUnreadable("too_large", f"larger than {LARGEST_FILE_BYTES} bytes")
    return raw


def check_state(state: os.stat_result) -> None:
    """Refuse what is no document by its kind or its size alone. Raises `SourceUnreadable`."""
    if not stat.S_ISREG(state.st_mode):
        raise SourceUnreadable("not_a_file", "not a regular file")
    if state.st_size == 0:
        raise SourceUnreadable("empty", "the file is empty")
    if state.st_size > LARGEST_FILE_BYTES:
        raise SourceUnreadable("too_large", f"larger than {LARGEST_FILE_BYTES} bytes")
