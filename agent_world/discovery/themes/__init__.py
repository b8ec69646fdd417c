"""Connectors that read themes from real sources, the checks on their tools, and the choice for a run (method.md 1)."""
