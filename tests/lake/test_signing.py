"""Who vouches for a snapshot: an event about it, that travels along and that openssl can check alone."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent_world.errors import BadInputError
from agent_world.lake import Lake, carry, open_lake, signing, snapshots
from dagster_project.cli import cli


@pytest.fixture
def filled(lake: Lake) -> Lake:
    with lake.begin("themes", derivation="d") as batch:
        batch.create("theme", "rail", {"title": "t"})
    return lake


def run(lake: Lake | str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["snapshot", *arguments, "--lake", getattr(lake, "uri", lake)])


def openssl_key(path: Path, *algorithm: str) -> Path:
    subprocess.run(["openssl", "genpkey", "-algorithm", *algorithm, "-out", path], check=True, capture_output=True)
    return path


def test_a_signed_snapshot_verifies_by_the_right_key_only_here_and_where_it_was_carried(filled: Lake, tmp_path: Path):
    unsigned = snapshots.create(filled)
    mine, other = tmp_path / "mine.pem", tmp_path / "other.pem"
    for key in (mine, other):
        assert CliRunner().invoke(cli, ["snapshot", "keygen", str(key)]).exit_code == 0
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    created = json.loads(run(filled, "create", "--sign", str(mine), "--format", "json").output)
    assert created["snapshot_id"] == unsigned  # a signature is no part of a snapshot
    carry.export(filled, unsigned, str(tmp_path / "there"))
    carry.export(filled, unsigned, str(tmp_path / "there"))
    for place in (filled, str(tmp_path / "there")):
        right = run(place, "verify", unsigned, "--key", f"{mine}.pub")
        assert right.exit_code == 0 and created["signed_by"] in right.output
        wrong = run(place, "verify", unsigned, "--key", f"{other}.pub")
        assert wrong.exit_code == 1 and "there is none by this key" in wrong.output
    assert snapshots.create(filled) == unsigned


def test_a_second_signature_follows_to_where_the_snapshot_is_already(filled: Lake, tmp_path: Path):
    snapshot, there = snapshots.create(filled), str(tmp_path / "there")
    carry.export(filled, snapshot, there)
    key = signing.private_key(openssl_key(tmp_path / "key.pem", "ed25519"))
    public = signing.sign(filled, snapshot, key)
    assert signing.sign(filled, snapshot, key) == public and len(filled.read("signatures")) == 1
    carry.export(filled, snapshot, there)
    assert signing.signers(open_lake(there), snapshot) == [public]


def test_openssl_checks_a_signature_with_nothing_of_ours(filled: Lake, tmp_path: Path):
    key = openssl_key(tmp_path / "key.pem", "ed25519")
    snapshot = snapshots.create(filled)
    signing.sign(filled, snapshot, signing.private_key(key))
    (tmp_path / "said").write_text(f"agent-world snapshot {snapshot}")
    (tmp_path / "signature").write_bytes(bytes.fromhex(filled.read("signatures")[0]["signature"]))
    check = ["openssl", "pkeyutl", "-verify", "-inkey", key, "-rawin", "-in", tmp_path / "said", "-sigfile"]
    assert subprocess.run([*check, tmp_path / "signature"], capture_output=True, check=False).returncode == 0
    (tmp_path / "said").write_text(f"agent-world snapshot {snapshot[::-1]}")
    assert subprocess.run([*check, tmp_path / "signature"], capture_output=True, check=False).returncode != 0


def test_a_forged_signature_is_found_and_does_not_travel(filled: Lake, tmp_path: Path):
    snapshot = snapshots.create(filled)
    public = signing.private_key(openssl_key(tmp_path / "key.pem", "ed25519")).public_key().public_bytes_raw().hex()
    with filled.begin("signature", snapshot, derivation="forged") as batch:
        batch.record("signatures", {"snapshot_id": snapshot, "public_key": public, "signature": "00" * 64})
    found = run(filled, "verify", snapshot)
    assert found.exit_code == 1 and f"signature by {public[:16]}" in found.output
    carry.export(filled, snapshot, str(tmp_path / "there"))
    assert open_lake(tmp_path / "there").read("signatures") == []


def test_a_file_that_holds_no_usable_key_gets_one_line_without_its_content(tmp_path: Path):
    rsa = openssl_key(tmp_path / "rsa.pem", "RSA")
    good = openssl_key(tmp_path / "good.pem", "ed25519")
    locked = tmp_path / "locked.pem"
    lock = ["openssl", "pkey", "-in", good, "-aes256", "-passout", "pass:secret", "-out", locked]
    subprocess.run(lock, check=True, capture_output=True)
    (tmp_path / "text").write_text("secret")
    for path, read, why in (
        (rsa, signing.private_key, "its key is not Ed25519"),
        (locked, signing.private_key, "locked with a password"),
        (tmp_path / "text", signing.private_key, "no private key in PEM form"),
        (good, signing.public_key, "no public key in PEM form"),
        (tmp_path / "none", signing.private_key, "No such file"),
    ):
        with pytest.raises(BadInputError, match=why) as raised:
            read(path)
        assert str(path) in str(raised.value) and "\n" not in str(raised.value) and "secret" not in str(raised.value)
    with pytest.raises(BadInputError, match="never overwritten"):
        signing.keygen(good)
