"""The command line as a user starts it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def agent_world(
    *arguments: str, lake: Path | str, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `agent-world` on `lake`, for `timeout` seconds at most, with these variables beside our own."""
    command = [sys.executable, "-m", "dagster_project.cli", *arguments, "--lake", str(lake)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, env=os.environ | environment
    )
