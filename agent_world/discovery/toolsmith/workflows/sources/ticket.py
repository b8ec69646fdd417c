"""Source of the tools of issues."""

REPORT = '''
from toolkit import Refused

${urgent_constant}


def $tool(world, *, $subject_key: $subject_hint, problem: str) -> dict:
    """Open $a_record about $a_subject."""
    ${subject_check}
    pending = world.db.execute(
        "SELECT 1 FROM $records WHERE $subject_key = ? AND problem = ? AND status <> 'resolved'",
        ($subject_key, problem),
    ).fetchone()
    if pending is not None:
        raise Refused("already_reported", f"The same problem of {$subject_key} is reported already; follow that one.")
    ${priority}
    $record_id = world.new_id("$prefix")
    world.db.execute(
        "INSERT INTO $records VALUES (?, ?, ?, ?, NULL, 'open')", ($record_id, $subject_key, problem, priority)
    )
    return {"$record_id": $record_id, "status": "open", "priority": priority}
'''

ASSIGN = '''
from toolkit import Refused

MOST_AT_ONCE = $limit


def $tool(world, *, $record_id: str, $worker: $worker_hint) -> dict:
    """Give an open $record_words to somebody."""
    $record = world.db.execute("SELECT status FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
    ${known}
    ${must_be_open}
    ${worker_check}
    at_once = world.db.execute(
        "SELECT count(*) FROM $records WHERE $worker = ? AND status = 'assigned'", ($worker,)
    ).fetchone()[0]
    if at_once >= MOST_AT_ONCE:
        raise Refused("too_busy", f"{$worker} works on {at_once} already; name somebody else.")
    world.db.execute(
        "UPDATE $records SET $worker = ?, status = 'assigned' WHERE $record_id = ?", ($worker, $record_id)
    )
    return {"$record_id": $record_id, "status": "assigned", "$worker": $worker}
'''

ESCALATE = '''
from toolkit import Refused


def $tool(world, *, $record_id: str) -> dict:
    """Raise the priority of $a_record to high."""
    $record = world.db.execute(
        "SELECT priority, status FROM $records WHERE $record_id = ?", ($record_id,)
    ).fetchone()
    ${known}
    if $record["status"] == "resolved":
        raise Refused("resolved", "It is resolved; reopen it first.")
    if $record["priority"] == "high":
        raise Refused("already_high", "Its priority is high already; there is nothing to raise.")
    world.db.execute("UPDATE $records SET priority = 'high' WHERE $record_id = ?", ($record_id,))
    return {"$record_id": $record_id, "priority": "high"}
'''

ABOUT = '''
from toolkit import Refused, paged

PAGE_SIZE = 5


def $tool(world, *, $subject_key: $subject_hint, page: int = 1) -> dict:
    """All that was reported on $a_subject."""
    ${subject_check}
    rows = world.db.execute(
        "SELECT $record_id, problem, status FROM $records WHERE $subject_key = ? ORDER BY problem, rowid",
        ($subject_key,),
    ).fetchall()
    return paged(rows, page, PAGE_SIZE)
'''
