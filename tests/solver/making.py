"""Makes small hand-made worlds for the solver's tests."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from agent_world.environments.model import Column, Database, Document, Environment, Source, Table, Tool
from agent_world.identity import Digest, VersionId, sha256

SOURCE = Source(package="toy", version="1", file="toy.csv", sha256=sha256("toy"), licence="CC0-1.0")


def string(description: str, **more) -> dict:
    return {"type": "string", "description": description, **more}


def integer(description: str, **more) -> dict:
    return {"type": "integer", "description": description, **more}


def number(description: str) -> dict:
    return {"type": "number", "description": description}


def object_(properties: Mapping, required: Sequence[str] | None = None) -> dict:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        "required": list(properties if required is None else required),
    }


def pages(item: Mapping) -> dict:
    return object_(
        {
            "items": {"type": "array", "items": object_(item)},
            "total": integer("number of matches"),
            "page": integer("this page"),
            "pages": integer("number of pages"),
        }
    )


PAGE = {"page": {"type": "integer", "minimum": 1, "description": "page of the result, from 1"}}


def tool(
    world: str,
    name: str,
    description: str,
    inputs: Mapping,
    outputs: Mapping,
    body: str,
    *,
    writes: bool = False,
    required: Sequence[str] = (),
) -> Tool:
    """A tool whose `body` sees its arguments by name; `outputs` is a full schema or plain properties."""
    arguments = "".join(
        f", {key}" if key in required else f", {key}=1" if key == "page" else f", {key}=None" for key in inputs
    )
    signature = f"def {name}(world, *{arguments}) -> dict:" if inputs else f"def {name}(world) -> dict:"
    lines = "\n".join(f"    {line}".rstrip() for line in body.strip().splitlines())
    return Tool(
        tool_id=f"{world}/{name}",
        name=name,
        description=description,
        input_schema=object_(inputs, required),
        output_schema=outputs if "type" in outputs and "properties" in outputs else object_(outputs),
        writes=writes,
        source=f"from toolkit import Refused, escape_like, paged\n\n\n{signature}\n{lines}\n",
        pattern="toy",
        tables=(),
    )


def environment(
    name: str,
    title: str,
    script: str,
    rows: Mapping[str, Sequence[tuple]],
    tools: Sequence[Tool],
    documents: Mapping[str, str],
    workflows: Sequence[str],
) -> Environment:
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.executescript(script)
    for table, values in rows.items():
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
    db.commit()
    types = {"TEXT": "text", "INTEGER": "integer", "REAL": "real"}
    tables = []
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall():
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        tables.append(
            Table(
                name=table,
                singular=table.rstrip("s"),
                plural=table,
                rows=len(rows.get(table, ())),
                primary_key=tuple(column["name"] for column in columns if column["pk"]),
                workflow=table if table in workflows else None,
                source=None if table in workflows else SOURCE,
                columns=tuple(
                    Column(
                        name=column["name"],
                        type=types[column["type"]],
                        role="text",
                        words=column["name"],
                        original=column["name"],
                        nullable=not column["notnull"],
                        distinct=0,
                    )
                    for column in columns
                ),
            )
        )
    return Environment(
        environment_id=name,
        version=VersionId(f"{name}@0"),
        title=title,
        description=title,
        theme=VersionId("toy-theme@0"),
        database=Database(
            database_id=name,
            theme=VersionId("toy-theme@0"),
            round=0,
            tables=tuple(tables),
            digest=Digest("0" * 64),
            documents=tuple(Document(path=path, format="json", title=path, source=SOURCE) for path in documents),
        ),
        database_version=VersionId(f"{name}-database@0"),
        tools=tuple(tools),
        tool_versions=tuple(VersionId(f"{tool.tool_id}@0") for tool in tools),
        files={
            "data.sqlite": db.serialize(),
            **{f"documents/{path}": text.encode() for path, text in documents.items()},
        },
    )
