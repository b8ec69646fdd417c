import hashlib
import io
import json
import tarfile
from contextlib import closing

import docker

from agent_world.sandbox import image


def test_the_image_is_the_same_each_time_and_its_name_follows_from_it():
    first, second = image.layer(), image.layer()
    assert first == second
    assert image.image_name() == f"agent-world-guest:{hashlib.sha256(first).hexdigest()[:32]}"


def test_nothing_in_the_image_is_of_anybody_but_root_and_nothing_is_there_twice():
    with tarfile.open(fileobj=io.BytesIO(image.layer())) as file:
        members = file.getmembers()
    names = [member.name for member in members]
    assert len(names) == len(set(names))
    assert {(member.uid, member.gid) for member in members} == {(0, 0)}
    assert {"usr/bin/python3.11", "usr/lib/python3.11/json/decoder.py"} <= set(names)
    assert {name.split("/")[0] for name in names if "/" in name} == {"usr"}


def test_an_engine_gives_the_image_the_id_that_its_bytes_say(docker_engine):
    archive = image.archive()
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        manifest = file.extractfile("manifest.json")
        assert manifest is not None
        expected = json.load(manifest)[0]["Config"].removesuffix(".json")
    with closing(docker.from_env()) as client:
        assert [loaded.id for loaded in client.images.load(archive)] == [f"sha256:{expected}"]
