"""What an environment is made of: the database `D`, the tools `F`, and their pins (method.md 0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent_world.identity import Digest, VersionId

if TYPE_CHECKING:
    from agent_world.environments.session import Session
    from agent_world.sandbox import Sandbox

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

ColumnType = Literal["text", "integer", "real"]

ColumnRole = Literal[
    "identifier",  # names the row for machines
    "label",  # names the row for people
    "code",  # a short public code, such as an airport's
    "category",  # few distinct values
    "flag",  # yes or no
    "measure",  # a quantity that may be summed or averaged
    "money",
    "rating",
    "date",
    "clock",  # time of day
    "year",
    "reference",  # a foreign key
    "text",  # free text
    "list",  # a JSON list in a cell
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows or a document came from. Retrieval time is an observation, not part of it."""

    package: str
    version: str
    file: str
    sha256: Digest
    licence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of one table. `words` is how a person says it; `unit` is set when the data states one."""

    name: str
    type: ColumnType
    role: ColumnRole
    words: str
    original: str
    nullable: bool
    distinct: int
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """`column` refers to `parent.parent_column`; `integrity` is the share of non-null values that resolve."""

    column: str
    parent: str
    parent_column: str
    integrity: float
    origin: Literal["declared", "discovered", "guessed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table. `label` is the column that names a row for people; `workflow` names the overlay it serves.

    `added_in` is the complexification round that brought it: 0 for what mining found.
    """

    name: str
    singular: str
    plural: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    rows: int
    foreign_keys: tuple[ForeignKey, ...] = ()
    label: str | None = None
    source: Source | None = None
    workflow: str | None = None
    added_in: int = 0

    def column(self, name: str) -> Column:
        """The column called `name`.

        Raises:
            KeyError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name}.{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file of `D` beside the records: `path` is relative to the documents folder of `D`."""

    path: str
    format: Literal["json", "csv", "sql", "html", "tex", "yaml", "md", "txt"]
    title: str
    source: Source | None
    added_in: int = 0


SQLITE_FILE = "data.sqlite"
DOCUMENTS_FOLDER = "documents"
STATE_FILE = "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A snapshot of `D`. `digest` is the logical digest (schema, typed rows in key order, file hashes).

    The bytes (``data.sqlite``, ``documents/...``; ``state.json`` where the state is a JSON object) are transport: they
    travel as blobs, not in the payload.
    """

    database_id: str
    theme: VersionId
    round: int
    tables: tuple[Table, ...]
    documents: tuple[Document, ...]
    digest: Digest
    richness: Mapping[str, float] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """The table called `name`.

        Raises:
            KeyError: there is none.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a parameter or an output field of a tool stands for, for synthesis only; a policy never sees it.

    `kind`: key (identifies a row), label (names a row), filter (a value of the column), threshold (compared with
    the column), quantity (a number the caller chooses), text (free), page, order (a sort choice),
    status (a workflow state), minted (an id made by this call), count, aggregate (computed over the column).
    """

    kind: Literal[
        "key",
        "label",
        "filter",
        "threshold",
        "quantity",
        "text",
        "page",
        "order",
        "status",
        "minted",
        "count",
        "aggregate",
        "value",
    ]
    table: str | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One operator `f`.

    `source` is a self-contained Python module that defines ``def <name>(world, **arguments) -> dict`` and may import
    the standard library and ``toolkit`` (agent_world/sandbox/guest). In an environment of the runtime ``python-class``
    all tools have one source, which defines a class with a method for each. `inputs` maps parameters, `outputs` maps
    result paths (``items[].iata``) to their meaning.
    """

    tool_id: str
    name: str
    description: str
    input_schema: Mapping[str, Json]
    output_schema: Mapping[str, Json]
    writes: bool
    source: str
    pattern: str
    tables: tuple[str, ...]
    inputs: Mapping[str, Meaning] = field(default_factory=dict)
    outputs: Mapping[str, Meaning] = field(default_factory=dict)
    workflow: str | None = None
    documents: tuple[str, ...] = ()

    def public(self) -> PublicTool:
        """What an agent sees of this tool, and nothing else."""
        return PublicTool(
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            writes=self.writes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTool:
    """The face of a tool that agents, solvers and MCP clients see."""

    name: str
    description: str
    input_schema: Mapping[str, Json]
    output_schema: Mapping[str, Json]
    writes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of one tool."""

    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTest:
    """One unit test of one tool: calls that set the scene, the call itself, what must come back.

    Exactly one of `expect` (a JSON value that the result must equal, floats within 1e-6) and `refusal` (the code of the
    refusal) is set. The expected value comes from plain Python over the source rows, never from running the tool.
    """

    name: str
    tool: str
    kind: Literal["typical", "refusal", "edge", "effect"]
    call: Call
    before: tuple[Call, ...] = ()
    expect: Json = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An accepted `(D, F)`: everything needed to open a session, pinned by hash.

    `files` are the bytes of the database snapshot; they travel as blobs. `runtime` says how tools are loaded,
    `state_format` how their state is laid; formats.py has the pairs that can be opened.
    """

    environment_id: str
    version: VersionId
    title: str
    description: str
    theme: VersionId
    database: Database
    database_version: VersionId
    tools: tuple[Tool, ...]
    tool_versions: tuple[VersionId, ...]
    files: Mapping[str, bytes]
    runtime: str = "python-function"
    state_format: str = "sqlite+files"

    def tool(self, name: str) -> Tool:
        """The tool called `name`.

        Raises:
            KeyError: there is none.
        """
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(name)

    def session(self, seed: int = 0, sandbox: Sandbox | None = None) -> Session:
        """A live session: private copy of `D`, fresh tool state, virtual clock, seeded ids. Use it with `with`.

        Raises:
            UnusableEnvironmentError: nothing here opens its runtime over its state format.
        """
        from agent_world.environments.session import open_session

        return open_session(self, seed, sandbox)
