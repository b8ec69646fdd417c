"""The report of a run: tables and plots read from the lake, in one self-contained page."""
