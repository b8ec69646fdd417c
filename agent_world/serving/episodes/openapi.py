"""The description of the episode API: an OpenAPI document, and a page of it that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Literal

from pydantic import TypeAdapter

from agent_world.serving.episodes.messages import (
    AnswerRequest,
    CallRequest,
    CreateRequest,
    EpisodeReply,
    EpisodesReply,
    ErrorReply,
    ReplyRequest,
    Result,
    StepReply,
    TasksQuery,
    TasksReply,
)

_SCHEMAS = "#/components/schemas/"
_ABOUT = """\
Attempt tasks in their environments from another process or machine. Open episodes, act in each by numbered steps
(tool calls and replies to the user), give an answer, get the outcome. Whatever request got no reply may be sent again
as it was: nothing is done twice. Only pass and fail are rewards; an infra_error was not the agent's doing."""

Method = Literal["get", "post", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method on one path; `errors` are the statuses of its refusals beside those that any request may get."""

    method: Method
    path: str
    summary: str
    name: str
    reply: type
    status: int = 200
    body: type | None = None
    query: type | None = None
    errors: tuple[int, ...] = ()


_IN_EPISODE = (404, 410)
_BODY = (400, 408, 413, 415, 422)
_ANY = (401, 403, 421, 500)
EPISODE = "/v1/episodes/{id}"
OPERATIONS = (
    Operation(
        method="get", path="/v1/tasks", name="list_tasks", reply=TasksReply, errors=(422,),
        summary="The tasks that may be attempted, sorted by version.",
        query=TasksQuery,
    ),
    Operation(
        method="post", path="/v1/episodes", name="open_episodes", body=CreateRequest, reply=EpisodesReply, status=201,
        summary="Open episodes, one or a batch: all of them or none.", errors=(*_BODY, 404, 409, 503),
    ),
    Operation(
        method="get", path=EPISODE, name="show_episode", reply=EpisodeReply, errors=_IN_EPISODE,
        summary="An episode as it is now.",
    ),
    Operation(
        method="post", path=f"{EPISODE}/call", name="call_tool", body=CallRequest, reply=StepReply,
        summary="Call a tool as the next step.", errors=(*_BODY, *_IN_EPISODE, 409),
    ),
    Operation(
        method="post", path=f"{EPISODE}/reply", name="reply_to_user", body=ReplyRequest, reply=StepReply,
        summary="Say something to the user as the next step.", errors=(*_BODY, *_IN_EPISODE, 409),
    ),
    Operation(
        method="post", path=f"{EPISODE}/answer", name="answer", body=AnswerRequest, reply=Result,
        summary="Give the final answer as the next step, and get the outcome.", errors=(*_BODY, *_IN_EPISODE, 409),
    ),
    Operation(
        method="delete", path=EPISODE, name="close_episode", reply=Result, errors=_IN_EPISODE,
        summary="End an episode and forget it; without an answer it has failed.",
    ),
)  # fmt: skip
_ERRORS = {
    400: "The body is no JSON that can be read.",
    401: "The token is missing or wrong.",
    403: "The Origin header names another site.",
    404: "There is no such episode or task.",
    408: "The body was not there in time.",
    409: "The step, or the key, does not fit what was done before; or the episode has ended, or has no calls left.",
    410: "The episode was closed, or expired; or the reply of this step is not kept any more.",
    413: "The body is too large.",
    415: "The body is not declared as application/json.",
    421: "The Host header names another server.",
    422: "A field is missing, unknown or wrong; or the answer is too long.",
    500: "The server failed.",
    503: "There is no room now; Retry-After says in how many seconds to try again.",
}


_STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td { border: 1px solid #ccc; padding: .2rem .6rem; vertical-align: top }
section { margin: 1.5rem 0 } code { font-size: 1rem }
"""


@cache
def document() -> dict[str, Any]:
    """The API in OpenAPI 3.1."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent-World episodes", "version": "1", "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _described(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    errors = {str(status): _content(_ERRORS[status], ErrorReply, schemas) for status in (*operation.errors, *_ANY)}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): _content(_summary(operation.reply), operation.reply, schemas),
            **dict(sorted(errors.items())),
        },
    }
    if operation.body is not None:
        described["requestBody"] = _content(_summary(operation.body), operation.body, schemas) | {"required": True}
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}})
    if operation.query is not None:
        schema = TypeAdapter(operation.query).json_schema()
        parameters += [
            {"name": name, "in": "query", "description": value.pop("description"), "schema": value}
            for name, value in schema["properties"].items()
        ]
    return parameters


def _content(description: str, message: type, schemas: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": _reference(message, schemas)}}}


def _reference(message: type, schemas: dict[str, Any]) -> dict[str, str]:
    if message.__name__ not in schemas:
        schema = TypeAdapter(message).json_schema(ref_template=f"{_SCHEMAS}{{model}}")
        schemas.update(schema.pop("$defs", {}))
        schemas[message.__name__] = schema
    return {"$ref": f"{_SCHEMAS}{message.__name__}"}


def _summary(message: type) -> str:
    return (message.__doc__ or "").partition("\n")[0]


@cache
def page() -> str:
    """The API as a page for people: no script, nothing from another host."""
    api = document()
    operations = "".join(
        _operation(method.upper(), path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    )
    messages = "".join(_message(name, schema) for name, schema in api["components"]["schemas"].items())
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{escape(api["info"]["title"])}</title><style>{_STYLE}</style>
<h1>{escape(api["info"]["title"])}</h1><p>{escape(api["info"]["description"])}</p>
<p>As OpenAPI: <a href="openapi.json">openapi.json</a>. Where the server asks for a token, it is sent as
<code>Authorization: Bearer TOKEN</code>.</p>
<h2>Operations</h2>{operations}<h2>Messages</h2>{messages}</html>
"""


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    asked = [(each["name"], each["schema"], each.get("description", "")) for each in operation["parameters"]]
    replies = "".join(
        f"<tr><td>{status}<td>{_type(_schema(reply))}<td>{escape(reply['description'])}"
        for status, reply in operation["responses"].items()
    )
    body = f"<p>Body: {_type(_schema(operation['requestBody']))}</p>" if "requestBody" in operation else ""
    return (
        f"<section><h3><code>{method} {escape(path)}</code></h3><p>{escape(operation['summary'])}</p>"
        f"{_rows(asked)}{body}<table>{replies}</table></section>"
    )


def _message(name: str, schema: dict[str, Any]) -> str:
    rows = [(field, each, each.get("description", "")) for field, each in schema["properties"].items()]
    about = "".join(f"<p>{escape(part)}</p>" for part in schema.get("description", "").split("\n\n"))
    return f"<section id={name}><h3>{name}</h3>{about}{_rows(rows)}</section>"


def _rows(rows: Sequence[tuple[str, dict[str, Any], str]]) -> str:
    lines = [f"<tr><td><code>{escape(name)}</code><td>{_type(each)}<td>{escape(about)}" for name, each, about in rows]
    return f"<table>{''.join(lines)}</table>" if lines else ""


def _schema(content: dict[str, Any]) -> dict[str, Any]:
    return content["content"]["application/json"]["schema"]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(escape(str(each)) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return escape(str(schema.get("type", "any JSON")))
