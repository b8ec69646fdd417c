"""The drawings of lineage: right in their layout, safe with any text, usable in a real browser without a network."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_world.lake import Lake, open_lake
from agent_world.lake import lineage as lin
from agent_world.lake.rows import ARTIFACTS
from agent_world.reporting.diagram import ORDER, columns, mermaid, of_answers, of_impacts, of_path
from agent_world.reporting.lineage_page import lineage_page
from dagster_project.cli import cli

NASTY = '</script><img src=x onerror="alert(1)">"#quot; {{data}} `|'


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """500 versions: two rounds over six environments, and texts that would like to be code."""
    lake = open_lake(tmp_path_factory.mktemp("drawn") / "lake")
    with lake.begin("themes", derivation="d") as batch:
        theme = batch.create("theme", NASTY, {"title": NASTY, "description": NASTY})
    sets = []
    for round in range(2):
        asked = [(sets[-1], "diagnosis")] if sets else []
        with lake.begin("round", f"{round}", derivation="d") as batch:
            tried = []
            for n in range(6):
                tools = [
                    batch.create("tool", f"e{n}/t{k}-{round}", {"name": f"t{k}"}, parents=[(theme, "theme")])
                    for k in range(3)
                ]
                held = [(tool, "tool") for tool in tools]
                environment = batch.create("environment", f"e{n}-{round}", {"title": f"{n}"}, parents=held)
                for k in range(9):
                    parents = [(environment, "environment"), (tools[k % 2], lin.CALLS), *asked]
                    task = batch.create("task", f"task-{round}-{n}-{k}", {"instruction": NASTY}, parents=parents)
                    for s in range(3):
                        made = [(task, "task"), (environment, "environment"), (tools[k % 2], lin.CALLS)]
                        tried.append(batch.create("trajectory", f"tr-{round}-{n}-{k}-{s}", {"seed": s}, parents=made))
            sets.append(batch.create("diagnosis", f"diagnosis-{round}", {}, parents=[(t, "attempt") for t in tried]))
    return lake


def drawn(lake: Lake):
    theme = lake.rows("themes")[0]["version_id"]
    return of_answers(lake, "All", [lin.downstream(lake, theme)])


def test_every_link_leads_to_a_column_further_right_and_a_column_holds_one_kind(lake: Lake):
    diagram = drawn(lake)
    placed = columns(diagram)
    assert sorted(v for column in placed for v in column.versions) == sorted(diagram.kinds)
    assert len(diagram.kinds) > 450
    at = {version: index for index, column in enumerate(placed) for version in column.versions}
    assert all(at[link.parent] < at[link.child] for link in diagram.links)
    assert all({diagram.kinds[v] for v in column.versions} == {column.kind} for column in placed)
    # The second round's tasks were asked for by the first round's diagnosis: a second turn, and no third.
    assert [(column.kind, column.turn) for column in placed] == [
        ("theme", 0), ("tool", 0), ("environment", 0), ("task", 0), ("trajectory", 0), ("diagnosis", 0),
        ("task", 1), ("trajectory", 1), ("diagnosis", 1),
    ]  # fmt: skip
    assert sorted(ORDER) == sorted(ARTIFACTS)


def test_those_that_are_linked_to_the_same_stand_close(lake: Lake):
    diagram = drawn(lake)
    of_task = defaultdict(list)
    for link in diagram.links:
        if link.role == "task":
            of_task[link.parent].append(link.child)
    for column in columns(diagram):
        if column.kind == "trajectory":
            row = {version: index for index, version in enumerate(column.versions)}
            spans = [max(rows) - min(rows) for v in of_task.values() if (rows := [row[t] for t in v if t in row])]
            assert spans and sorted(spans)[len(spans) // 2] <= 5


def test_a_version_that_was_made_again_from_its_own_product_is_still_drawn(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    with lake.begin("x", derivation="0") as batch:
        first = batch.create("theme", "a", {})
        second = batch.create("database", "b", {}, parents=[(first, "theme")])
    with lake.begin("x", derivation="1") as batch:
        batch.create("theme", "a", {}, parents=[(second, "database")])
    diagram = of_answers(lake, "Round", [lin.downstream(lake, first)])
    assert sorted(v for column in columns(diagram) for v in column.versions) == sorted([first, second])
    assert lineage_page(lake, diagram).count("<g class=") == 2


def test_mermaid_names_every_version_and_link_and_no_text_ends_its_label(lake: Lake):
    tool = lake.resolve("tool", "e0/t0-0")
    diagram = of_impacts(lake, "Impact", [lin.impact(lake, tool, limit=4)])
    lines = mermaid(diagram).splitlines()
    assert lines[0] == "flowchart LR" and "more than is drawn" in lines[1]
    boxes = {m[1]: m[2] for line in lines if (m := re.fullmatch(r'  (v\d+)\(?\["([^"]*)"\]\)?', line))}
    arrows = [m.groups() for line in lines if (m := re.fullmatch(r'  (v\d+) -->\|"([^"]*)"\| (v\d+)', line))]
    assert len(boxes) == len(diagram.kinds) and len(boxes) + len(arrows) + 2 == len(lines)
    named = {number: text.partition("<br/>")[2] for number, text in boxes.items()}
    assert {(named[child], named[parent], role) for parent, role, child in arrows} == set(diagram.links)
    theme = lake.rows("themes")[0]["version_id"]
    [_, box] = mermaid(of_path(lake, "Path", lin.path(lake, theme, theme))).splitlines()
    text = re.fullmatch(r'  v0\(\["theme<br/>([^"<>|`]*)"\]\)', box)
    assert text and re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text[1]) == theme


def test_a_person_finds_a_version_sees_what_it_is_and_what_came_of_it(lake: Lake, browser, tmp_path: Path):
    diagram = drawn(lake)
    file = tmp_path / "drawn.html"
    file.write_text(lineage_page(lake, diagram), "utf-8")
    page, said, asked = browser.new_page(viewport={"width": 1500, "height": 950}), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())

    rectangles = page.evaluate(
        "[...document.querySelectorAll('.box')].map(b => { const m = b.transform.baseVal[0].matrix,"
        " r = b.firstElementChild.nextElementSibling.getBBox(), t = b.lastElementChild.getBBox();"
        " return [m.e, m.f, r.width, r.height, t.width] })"
    )
    assert len(rectangles) == len(diagram.kinds)
    corners = {(x, y) for x, y, *_ in rectangles}
    assert len(corners) == len(rectangles)
    wide, high = rectangles[0][2:4]
    for x, y in corners:  # boxes stand in a grid: none overlaps its nearest neighbours
        assert not any(0 < abs(x - ox) < wide and abs(y - oy) < high for ox, oy in corners)
        assert not any(0 < abs(y - oy) < high for ox, oy in corners if ox == x)
    assert max(text for *_, text in rectangles) <= wide
    shown = page.evaluate("document.getElementById('scene').getBoundingClientRect().toJSON()")
    assert shown["width"] <= 1500 and shown["height"] <= 950 and shown["width"] > 600

    task = lake.resolve("task", "task-0-3-1")
    page.get_by_placeholder("Search").fill("TASK-0-3-1")
    page.keyboard.press("Enter")
    assert page.locator("#found").inner_text() == "1 found"
    assert page.locator("aside h2").inner_text() == task
    assert NASTY in page.locator("aside").inner_text()
    lit = set(page.locator(".box.on title").all_text_contents())
    around = [hop.version_id for ask in (lin.upstream, lin.downstream) for hop in ask(lake, task).hops]
    assert lit == {task, *around}
    middle = page.locator(".box.pick").bounding_box()
    drawing = page.locator("#drawing").bounding_box()
    assert abs(middle["x"] + middle["width"] / 2 - drawing["x"] - drawing["width"] / 2) < 5

    before = middle["width"]
    page.mouse.move(400, 500)
    page.mouse.wheel(0, -400)
    page.wait_for_function(
        "w => document.querySelector('.box.pick').getBoundingClientRect().width > w * 1.5", arg=before
    )
    page.get_by_role("button", name="Whole").click()
    page.locator(".box", has_text="e2/t1-1").click()
    assert page.locator("aside h2").inner_text() == lake.resolve("tool", "e2/t1-1")
    page.locator("aside dd button").first.click()
    assert page.locator("aside h2").inner_text() == lake.rows("themes")[0]["version_id"]
    page.keyboard.press("Escape")
    assert page.locator(".box.on").count() == 0
    assert said == [] and asked == [file.as_uri()]
    page.close()


def test_the_commands_draw_and_say_what_they_left_out(lake: Lake, tmp_path: Path):
    def run(*arguments: str):
        return CliRunner().invoke(cli, ["lineage", *arguments, "--lake", lake.uri])

    file = tmp_path / "up.html"
    result = run("downstream", "e0/t0-0", "--limit", "20", "--format", "html", "--output", str(file))
    assert result.exit_code == 0 and "21 versions" in result.stderr and "raise --limit" in result.stderr
    data = json.loads(re.search(r"id=data>(.*?)</script>", file.read_text("utf-8"))[1])
    assert len(data["versions"]) == 21 and "there is more than is drawn" in file.read_text("utf-8")
    assert run("upstream", "tr-0-0-0-0", "--format", "mermaid").stdout.startswith("flowchart LR")
    assert run("upstream", "e0-0", "--format", "json", "--output", "x").exit_code == 2

    result = run("path", "tr-1-0-0-0", "e0/t1-0", "--format", "json")
    [*_, last] = json.loads(result.stdout)["links"]
    assert result.exit_code == 0 and last == {
        "child": lake.resolve("trajectory", last["child"]), "parent": lake.resolve("tool", "e0/t1-0"), "role": "calls",
    }  # fmt: skip
    told = run("path", "e0/t1-0", "tr-1-0-0-0").stdout
    assert "has the one above as attempt" in told and "has the one above as diagnosis" in told
    none = run("path", "e0/t1-0", "e1/t1-0")
    assert none.exit_code == 1 and "there is no path" in none.stderr
    cut = run("path", "tr-1-0-0-0", "e0/t1-0", "--limit", "5", "--format", "json")
    assert cut.exit_code == 1 and json.loads(cut.stdout)["truncated"] and "raise --limit" in cut.stderr
