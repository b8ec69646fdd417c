"""The default back-end: a zygote inside hardened bubblewrap, and namespaces of its own for every session.

Cause of each measure: notes in docs/security.md. In short: bubblewrap never starts as host uid 0, gets an empty
environment, mounts everything read-only but /work, and the zygote watches the supervisor by pid descriptor, so that no
process is left whatever way the supervisor goes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from agent_world.sandbox import seccomp
from agent_world.sandbox.base import Sandbox
from agent_world.sandbox.errors import SandboxUnavailableError
from agent_world.sandbox.guest_code import PYTHON, guest_code
from agent_world.sandbox.memory import MemoryFile

_PATHS = (PYTHON, "/usr/lib/python3.11", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
_FIRST_UID, _UIDS = 64000, 1024


class BwrapSandbox(Sandbox):
    """One bubblewrap with one zygote; owned by the process that made it."""

    backend = "bwrap"
    cure = "see that unprivileged user namespaces are allowed and that Debian's python3.11 is installed"

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = os.pidfd_open(os.getpid())
        try:
            self._process = self._launch(theirs.fileno(), supervisor)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(supervisor)
        return ours

    def _launch(self, control: int, supervisor: int) -> subprocess.Popen[bytes]:
        """Start the process that makes sessions, with these descriptors."""
        guest = guest_code(seccomp.session_filter())
        with in_memory(guest) as descriptors:
            return start(
                [
                    *isolated(descriptors, read_only=_PATHS),
                    *(PYTHON, "-S", "-s", "-B", "/guest/zygote.py", str(control), str(supervisor)),
                    *("/guest/filter.bpf", self.limits.as_json(self.processes)),
                ],
                [control, supervisor, *descriptors.values()],
            )

    def _end(self) -> str:
        # The zygote ends at the closed socket, and with it, as the first process of their namespace, all sessions.
        try:
            _, said = self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, said = self._process.communicate()
        return said.decode(errors="replace")

    @classmethod
    def foundation(cls) -> str:
        """Bubblewrap and the guest's Python, by path, size and time."""
        programs = [(path, os.stat(path)) for path in (bubblewrap(), python())]
        return repr([(path, status.st_size, status.st_mtime_ns) for path, status in programs])


def bubblewrap() -> str:
    """The path of bubblewrap.

    Raises:
        SandboxUnavailableError: it is not installed.
    """
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailableError("bwrap", "bubblewrap is not installed", "run `apt-get install bubblewrap`")
    return path


def python() -> str:
    """The path of the guest's Python.

    Raises:
        SandboxUnavailableError: it is not installed.
    """
    if not os.path.exists(PYTHON):
        raise SandboxUnavailableError("bwrap", f"{PYTHON} is missing", "run `apt-get install python3.11`")
    return PYTHON


def isolated(guest: Mapping[str, int], *options: str, read_only: Sequence[str]) -> list[str]:
    """The words that start a program in bubblewrap, behind `options`; `guest` are descriptors of its code, by name."""
    python()
    return [
        *(bubblewrap(), "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
        *("--as-pid-1", "--clearenv", "--setenv", "PYTHONHASHSEED", "0"),
        *("--cap-drop", "ALL", *(word for path in read_only for word in ("--ro-bind", path, path))),
        *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin"),
        *("--proc", "/proc", "--dev-bind", "/dev/null", "/dev/null", "--dir", "/work", "--dir", "/guest"),
        # Copied, not bound: every mount is one more to clone for each session.
        *(word for name, fd in guest.items() for word in ("--perms", "0444", "--file", str(fd), f"/guest/{name}")),
        *(*options, "--chdir", "/guest", "--remount-ro", "/"),
    ]


@contextlib.contextmanager
def in_memory(files: Mapping[str, bytes]) -> Iterator[dict[str, int]]:
    """Descriptors to read these files from, until the block is left."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(MemoryFile(data)).fd for name, data in files.items()}


def start(command: Sequence[str], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    """Run a program of ours that has no rights and nothing of ours but these descriptors."""
    uid = _own_uid()
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        env={},
        cwd="/",
        start_new_session=True,
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
    )


def _own_uid() -> int | None:
    """Who bubblewrap runs as; None: whoever we are."""
    if os.geteuid() != 0:
        return None
    # Started as root, it would leave the session's user the owner of the host's /proc/sys.
    return _FIRST_UID + os.getpid() % _UIDS
