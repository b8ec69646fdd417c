"""The audit: every gate again on everything that was accepted, with fresh seeds (design.md 7)."""

from agent_world.auditing.audit import Finding, audit_lake
from agent_world.auditing.judges import CheckpointGate, Training, Word

__all__ = ["CheckpointGate", "Finding", "Training", "Word", "audit_lake"]
