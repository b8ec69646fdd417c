"""Endpoint, region and keys come from where AWS users put them; boto3 and delta-rs get the same, and nobody else."""

from __future__ import annotations

import io
import itertools
import logging
import os
import ssl
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from deltalake import DeltaTable

from agent_world.errors import BadInputError
from agent_world.lake import CommitError, NotALakeError, StoreError, open_lake
from agent_world.lake.snapshots import create
from agent_world.lake.storage import open_storage
from dagster_project.cli import cli
from tests.lake.s3_proxy import every, proxy
from tests.lake.s3_server import KEY, SECRET
from tests.lake.writer import write

_numbers = itertools.count()
_VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture
def place(s3: str) -> str:
    return f"{s3}/access-{next(_numbers)}"


@pytest.fixture
def store(s3: str) -> str:
    """The address of the store itself."""
    return os.environ["AWS_ENDPOINT_URL"]


def profile(folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, *, token: str = "", more: str = "") -> None:
    """Put everything that leads to the store into profile files, and nothing into the environment."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    keys = f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (folder / "credentials").write_text(keys + (f"aws_session_token = {token}\n" if token else ""))
    (folder / "config").write_text(f"[profile lab]\nregion = eu-north-1\nendpoint_url = {endpoint}\n{more}")
    monkeypatch.setenv("AWS_PROFILE", "lab")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))


def test_a_profile_is_enough_and_a_token_of_another_key_in_the_environment_does_no_harm(
    place: str, store: str, tmp_path: Path, monkeypatch
):
    profile(tmp_path, monkeypatch, store)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-another-key")
    write(open_lake(place), "a", 1)
    assert len(open_lake(place).read("themes")) == 1
    assert open_storage(place).options["AWS_REGION"] == "eu-north-1"


def test_both_engines_send_the_session_token_of_the_profile(place: str, store: str, tmp_path: Path, monkeypatch):
    with proxy(store) as seen:
        profile(tmp_path, monkeypatch, seen.endpoint, token="planted-token")
        storage = open_storage(place)
        with pytest.raises(StoreError, match="InvalidAccessKeyId"):  # this store knows no temporary keys
            storage.read("x")
        with pytest.raises(OSError, match="InvalidAccessKeyId"):
            DeltaTable(storage.table_uri("x"), storage_options=storage.options)
    assert {token for _, token in seen.tokens} == {"planted-token"} and len(seen.tokens) == 2


def test_variables_say_more_than_a_profile(place: str, store: str, tmp_path: Path, monkeypatch):
    keep = {name: os.environ[name] for name in _VARIABLES}
    profile(tmp_path, monkeypatch, "http://127.0.0.1:1")
    for name, value in keep.items():
        monkeypatch.setenv(name, value)
    write(open_lake(place), "a", 1)


def test_tls_is_checked_by_both_engines_against_the_authorities_named_for_aws(
    place: str, store: str, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("agent_world.lake.s3_access._REPEATS", 1)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with proxy(store, tls=_authority(tmp_path)) as secure:
        profile(tmp_path, monkeypatch, secure.endpoint)
        with pytest.raises(StoreError, match="certificate verify failed"):
            open_lake(place)
        profile(tmp_path, monkeypatch, secure.endpoint, more=f"ca_bundle = {tmp_path / 'authority.pem'}\n")
        write(open_lake(place), "a", 1)
        assert len(open_lake(place).read("themes")) == 1


@pytest.mark.parametrize("endpoint", ["127.0.0.1:8333", "http://somebody:hunter2hunter2@127.0.0.1:8333"])
def test_an_endpoint_must_say_how_it_is_reached_and_no_more(s3: str, place: str, monkeypatch, endpoint: str):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(BadInputError, match=r"S3 endpoint .*give https://host .* in AWS_ENDPOINT_URL") as refused:
        open_lake(place)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("uri", ["s3://somebody:hunter2@bucket/lake", "https://somebody:hunter2@host/lake"])
def test_an_address_with_a_password_is_refused_and_not_repeated(uri: str):
    with pytest.raises(NotALakeError, match=r"keys go into AWS variables or a profile") as refused:
        open_lake(uri)
    assert "hunter2" not in str(refused.value) and "somebody" not in str(refused.value)


def test_planted_keys_are_nowhere(place: str, store: str, tmp_path: Path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("agent_world.lake.s3_access._REPEATS", 1)
    monkeypatch.setattr("agent_world.lake.log._FAULTS", 1)
    profile(tmp_path, monkeypatch, store)
    said = io.StringIO()

    def run(*arguments: str, fails: bool = False) -> str:
        result = CliRunner().invoke(cli, [*arguments, "--lake", place])
        said.write(result.output)
        if result.exception is not None:
            said.write("".join(traceback.format_exception(result.exception)))
        assert (result.exit_code != 0) is fails, said.getvalue()
        return result.output

    lake = open_lake(place)
    write(lake, "a", 1)
    lake.refresh()
    snapshot = create(lake)
    run("snapshot", "export", snapshot, f"{place}-copy")
    run("sql", "SELECT * FROM events")
    run("gc")
    run("status")
    run("snapshot", "export", snapshot, "s3://no-such-bucket-here/x", fails=True)
    run("snapshot", "export", snapshot, f"s3://{KEY}:{quote(SECRET, safe='')}@bucket/x", fails=True)
    for method, part in (("PUT", "_delta_log"), ("GET", "_last_checkpoint"), ("PUT", ".parquet"), ("GET", "lake.json")):
        with proxy(store, every("denied", method, part, 999)) as repeating:
            profile(tmp_path, monkeypatch, repeating.endpoint)
            with pytest.raises((CommitError, StoreError, OSError)) as failed:
                write(open_lake(place), "b", 1)
            said.write("".join(traceback.format_exception(failed.value)))
            assert repeating.struck
            assert "InvalidAccessKeyId" in str(failed.value)
    profile(tmp_path, monkeypatch, "http://127.0.0.1:1")
    run("status", fails=True)
    profile(tmp_path, monkeypatch, f"http://{KEY}:{quote(SECRET, safe='')}@127.0.0.1:1")
    run("status", fails=True)
    profile(tmp_path, monkeypatch, store)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{SECRET}-but-wrong")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    run("status", fails=True)
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name)
    found = [said.getvalue(), caplog.text, *_texts(place), *_texts(f"{place}-copy")]
    assert len(found) > 30 and "lake.json" in found[0]
    half = len(SECRET) // 2
    for part in (KEY, SECRET, SECRET[:half], SECRET[half:], quote(SECRET, safe="")):
        assert [text for text in found if part in text] == []


def _texts(uri: str) -> Iterator[str]:
    """Everything that lies in a lake, unpacked."""
    lake = open_lake(uri, create=False)
    for item in lake.storage.list():
        data = lake.storage.read(item.key)
        yield data.decode("latin-1")
        if item.key.endswith(".parquet"):
            yield str(pq.read_table(io.BytesIO(data)).to_pylist())
    for blob in lake.read("blobs"):
        yield lake.blob(blob["sha256"]).decode("latin-1")


def _authority(folder: Path) -> ssl.SSLContext:
    """A server's TLS by an authority that only ``authority.pem`` knows."""
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def certificate(name: str, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> bytes:
        called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        by = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        now = datetime.now(UTC)
        made = x509.CertificateBuilder().subject_name(called).issuer_name(by).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).add_extension(extension, critical=True)
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        return made.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    (folder / "authority.pem").write_bytes(
        certificate("authority", authority, x509.BasicConstraints(ca=True, path_length=0))
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    plain = serialization.NoEncryption()
    key = server.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "server.pem").write_bytes(key + certificate("server", server, names))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context
