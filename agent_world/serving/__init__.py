"""Serves environments, tasks and episodes to other processes and machines: MCP, and HTTP for trainers."""
