"""Source of the tools of assignments."""

PAIR = """
$subject = world.db.execute(
    "SELECT $post_kind FROM $subject_table WHERE $subject_column = ?", ($subject_key,)
).fetchone()
if $subject is None:
    raise Refused("not_found", f"There is no $subject_words {$subject_key}; search the $subject_many.")
"""

ROOM = """
if $worker_var["$worker_kind_name"] is None or $worker_var["$worker_kind_name"] != $subject["$post_kind_name"]:
    raise Refused("other_$kind", "The two are not of the same $kind_words; choose another $subject_words.")
taken = world.db.execute(
    "SELECT count(*) FROM $records WHERE $subject_key = ? AND status <> 'released'", ($subject_key,)
).fetchone()[0]
if taken >= MOST:
    raise Refused("full", f"It has {taken} already, which is the most; choose another $subject_words.")
"""

ASSIGN = '''
from toolkit import Refused

MOST = $limit


def $tool(world, *, $holder: $holder_hint, $subject_key: $subject_hint) -> dict:
    """Tie $a_worker to $a_subject of the same $kind_words."""
    ${pair}
    $worker_var = world.db.execute(
        "SELECT $worker_kind FROM $worker_table WHERE $worker_column = ?", ($holder,)
    ).fetchone()
    if $worker_var is None:
        raise Refused("not_found", f"There is no $holder_words {$holder}; search for the right one.")
    busy = world.db.execute(
        "SELECT 1 FROM $records WHERE $holder = ? AND status <> 'released'", ($holder,)
    ).fetchone()
    if busy is not None:
        raise Refused("already_assigned", f"$holder_title {$holder} is assigned already; transfer or release that.")
    ${room}
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES (?, ?, ?, 'assigned')", ($record_id, $subject_key, $holder))
    return {"$record_id": $record_id, "status": "assigned"}
'''

TRANSFER = '''
from toolkit import Refused

MOST = $limit


def $tool(world, *, $record_id: str, $subject_key: $subject_hint) -> dict:
    """Move an assigned $holder_words to another $subject_words of the same $kind_words."""
    $record = world.db.execute(
        "SELECT $subject_key, $holder, status FROM $records WHERE $record_id = ?", ($record_id,)
    ).fetchone()
    ${known}
    ${must_be_assigned}
    ${pair}
    if $record["$subject_key"] == $subject_key:
        raise Refused("same_$subject_name", "It is there already; name another $subject_words.")
    $worker_var = world.db.execute(
        "SELECT $worker_kind FROM $worker_table WHERE $worker_column = ?", ($record["$holder"],)
    ).fetchone()
    ${room}
    world.db.execute("UPDATE $records SET $subject_key = ? WHERE $record_id = ?", ($subject_key, $record_id))
    return {"$record_id": $record_id, "$subject_key": $subject_key}
'''

LOAD = '''
from toolkit import Refused

MOST = $limit


def $tool(world, *, $subject_key: $subject_hint) -> dict:
    """How many are assigned to $a_subject and how many more may be."""
    ${pair}
    taken = world.db.execute(
        "SELECT count(*) FROM $records WHERE $subject_key = ? AND status <> 'released'", ($subject_key,)
    ).fetchone()[0]
    return {"$subject_key": $subject_key, "taken": taken, "free": MOST - taken}
'''
