"""The tools of one session: a class for each runtime says how they are loaded and over what state they work.

What a call changed is kept when the tool returns and undone when it raises, and the clock then moves on by a minute.
Each runtime appends what it keeps to logs that the supervisor reads, so that nobody has to ask a session for its state.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pins
import storage
import toolkit
import values
from logs import Log

Json = Any

_MESSAGE_CHARACTERS = 400
_RESULT_CHARACTERS = 1 << 20
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_in_order = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=True).encode


class Tools(ABC):
    """The tools of one environment, loaded when first called."""

    def call(self, request: Mapping[str, Json]) -> Json:
        """Run one tool; its reply as JSON, or as JSON text."""
        try:
            with self._transaction(writes=request["writes"]):
                tool = self._tool(request["tool"], request.get("source"))
                result = self._result(tool(**request["arguments"]))
                reply = _encode({"n": request["n"], "ok": result})
                if len(reply) > _RESULT_CHARACTERS:
                    raise ValueError(
                        f"the result has {len(reply)} characters, at most {_RESULT_CHARACTERS} are allowed"
                    )
        except BaseException as error:
            return {"n": request["n"], **failure(error)}
        return reply

    @abstractmethod
    def _tool(self, name: str, source: str | None) -> Callable[..., Any]:
        """The tool, loaded from its source when it was not loaded before."""

    @abstractmethod
    def _result(self, value: Any) -> dict[str, Json]:
        """What a tool returned, as a JSON object."""

    @abstractmethod
    def _transaction(self, *, writes: bool) -> contextlib.AbstractContextManager[None]:
        """Keep what happens inside and log it, or undo it when it raises; without `writes` nothing may have changed."""


class FunctionTools(Tools):
    """`python-function` over `sqlite+files`: ``def <name>(world, **arguments)``, a module for each tool."""

    def __init__(self, setup: Mapping[str, Json], files: list[int]) -> None:
        """Descriptors: snapshot, its log, documents, their log."""
        snapshot, log, documents, documents_log = files
        self._loaded: dict[str, Callable[..., Any]] = {}
        db = storage.connect(snapshot, log)
        db.create_function("fold", 1, toolkit.fold, deterministic=True)
        db.create_function("random", 0, pins.random_integer)
        db.create_function("randomblob", 1, os.urandom)
        kept = toolkit.Documents(documents, setup["documents"], Log(documents_log), Log(log))
        self._world = toolkit.World(db, kept, setup["seed"])

    def _tool(self, name: str, source: str | None) -> Callable[..., Any]:
        if name not in self._loaded:
            self._loaded[name] = functools.partial(getattr(_module(name, source), name), self._world)
        return self._loaded[name]

    def _result(self, value: Any) -> dict[str, Json]:
        form = values.plain(value)
        if not isinstance(form, dict):
            # Its output schema is an object's: whatever else came back was not meant to.
            raise TypeError(f'the tool returned {type(value).__name__}, not an object such as {{"items": [...]}}')
        return form

    def _transaction(self, *, writes: bool) -> contextlib.AbstractContextManager[None]:
        return self._world.transaction(writes=writes)


class ClassTools(Tools):
    """`python-class` over `json`: a class whose methods are the tools, made with the state, one JSON object.

    The state is what `state` of the instance gives, where it has such an attribute, else the object that it was made
    with. The log has a line for each call that changed it: ``[[path, value], ...]``, or ``[path]`` for what is gone; a
    path is the key of the state and, where an object stands there, a key of that.
    """

    def __init__(self, _setup: Mapping[str, Json], files: list[int]) -> None:
        """Descriptors: snapshot, its log."""
        snapshot, log = files
        self._log = Log(log)
        document = json.loads(os.pread(snapshot, os.fstat(snapshot).st_size, 0))
        self._kept: dict[str, str] = {key: _encode(value) for key, value in document.items()}
        self._source: str | None = None
        self._class: Callable[[dict[str, Json]], Any] | None = None
        self._instance: Any = None
        self._document: dict[str, Json] = {}

    def _tool(self, name: str, source: str | None) -> Callable[..., Any]:
        if self._class is None:
            self._class, self._source = _class_with(_module("tools", source), name), source
        elif source not in (None, self._source):
            raise ValueError("the tools of one class have one source, but this one brings another")
        if self._instance is None:
            self._document = {key: json.loads(text) for key, text in self._kept.items()}
            self._instance = self._class(self._document)
        return getattr(self._instance, name)

    def _result(self, value: Any) -> dict[str, Json]:
        form = values.plain(value)
        # Classes made elsewhere return what they like; results that are published are objects.
        return form if isinstance(form, dict) else {"result": form}

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[None]:
        try:
            yield
            kept, edits = self._changed(getattr(self._instance, "state", self._document))
            if edits:
                if not writes:
                    raise PermissionError("the tool is declared read-only, but it changed the state")
                self._log.append(_encode(edits).encode() + b"\n")
        except BaseException:
            self._instance = None  # it may hold what is undone: the next call makes it anew from what was kept
            raise
        self._kept = kept
        if edits:
            pins.tick()

    def _changed(self, document: Any) -> tuple[dict[str, str], list[Json]]:
        """The text of each part of the state now, and the edits that lead there from what was kept."""
        if not isinstance(document, dict):
            raise TypeError(f"the state is {type(document).__name__}, not an object")
        now: dict[str, str] = {}
        edits: list[Json] = []
        for key, value in document.items():
            # Parts that did not change are only written once, by the encoder in C.
            text = now[key] = _written({"state": {key: value}}, value)
            if text != self._kept.get(key):
                values.require_plain({"state": {key: value}})
                edits += _edits(key, self._kept.get(key), value)
        for key in self._kept.keys() - now.keys():
            edits += [[path] for path in _entries(key, json.loads(self._kept[key]))]
        return now, edits


def failure(error: BaseException) -> dict[str, Json]:
    """How a reply names what foreign code raised."""
    if isinstance(error, toolkit.Refused):
        return {"refused": [error.code, error.message]}
    try:
        message = str(error)
    except BaseException:
        message = ""
    return {"error": [type(error).__name__, message[:_MESSAGE_CHARACTERS]]}


def _module(name: str, source: str | None) -> types.ModuleType:
    module = types.ModuleType(f"tool_{name}")
    # Where a dataclass looks for the names in its annotations.
    sys.modules[module.__name__] = module
    exec(compile(source or "", f"<{name}>", "exec"), module.__dict__)
    return module


def _class_with(module: types.ModuleType, method: str) -> type:
    """The last class of the module that has this method: of a base and what is derived from it, the latter."""
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and callable(getattr(value, method, None))
    ]
    if not classes:
        raise AttributeError(f"no class of the source has a method {method}")
    return classes[-1]


def _written(whole: Json, value: Any) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        values.require_plain(whole)  # says where
        raise


def _edits(key: str, before: str | None, value: Json) -> list[Json]:
    """What changed of one part of the state; the order of keys is no part of it."""
    old = {} if before is None else _entries(key, json.loads(before))
    new = _entries(key, value)
    changed = [path for path, item in new.items() if path not in old or _in_order(old[path]) != _in_order(item)]
    return [*([path, new[path]] for path in changed), *([path] for path in old if path not in new)]


def _entries(key: str, value: Json) -> dict[tuple[str, ...], Json]:
    """The values that are logged one by one: those of an object, else the whole."""
    if isinstance(value, dict) and value:
        return {(key, name): item for name, item in value.items()}
    return {(key,): value}
