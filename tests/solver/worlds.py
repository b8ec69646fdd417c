"""Two more small worlds for the solver, of other domains than the library of tests/toy.py: an airline desk and a ward."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from agent_world.environments.model import Column, Database, Document, Environment, Table, Tool
from agent_world.identity import Digest, VersionId, sha256

from agent_world.environments.model import Source

SOURCE = Source(package="toy", version="1", file="toy.csv", sha256=sha256("toy"), licence="CC0-1.0")


def _string(description: str, **more) -> dict:
    return {"type": "string", "description": description, **more}


def _integer(description: str, **more) -> dict:
    return {"type": "integer", "description": description, **more}


def _number(description: str) -> dict:
    return {"type": "number", "description": description}


def _object(properties: Mapping, required: Sequence[str] | None = None) -> dict:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False,
            "required": list(properties if required is None else required)}


def _pages(item: Mapping) -> dict:
    return _object({"items": {"type": "array", "items": _object(item)}, "total": _integer("number of matches"),
                    "page": _integer("this page"), "pages": _integer("number of pages")})


_PAGE = {"page": {"type": "integer", "minimum": 1, "description": "page of the result, from 1"}}


def _tool(world: str, name: str, description: str, inputs: Mapping, outputs: Mapping, body: str, *, writes: bool = False,
          required: Sequence[str] = ()) -> Tool:
    """A tool whose `body` sees its arguments by name; `outputs` is a full schema or plain properties."""
    arguments = "".join(
        f", {key}" if key in required else f", {key}=1" if key == "page" else f", {key}=None" for key in inputs
    )
    signature = f"def {name}(world, *{arguments}) -> dict:" if inputs else f"def {name}(world) -> dict:"
    lines = "\n".join(f"    {line}".rstrip() for line in body.strip().splitlines())
    return Tool(
        tool_id=f"{world}/{name}", name=name, description=description, input_schema=_object(inputs, required),
        output_schema=outputs if "type" in outputs and "properties" in outputs else _object(outputs), writes=writes,
        source=f"from toolkit import Refused, escape_like, paged\n\n\n{signature}\n{lines}\n", pattern="toy", tables=(),
    )


def _environment(name: str, title: str, script: str, rows: Mapping[str, Sequence[tuple]], tools: Sequence[Tool],
                 documents: Mapping[str, str], workflows: Sequence[str]) -> Environment:
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.executescript(script)
    for table, values in rows.items():
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
    db.commit()
    types = {"TEXT": "text", "INTEGER": "integer", "REAL": "real"}
    tables = []
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall():
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        tables.append(Table(
            name=table, singular=table.rstrip("s"), plural=table, rows=len(rows.get(table, ())),
            primary_key=tuple(column["name"] for column in columns if column["pk"]),
            workflow=table if table in workflows else None, source=None if table in workflows else SOURCE,
            columns=tuple(
                Column(name=column["name"], type=types[column["type"]], role="text", words=column["name"],
                       original=column["name"], nullable=not column["notnull"], distinct=0)
                for column in columns
            ),
        ))
    return Environment(
        environment_id=name, version=VersionId(f"{name}@0"), title=title, description=title,
        theme=VersionId("toy-theme@0"),
        database=Database(
            database_id=name, theme=VersionId("toy-theme@0"), round=0, tables=tuple(tables), digest=Digest("0" * 64),
            documents=tuple(Document(path=path, format="json", title=path, source=SOURCE) for path in documents),
        ),
        database_version=VersionId(f"{name}-database@0"), tools=tuple(tools),
        tool_versions=tuple(VersionId(f"{tool.tool_id}@0") for tool in tools),
        files={"data.sqlite": db.serialize(), **{f"documents/{path}": text.encode() for path, text in documents.items()}},
    )


# An airline desk ------------------------------------------------------------------------------------------------

_AIRPORT = {"code": _string("airport code"), "name": _string("name of the airport"), "city": _string("city it serves")}
_FLIGHT = {"flight_id": _string("id of the flight"), "origin": _string("code of the airport it leaves from"),
           "destination": _string("code of the airport it flies to"), "date": _string("day of departure"),
           "price": _number("fare for one seat in dollars")}
_BOOKING = {"booking_id": _string("id of the booking"), "status": _string("held, confirmed or cancelled"),
            "seats": _integer("seats in the booking")}

FLIGHT_TOOLS = (
    _tool("desk", "find_airports", "Search airports by part of their name or by the city they serve.",
          {"text": _string("part of the name, or the city"), **_PAGE}, _pages(_AIRPORT), """
