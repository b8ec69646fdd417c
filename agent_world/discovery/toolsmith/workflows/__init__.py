"""Workflow overlays: tables that start empty and the tools that write them under rules resting on real values."""
