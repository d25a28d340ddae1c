"""The parent of a program that an operator names: it ends with the worker, and everything that it started with it.

Called as `python -I -S guardian.py DESCRIPTOR VARIABLES PROGRAM ARGUMENT…`. The program gets the variables with these
names, between which there are commas, and not those that an interpreter sets for itself. The descriptor is the reading
end of a pipe that the worker keeps open: the kernel closes it when the worker dies, however it dies.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

NOT_STARTED = 127
"""Exit code for a program that cannot be started, as shells have it."""


def main() -> None:
    """Start the program with our standard streams, and end its process group when it or the worker has ended."""
    life, names, *command = sys.argv[1:]
    environment = {name: os.environ[name] for name in names.split(",") if name in os.environ}  # noqa: TID251  our own
    try:
        program = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603  the operator's
    except OSError:
        os._exit(NOT_STARTED)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # only the program has them now, so that their ends are seen
        os.dup2(nothing, stream)

    def end(code: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(program.pid, signal.SIGKILL)
        os._exit(code)

    threading.Thread(target=lambda: end(program.wait()), daemon=True).start()
    os.read(int(life), 1)
    end(-signal.SIGKILL)


if __name__ == "__main__":
    main()
