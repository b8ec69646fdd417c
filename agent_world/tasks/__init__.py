"""Verifiable tasks: the tool graph, walks, programs, wording, difficulty, and the gates a task has to pass."""
