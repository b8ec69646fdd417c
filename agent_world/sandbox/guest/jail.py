"""Locks the calling process into namespaces of its own and gives up every right (Linux, by plain system calls)."""

from __future__ import annotations

import ctypes
import os
import resource

# PyDLL keeps the interpreter lock over the call: the child of a raw clone must not have lost it.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_CLONE, _CAPSET = 56, 126
_NEW_MOUNTS, _NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEW_USER, _NEW_PIDS, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_NAMESPACES = _NEW_MOUNTS | _NEW_CGROUP | _NEW_UTS | _NEW_IPC | _NEW_USER | _NEW_PIDS | _NEW_NET
_SIGCHLD = 17

_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 4, 22, 38
_SECCOMP_FILTER = 2
_CAPABILITY_VERSION = 0x20080522

_MEGABYTE = 1 << 20


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A system-call filter, kept in memory as the kernel wants it."""

    def __init__(self, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._program = _Program(len(program) // 8, ctypes.addressof(self._buffer))

    def enter(self) -> None:
        """Let the calling process make no other call from now on."""
        _prctl(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(self._program))


def clone() -> int:
    """Like `os.fork`, into new user, mount, pid, ipc, uts, cgroup and network namespaces."""
    pid = _libc.syscall(_CLONE, ctypes.c_ulong(_NAMESPACES | _SIGCHLD), None, None, None, None)
    _check(pid, "clone")
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    return pid


def enter(system_calls: Filter, limits: dict[str, int]) -> None:
    """Finish the jail of a process that `clone` made: identity, files, limits, rights, system calls."""
    _map_identity()
    options = f"size={limits['work_bytes']},nr_inodes={limits['work_files']},mode=700"
    _mount(b"/work", _NO_SETUID | _NO_DEVICES | _NO_EXEC, options)
    _mount(b"/proc", _NO_SETUID | _NO_DEVICES | _NO_EXEC | _READ_ONLY, "size=4k,nr_inodes=1,mode=555")
    os.chdir("/work")
    for name, value in (
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_STACK, 8 * _MEGABYTE),
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(name, (value, value))
    _prctl(_SET_DUMPABLE, 0, 0)
    _prctl(_SET_NO_NEW_PRIVILEGES, 1, 0)
    _drop_capabilities()
    system_calls.enter()


def _map_identity() -> None:
    for name, text in (("setgroups", b"deny"), ("gid_map", b"1000 1000 1"), ("uid_map", b"1000 1000 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text)
        finally:
            os.close(fd)


def _drop_capabilities() -> None:
    # Empty permitted and effective sets empty the ambient one too; the bounding set only matters to exec.
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(_libc.syscall(_CAPSET, header, (ctypes.c_uint32 * 6)()), "capset")


def _mount(target: bytes, flags: int, options: str) -> None:
    _check(
        _libc.mount(b"tmpfs", target, b"tmpfs", ctypes.c_ulong(flags), options.encode()), f"mount on {target.decode()}"
    )


def _prctl(option: int, first: int, second: int) -> None:
    arguments = (ctypes.c_ulong(value) for value in (first, second, 0, 0))
    _check(_libc.prctl(option, *arguments), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
