"""From themes to databases: connectors, the corpus and its search, mining, complexification, taxonomy (method.md 1-4)."""
