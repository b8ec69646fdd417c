"""What complexification added is used by a task that is kept, also where few tasks would come to it by chance."""

from dataclasses import replace

import pytest

from agent_world.arena.model import Guideline
from agent_world.discovery.documents import render
from agent_world.discovery.toolsmith.documents import document_drafts
from agent_world.discovery.toolsmith.view import view_of
from agent_world.environments.model import Document
from agent_world.identity import rng
from agent_world.sandbox import default_sandbox
from agent_world.solver import Solver
from agent_world.tasks.additions import over_additions, uses
from agent_world.tasks.documents import Sheets
from agent_world.tasks.production import Order, produce
from tests.toy import SOURCE

FEES = [(n, f"{thing} {n}", 10 + 7 * n, 100 + 13 * n) for n, thing in enumerate(["late day", "lost card"] * 10, 1)]
SHEET = Document(path="fees.yaml", format="yaml", title="fees", source=SOURCE, added_in=1)


@pytest.fixture(scope="module")
def enriched(library):
    """The library with a sheet that a round added, numbered by integers, and the tools that read and correct it."""
    data = render("yaml", "fees", ["fee_number", "reason", "amount", "cap"], FEES)
    database = replace(library.database, documents=(SHEET,))
    files = {**library.files, f"documents/{SHEET.path}": data}
    drafts = document_drafts(view_of(database, files), files, seed=1)
    tools = tuple(draft.tool for draft in drafts if SHEET.path in draft.tool.documents)
    return replace(
        library,
        database=database,
        files=files,
        tools=(*library.tools, *tools),
        tool_versions=(*library.tool_versions, *(f"{tool.tool_id}@0" for tool in tools)),
    )


def kept(environment, **order):
    judged = produce(Order(environment=environment, seed=2, **order), solver=Solver, sandbox=default_sandbox())
    return [item.task for item in judged if item.verdict.accepted]


def unmarked(environment):
    """The same environment, as if the sheet had been there from the beginning."""
    documents = tuple(replace(document, added_in=0) for document in environment.database.documents)
    return replace(environment, database=replace(environment.database, documents=documents))


def test_the_tools_over_each_addition_are_known(enriched, library):
    assert {name: [tool.name for tool in tools] for name, tools in over_additions(enriched).items()} == {
        "fees.yaml": ["read_fee_sheet", "correct_fee_sheet"]
    }  # fmt: skip
    assert over_additions(library) == over_additions(unmarked(enriched)) == {}
    added = replace(
        enriched.database,
        tables=tuple(replace(table, added_in=2 * (table.name == "authors")) for table in enriched.database.tables),
    )
    assert "get_book" in [tool.name for tool in over_additions(replace(enriched, database=added))["authors"]]


def test_a_kept_task_uses_an_addition_that_chance_would_pass_by(enriched):
    tools = over_additions(enriched)["fees.yaml"]
    assert not uses(kept(unmarked(enriched), count=2), tools)
    tasks = kept(enriched, count=2)
    assert uses(tasks, tools)
    assert all(task.serves == {} for task in tasks)
    assert {task.purpose for task in tasks} == {"general"}


def test_an_addition_that_an_earlier_task_uses_is_left_alone(enriched):
    tools = over_additions(enriched)["fees.yaml"]
    before = tuple(kept(enriched, count=2))
    guideline = Guideline(environment=enriched.environment_id, tools=("lend_book",), enrich=True)
    more = kept(enriched, count=2, purpose="targeted", round=1, guideline=guideline, exclude=before)
    assert more and not uses(more, tools)


@pytest.mark.parametrize("enrich", [True, False])
def test_a_targeted_task_over_an_addition_serves_the_guideline_that_asked_for_it(enriched, enrich):
    tools = over_additions(enriched)["fees.yaml"]
    guideline = Guideline(environment=enriched.environment_id, knobs={"calls": (1, 8)}, enrich=enrich)
    tasks = kept(enriched, count=2, purpose="targeted", round=1, guideline=guideline)
    asked = {"environment": enriched.environment_id, "field": "enrich", "value": "fees.yaml"}
    over = [task for task in tasks if task.serves.get("field") != "knobs"]
    assert [task.serves for task in over] == ([asked] if enrich else [])
    assert uses(over, tools) == enrich


def test_a_value_of_a_sheet_has_the_type_that_its_tool_takes(enriched):
    reader = enriched.tool("read_fee_sheet")
    drawn = {Sheets(enriched.files).draw(reader, "fee_number", rng("sheet", n)) for n in range(50)}
    assert drawn <= {number for number, *_ in FEES} and all(isinstance(value, int) for value in drawn)
    with enriched.session() as session:
        assert session.call("read_fee_sheet", {"fee_number": drawn.pop()}).status == "ok"
