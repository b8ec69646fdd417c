"""A small airline desk: airports, airlines, flights, bookings, baggage rules."""

from __future__ import annotations

from agent_world.environments.model import Environment
from tests.solver.making import PAGE, environment, integer, number, pages, string, tool

_AIRPORT = {"code": string("airport code"), "name": string("name of the airport"), "city": string("city it serves")}
_FLIGHT = {
    "flight_id": string("id of the flight"),
    "origin": string("code of the airport it leaves from"),
    "destination": string("code of the airport it flies to"),
    "date": string("day of departure"),
    "price": number("fare for one seat in dollars"),
}
_BOOKING = {
    "booking_id": string("id of the booking"),
    "status": string("held, confirmed or cancelled"),
    "seats": integer("seats in the booking"),
}

FLIGHT_TOOLS = (
    tool(
        "desk",
        "find_airports",
        "Search airports by part of their name or by the city they serve.",
        {"text": string("part of the name, or the city"), **PAGE},
        pages(_AIRPORT),
        """
like = '%' + escape_like(text) + '%'
rows = world.db.execute("SELECT code, name, city FROM airports WHERE fold(name) LIKE fold(?) ESCAPE '\\\\'"
                        " OR fold(city) LIKE fold(?) ESCAPE '\\\\' ORDER BY code", (like, like)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
        required=("text",),
    ),
    tool(
        "desk",
        "get_airport",
        "Everything about one airport: name, city, country and elevation above sea level.",
        {"code": string("airport code")},
        {**_AIRPORT, "country": string("country the airport lies in"), "elevation": integer("height in feet")},
        """
row = world.db.execute("SELECT * FROM airports WHERE code = ?", (code,)).fetchone()
if row is None:
    raise Refused("not_found", f"No airport has the code {code}.")
return dict(row)
""",
        required=("code",),
    ),
    tool(
        "desk",
        "list_airports",
        "Airports of one country, with their elevation. Paged.",
        {"country": string("country"), **PAGE},
        pages({**_AIRPORT, "elevation": integer("height in feet")}),
        """
rows = world.db.execute("SELECT code, name, city, elevation FROM airports WHERE fold(country) = fold(?) ORDER BY code",
                        (country,)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
        required=("country",),
    ),
    tool(
        "desk",
        "find_airline",
        "Look up an airline by its name. Gives the code of the carrier.",
        {"name": string("name of the airline")},
        {
            "airline": string("code of the airline"),
            "name": string("name of the airline"),
            "founded": integer("year the airline was founded"),
        },
        """
row = world.db.execute("SELECT * FROM airlines WHERE fold(name) = fold(?)", (name,)).fetchone()
if row is None:
    raise Refused("not_found", f"No airline is called {name}.")
return dict(row)
""",
        required=("name",),
    ),
    tool(
        "desk",
        "list_flights",
        "Flights, filtered by origin, destination, airline or highest fare. Paged.",
        {
            "origin": string("code of the airport of departure"),
            "destination": string("code of the airport of arrival"),
            "airline": string("code of the airline"),
            "max_price": number("highest fare in dollars"),
            **PAGE,
        },
        pages(_FLIGHT),
        """
rows = world.db.execute("SELECT flight_id, origin, destination, date, price FROM flights"
    " WHERE (? IS NULL OR origin = ?) AND (? IS NULL OR destination = ?)"
    " AND (? IS NULL OR airline = ?) AND (? IS NULL OR price <= ?) ORDER BY flight_id",
    (origin, origin, destination, destination, airline, airline, max_price, max_price)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
    ),
    tool(
        "desk",
        "get_flight",
        "One flight in full: route, day, flying time, fare, seats in the plane and seats still free.",
        {"flight_id": string("id of the flight")},
        {
            **_FLIGHT,
            "airline": string("code of the airline"),
            "minutes": integer("flying time in minutes"),
            "seats": integer("seats in the plane"),
            "free": integer("seats that are still free"),
        },
        """
row = world.db.execute("SELECT * FROM flights WHERE flight_id = ?", (flight_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no flight {flight_id}.")
taken = world.db.execute("SELECT coalesce(sum(seats), 0) FROM bookings WHERE flight_id = ? AND status <> 'cancelled'",
                         (flight_id,)).fetchone()[0]
return {**dict(row), "free": row["seats"] - taken}
""",
        required=("flight_id",),
    ),
    tool(
        "desk",
        "airline_figures",
        "Number of flights, cheapest fare and average fare of one airline.",
        {"airline": string("code of the airline")},
        {
            "flights": integer("number of flights"),
            "lowest": number("cheapest fare in dollars"),
            "mean": number("average fare in dollars"),
        },
        """
row = world.db.execute("SELECT count(*) AS flights, min(price) AS lowest, avg(price) AS mean FROM flights"
                       " WHERE airline = ?", (airline,)).fetchone()
if not row["flights"]:
    raise Refused("not_found", f"No flight of {airline} is known.")
return dict(row)
""",
        required=("airline",),
    ),
    tool(
        "desk",
        "hold_seats",
        "Reserve seats on a flight for a passenger. The booking becomes HELD. Refuses when fewer"
        " seats are free or the passenger already has a booking there.",
        {
            "flight_id": string("id of the flight"),
            "passenger": string("full name of the passenger"),
            "seats": integer("how many seats", minimum=1),
        },
        _BOOKING,
        """
row = world.db.execute("SELECT seats FROM flights WHERE flight_id = ?", (flight_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no flight {flight_id}.")
taken = world.db.execute("SELECT coalesce(sum(seats), 0) FROM bookings WHERE flight_id = ? AND status <> 'cancelled'",
                         (flight_id,)).fetchone()[0]
if row["seats"] - taken < seats:
    raise Refused("no_seats", f"Only {row['seats'] - taken} seats are free; ask for fewer or take another flight.")
booking_id = world.new_id("BK")
world.db.execute("INSERT INTO bookings VALUES (?, ?, ?, ?, 'held')", (booking_id, flight_id, passenger, seats))
return {"booking_id": booking_id, "status": "held", "seats": seats}
""",
        writes=True,
        required=("flight_id", "passenger", "seats"),
    ),
    *(
        tool(
            "desk",
            name,
            description,
            {"booking_id": string("id of the booking")},
            _BOOKING,
            f"""
row = world.db.execute("SELECT * FROM bookings WHERE booking_id = ?", (booking_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no booking {{booking_id}}.")
if row["status"] not in {before!r}:
    raise Refused("wrong_status", f"The booking is {{row['status']}}.")
world.db.execute("UPDATE bookings SET status = '{after}' WHERE booking_id = ?", (booking_id,))
return {{"booking_id": booking_id, "status": "{after}", "seats": row["seats"]}}
""",
            writes=True,
            required=("booking_id",),
        )
        for name, after, before, description in (
            (
                "confirm_booking",
                "confirmed",
                ("held",),
                "Make a held booking final. The booking becomes CONFIRMED. Refuses one that is not held.",
            ),
            (
                "cancel_booking",
                "cancelled",
                ("held", "confirmed"),
                "Call a booking off and free its seats. The booking becomes CANCELLED."
                " Refuses one that was cancelled before.",
            ),
        )
    ),
    tool(
        "desk",
        "change_seats",
        "Change how many seats a booking has. Refuses when too few are free.",
        {"booking_id": string("id of the booking"), "seats": integer("new number of seats", minimum=1)},
        _BOOKING,
        """
row = world.db.execute("SELECT * FROM bookings WHERE booking_id = ?", (booking_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no booking {booking_id}.")
capacity = world.db.execute("SELECT seats FROM flights WHERE flight_id = ?", (row["flight_id"],)).fetchone()[0]
taken = world.db.execute("SELECT coalesce(sum(seats), 0) FROM bookings WHERE flight_id = ? AND status <> 'cancelled'"
                         " AND booking_id <> ?", (row["flight_id"], booking_id)).fetchone()[0]
if capacity - taken < seats:
    raise Refused("no_seats", f"Only {capacity - taken} seats are free.")
world.db.execute("UPDATE bookings SET seats = ? WHERE booking_id = ?", (seats, booking_id))
return {"booking_id": booking_id, "status": row["status"], "seats": seats}
""",
        writes=True,
        required=("booking_id", "seats"),
    ),
    tool(
        "desk",
        "list_bookings",
        "Bookings, by passenger or status. Paged.",
        {
            "passenger": string("full name of the passenger"),
            "status": string("status of the booking", enum=["cancelled", "confirmed", "held"]),
            **PAGE,
        },
        pages({**_BOOKING, "flight_id": string("id of the flight"), "passenger": string("name of the passenger")}),
        """
rows = world.db.execute("SELECT * FROM bookings WHERE (? IS NULL OR fold(passenger) = fold(?))"
                        " AND (? IS NULL OR status = ?)"
                        " ORDER BY booking_id", (passenger, passenger, status, status)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
    ),
    tool(
        "desk",
        "baggage_rules",
        "The rules for luggage: weight of a free bag and the charge for one more.",
        {},
        {
            "free_kg": integer("weight in kilograms of the bag that is free"),
            "extra_bag": integer("charge in dollars for an extra bag"),
        },
        """
import json
return json.loads(world.read_document("baggage.json"))
""",
    ),
)


def flight_desk() -> Environment:
    """Airports, airlines, flights and bookings."""
    return environment(
        "toy-desk",
        "Airline desk",
        """
        CREATE TABLE airports (code TEXT PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, country TEXT NOT NULL,
                               elevation INTEGER NOT NULL);
        CREATE TABLE airlines (airline TEXT PRIMARY KEY, name TEXT NOT NULL, founded INTEGER NOT NULL);
        CREATE TABLE flights (flight_id TEXT PRIMARY KEY, airline TEXT NOT NULL, origin TEXT NOT NULL,
                              destination TEXT NOT NULL, date TEXT NOT NULL, minutes INTEGER NOT NULL,
                              price REAL NOT NULL, seats INTEGER NOT NULL);
        CREATE TABLE bookings (booking_id TEXT PRIMARY KEY, flight_id TEXT NOT NULL, passenger TEXT NOT NULL,
                               seats INTEGER NOT NULL, status TEXT NOT NULL);
        """,
        {
            "airports": [
                ("KEF", "Keflavik International", "Reykjavik", "Iceland", 171),
                ("AEY", "Akureyri Airport", "Akureyri", "Iceland", 6),
                ("EGS", "Egilsstadir Airport", "Egilsstadir", "Iceland", 76),
                ("IFJ", "Isafjordur Airport", "Isafjordur", "Iceland", 8),
                ("MYV", "Myvatn Airport", "Reykjahlid", "Iceland", 1030),
                ("OSL", "Gardermoen", "Oslo", "Norway", 681),
                ("BGO", "Flesland", "Bergen", "Norway", 170),
                ("RRS", "Roros Airport", "Roros", "Norway", 2054),
            ],
            "airlines": [("NA", "North Air", 1987), ("PU", "Puffin Express", 2009), ("FJ", "Fjordline", 1962)],
            "flights": [
                ("F100", "NA", "KEF", "OSL", "2026-02-01", 170, 240.0, 4),
                ("F101", "NA", "KEF", "BGO", "2026-02-01", 150, 199.5, 2),
                ("F102", "PU", "KEF", "AEY", "2026-02-02", 45, 80.0, 3),
                ("F103", "PU", "AEY", "EGS", "2026-02-02", 40, 75.0, 1),
                ("F104", "FJ", "OSL", "BGO", "2026-02-03", 55, 60.0, 6),
                ("F105", "FJ", "OSL", "RRS", "2026-02-03", 50, 90.0, 2),
                ("F106", "NA", "OSL", "KEF", "2026-02-04", 175, 310.0, 5),
                ("F107", "PU", "KEF", "EGS", "2026-02-05", 60, 95.0, 2),
                ("F108", "FJ", "BGO", "OSL", "2026-02-05", 55, 65.0, 6),
                ("F109", "PU", "IFJ", "KEF", "2026-02-06", 45, 70.0, 3),
            ],
        },
        FLIGHT_TOOLS,
        {"baggage.json": '{"free_kg": 23, "extra_bag": 45}'},
        ("bookings",),
    )
