"""Chat clients, local models, renderers and policies."""
