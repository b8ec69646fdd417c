"""Program tasks: solutions with loops, branches and aggregation over the tools, and verifiers that recompute them."""