like = '%' + escape_like(text) + '%'
rows = world.db.execute("SELECT code, name, city FROM airports WHERE fold(name) LIKE fold(?) ESCAPE '\\\\'"
                        " OR fold(city) LIKE fold(?) ESCAPE '\\\\' ORDER BY code", (like, like)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""", required=("text",)),
    _tool("desk", "get_airport", "Everything about one airport: name, city, country and elevation above sea level.",
          {"code": _string("airport code")},
          {**_AIRPORT, "country": _string("country the airport lies in"), "elevation": _integer("height in feet")}, """
row = world.db.execute("SELECT * FROM airports WHERE code = ?", (code,)).fetchone()
if row is None:
    raise Refused("not_found", f"No airport has the code {code}.")
return dict(row)
""", required=("code",)),
    _tool("desk", "list_airports", "Airports of one country, with their elevation. Paged.",
          {"country": _string("country"), **_PAGE}, _pages({**_AIRPORT, "elevation": _integer("height in feet")}), """
rows = world.db.execute("SELECT code, name, city, elevation FROM airports WHERE fold(country) = fold(?) ORDER BY code",
                        (country,)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""", required=("country",)),
    _tool("desk", "find_airline", "Look up an airline by its name. Gives the code of the carrier.",
          {"name": _string("name of the airline")},
          {"airline": _string("code of the airline"), "name": _string("name of the airline"),
           "founded": _integer("year the airline was founded")}, """
row = world.db.execute("SELECT * FROM airlines WHERE fold(name) = fold(?)", (name,)).fetchone()
if row is None:
    raise Refused("not_found", f"No airline is called {name}.")
return dict(row)
""", required=("name",)),
    _tool("desk", "list_flights", "Flights, filtered by origin, destination, airline or highest fare. Paged.",
          {"origin": _string("code of the airport of departure"), "destination": _string("code of the airport of arrival"),
           "airline": _string("code of the airline"), "max_price": _number("highest fare in dollars"), **_PAGE},
          _pages(_FLIGHT), """
rows = world.db.execute("SELECT flight_id, origin, destination, date, price FROM flights WHERE (? IS NULL OR origin = ?)"
    " AND (? IS NULL OR destination = ?) AND (? IS NULL OR airline = ?) AND (? IS NULL OR price <= ?) ORDER BY flight_id",
    (origin, origin, destination, destination, airline, airline, max_price, max_price)).fetchall()
return paged([dict(row) for row in rows], page, 3)
"""),
    _tool("desk", "get_flight", "One flight in full: route, day, flying time, fare, seats in the plane and seats still free.",
          {"flight_id": _string("id of the flight")},
          {**_FLIGHT, "airline": _string("code of the airline"), "minutes": _integer("flying time in minutes"),
           "seats": _integer("seats in the plane"), "free": _integer("seats that are still free")}, """
row = world.db.execute("SELECT * FROM flights WHERE flight_id = ?", (flight_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no flight {flight_id}.")
taken = world.db.execute("SELECT coalesce(sum(seats), 0) FROM bookings WHERE flight_id = ? AND status <> 'cancelled'",
                         (flight_id,)).fetchone()[0]
return {**dict(row), "free": row["seats"] - taken}
""", required=("flight_id",)),
    _tool("desk", "airline_figures", "Number of flights, cheapest fare and average fare of one airline.",
          {"airline": _string("code of the airline")},
          {"flights": _integer("number of flights"), "lowest": _number("cheapest fare in dollars"),
           "mean": _number("average fare in dollars")}, """
row = world.db.execute("SELECT count(*) AS flights, min(price) AS lowest, avg(price) AS mean FROM flights"
                       " WHERE airline = ?", (airline,)).fetchone()
if not row["flights"]:
    raise Refused("not_found", f"No flight of {airline} is known.")
return dict(row)
""", required=("airline",)),
    _tool("desk", "hold_seats", "Reserve seats on a flight for a passenger. The booking becomes HELD. Refuses when fewer"
          " seats are free or the passenger already has a booking there.",
          {"flight_id": _string("id of the flight"), "passenger": _string("full name of the passenger"),
           "seats": _integer("how many seats", minimum=1)}, _BOOKING, """
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
""", writes=True, required=("flight_id", "passenger", "seats")),
    *(
        _tool("desk", name, description, {"booking_id": _string("id of the booking")}, _BOOKING, f"""
row = world.db.execute("SELECT * FROM bookings WHERE booking_id = ?", (booking_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no booking {{booking_id}}.")
if row["status"] not in {before!r}:
    raise Refused("wrong_status", f"The booking is {{row['status']}}.")
world.db.execute("UPDATE bookings SET status = '{after}' WHERE booking_id = ?", (booking_id,))
return {{"booking_id": booking_id, "status": "{after}", "seats": row["seats"]}}
""", writes=True, required=("booking_id",))
        for name, after, before, description in (
            ("confirm_booking", "confirmed", ("held",),
             "Make a held booking final. The booking becomes CONFIRMED. Refuses one that is not held."),
            ("cancel_booking", "cancelled", ("held", "confirmed"),
             "Call a booking off and free its seats. The booking becomes CANCELLED. Refuses one that was cancelled before."),
        )
    ),
    _tool("desk", "change_seats", "Change how many seats a booking has. Refuses when too few are free.",
          {"booking_id": _string("id of the booking"), "seats": _integer("new number of seats", minimum=1)}, _BOOKING, """
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
""", writes=True, required=("booking_id", "seats")),
    _tool("desk", "list_bookings", "Bookings, by passenger or status. Paged.",
          {"passenger": _string("full name of the passenger"),
           "status": _string("status of the booking", enum=["cancelled", "confirmed", "held"]), **_PAGE},
          _pages({**_BOOKING, "flight_id": _string("id of the flight"), "passenger": _string("name of the passenger")}), """
rows = world.db.execute("SELECT * FROM bookings WHERE (? IS NULL OR fold(passenger) = fold(?)) AND (? IS NULL OR status = ?)"
                        " ORDER BY booking_id", (passenger, passenger, status, status)).fetchall()
return paged([dict(row) for row in rows], page, 3)
"""),
    _tool("desk", "baggage_rules", "The rules for luggage: weight of a free bag and the charge for one more.",
          {}, {"free_kg": _integer("weight in kilograms of the bag that is free"),
               "extra_bag": _integer("charge in dollars for an extra bag")}, """
import json
return json.loads(world.read_document("baggage.json"))
"""),
)


def flight_desk() -> Environment:
    """Airports, airlines, flights and bookings."""
    return _environment(
        "toy-desk", "Airline desk",
        """
        CREATE TABLE airports (code TEXT PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, country TEXT NOT NULL,
                               elevation INTEGER NOT NULL);
        CREATE TABLE airlines (airline TEXT PRIMARY KEY, name TEXT NOT NULL, founded INTEGER NOT NULL);
        CREATE TABLE flights (flight_id TEXT PRIMARY KEY, airline TEXT NOT NULL, origin TEXT NOT NULL,
                              destination TEXT NOT NULL, date TEXT NOT NULL, minutes INTEGER NOT NULL, price REAL NOT NULL,
                              seats INTEGER NOT NULL);
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
        FLIGHT_TOOLS, {"baggage.json": '{"free_kg": 23, "extra_bag": 45}'}, ("bookings",),
    )


# A hospital ward ------------------------------------------------------------------------------------------------

_WARD = {"ward_id": _integer("number of the ward"), "name": _string("name of the ward"),
         "specialty": _string("what the ward treats")}
_PATIENT = {"patient_id": _string("id of the patient"), "name": _string("full name of the patient")}
_NURSE = {"nurse_id": _string("id of the nurse"), "name": _string("name of the nurse"),
          "hours": _integer("hours worked a week")}
_ADMISSION = {"admission_id": _string("id of the admission"), "status": _string("waiting, admitted or discharged")}
_SPECIALTY = _string("medical specialty", enum=["cardiology", "neurology", "paediatrics"])

WARD_TOOLS = (
    _tool("ward", "list_wards", "Wards of the hospital, all or those of one specialty. Paged.",
          {"specialty": _SPECIALTY, **_PAGE}, _pages(_WARD), """
rows = world.db.execute("SELECT ward_id, name, specialty FROM wards WHERE ? IS NULL OR specialty = ? ORDER BY ward_id",
                        (specialty, specialty)).fetchall()
return paged([dict(row) for row in rows], page, 2)
"""),
    _tool("ward", "ward_details", "Floor, number of beds and beds in use of one ward.",
          {"ward_id": _integer("number of the ward")},
          {**_WARD, "floor": _integer("storey the ward is on"), "beds": _integer("beds in the ward"),
           "occupied": _integer("beds in use now")}, """
row = world.db.execute("SELECT * FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no ward {ward_id}.")
used = world.db.execute("SELECT count(*) FROM admissions WHERE ward_id = ? AND status = 'admitted'", (ward_id,)).fetchone()[0]
return {**dict(row), "occupied": used}
""", required=("ward_id",)),
    _tool("ward", "search_patients", "Patients whose name contains the text.",
          {"name": _string("part of the name"), **_PAGE}, _pages(_PATIENT), """
rows = world.db.execute("SELECT patient_id, name FROM patients WHERE fold(name) LIKE fold(?) ESCAPE '\\\\' ORDER BY patient_id",
                        ('%' + escape_like(name) + '%',)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""", required=("name",)),
    _tool("ward", "patient_record", "The file of one patient: name, year of birth, blood group, weight.",
          {"patient_id": _string("id of the patient")},
          {**_PATIENT, "born": _integer("year of birth"), "blood_group": _string("blood group"),
           "weight": _number("body weight in kilograms")}, """
row = world.db.execute("SELECT * FROM patients WHERE patient_id = ?", (patient_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no patient {patient_id}.")
return dict(row)
""", required=("patient_id",)),
    _tool("ward", "list_patients", "Patients of one blood group or born in or after a year. Paged.",
          {"blood_group": _string("blood group", enum=["0", "A", "AB", "B"]), "born_from": _integer("earliest year of birth"),
           **_PAGE}, _pages({**_PATIENT, "weight": _number("body weight in kilograms")}), """
rows = world.db.execute("SELECT patient_id, name, weight FROM patients WHERE (? IS NULL OR blood_group = ?)"
                        " AND (? IS NULL OR born >= ?) ORDER BY patient_id",
                        (blood_group, blood_group, born_from, born_from)).fetchall()
return paged([dict(row) for row in rows], page, 3)
"""),
    _tool("ward", "list_nurses", "Nurses trained in a specialty, in the order asked for. Paged.",
          {"specialty": _SPECIALTY, "order": _string("what to sort by, ascending", enum=["hours", "name"]), **_PAGE},
          _pages(_NURSE), """
column = order or "name"
rows = world.db.execute(f"SELECT nurse_id, name, hours FROM nurses WHERE specialty = ? ORDER BY {column}, nurse_id",
                        (specialty,)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""", required=("specialty",)),
    _tool("ward", "find_nurse", "Look a nurse up by name: id, specialty, weekly hours.",
          {"name": _string("name of the nurse")}, {**_NURSE, "specialty": _string("specialty she or he is trained in")}, """
row = world.db.execute("SELECT * FROM nurses WHERE fold(name) = fold(?)", (name,)).fetchone()
if row is None:
    raise Refused("not_found", f"No nurse is called {name}.")
return dict(row)
""", required=("name",)),
    _tool("ward", "admit_patient", "Take a patient in on a ward. The admission becomes ADMITTED, or WAITING when no bed is"
          " left. Refuses a patient who is in hospital already.",
          {"patient_id": _string("id of the patient"), "ward_id": _integer("number of the ward")}, _ADMISSION, """
ward = world.db.execute("SELECT beds FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
if ward is None:
    raise Refused("not_found", f"There is no ward {ward_id}.")
if world.db.execute("SELECT 1 FROM admissions WHERE patient_id = ? AND status <> 'discharged'", (patient_id,)).fetchone():
    raise Refused("already_in", "This patient is in hospital already; move the patient instead.")
used = world.db.execute("SELECT count(*) FROM admissions WHERE ward_id = ? AND status = 'admitted'", (ward_id,)).fetchone()[0]
status = "admitted" if used < ward["beds"] else "waiting"
admission_id = world.new_id("AD")
world.db.execute("INSERT INTO admissions VALUES (?, ?, ?, ?)", (admission_id, patient_id, ward_id, status))
return {"admission_id": admission_id, "status": status}
""", writes=True, required=("patient_id", "ward_id")),
    _tool("ward", "transfer_patient", "Move a patient who is in hospital to another ward. Refuses when the ward is full.",
          {"admission_id": _string("id of the admission"), "ward_id": _integer("number of the new ward")},
          {**_ADMISSION, "ward_id": _integer("number of the ward")}, """
row = world.db.execute("SELECT * FROM admissions WHERE admission_id = ? AND status <> 'discharged'", (admission_id,)).fetchone()
if row is None:
    raise Refused("not_found", "No open admission has this id.")
beds = world.db.execute("SELECT beds FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
used = world.db.execute("SELECT count(*) FROM admissions WHERE ward_id = ? AND status = 'admitted'", (ward_id,)).fetchone()[0]
if beds is None or used >= beds[0]:
    raise Refused("ward_full", "No bed is free there; choose another ward.")
world.db.execute("UPDATE admissions SET ward_id = ?, status = 'admitted' WHERE admission_id = ?", (ward_id, admission_id))
return {"admission_id": admission_id, "status": "admitted", "ward_id": ward_id}
""", writes=True, required=("admission_id", "ward_id")),
    _tool("ward", "discharge_patient", "Send a patient home. The admission becomes DISCHARGED.",
          {"admission_id": _string("id of the admission")}, _ADMISSION, """
row = world.db.execute("SELECT * FROM admissions WHERE admission_id = ? AND status <> 'discharged'", (admission_id,)).fetchone()
if row is None:
    raise Refused("not_found", "No open admission has this id.")
world.db.execute("UPDATE admissions SET status = 'discharged' WHERE admission_id = ?", (admission_id,))
return {"admission_id": admission_id, "status": "discharged"}
""", writes=True, required=("admission_id",)),
    _tool("ward", "list_admissions", "Admissions, by status. Paged.",
          {"status": _string("status of the admission", enum=["admitted", "discharged", "waiting"]), **_PAGE},
          _pages({**_ADMISSION, "patient_id": _string("id of the patient"), "ward_id": _integer("number of the ward")}), """
rows = world.db.execute("SELECT * FROM admissions WHERE ? IS NULL OR status = ? ORDER BY admission_id",
                        (status, status)).fetchall()
return paged([dict(row) for row in rows], page, 3)
"""),
    _tool("ward", "assign_nurse", "Put a nurse on a ward of the specialty she or he is trained in. Refuses another specialty.",
          {"nurse_id": _string("id of the nurse"), "ward_id": _integer("number of the ward")},
          {"duty_id": _string("id of the duty"), "status": _string("on or off")}, """
nurse = world.db.execute("SELECT specialty FROM nurses WHERE nurse_id = ?", (nurse_id,)).fetchone()
ward = world.db.execute("SELECT specialty FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
if nurse is None or ward is None:
    raise Refused("not_found", "There is no such nurse or no such ward.")
if nurse["specialty"] != ward["specialty"]:
    raise Refused("wrong_specialty", f"This nurse works in {nurse['specialty']}; choose a ward of that specialty.")
duty_id = world.new_id("DU")
world.db.execute("INSERT INTO duties VALUES (?, ?, ?, 'on')", (duty_id, nurse_id, ward_id))
return {"duty_id": duty_id, "status": "on"}
""", writes=True, required=("nurse_id", "ward_id")),
    _tool("ward", "release_nurse", "Take a nurse off a ward again. The duty becomes OFF.",
          {"duty_id": _string("id of the duty")},
          {"duty_id": _string("id of the duty"), "status": _string("on or off")}, """
if world.db.execute("SELECT 1 FROM duties WHERE duty_id = ? AND status = 'on'", (duty_id,)).fetchone() is None:
    raise Refused("not_on", "This duty has ended.")
world.db.execute("UPDATE duties SET status = 'off' WHERE duty_id = ?", (duty_id,))
return {"duty_id": duty_id, "status": "off"}
""", writes=True, required=("duty_id",)),
)


def hospital() -> Environment:
    """Wards, patients, nurses, admissions and duties."""
    return _environment(
        "toy-ward", "Hospital",
        """
        CREATE TABLE wards (ward_id INTEGER PRIMARY KEY, name TEXT NOT NULL, specialty TEXT NOT NULL, floor INTEGER NOT NULL,
                            beds INTEGER NOT NULL);
        CREATE TABLE patients (patient_id TEXT PRIMARY KEY, name TEXT NOT NULL, born INTEGER NOT NULL,
                               blood_group TEXT NOT NULL, weight REAL NOT NULL);
        CREATE TABLE nurses (nurse_id TEXT PRIMARY KEY, name TEXT NOT NULL, specialty TEXT NOT NULL, hours INTEGER NOT NULL);
        CREATE TABLE admissions (admission_id TEXT PRIMARY KEY, patient_id TEXT NOT NULL, ward_id INTEGER NOT NULL,
                                 status TEXT NOT NULL);
        CREATE TABLE duties (duty_id TEXT PRIMARY KEY, nurse_id TEXT NOT NULL, ward_id INTEGER NOT NULL, status TEXT NOT NULL);
        """,
        {
            "wards": [(1, "Elm", "cardiology", 2, 3), (2, "Oak", "neurology", 1, 1), (3, "Birch", "cardiology", 4, 2),
                      (4, "Rowan", "paediatrics", 3, 4), (5, "Willow", "neurology", 5, 2)],
            "patients": [("P1", "Nora Dahl", 1951, "A", 61.5), ("P2", "Samir Haddad", 1988, "0", 82.0),
                         ("P3", "Grace Obi", 2016, "B", 24.0), ("P4", "Jonas Weber", 1979, "A", 95.5),
                         ("P5", "Mei Tanaka", 1993, "AB", 54.0), ("P6", "Luis Prado", 1962, "A", 78.0),
                         ("P7", "Ines Prado", 2019, "0", 15.5), ("P8", "Karl Lund", 1940, "A", 70.0)],
            "nurses": [("N1", "Ada Finch", "cardiology", 38), ("N2", "Ben Cole", "neurology", 24),
                       ("N3", "Cleo Park", "cardiology", 30), ("N4", "Dev Rao", "paediatrics", 40),
                       ("N5", "Eva Stone", "cardiology", 20), ("N6", "Finn Moe", "cardiology", 36)],
        },
        WARD_TOOLS, {}, ("admissions", "duties"),
    )
