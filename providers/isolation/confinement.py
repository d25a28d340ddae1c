"""Confinement of processes that read texts from outside: no files of a user, network, other processes or programs.

A document may take over the library that parses it. The child gives up these rights before it reads the first byte, and
cannot get them back. All of it is available to any user of Linux, without a privilege; what a kernel lacks is reported
by `probe` and shown by `research doctor`.
"""

import ctypes
import os
import platform
import socket
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

PR_SET_DUMPABLE: Final = 4  # these three: linux/prctl.h
PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_SECCOMP: Final = 22
SECCOMP_MODE_FILTER: Final = 2
CAPABILITY_VERSION: Final = 0x20080522  # linux/capability.h

# --- files: Landlock (linux/landlock.h) ------------------------------------------------------------------------------
CREATE_RULESET: Final = 444  # this and the next two: numbers of calls, the same on every architecture
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
CREATE_RULESET_VERSION: Final = 1
RULE_PATH_BENEATH: Final = 1
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIRECTORY: Final = 1 << 3
CHANGE_FOLDER: Final = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 14
"""Rights to remove folders and files, to make folders and files, and to truncate."""
FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of rights over files by version of Landlock; later versions have no more of them."""
NETWORK_VERSION: Final = 4
NETWORK_RIGHTS: Final = 0b11  # to bind and to connect TCP sockets
SCOPE_VERSION: Final = 6
SCOPES: Final = 0b11  # abstract sockets and signals stay within the process
SYSTEM_FOLDERS: Final = (
    *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/fonts", "/dev/urandom"),
    *("/dev/random", "/dev/zero", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
)
"""Libraries, fonts, time zones and figures of the machine; no file of a user and no other process."""

# --- system calls: seccomp (linux/filter.h, linux/seccomp.h) ---------------------------------------------------------
LOAD_WORD: Final = 0x20
JUMP_EQUAL: Final = 0x15
JUMP_SET: Final = 0x45
RETURN: Final = 0x06
ALLOW: Final = 0x7FFF0000
KILL_PROCESS: Final = 0x80000000
FAIL: Final = 0x00050000
NUMBER_OFFSET: Final = 0  # of the low word, on little-endian machines
ARCHITECTURE_OFFSET: Final = 4
FIRST_ARGUMENT_OFFSET: Final = 16
EPERM: Final = 1
ENOSYS: Final = 38
CLONE_THREAD: Final = 0x00010000
X32_BIT: Final = 0x40000000

X86_64: Final = {
    "capset": 126,
    "socket": 41,
    "clone": 56,
    "fork": 57,
    "vfork": 58,
    "execve": 59,
    "kill": 62,
    "ptrace": 101,
    "chroot": 161,
    "pivot_root": 155,
    "mount": 165,
    "umount2": 166,
    "tkill": 200,
    "tgkill": 234,
    "rt_sigqueueinfo": 129,
    "rt_tgsigqueueinfo": 297,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "setns": 308,
    "perf_event_open": 298,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "bpf": 321,
    "execveat": 322,
    "userfaultfd": 323,
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "pidfd_open": 434,
    "clone3": 435,
    "pidfd_getfd": 438,
    "init_module": 175,
    "finit_module": 313,
    "prlimit64": 302,
    "chmod": 90,
    "fchmod": 91,
    "chown": 92,
    "fchown": 93,
    "lchown": 94,
    "fchownat": 260,
    "fchmodat": 268,
    "fchmodat2": 452,
    "utime": 132,
    "utimes": 235,
    "futimesat": 261,
    "utimensat": 280,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "removexattr": 197,
    "lremovexattr": 198,
    "fremovexattr": 199,
    "setxattrat": 463,
    "removexattrat": 466,
    "setpriority": 141,
    "sched_setparam": 142,
    "sched_setscheduler": 144,
    "sched_setaffinity": 203,
    "sched_setattr": 314,
    "ioprio_set": 251,
    "shmget": 29,
    "semget": 64,
    "msgget": 68,
    "mq_open": 240,
}
AARCH64: Final = {
    "capset": 91,
    "socket": 198,
    "clone": 220,
    "execve": 221,
    "kill": 129,
    "ptrace": 117,
    "chroot": 51,
    "pivot_root": 41,
    "mount": 40,
    "umount2": 39,
    "tkill": 130,
    "tgkill": 131,
    "rt_sigqueueinfo": 138,
    "rt_tgsigqueueinfo": 240,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "unshare": 97,
    "setns": 268,
    "perf_event_open": 241,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "bpf": 280,
    "execveat": 281,
    "userfaultfd": 282,
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "pidfd_open": 434,
    "clone3": 435,
    "pidfd_getfd": 438,
    "init_module": 105,
    "finit_module": 273,
    "prlimit64": 261,
    "fchmod": 52,
    "fchmodat": 53,
    "fchownat": 54,
    "fchown": 55,
    "fchmodat2": 452,
    "utimensat": 88,
    "setxattr": 5,
    "lsetxattr": 6,
    "fsetxattr": 7,
    "removexattr": 14,
    "lremovexattr": 15,
    "fremovexattr": 16,
    "setxattrat": 463,
    "removexattrat": 466,
    "setpriority": 140,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "sched_setattr": 274,
    "ioprio_set": 30,
    "shmget": 194,
    "semget": 190,
    "msgget": 186,
    "mq_open": 180,
}
MACHINES: Final = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}
"""Audit number and system calls by architecture; others have no filter."""
OWNERSHIP: Final = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes"),
    *("futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr"),
    *("fremovexattr", "removexattrat"),
)
"""Calls that change who may use a file, its times and its attributes, which Landlock leaves to its owner."""
FAILING: Final = (
    *("socket", "io_uring_setup", "fork", "vfork", "add_key", "request_key", "keyctl", *OWNERSHIP),
    *("setpriority", "ioprio_set", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr"),
    *("shmget", "semget", "msgget", "mq_open"),
)
"""Calls that a library may try and do without. They also slow down other processes, or share memory with them."""
DEADLY: Final = (
    *("execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_open", "pidfd_getfd"),
    *("pidfd_send_signal", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "chroot", "pivot_root", "mount", "umount2"),
    *("unshare", "setns", "perf_event_open", "bpf", "userfaultfd", "init_module", "finit_module"),
)
"""Calls that no reader makes: they end the process, so that it serves no further document."""
OWN: Final = ("kill", "tgkill", "prlimit64")
"""Calls on processes: on this one, or (0) without naming one, only."""

_libc = ctypes.CDLL(None, use_errno=True)


def refuse_inspection() -> None:
    """Make this process unreadable for others of its user: `/proc/PID/environ`, memory and core dumps hold keys."""
    with suppress(AttributeError):  # no Linux
        _libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def confine(import_path: Iterable[str], temporary: str) -> None:
    """Give up, for good, everything that work on a text does not need; rights that the kernel cannot take stay.

    It has to be called before the process starts a thread. `import_path` is that of the process (`sys.path`),
    `temporary` the one folder that it may write to.
    """
    if sys.platform != "linux":
        return
    refuse_inspection()
    _drop_capabilities()
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        _restrict_files([*SYSTEM_FOLDERS, *_code_folders(import_path)], temporary)
        _restrict_calls()


def _drop_capabilities() -> None:
    """Give up what root may do beyond other users, such as setting the clock or reading the files of others."""
    if platform.machine() in MACHINES:
        header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
        nothing = bytes(24)
        _libc.syscall(MACHINES[platform.machine()][1]["capset"], header, nothing)


def _code_folders(import_path: Iterable[str]) -> list[str]:
    """Return the folders that code is loaded from: those of the interpreter whole, of others the packages alone.

    A checkout of the product lies on the import path; keys and reports may lie in it, too.
    """
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    installed = {os.path.realpath(sysconfig.get_path(kind)) for kind in kinds}
    folders = [*installed, os.path.realpath(f"{sys.base_prefix}/lib")]
    for entry in map(Path, import_path):
        if os.path.realpath(entry) in installed or not entry.is_dir():
            folders.append(str(entry))
            continue
        with os.scandir(entry) as children:
            folders += [child.path for child in children if child.name.endswith((".py", ".so")) or _holds_code(child)]
    return folders


def _holds_code(child: os.DirEntry[str], levels: int = 2) -> bool:
    """Return whether a folder holds code, or one of its folders does, as in a package without a file of its own."""
    if child.name.startswith(".") or not child.is_dir():
        return False
    if child.name.endswith((".libs", ".dist-info")):  # of a package: libraries that it brings, its version
        return True
    with suppress(OSError), os.scandir(child.path) as files:
        return any(file.name.endswith((".py", ".so")) or (levels > 1 and _holds_code(file, 1)) for file in files)
    return False


def _restrict_files(readable: Iterable[str], temporary: str) -> None:
    """Forbid all files and folders except these, which may be read, and a temporary one; forbid TCP where possible."""
    version = _libc.syscall(CREATE_RULESET, None, 0, CREATE_RULESET_VERSION)
    if version < 1:
        return
    handled = (1 << FILE_RIGHTS[min(version, max(FILE_RIGHTS))]) - 1
    network = NETWORK_RIGHTS if version >= NETWORK_VERSION else 0
    scopes = SCOPES if version >= SCOPE_VERSION else 0
    attributes = struct.pack("=QQQ", handled, network, scopes)
    if version >= SCOPE_VERSION:
        size = 24
    elif version >= NETWORK_VERSION:
        size = 16
    else:
        size = 8
    ruleset = _libc.syscall(CREATE_RULESET, attributes[:size], size, 0)
    if ruleset < 0:
        return
    rules = {**dict.fromkeys(readable, READ_FILE), "/dev/null": READ_FILE | WRITE_FILE}
    rules[temporary] = READ_FILE | WRITE_FILE | CHANGE_FOLDER & handled
    try:
        for path, rights in rules.items():
            with suppress(OSError):  # not on this machine
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
                allowed = rights | (READ_DIRECTORY if Path(path).is_dir() else 0)
                _libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, struct.pack("=Qi", allowed, descriptor), 0)
                os.close(descriptor)
        _libc.syscall(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _restrict_calls() -> None:
    """Forbid sockets, programs, other processes and what changes the system, where the architecture is known."""
    if platform.machine() not in MACHINES or sys.byteorder != "little":
        return
    filters = b"".join(_filter(*MACHINES[platform.machine()], os.getpid()))
    buffer = ctypes.create_string_buffer(filters)
    program = struct.pack("@HP", len(filters) // 8, ctypes.addressof(buffer))
    _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)


def _filter(architecture: int, calls: dict[str, int], process: int) -> list[bytes]:
    """Return the instructions of the filter: each call is compared in turn; anything else is allowed."""

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    def when(name: str, *then: bytes) -> list[bytes]:
        if name not in calls:
            return []
        return [instruction(JUMP_EQUAL, calls[name], 0, len(then)), *then]

    program = [
        instruction(LOAD_WORD, ARCHITECTURE_OFFSET),
        instruction(JUMP_EQUAL, architecture, 1, 0),
        instruction(RETURN, KILL_PROCESS),
        instruction(LOAD_WORD, NUMBER_OFFSET),
        instruction(JUMP_SET, X32_BIT, 0, 1),
        instruction(RETURN, KILL_PROCESS),
    ]
    for name in FAILING:
        program += when(name, instruction(RETURN, FAIL | EPERM))
    for name in DEADLY:
        program += when(name, instruction(RETURN, KILL_PROCESS))
    program += when("clone3", instruction(RETURN, FAIL | ENOSYS))  # its flags cannot be seen: libraries then use clone
    program += when(
        "clone",
        instruction(LOAD_WORD, FIRST_ARGUMENT_OFFSET),
        instruction(JUMP_SET, CLONE_THREAD, 1, 0),
        instruction(RETURN, FAIL | EPERM),
        instruction(RETURN, ALLOW),
    )
    for name in OWN:
        program += when(
            name,
            instruction(LOAD_WORD, FIRST_ARGUMENT_OFFSET),
            instruction(JUMP_EQUAL, process, 2, 0),
            instruction(JUMP_EQUAL, 0 if name == "prlimit64" else process, 1, 0),
            instruction(RETURN, KILL_PROCESS),
            instruction(RETURN, ALLOW),
        )
    return [*program, instruction(RETURN, ALLOW)]


# --- what holds on this machine --------------------------------------------------------------------------------------
def probe(paths: list[str], port: int) -> dict[str, bool]:
    """Try what a document that has taken over this process would try, and return by name what was refused.

    Rights of root count as refused where the process never had any. `paths` are empty files of the user, at least one;
    at `port` of the loopback interface something listens.
    """
    parent = f"/proc/{os.getppid()}"
    return {
        "keys of its parent": _is_refused(lambda: Path(f"{parent}/environ").read_bytes()),
        "files of the user": all(_is_refused(Path(path).read_bytes) for path in paths),
        "writing files": _is_refused(lambda: Path(paths[0]).write_bytes(b"")),
        "permissions of files": _is_refused(lambda: Path(paths[0]).chmod(Path(paths[0]).stat().st_mode)),
        "rights of root": not _has_capabilities(),
        "network": _is_refused(lambda: socket.create_connection(("127.0.0.1", port), 1).close()),
        "processes": _is_refused(lambda: os.waitpid(os.fork() or _leave(), 0)),
    }


def _has_capabilities() -> bool:
    """Return whether this process may do anything that only root may."""
    if sys.platform != "linux":
        return os.geteuid() == 0
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return any(int(line.split()[1], 16) for line in lines if line.startswith(("CapEff:", "CapPrm:")))


def _is_refused(attempt: Callable[[], object]) -> bool:
    """Return whether the kernel refuses an attempt for lack of a right."""
    try:
        attempt()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _leave() -> int:
    os._exit(0)
