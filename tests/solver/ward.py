"""A small hospital: wards, patients, nurses, admissions, duties."""

from __future__ import annotations

from agent_world.environments.model import Environment
from tests.solver.making import PAGE, environment, integer, number, pages, string, tool

_WARD = {
    "ward_id": integer("number of the ward"),
    "name": string("name of the ward"),
    "specialty": string("what the ward treats"),
}
_PATIENT = {"patient_id": string("id of the patient"), "name": string("full name of the patient")}
_NURSE = {
    "nurse_id": string("id of the nurse"),
    "name": string("name of the nurse"),
    "hours": integer("hours worked a week"),
}
_ADMISSION = {"admission_id": string("id of the admission"), "status": string("waiting, admitted or discharged")}
_SPECIALTY = string("medical specialty", enum=["cardiology", "neurology", "paediatrics"])

WARD_TOOLS = (
    tool(
        "ward",
        "list_wards",
        "Wards of the hospital, all or those of one specialty. Paged.",
        {"specialty": _SPECIALTY, **PAGE},
        pages(_WARD),
        """
rows = world.db.execute("SELECT ward_id, name, specialty FROM wards WHERE ? IS NULL OR specialty = ? ORDER BY ward_id",
                        (specialty, specialty)).fetchall()
return paged([dict(row) for row in rows], page, 2)
""",
    ),
    tool(
        "ward",
        "ward_details",
        "Floor, number of beds and beds in use of one ward.",
        {"ward_id": integer("number of the ward")},
        {
            **_WARD,
            "floor": integer("storey the ward is on"),
            "beds": integer("beds in the ward"),
            "occupied": integer("beds in use now"),
        },
        """
row = world.db.execute("SELECT * FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no ward {ward_id}.")
used = world.db.execute("SELECT count(*) FROM admissions WHERE ward_id = ? AND status = 'admitted'",
                        (ward_id,)).fetchone()[0]
return {**dict(row), "occupied": used}
""",
        required=("ward_id",),
    ),
    tool(
        "ward",
        "search_patients",
        "Patients whose name contains the text.",
        {"name": string("part of the name"), **PAGE},
        pages(_PATIENT),
        """
rows = world.db.execute("SELECT patient_id, name FROM patients WHERE fold(name) LIKE fold(?) ESCAPE '\\\\'"
                        " ORDER BY patient_id",
                        ('%' + escape_like(name) + '%',)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
        required=("name",),
    ),
    tool(
        "ward",
        "patient_record",
        "The file of one patient: name, year of birth, blood group, weight.",
        {"patient_id": string("id of the patient")},
        {
            **_PATIENT,
            "born": integer("year of birth"),
            "blood_group": string("blood group"),
            "weight": number("body weight in kilograms"),
        },
        """
row = world.db.execute("SELECT * FROM patients WHERE patient_id = ?", (patient_id,)).fetchone()
if row is None:
    raise Refused("not_found", f"There is no patient {patient_id}.")
return dict(row)
""",
        required=("patient_id",),
    ),
    tool(
        "ward",
        "list_patients",
        "Patients of one blood group or born in or after a year. Paged.",
        {
            "blood_group": string("blood group", enum=["0", "A", "AB", "B"]),
            "born_from": integer("earliest year of birth"),
            **PAGE,
        },
        pages({**_PATIENT, "weight": number("body weight in kilograms")}),
        """
rows = world.db.execute("SELECT patient_id, name, weight FROM patients WHERE (? IS NULL OR blood_group = ?)"
                        " AND (? IS NULL OR born >= ?) ORDER BY patient_id",
                        (blood_group, blood_group, born_from, born_from)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
    ),
    tool(
        "ward",
        "list_nurses",
        "Nurses trained in a specialty, in the order asked for. Paged.",
        {"specialty": _SPECIALTY, "order": string("what to sort by, ascending", enum=["hours", "name"]), **PAGE},
        pages(_NURSE),
        """
column = order or "name"
rows = world.db.execute(f"SELECT nurse_id, name, hours FROM nurses WHERE specialty = ? ORDER BY {column}, nurse_id",
                        (specialty,)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
        required=("specialty",),
    ),
    tool(
        "ward",
        "find_nurse",
        "Look a nurse up by name: id, specialty, weekly hours.",
        {"name": string("name of the nurse")},
        {**_NURSE, "specialty": string("specialty she or he is trained in")},
        """
row = world.db.execute("SELECT * FROM nurses WHERE fold(name) = fold(?)", (name,)).fetchone()
if row is None:
    raise Refused("not_found", f"No nurse is called {name}.")
return dict(row)
""",
        required=("name",),
    ),
    tool(
        "ward",
        "admit_patient",
        "Take a patient in on a ward. The admission becomes ADMITTED, or WAITING when no bed is"
        " left. Refuses a patient who is in hospital already.",
        {"patient_id": string("id of the patient"), "ward_id": integer("number of the ward")},
        _ADMISSION,
        """
ward = world.db.execute("SELECT beds FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
if ward is None:
    raise Refused("not_found", f"There is no ward {ward_id}.")
known = world.db.execute("SELECT 1 FROM admissions WHERE patient_id = ? AND status <> 'discharged'", (patient_id,))
if known.fetchone():
    raise Refused("already_in", "This patient is in hospital already; move the patient instead.")
used = world.db.execute("SELECT count(*) FROM admissions WHERE ward_id = ? AND status = 'admitted'",
                        (ward_id,)).fetchone()[0]
status = "admitted" if used < ward["beds"] else "waiting"
admission_id = world.new_id("AD")
world.db.execute("INSERT INTO admissions VALUES (?, ?, ?, ?)", (admission_id, patient_id, ward_id, status))
return {"admission_id": admission_id, "status": status}
""",
        writes=True,
        required=("patient_id", "ward_id"),
    ),
    tool(
        "ward",
        "transfer_patient",
        "Move a patient who is in hospital to another ward. Refuses when the ward is full.",
        {"admission_id": string("id of the admission"), "ward_id": integer("number of the new ward")},
        {**_ADMISSION, "ward_id": integer("number of the ward")},
        """
row = world.db.execute("SELECT * FROM admissions WHERE admission_id = ? AND status <> 'discharged'",
                       (admission_id,)).fetchone()
if row is None:
    raise Refused("not_found", "No open admission has this id.")
beds = world.db.execute("SELECT beds FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
used = world.db.execute("SELECT count(*) FROM admissions WHERE ward_id = ? AND status = 'admitted'",
                        (ward_id,)).fetchone()[0]
if beds is None or used >= beds[0]:
    raise Refused("ward_full", "No bed is free there; choose another ward.")
world.db.execute("UPDATE admissions SET ward_id = ?, status = 'admitted' WHERE admission_id = ?",
                 (ward_id, admission_id))
return {"admission_id": admission_id, "status": "admitted", "ward_id": ward_id}
""",
        writes=True,
        required=("admission_id", "ward_id"),
    ),
    tool(
        "ward",
        "discharge_patient",
        "Send a patient home. The admission becomes DISCHARGED.",
        {"admission_id": string("id of the admission")},
        _ADMISSION,
        """
row = world.db.execute("SELECT * FROM admissions WHERE admission_id = ? AND status <> 'discharged'",
                       (admission_id,)).fetchone()
if row is None:
    raise Refused("not_found", "No open admission has this id.")
world.db.execute("UPDATE admissions SET status = 'discharged' WHERE admission_id = ?", (admission_id,))
return {"admission_id": admission_id, "status": "discharged"}
""",
        writes=True,
        required=("admission_id",),
    ),
    tool(
        "ward",
        "list_admissions",
        "Admissions, by status. Paged.",
        {"status": string("status of the admission", enum=["admitted", "discharged", "waiting"]), **PAGE},
        pages({**_ADMISSION, "patient_id": string("id of the patient"), "ward_id": integer("number of the ward")}),
        """
rows = world.db.execute("SELECT * FROM admissions WHERE ? IS NULL OR status = ? ORDER BY admission_id",
                        (status, status)).fetchall()
return paged([dict(row) for row in rows], page, 3)
""",
    ),
    tool(
        "ward",
        "assign_nurse",
        "Put a nurse on a ward of the specialty she or he is trained in. Refuses another specialty.",
        {"nurse_id": string("id of the nurse"), "ward_id": integer("number of the ward")},
        {"duty_id": string("id of the duty"), "status": string("on or off")},
        """
nurse = world.db.execute("SELECT specialty FROM nurses WHERE nurse_id = ?", (nurse_id,)).fetchone()
ward = world.db.execute("SELECT specialty FROM wards WHERE ward_id = ?", (ward_id,)).fetchone()
if nurse is None or ward is None:
    raise Refused("not_found", "There is no such nurse or no such ward.")
if nurse["specialty"] != ward["specialty"]:
    raise Refused("wrong_specialty", f"This nurse works in {nurse['specialty']}; choose a ward of that specialty.")
duty_id = world.new_id("DU")
world.db.execute("INSERT INTO duties VALUES (?, ?, ?, 'on')", (duty_id, nurse_id, ward_id))
return {"duty_id": duty_id, "status": "on"}
""",
        writes=True,
        required=("nurse_id", "ward_id"),
    ),
    tool(
        "ward",
        "release_nurse",
        "Take a nurse off a ward again. The duty becomes OFF.",
        {"duty_id": string("id of the duty")},
        {"duty_id": string("id of the duty"), "status": string("on or off")},
        """
if world.db.execute("SELECT 1 FROM duties WHERE duty_id = ? AND status = 'on'", (duty_id,)).fetchone() is None:
    raise Refused("not_on", "This duty has ended.")
world.db.execute("UPDATE duties SET status = 'off' WHERE duty_id = ?", (duty_id,))
return {"duty_id": duty_id, "status": "off"}
""",
        writes=True,
        required=("duty_id",),
    ),
)


def hospital() -> Environment:
    """Wards, patients, nurses, admissions and duties."""
    return environment(
        "toy-ward",
        "Hospital",
        """
        CREATE TABLE wards (ward_id INTEGER PRIMARY KEY, name TEXT NOT NULL, specialty TEXT NOT NULL,
                            floor INTEGER NOT NULL, beds INTEGER NOT NULL);
        CREATE TABLE patients (patient_id TEXT PRIMARY KEY, name TEXT NOT NULL, born INTEGER NOT NULL,
                               blood_group TEXT NOT NULL, weight REAL NOT NULL);
        CREATE TABLE nurses (nurse_id TEXT PRIMARY KEY, name TEXT NOT NULL, specialty TEXT NOT NULL,
                             hours INTEGER NOT NULL);
        CREATE TABLE admissions (admission_id TEXT PRIMARY KEY, patient_id TEXT NOT NULL, ward_id INTEGER NOT NULL,
                                 status TEXT NOT NULL);
        CREATE TABLE duties (duty_id TEXT PRIMARY KEY, nurse_id TEXT NOT NULL, ward_id INTEGER NOT NULL,
                             status TEXT NOT NULL);
        """,
        {
            "wards": [
                (1, "Elm", "cardiology", 2, 3),
                (2, "Oak", "neurology", 1, 1),
                (3, "Birch", "cardiology", 4, 2),
                (4, "Rowan", "paediatrics", 3, 4),
                (5, "Willow", "neurology", 5, 2),
            ],
            "patients": [
                ("P1", "Nora Dahl", 1951, "A", 61.5),
                ("P2", "Samir Haddad", 1988, "0", 82.0),
                ("P3", "Grace Obi", 2016, "B", 24.0),
                ("P4", "Jonas Weber", 1979, "A", 95.5),
                ("P5", "Mei Tanaka", 1993, "AB", 54.0),
                ("P6", "Luis Prado", 1962, "A", 78.0),
                ("P7", "Ines Prado", 2019, "0", 15.5),
                ("P8", "Karl Lund", 1940, "A", 70.0),
            ],
            "nurses": [
                ("N1", "Ada Finch", "cardiology", 38),
                ("N2", "Ben Cole", "neurology", 24),
                ("N3", "Cleo Park", "cardiology", 30),
                ("N4", "Dev Rao", "paediatrics", 40),
                ("N5", "Eva Stone", "cardiology", 20),
                ("N6", "Finn Moe", "cardiology", 36),
            ],
        },
        WARD_TOOLS,
        {},
        ("admissions", "duties"),
    )
