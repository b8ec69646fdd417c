"""Environments and tasks over the Model Context Protocol, to any client that speaks it."""
