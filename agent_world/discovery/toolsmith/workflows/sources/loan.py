"""Source of the tools of loans."""

SUBJECT_OF_RECORD = """
$subject = world.db.execute(
    "SELECT $subject_needed FROM $subject_table WHERE $subject_column = ?", ($record["$subject_key"],)
).fetchone()
"""

LEND = '''
from datetime import date, timedelta

from toolkit import Refused

$days_constants
MOST_OPEN = $limit


def $tool(world, *, $subject_key: $subject_hint, $holder: $holder_hint) -> dict:
    """Hand $a_subject out to a $holder_words until the day it is due."""
    ${subject_check}
    ${holder_check}
    away = world.db.execute(
        "SELECT 1 FROM $records WHERE $subject_key = ? AND status <> 'returned'", ($subject_key,)
    ).fetchone()
    if away is not None:
        raise Refused("not_available", f"$subject_title {$subject_key} is out or lost; choose another $subject_words.")
    open_loans = world.db.execute(
        "SELECT count(*) FROM $records WHERE $holder = ? AND status = 'out'", ($holder,)
    ).fetchone()[0]
    if open_loans >= MOST_OPEN:
        raise Refused("too_many_loans", f"{$holder} has {open_loans} of them out already; one must come back first.")
    ${days}
    due = (date.fromisoformat(world.today()) + timedelta(days=days)).isoformat()
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES (?, ?, ?, ?, 0, 'out')", ($record_id, $subject_key, $holder, due))
    return {"$record_id": $record_id, "status": "out", "due": due}
'''

RENEW = '''
from datetime import date, timedelta

from toolkit import Refused

$days_constants
MOST_RENEWALS = $renewals


def $tool(world, *, $record_id: str) -> dict:
    """Put off the day on which a $record_words is due."""
    $record = world.db.execute(
        "SELECT $subject_key, due, renewals, status FROM $records WHERE $record_id = ?", ($record_id,)
    ).fetchone()
    ${known}
    ${must_be_out}
    if $record["renewals"] >= MOST_RENEWALS:
        raise Refused("no_more_renewals", f"It was renewed {MOST_RENEWALS} times already; it must come back.")
    ${subject_of_record}
    ${days}
    due = (date.fromisoformat($record["due"]) + timedelta(days=days)).isoformat()
    renewals = $record["renewals"] + 1
    world.db.execute("UPDATE $records SET due = ?, renewals = ? WHERE $record_id = ?", (due, renewals, $record_id))
    return {"$record_id": $record_id, "due": due, "renewals": renewals}
'''

HAND_OVER = '''
from toolkit import Refused

MOST_OPEN = $limit


def $tool(world, *, $record_id: str, $holder: $holder_hint) -> dict:
    """Pass $a_subject that is out on to another $holder_words, with the same due date."""
    $record = world.db.execute("SELECT $holder, status FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
    ${known}
    ${must_be_out}
    ${holder_check}
    if $record["$holder"] == $holder:
        raise Refused("same_borrower", f"{$holder} has it already; name somebody else.")
    open_loans = world.db.execute(
        "SELECT count(*) FROM $records WHERE $holder = ? AND status = 'out'", ($holder,)
    ).fetchone()[0]
    if open_loans >= MOST_OPEN:
        raise Refused("too_many_loans", f"{$holder} has {open_loans} of them out already; one must come back first.")
    world.db.execute("UPDATE $records SET $holder = ? WHERE $record_id = ?", ($holder, $record_id))
    return {"$record_id": $record_id, "$holder": $holder}
'''
