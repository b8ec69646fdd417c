"""``python -m dagster_project.cli``: the command line without its installed script."""

from dagster_project.cli import main

main()
