"""Java, and the jars that pyspark lacks: fetched once by Maven, from wherever it is configured to fetch from."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent_world.home import cache_folder
from agent_world.identity import sha256
from agent_world.lake.spark.errors import SparkUnavailableError

POM = Path(__file__).with_name("pom.xml")
JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_FETCH_S = 900


def jars() -> list[Path]:
    """The jars of pom.xml in the user's cache folder, fetched there when they are missing.

    Raises:
        SparkUnavailableError: they are missing, and Maven is too or could not fetch them.
    """
    folder = cache_folder() / "spark-jars" / sha256(POM.read_text("utf-8"))[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
            _fetch(Path(aside) / "jars")
            with suppress(FileExistsError, OSError):  # another process was faster
                (Path(aside) / "jars").rename(folder)
    return sorted(folder.glob("*.jar"))


def check_java() -> None:
    """See that there is a Java that Spark runs on.

    Raises:
        SparkUnavailableError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    cure = f"install Java {JAVA} or newer, or name one with JAVA_HOME"
    if java is None:
        raise SparkUnavailableError("there is no java on PATH", cure)
    told = _told([java, "-version"], cure)
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < JAVA:
        raise SparkUnavailableError(f"{java} is {told.splitlines()[0] if told else 'of no known version'}", cure)


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        cure = "install Maven; it fetches them once into the cache folder"
        raise SparkUnavailableError("its jars are not here yet and there is no mvn on PATH", cure)
    # The goal is run aside: Maven leaves files beside a pom, and ours may lie in a read-only installation.
    pom = folder.with_name("pom.xml")
    shutil.copyfile(POM, pom)
    cure = "see that Maven reaches its repository (its settings.xml names it), then try again"
    _told(
        [maven, "-B", "-q", "-ntp", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"], cure
    )
    if not any(folder.glob("delta-spark*.jar")):
        raise SparkUnavailableError("Maven fetched no jars", cure)


def _told(command: Sequence[str], cure: str) -> str:
    """What a command said."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailableError(f"{Path(command[0]).name} does not run ({error})", cure) from error
    said = (ran.stdout + ran.stderr).strip()
    if ran.returncode:
        lines = [line for line in said.splitlines() if "ERROR" in line] or said.splitlines() or ["no reason given"]
        raise SparkUnavailableError(f"{Path(command[0]).name} failed: {lines[0]}", cure)
    return said
