"""Reading tools: the patterns that turn a table's roles into look-ups, lists, rankings and summaries."""
