"""A real S3 server for tests: SeaweedFS on free loopback ports, stopped by its pid."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

KEY, SECRET, BUCKET = "AKIALAKETESTS0000001", "plantedSecret/ofTheLake+tests000000000001", "lake-tests"


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """A running server with an empty bucket; gives the environment that reaches it."""
    config = folder / "s3.json"
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "t", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    config.write_text(json.dumps({"identities": [identity]}))
    s3, master, volume, filer = _free_ports(4)
    command = [
        str(Path(sys.executable).with_name("weed")), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}",
        "-s3", f"-s3.port={s3}", f"-s3.config={config}", f"-master.port={master}", f"-volume.port={volume}",
        f"-filer.port={filer}", "-master.volumeSizeLimitMB=128", "-volume.max=200",
        "-s3.port.iceberg=0", "-s3.port.lance=0",  # else one fixed port each: a second server would end at once
    ]  # fmt: skip
    with (folder / "weed.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        _await(server, environment, folder / "weed.log")
        yield environment
    finally:
        server.kill()  # it takes its time to end in good order, and its data goes with the folder
        server.wait()


def _await(server: subprocess.Popen[bytes], environment: dict[str, str], log: Path) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, connect_timeout=2, read_timeout=5),
    )
    deadline = time.monotonic() + 60
    while True:
        try:
            client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"")
            client.delete_object(Bucket=BUCKET, Key="ready")
            return
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"].startswith("BucketAlready"):
                continue
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no S3 server: {error}\n{log.read_text(errors='replace')[-2000:]}") from error
            time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    """Ports that are free together with the gRPC port 10000 above each; below those that Linux gives to clients."""
    source = random.Random(os.getpid())
    ports: list[int] = []
    while len(ports) < count:
        port = source.randrange(10_000, 22_000)
        if port not in ports and all(map(_is_free, (port, port + 10_000))):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
