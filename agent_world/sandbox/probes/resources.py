"""Attacks by taking more than a share."""

# ruff: noqa: D103 - the name of an attack says what it does
import contextlib
import ctypes
import mmap
import os
import signal
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
MEGABYTE = 1 << 20


def takes_two_gigabytes(facts):
    return len(mmap.mmap(-1, 2048 * MEGABYTE)) > 0


def locks_memory(facts):
    return LIBC.mlock(ctypes.create_string_buffer(4096), ctypes.c_size_t(4096)) == 0


def writes_a_huge_file(facts):
    with open("huge", "wb") as file:
        for _ in range(96):
            file.write(b"x" * MEGABYTE)
            file.flush()
    os.unlink("huge")
    return True


def claims_a_terabyte(facts):
    with open("sparse", "wb") as file:
        file.truncate(1 << 40)
    return True


def fills_its_folder(facts):
    for number in range(3):
        with open(f"part{number}", "wb") as file:
            for _ in range(32):
                file.write(b"x" * MEGABYTE)
                file.flush()
    for number in range(3):
        os.unlink(f"part{number}")
    return True


def makes_thousands_of_files(facts):
    for number in range(1500):
        os.mkdir(f"folder{number}")
    return True


def opens_hundreds_of_files(facts):
    return len([os.open(".", os.O_RDONLY) for _ in range(400)]) == 400


def forks_without_end(facts):
    children = []
    try:
        for _ in range(60):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return len(children) == 60


def starts_threads_without_end(facts):
    end = threading.Event()
    threads = [threading.Thread(target=end.wait, daemon=True) for _ in range(60)]
    started = 0
    with contextlib.suppress(RuntimeError):
        for thread in threads:
            thread.start()
            started += 1
    end.set()
    return started == 60
