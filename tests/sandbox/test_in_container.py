"""The sandbox inside a container, as compose.yaml starts the one that runs work."""

from __future__ import annotations

import io
import sysconfig
import tarfile
from contextlib import closing
from pathlib import Path

import docker
import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
PATHS = "systempaths=unconfined"


@pytest.mark.timeout(900)
def test_the_sandbox_holds_in_a_container_with_the_options_of_the_code_server_and_not_without(engine_host):
    client = docker.APIClient(base_url=engine_host)
    client.import_image_from_data(_bare_image(), repository="bare")
    mounts = {"/usr": "/usr", "/etc": "/etc", str(ROOT): "/source", sysconfig.get_path("purelib"): "/packages"}

    def attacked(options: list[str]) -> tuple[int, str]:
        host = client.create_host_config(
            network_mode="none", tmpfs={"/tmp": "exec"}, binds=[f"{a}:{b}:ro" for a, b in mounts.items()],
            security_opt=[option for option in options if option != PATHS],
        )  # fmt: skip
        if PATHS in options:  # a word of Docker's clients; the engine is told what they make of it
            host |= {"MaskedPaths": [], "ReadonlyPaths": []}
        container = client.create_container(
            "bare", ["/usr/bin/python3", "-m", "dagster_project.cli", "sandbox", "selftest"],
            user="1000:1000", working_dir="/source", host_config=host,
            environment={"PYTHONPATH": "/source:/packages", "AGENT_WORLD_CACHE": "/tmp/cache", "HOME": "/tmp"},
        )  # fmt: skip
        client.start(container)
        status = client.wait(container, timeout=600)["StatusCode"]
        return status, client.logs(container).decode()

    options = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["code"]["security_opt"]
    with closing(client):
        status, said = attacked(options)
        assert status == 0, said[-2000:]
        assert "attacks held by bwrap" in said
        for left_out in (option for option in options if "apparmor" not in option):  # not every host has it
            status, said = attacked([option for option in options if option != left_out])
            assert (status, "bwrap cannot be used" in said) == (1, True), left_out


def _bare_image() -> bytes:
    """The folders of a machine with nothing in them, as an image takes them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in ("usr", "etc", "source", "packages", "tmp", "proc", "sys", "dev", "var", "run"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
        for name in ("bin", "lib", "lib64", "sbin"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
    return made.getvalue()
