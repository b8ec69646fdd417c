"""The face of a written tool: parameters and results with their schemas, their meanings and their words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_world.discovery.toolsmith.view import Field
from agent_world.discovery.toolsmith.words import listed, synonyms
from agent_world.environments.model import Column, Json, Meaning, Tool

Kind = Literal["string", "integer", "number", "boolean", "array"]

_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter. A parameter that is not required is left out by the caller unless it has a `default`."""

    name: str
    kind: Kind
    words: str
    meaning: Meaning
    required: bool = True
    default: Json = None
    enum: tuple[Json, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None

    def schema(self) -> dict[str, Json]:
        """Its JSON Schema."""
        schema: dict[str, Json] = {"type": self.kind, "description": self.words}
        if self.enum:
            schema["enum"] = list(self.enum)
        elif self.pattern:
            schema["pattern"] = self.pattern
        elif self.kind == "string":
            schema.update(minLength=1, maxLength=_LONGEST_TEXT)
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        if self.maximum is not None:
            schema["maximum"] = self.maximum
        if self.default is not None:
            schema["default"] = self.default
        return schema

    def signature(self) -> str:
        """Its place in the signature of the written function."""
        hint = _PYTHON[self.kind]
        if self.required:
            return f"{self.name}: {hint}"
        if self.default is not None:
            return f"{self.name}: {hint} = {json.dumps(self.default)}"
        return f"{self.name}: {hint} | None = None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Out:
    """One field of a result. `values` closes the set of values it can take."""

    name: str
    kind: Kind
    words: str
    meaning: Meaning
    nullable: bool = False
    values: tuple[Json, ...] = ()
    minimum: float | None = None

    def schema(self) -> dict[str, Json]:
        """Its JSON Schema."""
        schema: dict[str, Json] = {"type": [self.kind, "null"] if self.nullable else self.kind}
        if self.kind == "array":
            schema["items"] = {"type": "string"}
        schema["description"] = self.words
        if self.values:
            schema["enum"] = [*self.values, *([None] if self.nullable else [])]
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool gives: one record of `fields`, or pages of such items when `listing` names the table they are of."""

    fields: tuple[Out, ...]
    listing: str | None = None

    def schema(self) -> dict[str, Json]:
        """Its JSON Schema: strict, every field required."""
        record = object_schema({out.name: out.schema() for out in self.fields})
        if self.listing is None:
            return record
        return object_schema(
            {
                "items": {"type": "array", "items": record, "maxItems": 5},
                "total": {"type": "integer", "minimum": 0, "description": "how many there are on all pages"},
                "page": {"type": "integer", "minimum": 1, "description": "this page"},
                "pages": {"type": "integer", "minimum": 1, "description": "the last page"},
            }
        )

    def meanings(self) -> dict[str, Meaning]:
        """The meaning of each result path."""
        prefix = "" if self.listing is None else "items[]."
        found = {f"{prefix}{out.name}": out.meaning for out in self.fields}
        if self.listing is not None:
            found["total"] = Meaning(kind="count", table=self.listing)
            found["page"] = found["pages"] = Meaning(kind="page")
        return found

    def sentence(self) -> str:
        """The fields in plain words."""
        words = listed(out.words for out in self.fields)
        return f"Each item gives {words}; five items a page." if self.listing is not None else f"Returns {words}."


def object_schema(properties: Mapping[str, Json], required: Sequence[str] | None = None) -> dict[str, Json]:
    """A closed JSON object; all properties are required unless said otherwise."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
    }


def page_param() -> Param:
    """The page of a list."""
    return Param(
        name="page",
        kind="integer",
        words="which page, from 1",
        meaning=Meaning(kind="page"),
        required=False,
        default=1,
        minimum=1,
    )


def kind_of(column: Column) -> Kind:
    """The JSON type in which a column's values are shown."""
    if column.role == "flag":
        return "boolean"
    return {"text": "string", "integer": "integer", "real": "number"}[column.type]


def in_unit(column: Column, words: str | None = None) -> str:
    """The words of a column with its unit, where the data states one."""
    said = words or column.words
    return f"{said} (in {column.unit})" if column.unit and column.unit not in said else said


def out_of(field: Field) -> Out:
    """The result field that shows `field`."""
    return Out(
        name=field.name,
        kind=kind_of(field.column),
        words=in_unit(field.column, field.words),
        meaning=field.meaning,
        nullable=field.nullable,
    )


def make_tool(
    *,
    environment: str,
    name: str,
    pattern: str,
    what: str,
    params: Sequence[Param],
    result: Result,
    source: str,
    tables: Sequence[str],
    writes: bool = False,
    workflow: str | None = None,
    documents: Sequence[str] = (),
    refusals: Sequence[str] = (),
    said: Sequence[str] = (),
    nouns: Sequence[str] = (),
) -> Tool:
    """Put a tool together.

    `what` says what it does, `refusals` when it says no, `said` what people call it; `nouns` are words of the data in
    it for which people have others.
    """
    also = [*said, *synonyms(*nouns, limit=max(2, 5 - len(said)))]
    sentences = [
        what,
        result.sentence(),
        *([f"Refuses {listed(refusals, 'or')}."] if refusals else []),
        *([f"Everyday words: {', '.join(also)}."] if also else []),
    ]
    required = [param.name for param in params if param.required]
    return Tool(
        tool_id=f"{environment}/{name}",
        name=name,
        description=" ".join(sentences),
        input_schema=object_schema({param.name: param.schema() for param in params}, required),
        output_schema=result.schema(),
        writes=writes,
        source=source,
        pattern=pattern,
        tables=tuple(dict.fromkeys(tables)),
        inputs={param.name: param.meaning for param in params},
        outputs=result.meanings(),
        workflow=workflow,
        documents=tuple(documents),
    )
