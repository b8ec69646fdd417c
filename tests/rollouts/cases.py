"""More tasks over the toy world: a program task, a list answer, and helpers to change a task's parts."""

from __future__ import annotations

from agent_world.environments.model import Call
from agent_world.tasks.model import Criterion, Knobs, Task
from tests.toy import toy_environment, toy_tasks

ENVIRONMENT = toy_environment()
READING, WRITING = toy_tasks()

V_CODE = """
def verify(answer, gold, initial, final):
    failed = []
    rows = final.db.execute(
        "SELECT b.title, b.copies FROM books b JOIN authors a USING (author_id) WHERE a.name = 'Bo Lindqvist'"
    ).fetchall()
    if answer["titles"] != gold["titles"]:
        failed.append("titles")
    if answer["copies"] != sum(row["copies"] for row in rows):
        failed.append("copies")
    if initial.db.execute("SELECT count(*) FROM loans").fetchone()[0] != final.db.execute(
        "SELECT count(*) FROM loans"
    ).fetchone()[0]:
        failed.append("unasked change")
    if initial.documents != final.documents or "rules.yaml" not in final.documents:
        failed.append("documents")
    return failed
"""

SOLUTION = """
def solve(call):
    books = [call("get_book", {"book_id": book}) for book in ("B3", "B6")]
    return {"titles": sorted(book["title"] for book in books), "copies": sum(book["copies"] for book in books)}
"""

PROGRAM = Task(
    task_id="toy-program",
    kind="program",
    environments=READING.environments,
    seed=13,
    instruction="Which books by Bo Lindqvist does the library own, by title, and how many copies of them in all?",
    answer_schema={
        "type": "object",
        "properties": {
            "titles": {
                "type": "array",
                "items": {"type": "string"},
                "uniqueItems": True,
                "description": "titles of the books",
            },
            "copies": {"type": "integer", "description": "copies in all"},
        },
        "required": ["titles", "copies"],
        "additionalProperties": False,
    },
    answer={"titles": ["Letters Home", "Winter Maps"], "copies": 2},
    plan=(Call(tool="get_book", arguments={"book_id": "B3"}), Call(tool="get_book", arguments={"book_id": "B6"})),
    shape=("get_book", "get_book"),
    rubric=(Criterion(name="state", kind="state_equals", expected={}),),
    state_diff={},
    knobs=Knobs(
        calls=2, distinct_tools=1, weak_share=1.0, independent_share=0.0, branches=0, loops=1, tables=2, aggregates=1,
        writes=0, rewriting=0,
    ),
    solution=SOLUTION,
    verifier=V_CODE,
)  # fmt: skip


def field(kind: str, description: str = "", **more: object) -> dict:
    return {"type": kind, "description": description, **more}


def schema(**properties: dict) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
