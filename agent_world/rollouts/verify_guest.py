"""Runs inside the verifier's sandbox: loads `V_code` and the two states, and asks for the failures of each answer.

The host sends this file along with the verifier (agent_world/rollouts/verifier.py).
"""

import copy
import json
import os
import sqlite3

from toolkit import fold  # pyright: ignore[reportMissingImports] - the sandbox's own


class State:
    """One state as a verifier sees it: `changes` since the initial state, and what its format has of the others.

    `db`: the records, read-only. `documents`: path -> text. `value`: the JSON object that the state is.
    """

    def __init__(self, folder, changes):
        self.changes = changes
        records, value = f"{folder}/data.sqlite", f"{folder}/state.json"
        if os.path.exists(records):
            self.db = sqlite3.connect(f"file:{records}?mode=ro&immutable=1", uri=True)
            self.db.row_factory = sqlite3.Row
            self.db.create_function("fold", 1, fold, deterministic=True)
        if os.path.exists(value):
            with open(value, encoding="utf-8") as file:
                self.value = json.load(file)
        self.documents = dict(_documents(os.path.join(folder, "documents")))


def main(answers, gold, changes):
    """For each answer ``{"failed": [...]}`` or, when the verifier itself breaks, ``{"error": "..."}``."""
    with open("v_code.py", encoding="utf-8") as source:
        code = compile(source.read(), "v_code.py", "exec")
    final = "final" if os.path.isdir("final") else "initial"
    # What one verification does to its arguments must not reach the next.
    return [_one(code, answer, *copy.deepcopy((gold, final, changes))) for answer in answers]


def _one(code, answer, gold, final, changes):
    try:
        module: dict = {"__name__": "v_code"}
        exec(code, module)
        failed = module["verify"](answer, gold, State("initial", {}), State(final, changes))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    if not isinstance(failed, list) or not all(isinstance(name, str) for name in failed):
        return {"error": f"verify returned {failed!r:.200}, not a list of names"}
    return {"failed": failed}


def _documents(folder):
    for parent, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(parent, name)
            with open(path, encoding="utf-8") as document:
                yield os.path.relpath(path, folder), document.read()
