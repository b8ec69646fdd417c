"""The solver: a ReAct agent without a model, for the consistency check of tasks (design.md 7)."""

from agent_world.solver.policy import Solver

__all__ = ["Solver"]
