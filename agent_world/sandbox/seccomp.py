"""The system calls that a session may make, assembled into the kernel's filter language (classic BPF).

Everything that is not listed fails with EPERM: no socket, no mount, no namespace, no key, no other address space, and,
unless the session may start processes, no process, thread or program. A call from the 32-bit or x32 table kills the
session.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Sequence

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
# What programs need to start, to wait for each other and to copy files. Not setsid and setpgid: whoever kills a session
# kills its process group.
_ALLOWED_WITH_PROCESSES = {
    "pipe": 22, "pause": 34, "getitimer": 36, "alarm": 37, "setitimer": 38, "sendfile": 40, "fork": 57, "vfork": 58,
    "execve": 59, "wait4": 61, "kill": 62, "flock": 73, "fchdir": 81, "creat": 85, "getpgrp": 111, "getgroups": 115,
    "getresuid": 118, "getresgid": 120, "getpgid": 121, "getsid": 124, "rt_sigpending": 127, "rt_sigtimedwait": 128,
    "rt_sigsuspend": 130, "statfs": 137, "fstatfs": 138, "getpriority": 140, "arch_prctl": 158,
    "set_tid_address": 218, "restart_syscall": 219, "fadvise64": 221, "epoll_wait": 232, "epoll_ctl": 233,
    "tgkill": 234, "waitid": 247, "epoll_pwait": 281, "eventfd2": 290, "epoll_create1": 291, "copy_file_range": 326,
}  # fmt: skip
_IOCTL, _CLOSE_ON_EXEC = 16, (0x5450, 0x5451)
_PRLIMIT, _CLONE, _CLONE3 = 302, 56, 435
_NEW_NAMESPACES = 0x7E020000


_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_DENY, _UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

_Instruction = tuple[int, int, int, int]


def session_filter() -> bytes:
    """The filter of a session that is one thread of one program, as an array of `struct sock_filter`.

    Raises:
        SandboxUnavailableError: the machine is not x86-64, whose call numbers these are.
    """
    return _filter(_ALLOWED.values(), [])


def process_filter() -> bytes:
    """The filter of a session that may start processes.

    Raises:
        SandboxUnavailableError: as `session_filter`.
    """
    # The flags of clone3 lie in memory, where no filter can look: told that there is no such call, libc uses the other.
    return _filter(
        [*_ALLOWED.values(), *_ALLOWED_WITH_PROCESSES.values()],
        [*_when(_CLONE, _unless_any_bit(0, _NEW_NAMESPACES)), *_when(_CLONE3, [(_RETURN, 0, 0, _UNKNOWN)])],
    )


def _filter(numbers: Iterable[int], special: Sequence[_Instruction]) -> bytes:
    if platform.machine() != "x86_64":
        raise SandboxUnavailableError(
            "bwrap", f"its system-call filter is written for x86_64, not {platform.machine()}", "use another machine"
        )
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _ARCH_X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
        *_when(_IOCTL, _if_one_of(1, _CLOSE_ON_EXEC)),
        # Reading limits is harmless; `new_limit` must be NULL.
        *_when(_PRLIMIT, _if_null(2)),
        *special,
        *_search(_stretches(numbers)),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _stretches(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Where in the table of calls it begins to be allowed or denied, and which of the two."""
    allowed = set(numbers)
    starts = [(number, _ALLOW if number in allowed else _DENY) for number in range(max(allowed) + 2)]
    return [start for before, start in zip([(-1, _DENY), *starts], starts, strict=False) if before[1] != start[1]]


def _search(stretches: Sequence[tuple[int, int]], before: int = _DENY) -> list[_Instruction]:
    """The decision on a call that lies in one of these stretches, or before the first of them.

    By halves: for every session the kernel tries the filter on all calls there are, to keep what is always allowed.
    """
    if not stretches:
        return [(_RETURN, 0, 0, before)]
    middle = len(stretches) // 2
    start, decision = stretches[middle]
    below = _search(stretches[:middle], before)
    return [(_JUMP_AT_LEAST, len(below), 0, start), *below, *_search(stretches[middle + 1 :], decision)]


def _when(number: int, decision: Sequence[_Instruction]) -> list[_Instruction]:
    """Decide on call `number`; for any other go on behind the decision."""
    return [(_JUMP_EQUAL, 0, len(decision), number), *decision]


def _if_one_of(argument: int, values: Sequence[int]) -> list[_Instruction]:
    """Allow when the low half of an argument is one of `values`."""
    checks = [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [(_LOAD, 0, 0, _low(argument)), *checks, (_RETURN, 0, 0, _DENY), (_RETURN, 0, 0, _ALLOW)]


def _if_null(argument: int) -> list[_Instruction]:
    return [
        (_LOAD, 0, 0, _low(argument)),
        (_JUMP_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _low(argument) + 4),
        (_JUMP_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]


def _unless_any_bit(argument: int, mask: int) -> list[_Instruction]:
    return [
        (_LOAD, 0, 0, _low(argument)),
        (_JUMP_ANY_BIT, 1, 0, mask),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]


def _low(argument: int) -> int:
    return _ARGUMENTS + 8 * argument
