from agent_world.discovery.toolsmith.fields import group_fields, item_fields, measure_fields
from agent_world.discovery.toolsmith.view import own_field, parent_field, view_of
from agent_world.discovery.toolsmith.words import article, mark, snake, synonyms
from tests.discovery.toolsmith.worlds import ferries

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
    assert [article(noun) for noun in ("album", "unit", "user", "hour", "isotope")] == [
        "an album", "a unit", "a user", "an hour", "an isotope",
    ]  # fmt: skip


def test_synonyms_say_nothing_twice():
    assert synonyms("track", "price of a song") == ["piece", "cost", "how much it costs"]


def test_a_flag_says_what_it_marks():
    assert [mark(name) for name in ("is_radioactive", "deprecated_id", "leaf")] == ["radioactive", "deprecated", "leaf"]
