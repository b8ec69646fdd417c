"""Locks the calling process into namespaces of its own and gives up every right (Linux, by plain system calls)."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

# PyDLL keeps the interpreter lock over the call: the child of a raw clone must not have lost it.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
# Found here, once: a session that had to look for them would copy some sixty pages of memory over it.
_syscall, _prctl_call, _mount_call = _libc.syscall, _libc.prctl, _libc.mount
_after_fork = ctypes.pythonapi.PyOS_AfterFork_Child

_CLONE, _CAPSET = 56, 126
_NEW_MOUNTS, _NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEW_USER, _NEW_PIDS, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_NAMESPACES = _NEW_MOUNTS | _NEW_CGROUP | _NEW_UTS | _NEW_IPC | _NEW_USER | _NEW_PIDS | _NEW_NET
_SIGCHLD = 17

READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38
_SECCOMP_FILTER = 2
_DETACH = 2
# No permitted, effective or inheritable one. Made once: an array type is made anew in every session that asks for it.
_CAPABILITY_HEADER = (ctypes.c_uint32 * 2)(0x20080522, 0)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()

_MEGABYTE = 1 << 20
# Who we are outside of a new user namespace cannot be asked inside it.
_UID, _GID = os.getuid(), os.getgid()


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
    pid = _syscall(_CLONE, ctypes.c_ulong(_NAMESPACES | _SIGCHLD), None, None, None, None)
    _check(pid, "clone")
    if pid == 0:
        _after_fork()
    return pid


def unshare() -> None:
    """Move the calling process itself into a user and a mount namespace of its own, where it may mount."""
    _check(_libc.unshare(_NEW_USER | _NEW_MOUNTS), "unshare")
    # Whoever changes his rights loses this signal.
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0)
    map_identity()


def map_identity() -> None:
    """Be 1000:1000 in the new user namespace."""
    for name, text in (("setgroups", "deny"), ("gid_map", f"1000 {_GID} 1"), ("uid_map", f"1000 {_UID} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def enter(system_calls: Filter, limits: dict[str, int]) -> None:
    """Finish the jail of a process in a user and a mount namespace of its own: files, limits, rights, system calls."""
    options = f"size={limits['work_bytes']},nr_inodes={limits['work_files']},mode=700"
    mount("tmpfs", "/work", "tmpfs", NO_SETUID | NO_DEVICES | NO_EXEC, options)
    mount("tmpfs", "/proc", "tmpfs", NO_SETUID | NO_DEVICES | NO_EXEC | READ_ONLY, "size=4k,nr_inodes=1,mode=555")
    os.chdir("/work")
    for name, value in (
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_STACK, 8 * _MEGABYTE),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(name, (value, value))
    _prctl(_SET_DUMPABLE, 0, 0)
    _prctl(_SET_NO_NEW_PRIVILEGES, 1, 0)
    _drop_capabilities()
    system_calls.enter()


def _drop_capabilities() -> None:
    # Empty permitted and effective sets empty the ambient one too; the bounding set only matters to exec.
    _check(_syscall(_CAPSET, _CAPABILITY_HEADER, _NO_CAPABILITIES), "capset")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """What the system call of this name does."""
    words = [None if word is None else word.encode() for word in (source, target, kind, options)]
    _check(_mount_call(*words[:3], ctypes.c_ulong(flags), words[3]), f"mount on {target}")


def change_root(folder: str) -> None:
    """Let `folder`, a mount point, be the root, and let go of the old one."""
    os.chdir(folder)
    # Old and new root in one place: nobody needs a folder for the old one.
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount")
    os.chdir("/")


def _prctl(option: int, first: int, second: int) -> None:
    arguments = (ctypes.c_ulong(value) for value in (first, second, 0, 0))
    _check(_prctl_call(option, *arguments), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
