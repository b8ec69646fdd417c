"""The deterministic tool author: real Python source for the tools of a database, each with independent unit tests."""

from agent_world.discovery.toolsmith.proposal import ToolProposal, propose_tools

__all__ = ["ToolProposal", "propose_tools"]
