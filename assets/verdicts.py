"""How stages write gate verdicts: one row a candidate and gate."""

from collections.abc import Mapping
from typing import Any

from agent_world.lake.batch import Batch


def verdict(
    batch: Batch,
    gate: str,
    kind: str,
    subject: str,
    *,
    accepted: bool,
    reason: str | None = None,
    evidence: Mapping[str, Any] | None = None,
    environment: str | None = None,
    round: int = 0,
) -> None:
    """Record what `gate` said of `subject`."""
    batch.record(
        "gate_verdicts",
        {
            "gate": gate,
            "subject_kind": kind,
            "subject": subject,
            "environment": environment,
            "accepted": accepted,
            "reason": reason,
            "evidence": evidence or {},
            "author": "rule",
            "round": round,
        },
    )
