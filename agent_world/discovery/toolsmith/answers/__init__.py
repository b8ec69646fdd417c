"""The independent route to expected values: plain Python over the source rows, sharing nothing with the written tools."""
