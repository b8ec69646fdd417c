"""Judges answers by `V_code`: runs it over the two states and asks it for the failures of each answer.

The states lie in sealed memory that other sessions read too; nothing is read of them but what `V_code` asks for. Its
source is compiled once, by a session that runs none of it, and comes as a code object.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import sqlite3
import sys
import types
from collections.abc import Mapping
from typing import Any

import compiling
import storage
import toolkit
import tools

Json = Any

_COMPLAINT_CHARACTERS = 500
_NAME = "v_code"


class State:
    """One state as a verifier sees it: `changes` since the initial state, and what its format has of the others.

    `db`: the records, read-only. `documents`: path -> text. `value`: the JSON object that the state is.
    """

    def __init__(self, main: int, documents: int, index: Mapping[str, tuple[int, int]], changes: Json) -> None:
        """`main` and `documents` are descriptors, `index` has offset and size of each document in the latter."""
        self.changes = changes
        self._main, self._documents, self._index = main, documents, index

    @functools.cached_property
    def documents(self) -> dict[str, str]:
        """The text of each document by its path."""
        return {path: os.pread(self._documents, size, at).decode() for path, (at, size) in self._index.items()}


class Records(State):
    """A state of records and documents."""

    @functools.cached_property
    def db(self) -> sqlite3.Connection:
        """The records, read-only."""
        db = storage.look(self._main)
        db.create_function("fold", 1, toolkit.fold, deterministic=True)
        return db


class Value(State):
    """A state that is one JSON object."""

    @functools.cached_property
    def value(self) -> dict[str, Json]:
        """The object."""
        return json.loads(os.pread(self._main, os.fstat(self._main).st_size, 0))


_FORMATS: dict[str, type[State]] = {"sqlite+files": Records, "json": Value}


class Judge:
    """Judges; `setup` names the format of the states and has the indices of their documents."""

    def __init__(self, setup: Mapping[str, Json], files: list[int]) -> None:
        """Descriptors: the initial state and its documents, the final state and its documents."""
        state = _FORMATS[setup["state_format"]]
        initial_index, final_index = setup["documents"]
        self._initial = functools.partial(state, files[0], files[1], initial_index, {})
        self._final = functools.partial(state, files[2], files[3], final_index)

    def judge(self, request: Mapping[str, Json]) -> Json:
        """For each answer ``{"failed": [...]}`` or, when the verifier itself breaks, ``{"error": "..."}``."""
        try:
            code = compiling.loaded(request["code"])
            verdicts = [self._one(code, answer, request["gold"], request["changes"]) for answer in request["answers"]]
        except BaseException as error:
            return {"n": request["n"], **tools.failure(error)}
        return {"n": request["n"], "ok": verdicts}

    def _one(self, code: types.CodeType, answer: Json, gold: Json, changes: Json) -> dict[str, Json]:
        # Where a dataclass looks for the names in its annotations.
        module = sys.modules[_NAME] = types.ModuleType(_NAME)
        # What one verification does to its arguments must not reach the next.
        gold, changes = copy.deepcopy((gold, changes))
        try:
            exec(code, module.__dict__)
            failed = module.verify(answer, gold, self._initial(), self._final(changes))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:_COMPLAINT_CHARACTERS]}
        if not isinstance(failed, list) or not all(isinstance(name, str) for name in failed):
            return {"error": f"verify returned {failed!r:.200}, not a list of names"}
        return {"failed": failed}
