"""How stages write gate verdicts, one row a candidate and gate, and what they set aside."""

from collections.abc import Mapping
from typing import Any

from agent_world.discovery.model import Judgement, Quarantined
from agent_world.lake.batch import Batch
from agent_world.tasks.verdicts import GateVerdict


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


def judged(
    batch: Batch, gate: str, kind: str, subject: str, judgement: Judgement, *, environment: str | None = None,
    round: int = 0,
) -> None:  # fmt: skip
    """Record the word of a gate of discovery."""
    verdict(
        batch, gate, kind, subject, environment=environment, round=round, accepted=judgement.accepted,
        reason=", ".join(judgement.reasons) or None, evidence=judgement.evidence,
    )  # fmt: skip


def gated(
    batch: Batch, found: GateVerdict, kind: str, subject: str, *, environment: str | None = None, round: int = 0
) -> None:
    """Record the word of a gate of tasks and trajectories."""
    verdict(
        batch, found.gate, kind, subject, environment=environment, round=round, accepted=found.accepted,
        reason=found.reason, evidence=found.evidence,
    )  # fmt: skip


def quarantine(batch: Batch, item: Quarantined) -> None:
    """Keep an item of discovery that could not be used."""
    batch.quarantine(stage=item.stage, item=item.item, reason=item.reason, detail=item.detail, raw=item.raw)
