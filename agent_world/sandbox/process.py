"""A back-end for code that may start processes: one bubblewrap and one Python a session.

Nothing is shared with another session but files that nobody can write. A session may fork, run threads and start the
programs of the host's ``/usr`` (without ``/usr/local``), at most 32 processes at a time; they end with it.
"""

from __future__ import annotations

import io
import json
import subprocess
import zipfile

from agent_world.sandbox import seccomp
from agent_world.sandbox.bwrap import BwrapSandbox, in_memory, isolated, start
from agent_world.sandbox.guest_code import PYTHON, guest_code, guest_module


class BwrapProcessSandbox(BwrapSandbox):
    """A keeper that starts one bubblewrap a session; owned by the process that made it."""

    backend = "bwrap-process"
    processes = 32
    permits = frozenset(
        {
            "lists_the_programs_of_the_host",
            "starts_a_program",
            "spawns_without_fork",
            "forks",
            "starts_a_thread",
        }
    )

    def _launch(self, control: int, supervisor: int) -> subprocess.Popen[bytes]:
        guest = guest_code(seccomp.process_filter())
        with in_memory(guest) as descriptors, in_memory({"keeper": _keeper()}) as keeper:
            limits = self.limits.as_json(self.processes)
            options = {
                "control_fd": control,
                "supervisor_fd": supervisor,
                "isolated": isolated(
                    descriptors,
                    *("--die-with-parent", "--size", "4096", "--tmpfs", "/usr/local", "--remount-ro", "/usr/local"),
                    read_only=["/usr"],
                ),
                "program": [PYTHON, "-S", "-s", "-B", "/guest/single.py", "/guest/filter.bpf", limits],
                "files": list(descriptors.values()),
                "limits": json.loads(limits),
            }
            return start(
                [PYTHON, "-I", "-S", "-B", f"/proc/self/fd/{keeper['keeper']}", json.dumps(options)],
                [control, supervisor, *descriptors.values(), *keeper.values()],
            )


def _keeper() -> bytes:
    """The program as one file: it runs as a user who may not be able to read where this package lies."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("__main__.py", guest_module("keeper"))
        for name in ("fatal", "host"):
            archive.writestr(f"{name}.py", guest_module(name))
    return data.getvalue()
