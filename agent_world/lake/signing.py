"""Ed25519 signatures of snapshots: an event about a snapshot, never part of it, so that anybody may add one later.

Keys are PEM files, as ``openssl genpkey -algorithm ed25519`` makes them. What is signed is a text that openssl can
check without this code: ``agent-world snapshot <snapshot id>``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_world.errors import BadInputError
from agent_world.identity import Digest, canonical_json, sha256
from agent_world.lake.rows import having
from agent_world.lake.snapshots import Problem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from agent_world.lake.lake import Lake
    from agent_world.lake.view import View

STAGE = "signature"
_SAYS = {("recorded", "signatures"), ("committed", None)}
"""Types and kinds of the events of such a batch."""
_MAKE = "make one with `agent-world snapshot keygen FILE` or `openssl genpkey -algorithm ed25519 -out FILE`"


def keygen(path: Path) -> Path:
    """Make a key pair: the private key at `path`, for its owner only, the public one beside it; gives the path of that.

    Raises:
        BadInputError: one of the files is there already.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public_path = path.with_name(f"{path.name}.pub")
    for file in (path, public_path):
        if file.exists():
            raise BadInputError(str(file), "it is there already", "a key is never overwritten: name another file")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    public_path.write_bytes(public)
    return public_path


def private_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a PEM file.

    Raises:
        BadInputError: there is none of this kind; nothing of what the file holds is told.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read(path)
    try:
        key = load_pem_private_key(data, None)
    except TypeError:
        cure = f"take the password off: `openssl pkey -in {path} -out PLAIN`"
        raise BadInputError(str(path), "the key is locked with a password", cure) from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadInputError(str(path), "it holds no private key in PEM form", _MAKE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInputError(str(path), "its key is not Ed25519", _MAKE)
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file.

    Raises:
        BadInputError: there is none of this kind.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _read(path)
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        cure = "give the public half: `agent-world snapshot keygen` writes FILE.pub, openssl `pkey -in FILE -pubout`"
        raise BadInputError(str(path), "it holds no public key in PEM form", cure) from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInputError(str(path), "its key is not Ed25519", _MAKE)
    return key


def sign(lake: Lake, snapshot: Digest, key: Ed25519PrivateKey, run_id: str | None = None) -> str:
    """Record that the holder of `key` vouches for a snapshot of the lake; gives the public key in hex."""
    public = key.public_key().public_bytes_raw().hex()
    signature = key.sign(_message(snapshot)).hex()
    with lake.begin(STAGE, snapshot, derivation=sha256(f"{public} {signature}"), run_id=run_id) as batch:
        if not batch.done:
            batch.record("signatures", {"snapshot_id": snapshot, "public_key": public, "signature": signature})
    return public


def bring_signatures(lake: Lake, source: View, snapshot: Digest) -> None:
    """Take over the signatures of a snapshot that hold: the batches themselves, as they stand in `source`."""
    good = {row["event_id"] for row in source.rows("signatures", where={"snapshot_id": snapshot}) if _holds(row)}
    said = having(source.table("events"), stage=STAGE, partition=snapshot)
    batches = [b for b in having(said, event_id=sorted(good)).column("batch").to_pylist() if not lake.has_batch(b)]
    events = having(said, batch=batches)
    strange = set(zip(events.column("event_type").to_pylist(), events.column("kind").to_pylist(), strict=True)) - _SAYS
    if batches and not strange:
        with lake.begin("import", snapshot, derivation=sha256(canonical_json(batches))) as batch:
            batch.bring(events)


def signers(lake: View, snapshot: str) -> list[str]:
    """The public keys, in hex, of those whose signature of the snapshot holds."""
    return [row["public_key"] for row in lake.rows("signatures", where={"snapshot_id": snapshot}) if _holds(row)]


def signature_problems(lake: View, snapshot: str, wanted: Ed25519PublicKey | None = None) -> Iterator[Problem]:
    """Signatures of a snapshot that do not hold, and that of the key `wanted` when there is none."""
    said = [row["public_key"] for row in lake.rows("signatures", where={"snapshot_id": snapshot})]
    good = signers(lake, snapshot)
    for public in said:
        if public not in good:
            yield Problem(f"signature by {public[:16]}", "it does not hold")
    if wanted is not None and (public := wanted.public_bytes_raw().hex()) not in said:
        yield Problem(f"signature by {public[:16]}", "there is none by this key")


def _holds(row: Mapping[str, Any]) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(row["public_key"]))
        key.verify(bytes.fromhex(row["signature"]), _message(row["snapshot_id"]))
    except (ValueError, InvalidSignature):
        return False
    return True


def _message(snapshot: str) -> bytes:
    return f"agent-world snapshot {snapshot}".encode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(str(path), error.strerror or "it cannot be read", _MAKE) from None
