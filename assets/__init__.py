"""The stages of Agent-World as thin Dagster assets: read, call the domain, write through the lake, report."""
