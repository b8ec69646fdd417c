"""`agent-world`: one file a noun, each imported only when it is called."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading

import click

from agent_world.errors import AgentWorldError

COMMANDS = {
    "run": "Build environments and tasks, train, evaluate, diagnose and train again.",
    "env": "List, show, call and serve environments.",
    "task": "List, show, attempt and serve tasks.",
    "sql": "Query every table and view of the lake, with DuckDB or Spark.",
    "spark": "Serve the lake to Spark clients, and make marts of it.",
    "lineage": "Ask where an artifact came from and what it touched.",
    "snapshot": "Pin, export, import and verify the state of a lake.",
    "replay": "Rebuild every projection from the events and compare.",
    "audit": "Run every gate again on every accepted artifact with fresh seeds.",
    "reverify": "Play again what used a broken part, and retire what must go.",
    "sandbox": "Test that the sandbox holds.",
    "lake": "Repair a damaged lake, compact a grown one.",
    "gc": "Remove what nothing needs and nothing pins.",
    "status": "Count what the lake holds and what is unfinished.",
    "ui": "Open Dagster and MLflow over this lake.",
    "service": "Run one server of a deployment.",
}


_PAUSE = 0.1
"""Seconds until a lost Ctrl-C comes again: long enough to be out of what swallowed it."""


class _LazyGroup(click.Group):
    """Imports a command's module only when that command is named: `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"dagster_project.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--debug", is_flag=True, help="Show the whole trace of an error.")
@click.version_option(package_name="agent-world")
def cli(debug: bool) -> None:
    """Agent-World: environments from real data, verifiable tasks, and policies trained on them in rounds.

    \b
    Start here:
      agent-world run                 the whole loop, small, in minutes; go on after a stop with --resume
      agent-world status              what the lake holds
      agent-world env list            the environments it built
      agent-world task attempt T --policy random
      agent-world sql "SELECT * FROM tasks LIMIT 5"

    Every command works on one lake: --lake, else AGENT_WORLD_LAKE, else ./lake (a directory or an s3:// URI).
    """  # noqa: D301 - click takes the character


def main() -> None:
    """Run the command line and exit: 0, or as the command says; an error is one line and non-zero, Ctrl-C is 130."""
    debug = "--debug" in sys.argv
    sys.unraisablehook = _interrupted_again
    try:
        status = cli.main(standalone_mode=False)  # an exit code, where the command ended with one
    except click.exceptions.Abort:
        _end("Interrupted; nothing is lost.", 130)
    except KeyboardInterrupt:
        _end("Interrupted; nothing is lost.", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        if debug:
            raise
        _end(f"Error: {_sentence(error)}", 1)
    sys.exit(status)


def _interrupted_again(lost: sys.UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that came where nothing can be raised, as while an object is cleared away: it would be lost."""
    if issubclass(lost.exc_type, (Exception, SystemExit, GeneratorExit)):
        sys.__unraisablehook__(lost)
    else:  # KeyboardInterrupt, or what Dagster's handler raises in its place
        waiting = threading.main_thread().ident
        threading.Timer(_PAUSE, signal.pthread_kill, (waiting, signal.SIGINT)).start()


def _sentence(error: Exception) -> str:
    """What our own errors say of themselves, the file that the system refused; of any other the kind and a line."""
    if isinstance(error, AgentWorldError):
        return str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}; name another place or put this one right (--debug for the trace)"
    said = [type(error).__name__, *str(error).splitlines()[:1]]
    return f"{': '.join(said)}; run again with --debug for the trace"


def _end(message: str, code: int) -> None:
    click.echo(message, err=True)
    sys.exit(code)
