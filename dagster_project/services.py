"""The servers over one lake: the command line of each, and the variables that all of them need."""

import json
import sys

from agent_world.codec import encode
from agent_world.home import artifact_root
from agent_world.lake import NotALakeError
from agent_world.stores import tracking_store
from agent_world.world import open as open_world
from dagster_project.instance import dagster_environment
from dagster_project.runs import last_run

_DEFINITIONS = ("-m", "dagster_project.definitions")


def environment(lake: str) -> dict[str, str]:
    """Where the servers find the lake, the Dagster instance and MLflow's database; carries passwords.

    Raises:
        PostgresAddressError, PostgresMissingError, PostgresRefusedError, SchemaRefusedError: see `schema_address`.
    """
    return {
        "AGENT_WORLD_LAKE": lake,
        "MLFLOW_BACKEND_STORE_URI": tracking_store(lake),
        **dagster_environment(lake),
    }


def last_settings(lake: str) -> dict[str, str]:
    """The variable by which a code location learns the settings of the lake's last run, when there was one."""
    try:
        last = last_run(open_world(lake))
    except NotALakeError:  # the first deployment begins without one
        return {}
    return {"AGENT_WORLD_SETTINGS": json.dumps(encode(last.settings))} if last else {}


def dagster_whole(host: str, port: int) -> list[str]:
    """Dagster's webserver, daemon and code server of one machine in one."""
    return _python("dagster", "dev", *_DEFINITIONS, "-h", host, "-p", str(port))


def code_server(host: str, port: int) -> list[str]:
    """The process that loads our definitions for webserver and daemon, and starts the runs."""
    return _python("dagster", "code-server", "start", *_DEFINITIONS, "-h", host, "-p", str(port))


def webserver(host: str, port: int, code: tuple[str, int]) -> list[str]:
    """Dagster's pages, over the code server at `code`."""
    return _python("dagster_webserver", "-h", host, "-p", str(port), *_at(code))


def daemon(code: tuple[str, int]) -> list[str]:
    """Dagster's queue of runs, sensors and backfills, over the code server at `code`."""
    return _python("dagster._daemon", "run", *_at(code))


def daemon_check() -> list[str]:
    """Ends with 0 when the daemon has lately said that it lives."""
    return _python("dagster._daemon", "liveness-check")


def code_check(host: str, port: int) -> list[str]:
    """Ends with 0 when the code server has loaded our definitions."""
    return _python("dagster", "api", "grpc-health-check", "-h", host, "-p", str(port))


def mlflow(lake: str, host: str, port: int) -> list[str]:
    """MLflow's pages and artifacts; its database comes by MLFLOW_BACKEND_STORE_URI."""
    place = ["--artifacts-destination", artifact_root(lake)]
    return _python("mlflow", "server", *place, "--host", host, "--port", str(port), "--workers", "1")


def _at(code: tuple[str, int]) -> list[str]:
    return ["--grpc-host", code[0], "--grpc-port", str(code[1])]


def _python(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]
