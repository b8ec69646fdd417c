"""From themes to databases: connectors, corpus and search, mining, complexification, taxonomy (method.md 1-4)."""
