"""Runs attacks: one of them where it is called, or each in a process and a folder of its own."""

import ctypes
import importlib
import json
import os
import sys


def run(module, name, facts):
    """Whether the attack worked, and what it met."""
    try:
        worked, detail = bool(getattr(importlib.import_module(module), name)(facts)), ""
    except BaseException as error:
        worked, detail = False, f"{type(error).__name__}: {error}"
    return {"worked": worked, "detail": detail or os.strerror(ctypes.get_errno())}


def run_each(attacks, facts):
    """What becomes of each attack, given as [module, name]."""
    return [run_apart(module, name, facts) for module, name in attacks]


def run_apart(module, name, facts):
    """`run` in a child, which may die of it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.makedirs(name)
        os.chdir(name)
        os.write(writing, json.dumps(run(module, name, facts)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as result:
        text = result.read()
    os.waitpid(pid, 0)
    return json.loads(text or '{"worked": false, "detail": "it died"}')


if __name__ == "__main__":
    print(json.dumps(run_each(**json.loads(sys.argv[1]))))
