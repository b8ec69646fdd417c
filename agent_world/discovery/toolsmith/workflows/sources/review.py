"""Source of the tools of requests."""

APPROVABLE = """
$subject = world.db.execute(
    "SELECT $fit_column FROM $subject_table WHERE $subject_column = ?", ($record["$subject_key"],)
).fetchone()
if not $subject["$fit_name"]:
    raise Refused("not_approvable", "Only $fit_rule can be approved; reject this one.")
"""

SUBMIT = '''
from toolkit import Refused


def $tool(world, *, $subject_key: $subject_hint, $holder: $holder_hint) -> dict:
    """Ask for $a_subject on behalf of a $holder_words."""
    ${subject_check}
    ${holder_check}
    ${eligible}
    earlier = world.db.execute(
        """
        SELECT 1 FROM $records
        WHERE $subject_key = ? AND $holder = ? AND status IN ('pending', 'approved')
        """,
        ($subject_key, $holder),
    ).fetchone()
    if earlier is not None:
        raise Refused("already_requested", f"{$holder} asked for {$subject_key} before; follow that $record_words.")
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES (?, ?, ?, 0, 'pending')", ($record_id, $subject_key, $holder))
    return {"$record_id": $record_id, "status": "pending"}
'''

APPROVE = '''
from toolkit import Refused


def $tool(world, *, $record_id: str) -> dict:
    """Grant a pending $record_words."""
    $record = world.db.execute(
        "SELECT $subject_key, status FROM $records WHERE $record_id = ?", ($record_id,)
    ).fetchone()
    ${known}
    ${must_be_pending}
    ${approvable}
    world.db.execute("UPDATE $records SET status = 'approved' WHERE $record_id = ?", ($record_id,))
    return {"$record_id": $record_id, "status": "approved"}
'''

APPEAL = '''
from toolkit import Refused


def $tool(world, *, $record_id: str) -> dict:
    """Bring a rejected $record_words up once more."""
    $record = world.db.execute(
        "SELECT appeals, status FROM $records WHERE $record_id = ?", ($record_id,)
    ).fetchone()
    ${known}
    ${must_be_rejected}
    if $record["appeals"] >= 1:
        raise Refused("no_more_appeals", "It was brought up again once, which is all there is.")
    world.db.execute(
        "UPDATE $records SET status = 'pending', appeals = appeals + 1 WHERE $record_id = ?", ($record_id,)
    )
    return {"$record_id": $record_id, "status": "pending"}
'''

COUNT = '''
def $tool(world, *, status: str) -> dict:
    """How many $records are in one state."""
    count = world.db.execute("SELECT count(*) FROM $records WHERE status = ?", (status,)).fetchone()[0]
    return {"status": status, "count": count}
'''
