"""The strong back-end: a Docker container that holds the same zygote, reached over a socket that is mounted into it.

Beside what holds a session in every back-end, the container's own walls stand: a second set of namespaces, a cgroup
over all sessions together, a profile of system calls for the zygote itself, and, with another runtime, another kernel.
The engine is the one that `docker` finds (DOCKER_HOST, else the usual socket). It must share our file system.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from agent_world.sandbox import image, seccomp
from agent_world.sandbox.base import Sandbox
from agent_world.sandbox.errors import SandboxUnavailableError
from agent_world.sandbox.guest_code import PYTHON, guest_code

if TYPE_CHECKING:
    from docker import DockerClient

LABEL = "agent-world.sandbox"
_FOLDER = "/agent-world"
_USER = "64001:64001"
_SLOT_BYTES = 4 << 30
_SLOT_PROCESSES = 2048
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 10
_LOOK_EVERY_S = 0.2

# The allow-list of a session is the wall; this is for the zygote, which must clone, mount and load that list.
_DENIED = (
    "acct add_key adjtimex bpf clock_adjtime clock_settime delete_module fanotify_init fanotify_mark finit_module "
    "fsconfig fsmount fsopen fspick get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup ioperm "
    "iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind memfd_secret migrate_pages modify_ldt "
    "mount_setattr move_mount move_pages name_to_handle_at open_by_handle_at open_tree perf_event_open personality "
    "pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key "
    "set_mempolicy setns settimeofday swapoff swapon syslog umount userfaultfd vhangup vmsplice"
)
PROFILE = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "architectures": ["SCMP_ARCH_X86_64"],
    "syscalls": [
        {"names": _DENIED.split(), "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        {
            "names": ["socket", "socketpair"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 1,
            "args": [{"index": 0, "value": socket.AF_UNIX, "op": "SCMP_CMP_NE"}],
        },
    ],
}


class DockerSandbox(Sandbox):
    """One container with one zygote; owned by the process that made it."""

    backend = "docker"
    cure = "see that a Docker engine of this machine runs and that you may use it (DOCKER_HOST names another one)"
    runtime: ClassVar[str | None] = None
    """The engine's runtime that starts the container; None: its default."""

    def _start(self) -> socket.socket:
        with (
            _engine(self) as engine,
            tempfile.TemporaryDirectory(prefix="agent-world-") as private,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        ):
            # The folder above keeps other users of this machine out; in the container there is only this one.
            shared = Path(private, "shared")
            _make(shared)
            _lay(shared / "guest", guest_code(seccomp.session_filter()))
            listener.bind(str(shared / "control"))
            (shared / "control").chmod(0o666)
            listener.listen(1)
            self._container = self._run(engine, shared)
            try:
                control = self._connection(engine, listener)
                self._hand_over(control)
            except BaseException:
                self._end()
                raise
            return control

    def _hand_over(self, control: socket.socket) -> None:
        """Give the container the means to watch us, and wait until it needs our files no more."""
        control.settimeout(_START_TIMEOUT_S)
        supervisor = os.pidfd_open(os.getpid())
        try:
            socket.send_fds(control, [b"supervisor"], [supervisor])
            answer = control.recv(1024)
        except OSError as error:
            answer = str(error).encode()
        finally:
            os.close(supervisor)
        if answer != b"laid out":
            control.close()
            raise SandboxUnavailableError(self.backend, answer.decode(errors="replace"), self.cure)

    def _run(self, engine: DockerClient, shared: Path) -> str:
        """Start the container; returns its id."""
        from docker.errors import ImageNotFound
        from docker.types import LogConfig, Mount

        name = image.image_name()
        try:
            engine.images.get(name)
        except ImageNotFound:
            engine.images.load(image.archive())
        container = engine.containers.run(
            name,
            [PYTHON, "-S", "-s", "-B", f"{_FOLDER}/guest/container.py", _FOLDER, self.limits.as_json(self.processes)],
            detach=True,
            auto_remove=True,
            runtime=self.runtime,
            labels={LABEL: str(os.getpid())},
            log_config=LogConfig(type=LogConfig.types.NONE),
            hostname="sandbox",
            environment={"PYTHONHASHSEED": "0"},
            mounts=[Mount(_FOLDER, str(shared), type="bind", read_only=True)],
            read_only=True,
            network_mode="none",
            ipc_mode="none",
            user=_USER,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges", "apparmor=unconfined", f"seccomp={json.dumps(PROFILE)}"],
            pids_limit=_SLOT_PROCESSES,
            mem_limit=_SLOT_BYTES,
            memswap_limit=_SLOT_BYTES,
        )
        return str(container.id)

    def _connection(self, engine: DockerClient, listener: socket.socket) -> socket.socket:
        from docker.errors import NotFound

        listener.settimeout(_LOOK_EVERY_S)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
            try:
                engine.containers.get(self._container)
            except NotFound:
                raise SandboxUnavailableError(self.backend, "its container ended at once", self.cure) from None
        raise SandboxUnavailableError(self.backend, "its container does not answer", self.cure)

    def _end(self) -> str:
        # The zygote ends at the closed socket, the container with it, and the engine removes it.
        from docker.errors import APIError, DockerException, NotFound
        from requests.exceptions import RequestException

        with contextlib.suppress(NotFound, SandboxUnavailableError), _engine(self) as engine:
            container = engine.containers.get(self._container)
            try:
                container.wait(condition="removed", timeout=_END_TIMEOUT_S)
            except RequestException:
                with contextlib.suppress(APIError, DockerException, RequestException):
                    container.remove(force=True)
        return ""

    @classmethod
    def foundation(cls) -> str:
        """The engine, its parts by version, and the image."""
        with _engine(cls) as engine:
            version = engine.version()
        return repr((version["Version"], version.get("Components"), cls.runtime, image.image_name()))


class RunscSandbox(DockerSandbox):
    """The same container on gVisor's kernel, where the engine has it as the runtime ``runsc``."""

    backend = "docker-runsc"
    runtime = "runsc"
    cure = "install gVisor's runsc and name it to the engine as a runtime with --host-uds=open"


@contextlib.contextmanager
def _engine(sandbox: DockerSandbox | type[DockerSandbox]) -> Iterator[DockerClient]:
    """The engine; what it refuses makes the back-end unavailable."""
    import docker
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        with contextlib.closing(docker.from_env()) as engine:
            runtimes: dict[str, Any] = engine.info()["Runtimes"]
            if sandbox.runtime not in (None, *runtimes):
                raise SandboxUnavailableError(
                    sandbox.backend, f"the engine has no runtime {sandbox.runtime}", sandbox.cure
                )
            yield engine
    except (DockerException, RequestException) as error:
        raise SandboxUnavailableError(sandbox.backend, str(error), sandbox.cure) from None


def _lay(folder: Path, files: dict[str, bytes]) -> None:
    _make(folder)
    for name, data in files.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o444)


def _make(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)
