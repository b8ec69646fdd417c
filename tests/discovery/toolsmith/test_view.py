from random import Random

from agent_world.discovery.structure import structure
from agent_world.discovery.toolsmith.contract import in_unit
from agent_world.discovery.toolsmith.fields import group_fields, item_fields, measure_fields
from agent_world.discovery.toolsmith.reads.lookup import get
from agent_world.discovery.toolsmith.view import own_field, parent_field, view_of
from agent_world.discovery.toolsmith.words import article, mark, snake, synonyms
from agent_world.identity import VersionId
from tests.discovery.toolsmith.worlds import ferries, raw_table

VIEW = view_of(*ferries())
SHIPS, SAILINGS = VIEW.entity("ships"), VIEW.entity("sailings")


def test_a_parent_is_shown_by_its_label_under_a_name_of_its_own():
    field = parent_field(SAILINGS, SAILINGS.link("ship_id"))
    assert (field.name, field.meaning.kind, field.meaning.table, field.meaning.column) == (
        "ship",
        "label",
        "ships",
        "name",
    )


def test_a_foreign_key_means_the_key_it_refers_to():
    meaning = own_field(SAILINGS, SAILINGS.table.column("ship_id")).meaning
    assert (meaning.kind, meaning.table, meaning.column) == ("key", "ships", "ship_id")


def test_items_name_their_row_and_say_little_more():
    assert [field.name for field in item_fields(SHIPS)] == ["ship_id", "name", "port"]


def test_money_and_everyday_quantities_are_worth_ranking_and_codes_are_not():
    assert [field.name for field in measure_fields(SAILINGS)] == ["price"]


def test_categories_are_worth_grouping_by():
    assert [field.name for field in group_fields(VIEW.entity("ports"))] == ["region", "active"]


def test_names_are_identifiers_that_shadow_nothing():
    assert [snake(text) for text in ("Å ngström", "class", "page", "639-3", "")] == [
        "a_ngstrom", "class_", "page_", "value_639_3", "value",
    ]  # fmt: skip


def test_articles_follow_the_sound():
    assert [article(noun) for noun in ("album", "unit", "us state", "user", "hour", "isotope")] == [
        "an album", "a unit", "a us state", "a user", "an hour", "an isotope",
    ]  # fmt: skip


def test_synonyms_say_nothing_twice():
    assert synonyms("track", "price of a song") == ["piece", "cost", "how much it costs"]


def test_a_flag_says_what_it_marks():
    assert [mark(name) for name in ("is_radioactive", "deprecated_id", "leaf")] == ["radioactive", "deprecated", "leaf"]


def named(name: str, header: tuple[str, ...], rows: list[tuple[object, ...]]):
    """The entity of a table of this name and header."""
    database, files = structure([raw_table(name, header, rows)], database_id="d", theme=VersionId("theme@0"))
    return view_of(database, files).entities[0]


def test_codes_are_said_to_be_codes_and_words_are_not():
    rows = [(f"X{n:02d}", f"Town {n}", f"A{chr(65 + n)}", f"part {n % 3}") for n in range(20)]
    towns = named("towns", ("icao", "name", "iata", "part"), rows)
    said = {column.name: own_field(towns, column).words for column in towns.table.columns}
    assert said["iata"] == "iata code" and said["icao"] == "icao code of the town" and said["part"] == "part"


def test_a_key_called_like_its_rows_says_so_once():
    makers = named("makers", ("maker", "origin"), [(f"Maker No {n}", f"land {n % 3}") for n in range(20)])
    assert makers.key_words == "maker"


def test_a_key_without_a_name_in_the_source_is_a_number():
    cars = named("cars93", ("column 1", "price"), [(n, 100 + 7 * n) for n in range(1, 30)])
    assert (cars.one, cars.many) == ("car 93", "cars 93")
    assert (cars.key_name, cars.key_words) == ("car_93_number", "car 93 number")


def test_a_unit_stands_behind_the_words_and_not_among_them():
    disks = named("disks", ("name", "memorySizeInMiB"), [(f"disk {n}", 64 * n) for n in range(1, 30)])
    column = disks.table.column("memory_size")
    assert column.unit == "mib" and in_unit(column) == "memory size (in mib)"


def test_a_column_whose_name_sql_claims_is_said_as_the_source_says_it():
    lands = named("lands", ("name", "group"), [(f"land {n}", f"group {n % 4}") for n in range(40)])
    assert own_field(lands, lands.table.column("group_value")).words == "group"


def test_a_row_that_says_nothing_but_its_key_is_not_read():
    database, files = structure(
        [raw_table("marks", ("mark", "note"), [(f"M{n:02d}x{n}", "the same") for n in range(20)])],
        database_id="d", theme=VersionId("theme@0"),
    )  # fmt: skip
    view = view_of(database, files)
    assert get(view, view.entities[0], Random(1)) is None
