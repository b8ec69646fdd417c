"""What keeps Spark from starting is said in one line, before a JVM starts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agent_world.lake.spark import SparkUnavailableError
from agent_world.lake.spark.jars import POM, check_java, jars
from agent_world.lake.spark.sessions import _LOG4J

ROOT = Path(__file__).parents[2]


def script(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, with an empty cache beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("AGENT_WORLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def test_without_java_the_cure_is_named(programs: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SparkUnavailableError, match="no java on PATH; install Java 17 or newer"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(programs))
    with pytest.raises(SparkUnavailableError, match="java does not run"):
        check_java()


def test_a_java_that_is_too_old_is_refused_and_a_newer_one_is_not(programs: Path):
    script(programs, "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    with pytest.raises(SparkUnavailableError, match="11"):
        check_java()
    script(programs, "java", "echo 'openjdk version \"25\" 2025-09-16' >&2")
    check_java()


def test_without_jars_and_maven_the_cure_is_named(programs: Path):
    with pytest.raises(SparkUnavailableError, match="no mvn on PATH; install Maven"):
        jars()


def test_a_maven_that_fails_leaves_nothing_behind_and_one_that_works_is_asked_once(programs: Path):
    script(programs, "mvn", "echo '[ERROR] Could not transfer artifact' >&2; exit 1")
    with pytest.raises(SparkUnavailableError, match="Could not transfer artifact; see that Maven reaches"):
        jars()
    fetch = 'for word; do case "$word" in -DoutputDirectory=*) out=${word#*=};; esac; done\n'
    script(programs, "mvn", f"{fetch}/bin/mkdir -p $out && : > $out/delta-spark_1.jar && : > $out/other.jar")
    assert [jar.name for jar in jars()] == ["delta-spark_1.jar", "other.jar"]
    (programs / "mvn").unlink()
    assert len(jars()) == 2


def test_an_installed_package_has_the_files_that_spark_needs():
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert {POM.name, _LOG4J.name} <= set(packaged["agent_world.lake.spark"])
    assert POM.is_file() and _LOG4J.is_file()
