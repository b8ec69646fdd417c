"""A real PostgreSQL server for tests: Debian's programs, a free loopback port, data in the test's folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg2
import pytest

from tests.dagster_project.servers import free_port

ROLE, DATABASE = "builder", "agent_world"
PASSWORD = "planted+Secret of%the:Database"
"""With what an address must quote."""

_ADDRESS = "127.0.0.1"
_STARTED_WITHIN_S = 60.0
_UNPRIVILEGED = "nobody"


class Database(NamedTuple):
    """Where the server listens."""

    port: int

    @property
    def url(self) -> str:
        """The address, password and all."""
        return f"postgresql://{ROLE}:{quote(PASSWORD, safe='')}@{_ADDRESS}:{self.port}/{DATABASE}"

    @property
    def url_without_password(self) -> str:
        """The address for those who have the password from elsewhere."""
        return f"postgresql://{ROLE}@{_ADDRESS}:{self.port}/{DATABASE}"

    def rows(self, query: str, *values: object) -> list[tuple]:
        """What the database answers its owner."""
        connection = psycopg2.connect(host=_ADDRESS, port=self.port, user=ROLE, password=PASSWORD, dbname=DATABASE)
        try:
            with connection.cursor() as cursor:
                cursor.execute(query, values)
                return cursor.fetchall()
        finally:
            connection.close()


@contextmanager
def postgres_server(folder: Path) -> Iterator[Database]:
    """A running server with an empty database whose owner is no superuser; ended by its pid."""
    installed = list(Path("/usr/lib/postgresql").glob("*/bin"))
    if not installed:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    programs = max(installed, key=lambda path: int(path.parent.name))
    data, password = folder / "data", folder / "password"
    user = _own(folder)
    password.write_text(PASSWORD)
    password.chmod(0o644)
    made = subprocess.run(
        [programs / "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password,
         "-E", "UTF8", "--locale=C", "-N"],
        capture_output=True, text=True, cwd=folder, **user,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    port = free_port()
    options = {"listen_addresses": _ADDRESS, "port": port, "unix_socket_directories": "", "fsync": "off"}
    command = [programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **user)
    try:
        _prepare(server, port, folder / "log")
        yield Database(port)
    finally:
        server.send_signal(signal.SIGINT)  # asked to terminate, it would wait for its clients
        server.wait(timeout=60)


def _own(folder: Path) -> dict[str, int]:
    """PostgreSQL refuses to be root: the user to start it as then, who owns `folder` and can reach it."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(_UNPRIVILEGED)
    for above in folder.parents:
        if not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o001)
    shutil.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid}


def _prepare(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _STARTED_WITHIN_S
    while True:
        try:
            connection = psycopg2.connect(
                host=_ADDRESS, port=port, user="postgres", password=PASSWORD, dbname="postgres"
            )
            break
        except psycopg2.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no PostgreSQL server: {error}\n{log.read_text(errors='replace')}") from error
            time.sleep(0.1)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD %s", [PASSWORD])
        cursor.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
    connection.close()
