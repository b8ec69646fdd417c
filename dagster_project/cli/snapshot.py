"""`agent-world snapshot`: pin the state of a lake, carry it elsewhere, prove it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_json, print_rows
from dagster_project.cli.work import shown_work

if TYPE_CHECKING:
    from agent_world.lake.carry import Carried

_file = click.Path(path_type=Path, dir_okay=False)


@click.group()
def command() -> None:
    """Pin, export, import, sign and verify the state of a lake."""


@command.command()
@click.option("--sign", "key", type=_file, metavar="KEYFILE", help="Vouch for it with this Ed25519 key (PEM).")
@lake_option
@format_option
def create(key: Path | None, lake: str, format: Format) -> None:
    """Pin the lake as it stands; copies nothing."""
    from agent_world.lake import signing, snapshots

    signer = None if key is None else signing.private_key(key)
    world = open_world(lake)
    snapshot = snapshots.create(world)
    row = {"snapshot_id": str(snapshot)}
    if signer is not None:
        row["signed_by"] = signing.sign(world, snapshot, signer)
    print_json(row) if format == "json" else print_rows([row], format)


@command.command()
@click.argument("snapshot")
@click.option("--key", type=_file, required=True, metavar="KEYFILE", help="Ed25519 private key (PEM).")
@lake_option
@format_option
def sign(snapshot: str, key: Path, lake: str, format: Format) -> None:
    """Vouch for SNAPSHOT, which must hold; the signature is an event about it and changes no id."""
    from agent_world.lake import signing, snapshots

    signer = signing.private_key(key)
    world = open_world(lake)
    exact = snapshots.named(world, snapshot)
    _refuse_damaged(world, exact)
    print_rows([{"snapshot_id": exact, "signed_by": signing.sign(world, exact, signer)}], format)


@command.command()
@click.argument("file", type=_file)
@lake_option
def keygen(file: Path, lake: str) -> None:
    """Make an Ed25519 key pair: the private key in FILE, for its owner only, the public one in FILE.pub.

    No lake is read or made, wherever --lake points.
    """
    from agent_world.lake import signing

    click.echo(f"{file} signs; {signing.keygen(file)} verifies")


@command.command("list")
@lake_option
@format_option
def list_(lake: str, format: Format) -> None:
    """Every snapshot of the lake, imported ones included."""
    columns = ["snapshot_id", "events_version", "recorded_at", "run_id"]
    print_rows(open_world(lake).read("snapshots", columns=columns), format)


@command.command()
@click.argument("snapshot")
@click.argument("uri")
@lake_option
@format_option
def export(snapshot: str, uri: str, lake: str, format: Format) -> None:
    """Copy SNAPSHOT into the lake at URI (directory or s3://), which is made when there is none.

    Only what is missing there is sent; run it again after a stop to go on.
    """
    from agent_world.lake import carry

    with shown_work() as tell:
        _print_carried([carry.export(open_world(lake), snapshot, uri, on_progress=tell)], uri, format)


@command.command("import")
@click.argument("uri")
@lake_option
@format_option
def import_(uri: str, lake: str, format: Format) -> None:
    """Take every snapshot of the lake at URI; all of it is verified before any of it becomes visible."""
    from agent_world.lake import carry, open_lake

    with shown_work() as tell:
        _print_carried(carry.import_from(open_lake(lake), uri, on_progress=tell), uri, format)


@command.command()
@click.argument("snapshot")
@click.option("--key", type=_file, metavar="PUBFILE", help="Ask for a signature by this Ed25519 public key (PEM).")
@lake_option
@format_option
def verify(snapshot: str, key: Path | None, lake: str, format: Format) -> None:
    """Read everything that SNAPSHOT pins again; non-zero exit when anything is not what it was."""
    from agent_world.lake import proof, signing, snapshots

    wanted = None if key is None else signing.public_key(key)
    world = open_world(lake)
    with shown_work() as tell:
        problems = proof.verify(world, snapshot, on_progress=tell)
    if not problems:
        problems = list(signing.signature_problems(world, snapshots.named(world, snapshot), wanted))
    if problems or format != "table":
        print_rows([problem._asdict() for problem in problems], format)
    if problems:
        sys.exit(1)
    signers = signing.signers(world, snapshots.named(world, snapshot))
    by = "".join(f"; signed by {public}" for public in signers)
    click.echo(f"{snapshot} holds: files, batches, tables and blobs are the pinned ones{by}", err=format != "table")


def _refuse_damaged(world: Any, snapshot: str) -> None:
    from agent_world.lake import DamagedError, proof

    with shown_work() as tell:
        for problem in proof.verify(world, snapshot, on_progress=tell):
            raise DamagedError(f"snapshot {snapshot[:12]}: {problem.what}", problem.why)


def _print_carried(carried: list[Carried], uri: str, format: Format) -> None:
    names = ("sent_files", "sent_bytes", "found_files")
    rows = [{"snapshot_id": one.snapshot, "uri": uri} | {n: getattr(one, n) for n in names} for one in carried]
    print_rows(rows, format)
