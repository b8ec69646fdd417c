"""Starts one bubblewrap a session and ends it. It runs beside the supervisor, outside of any sandbox, without rights.

A process of its own, because bubblewrap ends with the thread that started it, and the threads of a supervisor come and
go.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence

import fatal
import host

_SET_SUBREAPER = 36


def main(
    control_fd: int,
    supervisor_fd: int,
    isolated: list[str],
    program: list[str],
    files: list[int],
    limits: dict[str, int],
) -> None:
    """Run `program` behind `isolated` for each session, its descriptors as further arguments.

    `files` are the descriptors that the command names and reads to their ends.
    """
    # The dead of a killed bubblewrap are ours to bury.
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)

    def prepare(descriptors: Sequence[int] = ()) -> None:
        os.setpgid(0, 0)
        for descriptor in files:
            # Opened anew: a place in a file is shared by all who have its descriptor.
            os.dup2(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY), descriptor)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
        for name, value in (
            (resource.RLIMIT_FSIZE, limits["file_bytes"]),
            (resource.RLIMIT_AS, limits["memory_bytes"]),
            (resource.RLIMIT_CPU, limits["cpu_s"]),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
            (resource.RLIMIT_MSGQUEUE, 0),
        ):
            resource.setrlimit(name, (value, value))

    def start(descriptors: list[int]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                prepare(descriptors)
                os.execve(isolated[0], [*isolated, *program, *map(str, descriptors)], {})
            except OSError as error:
                fatal.say(descriptors[0], error)
            finally:
                os._exit(1)
        with contextlib.suppress(OSError):  # it was faster
            os.setpgid(pid, pid)
        return pid

    def kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    # That bubblewrap can start here is found out, and said by itself, before anybody relies on it.
    trial = [*isolated, program[0], "-I", "-S", "-c", ""]
    if subprocess.run(trial, env={}, check=False, preexec_fn=prepare, close_fds=False).returncode != 0:
        return
    os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
    host.serve(control_fd, supervisor_fd, start, kill)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
