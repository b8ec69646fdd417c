"""What Dagster and MLflow remember of a lake: SQLite beside it, or two schemas of a PostgreSQL database.

AGENT_WORLD_POSTGRES_URL names the database and thereby decides, for every command alike. An address that carries a
password goes from process to process in the environment alone: a command line can be read by everyone.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlencode

from agent_world.errors import AgentWorldError
from agent_world.home import service_home
from agent_world.identity import sha256

if TYPE_CHECKING:
    from sqlalchemy import URL

POSTGRES_URL = "AGENT_WORLD_POSTGRES_URL"
"""The environment variable with the address of the database: ``postgresql://ROLE@HOST:PORT/DATABASE``."""

_DRIVERS = ("postgresql", "postgresql+psycopg2")
_PATIENCE_S = 10


class PostgresAddressError(AgentWorldError):
    """The variable that names the database is missing or wrong; what it holds may be secret and is not shown."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        password = "the password may stand behind ROLE, in PGPASSWORD or in ~/.pgpass"
        return f"{POSTGRES_URL} {self.why}; set it to postgresql://ROLE@HOST:PORT/DATABASE ({password})"


class PostgresMissingError(AgentWorldError):
    """The packages that speak to PostgreSQL are not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self.package = package

    def __str__(self) -> str:
        cure = f"pip install 'agent-world[postgres]', or unset {POSTGRES_URL}"
        return f"{POSTGRES_URL} is set, but the package {self.package} is not installed; {cure}"


class PostgresRefusedError(AgentWorldError):
    """The server cannot be reached, or does not let us in; `why` is its own first line."""

    def __init__(self, host: str, database: str, why: str) -> None:
        super().__init__(host, database, why)
        self.host, self.database, self.why = host, database, why

    def __str__(self) -> str:
        cure = f"see that it runs, that {POSTGRES_URL} names its host, port and role, and that the database is there"
        return f"PostgreSQL at {self.host}, database {self.database}: {self.why}; {cure}"


class SchemaRefusedError(AgentWorldError):
    """The role may not make the schema it needs."""

    def __init__(self, role: str, database: str, schema: str) -> None:
        super().__init__(role, database, schema)
        self.role, self.database, self.schema = role, database, schema

    def __str__(self) -> str:
        cure = f'GRANT CREATE ON DATABASE "{self.database}" TO "{self.role}"'
        return f"role {self.role} may not make the schema {self.schema} in database {self.database}; let it: {cure}"


def on_postgres() -> bool:
    """Whether this environment names a PostgreSQL database."""
    return bool(os.environ.get(POSTGRES_URL))


def tracking_store(lake_uri: str) -> str:
    """MLflow's database of a lake, as SQLAlchemy takes it; carries the password where the variable does.

    Raises:
        PostgresAddressError, PostgresMissingError, PostgresRefusedError, SchemaRefusedError: see `schema_address`.
    """
    if on_postgres():
        return schema_address("mlflow", lake_uri)
    return f"sqlite:///{service_home(lake_uri) / 'mlflow.db'}"


def schema_address(service: Literal["dagster", "mlflow"], lake_uri: str) -> str:
    """The address of the schema that is this service's for this lake alone; made if it is not there.

    Schemas, not databases: Dagster and MLflow both keep a table ``alembic_version``, and a role that may use one
    database need not be able to make others. SQLAlchemy and libpq both take the address.

    Raises:
        PostgresAddressError: the variable is not set, or is no address of a PostgreSQL database.
        PostgresMissingError: the extra ``postgres`` is not installed.
        PostgresRefusedError: the server cannot be reached or refuses the role.
        SchemaRefusedError: the role may not make the schema.
    """
    url = _address()
    schema = f"{service}_{sha256(str(service_home(lake_uri)))[:16]}"
    _make(url, schema, f"what {service} remembers of the lake {lake_uri}")
    options = url.query.get("options", "")
    given = options if isinstance(options, str) else " ".join(options)
    return _text(url.update_query_dict({"options": f"{given} -csearch_path={schema}".strip()}))


def _address() -> URL:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    text = os.environ.get(POSTGRES_URL)
    if not text:
        raise PostgresAddressError("is not set")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise PostgresAddressError("is no address") from None
    if url.drivername not in _DRIVERS:
        raise PostgresAddressError(f"names no PostgreSQL server, it begins with {url.drivername}:")
    if not url.database:
        raise PostgresAddressError("names no database")
    return url.set(drivername="postgresql")


def _text(url: URL) -> str:
    """The whole address; not by SQLAlchemy alone, which writes a blank as a plus sign that libpq does not read back."""
    query = urlencode(url.query, doseq=True, quote_via=quote)
    return url.set(query={}).render_as_string(hide_password=False) + (f"?{query}" if query else "")


def _make(url: URL, schema: str, meaning: str) -> None:
    """Make `schema` unless it is there; services of one lake may start at the same moment."""
    try:
        import psycopg2
        from psycopg2 import errors, sql
    except ImportError:
        raise PostgresMissingError("psycopg2") from None
    database = url.database or ""
    try:
        with closing(psycopg2.connect(_text(url), connect_timeout=_PATIENCE_S)) as connection:
            with connection, connection.cursor() as cursor:  # this one is psycopg2's transaction
                cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [schema])
                cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema])
                if cursor.fetchone() is None:
                    name = sql.Identifier(schema)
                    cursor.execute(sql.SQL("CREATE SCHEMA {}").format(name))
                    cursor.execute(sql.SQL("COMMENT ON SCHEMA {} IS %s").format(name), [meaning])
    except errors.InsufficientPrivilege:
        raise SchemaRefusedError(url.username or os.environ.get("PGUSER", ""), database, schema) from None
    except psycopg2.Error as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise PostgresRefusedError(f"{url.host or 'the local socket'}:{url.port or 5432}", database, said) from None
