"""The independent route to expected values: plain Python over the source rows, no line of it shared with a tool."""
