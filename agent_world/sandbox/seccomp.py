"""The system calls that a session may make, assembled into the kernel's filter language (classic BPF).

Everything that is not listed fails with EPERM: no new process or thread, no program, no socket, no mount, no key, no
other address space. A call from the 32-bit or x32 table kills the session.
"""

from __future__ import annotations

import errno
import platform
import struct

from agent_world.sandbox.errors import SandboxUnavailableError

_ALLOWED = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
    "rt_sigreturn": 15, "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "select": 23,
    "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "dup2": 33, "nanosleep": 35, "getpid": 39,
    "exit": 60, "uname": 63, "fcntl": 72, "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate": 77,
    "getcwd": 79, "chdir": 80, "rename": 82, "mkdir": 83, "rmdir": 84, "unlink": 87, "readlink": 89,
    "chmod": 90, "fchmod": 91, "umask": 95, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99,
    "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110,
    "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "getdents64": 217,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "openat": 257,
    "mkdirat": 258, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "readlinkat": 267, "fchmodat": 268,
    "faccessat": 269, "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "utimensat": 280, "dup3": 292,
    "pipe2": 293, "getrandom": 318, "statx": 332, "rseq": 334, "faccessat2": 439,
}  # fmt: skip
_IOCTL, _CLOSE_ON_EXEC = 16, (0x5450, 0x5451)
_PRLIMIT = 302

_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000


def session_filter() -> bytes:
    """The filter of a session, as an array of `struct sock_filter`.

    Raises:
        SandboxUnavailableError: the machine is not x86-64, whose call numbers these are.
    """
    if platform.machine() != "x86_64":
        raise SandboxUnavailableError(
            "bwrap", f"its system-call filter is written for x86_64, not {platform.machine()}", "use another machine"
        )
    program = [
        *_unless(_ARCH, _ARCH_X86_64, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    special = [
        *_when_argument(_IOCTL, argument=1, values=_CLOSE_ON_EXEC),
        # Reading limits is harmless; `new_limit` must be NULL. Both halves of the pointer are looked at.
        (_JUMP_EQUAL, 0, 4, _PRLIMIT),
        (_LOAD, 0, 0, _ARGUMENTS + 8 * 2),
        (_JUMP_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _ARGUMENTS + 8 * 2 + 4),
        (_JUMP_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    numbers = sorted(_ALLOWED.values())
    program += [(_JUMP_EQUAL, len(numbers) - index - 1 + 1, 0, number) for index, number in enumerate(numbers)]
    program += [(0x05, 0, 0, 1), (_RETURN, 0, 0, _ALLOW), *special]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _unless(offset: int, value: int, action: int) -> list[tuple[int, int, int, int]]:
    return [(_LOAD, 0, 0, offset), (_JUMP_EQUAL, 1, 0, value), (_RETURN, 0, 0, action)]


def _when_argument(number: int, *, argument: int, values: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Allow call `number` when the low half of `argument` is one of `values`, deny it otherwise; else fall through."""
    checks = [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [
        (_JUMP_EQUAL, 0, len(values) + 3, number),
        (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
        *checks,
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
    ]
