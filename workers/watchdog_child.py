"""The process that watches another one, and ends it when its event loop stalls for too long.

Run by path, with nothing but the standard library: `python -I -S watchdog_child.py OPTIONS`, a JSON object with the
fields of `Options`. The watched process writes a byte into `beats` each second. At the limit it is sent `SIGNAL`; its
handler, which needs no Python code to run, writes the stacks of all threads into `stacks` and exits.
"""

import json
import os
import re
import select
import signal
import sys
import time
from dataclasses import dataclass

SIGNAL = signal.SIGUSR2
LOOK_SECONDS = 1.0
STACK_SECONDS = 5.0
"""How long to wait for the stacks before killing the process."""
MOST_STACK_BYTES = 64_000
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
FRAME = re.compile(r'File "([^"]*)", line (\d+) in (.*)')


@dataclass(frozen=True)
class Options:
    """Inherited file descriptors, and what to report."""

    pid: int
    beats: int
    stacks: int
    log: int
    form: str
    """`json` or `console`."""
    limit_seconds: float
    said: str
    """For the person at the terminal, on standard error; may be empty."""


@dataclass(frozen=True)
class Standing:
    """What the system reports of a process: its state as a letter, and the processor time that it has used."""

    state: str
    processor_seconds: float


def read_standing(pid: int) -> Standing | None:
    """Read it; None where the system does not report it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123  no import for it
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return Standing(fields[0], (int(fields[11]) + int(fields[12])) / CLOCK_TICKS)


def chargeable_seconds(before: Standing | None, now: Standing | None) -> float:
    """How much of one look counts as a stall: only time in which the process could have answered.

    A process that was stopped, or waits for a processor or a disk, could not answer. A computing one is charged the
    processor time that it got, a sleeping one the whole look.
    """
    if before is None or now is None:
        return LOOK_SECONDS
    if now.state == "S":
        return LOOK_SECONDS
    if now.state == "R":
        return min(LOOK_SECONDS, max(0.0, now.processor_seconds - before.processor_seconds))
    return 0.0


def watch(options: Options) -> float:
    """Return the seconds of a stall that passed the limit; 0 when the watched process has ended.

    This process times the looks itself: while the whole machine is suspended there are none.
    """
    silent, before = 0.0, read_standing(options.pid)
    while True:
        ready, _, _ = select.select([options.beats], [], [], LOOK_SECONDS)
        now = read_standing(options.pid)
        if ready:
            if not os.read(options.beats, 4_096):
                return 0.0
            silent = 0.0
        else:
            silent += chargeable_seconds(before, now)
            if silent >= options.limit_seconds:
                return silent
        before = now


def end_and_read_stacks(options: Options) -> list[list[str]]:
    """End the process and read which code its threads ran: files, lines and functions, never a value."""
    text, end = b"", time.monotonic() + STACK_SECONDS
    os.kill(options.pid, SIGNAL)
    while (left := end - time.monotonic()) > 0 and len(text) < MOST_STACK_BYTES:
        ready, _, _ = select.select([options.stacks], [], [], left)
        piece = os.read(options.stacks, 4_096) if ready else b""
        if not piece:
            break
        text += piece
    threads = text.decode("utf-8", "replace").split("\n\n")
    return [[f"{file}:{line} {name}" for file, line, name in FRAME.findall(thread)] for thread in threads]


def log_line(options: Options, silent: float, stacks: list[list[str]]) -> str:
    """One line in the form of the other logs."""
    event = {
        "event": "worker.loop_silent",
        "level": "critical",
        "logger": "workers.watchdog",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "pid": options.pid,
        "silent_seconds": round(silent, 1),
        "consequence": "the process is ended; another worker takes over its calls",
        "stack": stacks[-1],  # of the main thread, which runs the loop: it is the first one of a process
        "other_threads": [stack[0] for stack in stacks[:-1] if stack],  # one of them may hold the interpreter
    }
    if options.form == "json":
        return json.dumps(event) + "\n"
    shown = " ".join(f"{name}={value}" for name, value in event.items() if name not in ("event", "level", "timestamp"))
    return f"{event['timestamp']} [critical ] {event['event']} {shown}\n"


def main() -> None:
    """Watch until the other process ends, or end it."""
    options = Options(**json.loads(sys.argv[1]))
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, SIGNAL):
        signal.signal(name, signal.SIG_IGN)  # this process ends with the one that it watches, not before
    silent = watch(options)
    if not silent or os.getppid() != options.pid:
        return
    stacks = end_and_read_stacks(options)
    try:
        os.write(options.log, log_line(options, silent, stacks).encode())
        if options.said:
            os.write(2, f"{options.said}\n".encode())
    except OSError:
        pass  # the reader is gone; the process is killed all the same
    if os.getppid() == options.pid:
        os.kill(options.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
