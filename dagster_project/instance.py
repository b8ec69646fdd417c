"""The Dagster instance of a lake: its home folder, and where its events go (SQLite there, or PostgreSQL)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from agent_world.home import service_home
from agent_world.stores import PostgresMissingError, on_postgres, schema_address

STORE = "AGENT_WORLD_DAGSTER_STORE"
"""The variable that ``dagster-postgres.yaml`` reads the address from: Dagster shows that file to everyone."""

_SETTINGS = Path(__file__).with_name("dagster.yaml")
_ON_POSTGRES = Path(__file__).with_name("dagster-postgres.yaml")


def dagster_environment(lake: str) -> dict[str, str]:
    """The variables by which any Dagster process finds the instance of `lake`, whose home is laid out if need be.

    A home for each kind of store: what is edited there stays, and going back to SQLite shows what was there.

    Raises:
        PostgresAddressError, PostgresMissingError, PostgresRefusedError, SchemaRefusedError: see `schema_address`.
    """
    if on_postgres():
        try:
            import dagster_postgres  # noqa: F401 - Dagster would tell of it in a trace
        except ImportError:
            raise PostgresMissingError("dagster-postgres") from None
        home = _home(lake, "dagster-postgres", _SETTINGS, _ON_POSTGRES)
        return {"DAGSTER_HOME": str(home), STORE: schema_address("dagster", lake)}
    return {"DAGSTER_HOME": str(_home(lake, "dagster", _SETTINGS))}


@contextmanager
def instance_of(lake: str) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of the lake; this process and those it starts have it from here on.

    Raises:
        PostgresAddressError, PostgresMissingError, PostgresRefusedError, SchemaRefusedError: see `schema_address`.
    """
    os.environ.update(dagster_environment(lake))
    with dg.DagsterInstance.get() as instance:
        yield instance


def _home(lake: str, name: str, *settings: Path) -> Path:
    home = service_home(lake) / name
    home.mkdir(exist_ok=True)
    file = home / "dagster.yaml"
    if not file.exists():
        file.write_text("".join(part.read_text("utf-8") for part in settings), encoding="utf-8")
    return home
