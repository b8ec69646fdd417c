"""Source of the tools of bookings."""

HELD = """
$record = world.db.execute(
    "SELECT $subject_key, $unit, status FROM $records WHERE $record_id = ?", ($record_id,)
).fetchone()
${known}
${held_only}
"""

FREE = '''
def _free_$unit(world, $subject_key: $subject_hint) -> int:
    """How many $unit of $a_subject nobody holds."""
    $subject = world.db.execute(
        """
        ${capacity_sql}
        """,
        ($subject_key,),
    ).fetchone()
    if $subject is None:
        raise Refused("not_found", f"There is no $subject_words {$subject_key}; search the $subject_many.")
    ${running}
    if $subject["capacity"] is None:
        raise Refused("capacity_unknown", f"Nobody knows the $unit of {$subject_key}; choose another $subject_words.")
    taken = world.db.execute(
        "SELECT coalesce(sum($unit), 0) FROM $records WHERE $subject_key = ? AND status <> 'cancelled'", ($subject_key,)
    ).fetchone()[0]
    return $subject["capacity"] - taken
'''

BOOK = '''
from toolkit import Refused


${free}


def $tool(world, *, $subject_key: $subject_hint, $holder: $holder_hint, $unit: int) -> dict:
    """Hold $unit of $a_subject for a $holder_words."""
    left = _free_$unit(world, $subject_key)
    ${holder_check}
    double = world.db.execute(
        "SELECT 1 FROM $records WHERE $subject_key = ? AND $holder = ? AND status <> 'cancelled'",
        ($subject_key, $holder),
    ).fetchone()
    if double is not None:
        raise Refused("already_booked", f"{$holder} already has a $record_words there; change that one.")
    if $unit > left:
        raise Refused("not_enough_$unit", f"Only {left} $unit are left; ask for fewer or another $subject_words.")
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES (?, ?, ?, ?, 'held')", ($record_id, $subject_key, $holder, $unit))
    return {"$record_id": $record_id, "status": "held", "${unit}_left": left - $unit}
'''

RESIZE = '''
from toolkit import Refused


${free}


def $tool(world, *, $record_id: str, $unit: int) -> dict:
    """Change how many $unit a held $record_words is for."""
    ${held}
    left = _free_$unit(world, $record["$subject_key"]) + $record["$unit"]
    if $unit > left:
        raise Refused("not_enough_$unit", f"Only {left} $unit can be had; ask for fewer.")
    world.db.execute("UPDATE $records SET $unit = ? WHERE $record_id = ?", ($unit, $record_id))
    return {"$record_id": $record_id, "$unit": $unit, "${unit}_left": left - $unit}
'''

MOVE = '''
from toolkit import Refused


${free}


def $tool(world, *, $record_id: str, $subject_key: $subject_hint) -> dict:
    """Move a held $record_words to another $subject_words."""
    ${held}
    if $record["$subject_key"] == $subject_key:
        raise Refused("same_$subject_name", "It is for that $subject_words already; name another one.")
    left = _free_$unit(world, $subject_key)
    if $record["$unit"] > left:
        raise Refused("not_enough_$unit", f"Only {left} $unit are left there; choose another $subject_words.")
    world.db.execute("UPDATE $records SET $subject_key = ? WHERE $record_id = ?", ($subject_key, $record_id))
    return {"$record_id": $record_id, "$subject_key": $subject_key, "${unit}_left": left - $record["$unit"]}
'''

CHECK = '''
from toolkit import Refused


${free}


def $tool(world, *, $subject_key: $subject_hint) -> dict:
    """Capacity, taken and free $unit of $a_subject."""
    left = _free_$unit(world, $subject_key)
    taken = world.db.execute(
        "SELECT coalesce(sum($unit), 0) FROM $records WHERE $subject_key = ? AND status <> 'cancelled'", ($subject_key,)
    ).fetchone()[0]
    return {"$subject_key": $subject_key, "capacity": left + taken, "taken": taken, "left": left}
'''
