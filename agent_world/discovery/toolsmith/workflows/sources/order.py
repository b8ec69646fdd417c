"""Source of the tools of orders."""

OPEN_ONLY = """
$record = world.db.execute("SELECT status FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
${known}
${must_be_open}
"""

TOTAL = '''
def _total(world, $record_id: str) -> float:
    """Sum of price times quantity over the lines of the $record_words."""
    total = world.db.execute(
        "SELECT coalesce(sum(price * quantity), 0.0) FROM $lines WHERE $record_id = ?", ($record_id,)
    ).fetchone()[0]
    return round(total, 2)
'''

OPEN = '''
from toolkit import Refused


def $tool(world, *, $holder: $holder_hint) -> dict:
    """Start an empty $record_words for a $holder_words."""
    ${holder_check}
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES (?, ?, 'open')", ($record_id, $holder))
    return {"$record_id": $record_id, "status": "open"}
'''

ADD = '''
from toolkit import Refused


${total}


def $tool(world, *, $record_id: str, $subject_key: $subject_hint, quantity: int) -> dict:
    """Put $subject_many into an open $record_words; adds to what is there already."""
    ${open_only}
    ${subject_check}
    if $subject["price"] is None:
        raise Refused("not_for_sale", f"$subject_title {$subject_key} has no price; choose another $subject_words.")
    world.db.execute(
        """
        INSERT INTO $lines VALUES (?, ?, ?, ?)
        ON CONFLICT ($record_id, $subject_key) DO UPDATE SET quantity = quantity + excluded.quantity
        """,
        ($record_id, $subject_key, quantity, $subject["price"]),
    )
    line = world.db.execute(
        "SELECT quantity, price FROM $lines WHERE $record_id = ? AND $subject_key = ?", ($record_id, $subject_key)
    ).fetchone()
    return {"$record_id": $record_id, **dict(line), "total": _total(world, $record_id)}
'''

REMOVE = '''
from toolkit import Refused


${total}


def $tool(world, *, $record_id: str, $subject_key: $subject_hint) -> dict:
    """Take $a_subject out of an open $record_words, whatever its quantity."""
    ${open_only}
    removed = world.db.execute(
        "DELETE FROM $lines WHERE $record_id = ? AND $subject_key = ?", ($record_id, $subject_key)
    ).rowcount
    if removed == 0:
        raise Refused("not_in_$record", f"$subject_title {$subject_key} is not in this $record_words; list its lines.")
    return {"$record_id": $record_id, "total": _total(world, $record_id)}
'''

PLACE = '''
from toolkit import Refused


${total}


def $tool(world, *, $record_id: str) -> dict:
    """Close an open $record_words that has lines; it is final then."""
    ${open_only}
    if world.db.execute("SELECT 1 FROM $lines WHERE $record_id = ?", ($record_id,)).fetchone() is None:
        raise Refused("empty_$record", "There is nothing in this $record_words; add $a_subject first.")
    world.db.execute("UPDATE $records SET status = 'placed' WHERE $record_id = ?", ($record_id,))
    return {"$record_id": $record_id, "status": "placed", "total": _total(world, $record_id)}
'''

GET = '''
from toolkit import Refused


${total}


def $tool(world, *, $record_id: str) -> dict:
    """One $record_words with its total."""
    $record = world.db.execute("SELECT * FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
    ${known}
    return {**dict($record), "total": _total(world, $record_id)}
'''

LINES = '''
from toolkit import Refused, paged

PAGE_SIZE = 5


def $tool(world, *, $record_id: str, page: int = 1) -> dict:
    """What is in one $record_words."""
    $record = world.db.execute("SELECT 1 FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
    ${known}
    rows = world.db.execute(
        """
        SELECT $lines.$subject_key, $lines.quantity, $lines.price$label_sql
        FROM $lines
        JOIN $subject_table ON $subject_table.$subject_column = $lines.$subject_key
        WHERE $lines.$record_id = ?
        ORDER BY $lines.$subject_key
        """,
        ($record_id,),
    ).fetchall()
    return paged(rows, page, PAGE_SIZE)
'''
