"""What runs on the far side of the wall: Debian's Python and our modules for it."""

from __future__ import annotations

from importlib import resources

PYTHON = "/usr/bin/python3.11"


def guest_code(session_filter: bytes) -> dict[str, bytes]:
    """The files of ``/guest`` by name: all modules of the guest, and the filter of a session's system calls."""
    folder = resources.files("agent_world.sandbox") / "guest"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".py"))
    files = {name: (folder / name).read_bytes() for name in names if name != "__init__.py"}
    # The database is empty: SQLite only wants it to be there (guest/storage.py).
    return {**files, "filter.bpf": session_filter, "database": b""}


def guest_module(name: str) -> bytes:
    """The source of one module of the guest."""
    return (resources.files("agent_world.sandbox") / "guest" / f"{name}.py").read_bytes()
