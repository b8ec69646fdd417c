"""Source of the tools of subscriptions."""

KIND_OF = '''
def _$kind_of(world, $subject_key: $subject_hint) -> $kind_hint:
    """The $kind_words of $a_subject."""
    $subject = world.db.execute(
        """
        ${kind_sql}
        """,
        ($subject_key,),
    ).fetchone()
    if $subject is None:
        raise Refused("not_found", f"There is no $subject_words {$subject_key}; search the $subject_many.")
    if $subject["$kind"] is None:
        raise Refused("no_$kind", f"$subject_title {$subject_key} has no $kind_words; choose another $subject_words.")
    return $subject["$kind"]
'''

SUBSCRIBE = '''
from toolkit import Refused


${kind_function}


def $tool(world, *, $subject_key: $subject_hint, $holder: $holder_hint) -> dict:
    """Let a $holder_words follow $a_subject."""
    $kind = _$kind_of(world, $subject_key)
    ${holder_check}
    followed = world.db.execute(
        "SELECT $subject_key FROM $records WHERE $holder = ? AND status <> 'ended'", ($holder,)
    ).fetchall()
    if any(_$kind_of(world, row["$subject_key"]) == $kind for row in followed):
        raise Refused("one_per_$kind", f"{$holder} follows one of {$kind} already; switch that one or end it.")
    $record_id = world.new_id("$prefix")
    world.db.execute("INSERT INTO $records VALUES (?, ?, ?, 'active')", ($record_id, $subject_key, $holder))
    return {"$record_id": $record_id, "status": "active", "$kind": $kind}
'''

SWITCH = '''
from toolkit import Refused


${kind_function}


def $tool(world, *, $record_id: str, $subject_key: $subject_hint) -> dict:
    """Let an active $record_words follow another $subject_words of the same $kind_words."""
    $record = world.db.execute(
        "SELECT $subject_key, status FROM $records WHERE $record_id = ?", ($record_id,)
    ).fetchone()
    ${known}
    ${must_be_active}
    $kind = _$kind_of(world, $subject_key)
    if $record["$subject_key"] == $subject_key:
        raise Refused("same_$subject_name", "It follows that $subject_words already; name another one.")
    if _$kind_of(world, $record["$subject_key"]) != $kind:
        raise Refused("other_$kind", f"That one is of {$kind}; choose one of the same $kind_words, or subscribe anew.")
    world.db.execute("UPDATE $records SET $subject_key = ? WHERE $record_id = ?", ($subject_key, $record_id))
    return {"$record_id": $record_id, "$subject_key": $subject_key}
'''

OF_HOLDER = '''
from toolkit import paged

PAGE_SIZE = 5


def $tool(world, *, $holder: $holder_hint, page: int = 1) -> dict:
    """All that one $holder_words follows or followed."""
    rows = world.db.execute(
        """
        SELECT $record_id, $subject_key, status
        FROM $records
        WHERE $holder = ?
        ORDER BY $subject_key, rowid
        """,
        ($holder,),
    ).fetchall()
    return paged(rows, page, PAGE_SIZE)
'''
