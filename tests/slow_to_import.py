"""A module whose import takes a moment."""

import time

time.sleep(1)
