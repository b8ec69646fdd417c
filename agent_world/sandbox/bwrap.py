"""The default back-end: a zygote inside hardened bubblewrap, and namespaces of its own for every session.

Cause of each measure: notes in docs/security.md. In short: bubblewrap never starts as host uid 0, gets an empty
environment, mounts everything read-only but /work, and the zygote watches the supervisor by pid descriptor, so that no
process is left whatever way the supervisor goes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from importlib import resources

from agent_world.sandbox import seccomp
from agent_world.sandbox.base import Json, Limits, Sandbox
from agent_world.sandbox.errors import SandboxFailedError, SandboxUnavailableError
from agent_world.sandbox.memory import MemoryFile
from agent_world.sandbox.worker import Worker

PYTHON = "/usr/bin/python3.11"
_GUEST_MODULES = ("jail", "pins", "storage", "toolkit", "worker", "zygote")
_GUEST_PATHS = (PYTHON, "/usr/lib/python3.11", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
_FIRST_UID, _UIDS = 64000, 1024
_START_TIMEOUT_S = 60.0


class BwrapSandbox(Sandbox):
    """One bubblewrap with one zygote; owned by the process that made it."""

    backend = "bwrap"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = _start(theirs, self.limits)
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._control.settimeout(_START_TIMEOUT_S)
        try:
            hello = self._control.recv(1024)
        except TimeoutError:
            hello = b""
        if hello != b'{"ready": true}':
            self._control.close()
            self._process.kill()
            _, messages = self._process.communicate()
            why = messages.decode(errors="replace").strip().splitlines()
            raise SandboxUnavailableError(
                self.backend,
                why[-1] if why else "it did not start",
                "see that unprivileged user namespaces are allowed and that Debian's python3.11 is installed",
            )

    def open(self, descriptors: Sequence[int], setup: Mapping[str, Json]) -> Worker:
        """A new session; it is made while the caller goes on."""
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        try:
            socket.send_fds(self._control, [b'{"open": %d}' % number], [theirs.fileno(), *descriptors])
        except OSError as error:
            ours.close()
            raise SandboxFailedError(f"its zygote is gone ({error})") from None
        finally:
            theirs.close()
        return Worker(ours, lambda: self._kill(number), setup)

    @staticmethod
    def programs() -> Sequence[str]:
        """Bubblewrap and the guest's Python."""
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SandboxUnavailableError("bwrap", "bubblewrap is not installed", "run `apt-get install bubblewrap`")
        if not os.path.exists(PYTHON):
            raise SandboxUnavailableError("bwrap", f"{PYTHON} is missing", "run `apt-get install python3.11`")
        return [bwrap, PYTHON]

    def alive(self) -> bool:
        """Whether the zygote is there."""
        return self._control.fileno() >= 0 and self._process.poll() is None

    def close(self) -> None:
        """End the zygote and all sessions."""
        # The zygote ends at the closed socket, and with it, as the first process of their namespace, all sessions.
        if self._control.fileno() < 0:
            return
        self._control.close()
        if os.getpid() != self._owner:
            return
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def abandon(self) -> None:
        """Close this process's end; its maker's stays open."""
        self._control.close()

    def _kill(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b'{"kill": %d}' % number)


def _start(control: socket.socket, limits: Limits) -> subprocess.Popen[bytes]:
    guest = {
        f"{name}.py": (resources.files("agent_world.sandbox") / "guest" / f"{name}.py").read_bytes()
        for name in _GUEST_MODULES
    }
    guest |= {"filter.bpf": seccomp.session_filter(), "database": b""}
    bwrap, python = BwrapSandbox.programs()
    supervisor, uid = os.pidfd_open(os.getpid()), _own_uid()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, supervisor)
        binds, descriptors = [], [control.fileno(), supervisor]
        for name, data in guest.items():
            memory = stack.enter_context(MemoryFile(data))
            descriptors.append(memory.fd)
            # Copied, not bound: every mount is one more to clone for each session.
            binds += ["--perms", "0444", "--file", str(memory.fd), f"/guest/{name}"]
        command = [
            *(bwrap, "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
            *("--as-pid-1", "--new-session", "--clearenv", "--setenv", "PYTHONHASHSEED", "0"),
            *("--cap-drop", "ALL", *(word for path in _GUEST_PATHS for word in ("--ro-bind", path, path))),
            *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin"),
            *("--proc", "/proc", "--dev-bind", "/dev/null", "/dev/null", "--dir", "/work", "--dir", "/guest", *binds),
            *("--chdir", "/guest", "--remount-ro", "/"),
            *(python, "-S", "-s", "-B", "/guest/zygote.py"),
            *(str(control.fileno()), str(supervisor), "/guest/filter.bpf", limits.as_json()),
        ]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            env={},
            cwd="/",
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
