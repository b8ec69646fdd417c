"""Environments `e = (D, F)`: their model, live sessions, and the state that sessions leave."""
