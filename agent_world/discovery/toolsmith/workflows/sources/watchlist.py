"""Source of the tools of ranked lists."""

KNOWN_LIST = """
$record = world.db.execute("SELECT $kind_needed FROM $records WHERE $record_id = ?", ($record_id,)).fetchone()
${known}
"""

RANK_OF = """
entry = world.db.execute(
    "SELECT rank FROM $entries WHERE $record_id = ? AND $subject_key = ?", ($record_id, $subject_key)
).fetchone()
if entry is None:
    raise Refused("not_listed", f"$subject_title {$subject_key} is not on this $record_words; show it to see what is.")
"""

CREATE = '''
from toolkit import Refused


def $tool(world, *, $signature) -> dict:
    """Start an empty $record_words for $a_holder."""
    ${holder_check}
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES ($marks)", ($record_id, $values))
    return {"$record_id": $record_id}
'''

ADD = '''
from toolkit import Refused

MOST = $limit


def $tool(world, *, $record_id: str, $subject_key: $subject_hint) -> dict:
    """Put $a_subject at the end of the $record_words."""
    ${known_list}
    $subject = world.db.execute(
        """
        ${subject_sql}
        """,
        ($subject_key,),
    ).fetchone()
    if $subject is None:
        raise Refused("not_found", f"There is no $subject_words {$subject_key}; search the $subject_many.")
    ${kind_check}
    listed = [row["$subject_key"] for row in world.db.execute(
        "SELECT $subject_key FROM $entries WHERE $record_id = ?", ($record_id,)
    )]
    if $subject_key in listed:
        raise Refused("already_listed", f"$subject_title {$subject_key} is on it already; move it instead.")
    if len(listed) >= MOST:
        raise Refused("list_full", f"No more than {MOST} fit; remove one first.")
    rank = len(listed) + 1
    world.db.execute("INSERT INTO $entries VALUES (?, ?, ?)", ($record_id, $subject_key, rank))
    return {"$record_id": $record_id, "rank": rank}
'''

MOVE = '''
from toolkit import Refused


def $tool(world, *, $record_id: str, $subject_key: $subject_hint, rank: int) -> dict:
    """Give $a_subject on the $record_words another rank; the others close up."""
    ${known_list}
    ${rank_of}
    size = world.db.execute("SELECT count(*) FROM $entries WHERE $record_id = ?", ($record_id,)).fetchone()[0]
    if rank > size:
        raise Refused("no_such_rank", f"There are only {size} ranks; choose one of them.")
    world.db.execute(
        "UPDATE $entries SET rank = rank - 1 WHERE $record_id = ? AND rank > ?", ($record_id, entry["rank"])
    )
    world.db.execute("UPDATE $entries SET rank = rank + 1 WHERE $record_id = ? AND rank >= ?", ($record_id, rank))
    world.db.execute(
        "UPDATE $entries SET rank = ? WHERE $record_id = ? AND $subject_key = ?", (rank, $record_id, $subject_key)
    )
    return {"$record_id": $record_id, "rank": rank}
'''

REMOVE = '''
from toolkit import Refused


def $tool(world, *, $record_id: str, $subject_key: $subject_hint) -> dict:
    """Take $a_subject off the $record_words; the ranks behind it close up."""
    ${known_list}
    ${rank_of}
    world.db.execute("DELETE FROM $entries WHERE $record_id = ? AND $subject_key = ?", ($record_id, $subject_key))
    world.db.execute(
        "UPDATE $entries SET rank = rank - 1 WHERE $record_id = ? AND rank > ?", ($record_id, entry["rank"])
    )
    size = world.db.execute("SELECT count(*) FROM $entries WHERE $record_id = ?", ($record_id,)).fetchone()[0]
    return {"$record_id": $record_id, "size": size}
'''

SHOW = '''
from toolkit import Refused, paged

PAGE_SIZE = 5


def $tool(world, *, $record_id: str, page: int = 1) -> dict:
    """What is on one $record_words, by rank."""
    ${known_list}
    rows = world.db.execute(
        """
        SELECT $entries.rank, $entries.$subject_key, $subject_table.$label_column
        FROM $entries
        JOIN $subject_table ON $subject_table.$subject_column = $entries.$subject_key
        WHERE $entries.$record_id = ?
        ORDER BY $entries.rank
        """,
        ($record_id,),
    ).fetchall()
    return paged(rows, page, PAGE_SIZE)
'''
