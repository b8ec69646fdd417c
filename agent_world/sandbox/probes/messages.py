"""An attack in two halves: one session leaves something where another one looks."""

# ruff: noqa: D103 - the name of an attack says what it does
import contextlib
import os
import socket

FOLDERS = (".", "/", "/dev", "/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run", "/guest", "/proc", "/usr/local")
left = []


def leaves_a_message(facts):
    for folder in FOLDERS:
        with contextlib.suppress(OSError), open(os.path.join(folder, facts["message"]), "w") as file:
            left.append(file.write("x"))
    with contextlib.suppress(OSError):
        left.append(socket.socket(socket.AF_UNIX))
        left[-1].bind("\0" + facts["message"])
        left[-1].listen()
    return bool(left)


def finds_a_message(facts):
    if any(os.path.exists(os.path.join(folder, facts["message"])) for folder in FOLDERS):
        return True
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + facts["message"])
    return True


def removes_a_message(facts):
    for folder in FOLDERS[1:]:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, facts["message"]))
    return True
