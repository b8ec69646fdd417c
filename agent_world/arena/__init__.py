"""The self-evolving arena: whom to test, how it failed, what to train next (method.md 7)."""
