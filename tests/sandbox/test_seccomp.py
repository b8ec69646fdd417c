"""The filter of system calls, run as the kernel would run it."""

import errno
import struct

import pytest

from agent_world.sandbox import seccomp

X86_64, I386, X32 = 0xC000003E, 0x40000003, 0x40000000
ALLOW, DENY, UNKNOWN, KILL = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS, 0x80000000
IOCTL, PRLIMIT, CLONE, CLONE3 = 16, 302, 56, 435
NUMBERS = range(1024)

FORBIDDEN = {
    "socket": 41, "fork": 57, "execve": 59, "kill": 62, "ptrace": 101, "setrlimit": 160, "mount": 165, "keyctl": 250,
    "unshare": 272, "setns": 308, "memfd_create": 319, "bpf": 321, "execveat": 322, "io_uring_setup": 425,
}  # fmt: skip


def verdict(program, number, arguments=(), machine=X86_64):
    """What `program` returns for a system call."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    code = list(struct.iter_unpack("<HBBI", program))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:  # load a word
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:  # return
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: accumulator & value != 0}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize(
    ("program", "more"),
    [(seccomp.session_filter(), {}), (seccomp.process_filter(), seccomp._ALLOWED_WITH_PROCESSES)],
    ids=["session", "processes"],
)
def test_what_is_listed_is_allowed_and_nothing_else(program, more):
    listed = {*seccomp._ALLOWED.values(), *more.values()}
    decided = {number: verdict(program, number) for number in NUMBERS if number not in (IOCTL, PRLIMIT, CLONE, CLONE3)}
    assert {number for number, found in decided.items() if found == ALLOW} == listed
    assert set(decided.values()) == {ALLOW, DENY}
    assert not {number for name, number in FORBIDDEN.items() if name not in more} & listed
    for number in (0, 1, 59, 231, 2**30 - 1):
        assert verdict(program, number, machine=I386) == KILL
        assert verdict(program, number | X32) == KILL
    assert verdict(program, 2**30 - 1) == DENY


def test_calls_that_depend_on_their_arguments():
    session, processes = seccomp.session_filter(), seccomp.process_filter()
    for program in (session, processes):
        assert [verdict(program, IOCTL, (3, request)) for request in (0x5450, 0x5451, 0x5412)] == [ALLOW, ALLOW, DENY]
        assert [verdict(program, PRLIMIT, (0, 7, new)) for new in (0, 1, 2**32)] == [ALLOW, DENY, DENY]
    assert (verdict(session, CLONE), verdict(session, CLONE3)) == (DENY, DENY)
    threads, new_user, new_net = 0x50F00, 0x10000000, 0x40000000
    assert [verdict(processes, CLONE, (flags,)) for flags in (threads, 17, new_user, new_net | 17)] == [
        ALLOW, ALLOW, DENY, DENY,
    ]  # fmt: skip
    assert verdict(processes, CLONE3) == UNKNOWN
