"""The first program in a container: it lays out the files that a session sees and becomes the zygote.

As bubblewrap does elsewhere: a root of its own that nobody can write, with Python, the guest's code, `/dev/null` and
empty places for `/work` and `/proc`; then nothing of the container is left in sight.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys

import jail

_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_FLAGS = jail.NO_SETUID | jail.NO_DEVICES
_ROOT = "/root"
_PYTHON = "/usr/bin/python3.11"


def main(folder: str, limits: str) -> None:
    """`folder` holds the supervisor's socket, this code and the filter of a session."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(f"{folder}/control")
    try:
        _, supervisor, _, _ = socket.recv_fds(control, 1024, 1)
        jail.unshare()
        _lay_out(f"{folder}/guest")
        control.send(b"laid out")
        for descriptor in (control.fileno(), *supervisor):
            os.set_inheritable(descriptor, True)
        words = ["/guest/zygote.py", str(control.fileno()), str(supervisor[0]), "/guest/filter.bpf", limits]
        os.execve(_PYTHON, [_PYTHON, "-S", "-s", "-B", *words], {"PYTHONHASHSEED": "0"})
    except OSError as error:
        control.send(str(error).encode())


def _lay_out(guest: str) -> None:
    jail.mount(None, "/", None, _RECURSIVE | _PRIVATE)
    jail.mount("tmpfs", _ROOT, "tmpfs", _FLAGS, "size=4m,nr_inodes=64,mode=755")
    for name in ("dev", "proc", "usr", "work"):
        os.mkdir(f"{_ROOT}/{name}")
    shutil.copytree(guest, f"{_ROOT}/guest")
    for name in ("bin", "lib", "lib64"):
        os.symlink(f"usr/{name}", f"{_ROOT}/{name}")
    with open(f"{_ROOT}/dev/null", "x"):
        pass
    for name in ("usr", "proc", "dev/null"):
        jail.mount(f"/{name}", f"{_ROOT}/{name}", None, _BIND | _RECURSIVE)
    jail.change_root(_ROOT)
    jail.mount(None, "/", None, _REMOUNT | _BIND | jail.READ_ONLY | _FLAGS)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
