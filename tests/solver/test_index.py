"""What the solver knows of tools from their public face."""

import pytest

from agent_world.solver.index import toolbox_of
from agent_world.solver.plan import Chance
from tests.solver.desk import flight_desk
from tests.solver.ward import hospital


def tools_of(environment):
    return tuple(tool.public() for tool in environment.tools)


@pytest.fixture(scope="module")
def desk():
    return toolbox_of(tools_of(flight_desk()))


def tool(box, name):
    return next(one for one in box.tools if one.name == name)


def test_an_index_is_built_once_for_equal_tools():
    assert toolbox_of(tools_of(hospital())) is toolbox_of(tools_of(hospital()))


@pytest.mark.parametrize(
    ("name", "parameter", "role"),
    [
        ("find_airports", "text", "search"),
        ("find_airports", "page", "page"),
        ("list_flights", "max_price", "high"),
        ("get_flight", "flight_id", "id"),
        ("list_bookings", "status", "enum"),
        ("hold_seats", "seats", "number"),
    ],
)
def test_parameters_get_roles(desk, name, parameter, role):
    assert tool(desk, name).parameter(parameter).role == role


def test_an_id_is_found_by_the_tools_that_give_it(desk):
    assert desk.links["get_flight", "flight_id"][0].tool.name == "list_flights"
    assert "find_airports" in [link.tool.name for link in desk.links["list_flights", "origin"]]
    assert "hold_seats" in [link.tool.name for link in desk.links["confirm_booking", "booking_id"]]


def test_a_tool_that_needs_an_id_does_not_give_it(desk):
    assert "confirm_booking" not in [link.tool.name for link in desk.links["cancel_booking", "booking_id"]]


def test_details_of_rows_are_known(desk):
    assert ("get_flight", "flight_id") in [(one.name, given.name) for one, _, given in desk.details["list_flights"]]


def test_states_are_read_from_the_description(desk):
    assert tool(desk, "cancel_booking").becomes == {"cancel"}


def test_telling_words_weigh_more(desk):
    assert desk.weight("elev") > desk.weight("nam")
    assert desk.match({"elev": 1.0}, {"high": 1.0}) > 0.5


def test_noise_for_one_choice_is_drawn_once():
    from agent_world.identity import rng

    chance = Chance(rng("noise"), 0.1)
    assert chance("a", 1) == chance("a", 1) != chance("b")
