from agent_world.discovery.model import RawTable
from agent_world.discovery.structure import structure
from agent_world.discovery.toolsmith.reads import guesses
from agent_world.discovery.toolsmith.view import view_of
from agent_world.environments.tool_gate import check_tools
from agent_world.identity import VersionId, rng
from agent_world.sandbox import default_sandbox
from tests.discovery.toolsmith.worlds import SOURCE


def verdict(column, cells, guess):
    rows = tuple((f"F{n:03d}", f"Film {n}", cell) for n, cell in enumerate(cells))
    table = RawTable(name="films", header=("film_id", "title", column), rows=rows, total=len(rows), source=SOURCE)
    database, files = structure([table], database_id="films", theme=VersionId("films@0"))
    view = view_of(database, files)
    (entity,) = view.entities
    draft = guess(view, entity, entity.table.column(column), rng("guess"))
    if draft is None:
        return None
    assert draft.unsure
    return check_tools(database, files, [draft.tool], draft.tests, default_sandbox())[0]


def test_a_code_that_names_one_row_is_kept():
    assert verdict("code", [f"C{7 * n}" for n in range(40)], guesses.by_code).accuracy == 1.0


def test_a_code_that_several_rows_share_is_refuted():
    found = verdict("code", [f"C{n // 2}" for n in range(60)], guesses.by_code)
    assert not found.accepted or found.accuracy < 1


def test_a_code_that_repeats_more_often_than_not_is_no_guess_at_all():
    assert verdict("code", [f"C{n % 10}" for n in range(60)], guesses.by_code) is None


def test_cells_that_hold_json_lists_can_be_searched():
    cells = [f'["drama", "tag{n % 4}"]' for n in range(30)]
    assert verdict("tags", cells, guesses.containing).accuracy == 1.0


def test_cells_that_hold_lists_of_another_spelling_are_refuted():
    cells = [f"['drama', 'tag{n % 4}']" for n in range(30)]
    found = verdict("tags", cells, guesses.containing)
    assert found.reasons == ("low_accuracy",) and {r.reason for r in found.failed} == {"error"}


def test_texts_that_start_with_their_number_can_be_ranked():
    assert verdict("length", [f"{60 + 7 * n % 90} min" for n in range(40)], guesses.ranked_text).accuracy == 1.0


def test_texts_whose_number_hides_behind_signs_are_refuted():
    found = verdict("takings", [f"${n % 9},{100 + n}.50" for n in range(40)], guesses.ranked_text)
    assert found.reasons == ("low_accuracy",)
