import pytest

from agent_world import world
from agent_world.errors import BadInputError
from agent_world.lake.errors import NotFoundError
from agent_world.models.named import open_policy
from agent_world.models.tiny import save
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from tests.models import little
from tests.rollouts.cases import ENVIRONMENT, READING


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A little model in a directory, and the same in a lake."""
    directory = tmp_path_factory.mktemp("model")
    save(directory, little.model(), little.tokenizer())
    lake = world.open(tmp_path_factory.mktemp("lake"), create=True)
    files = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    payload = {
        "name": "little", "round": 0, "digest": "0" * 64, "method": "init", "task_set": None, "base": None, "job": None,
        "steps_done": 0,
    }  # fmt: skip
    with lake.begin("toy", derivation="d0") as batch:
        version = batch.create("checkpoint", "little", payload, files=files, blob_in_identity=False)
    return directory, lake, version


def play(name, lake):
    with open_policy(name, [READING], [ENVIRONMENT], lake, temperature=0) as policy:
        [trajectory] = roll_out([EpisodeSpec(task=READING, environment=ENVIRONMENT)], policy, max_steps=3)
    return trajectory


def test_a_checkpoint_plays_from_a_lake_as_from_its_directory(checkpoint):
    directory, lake, version = checkpoint
    by_version, by_name = play(version, lake), play("little", lake)
    by_directory = play(str(directory), lake)
    assert by_version.policy_version == version
    assert by_version == by_name
    assert by_version.steps == by_directory.steps


def test_a_name_that_means_nothing_is_said_so(checkpoint):
    _, lake, _ = checkpoint
    with pytest.raises(NotFoundError), open_policy("nobody", [READING], [ENVIRONMENT], lake):
        pass
    with pytest.raises(BadInputError, match="URL#model"), open_policy("http://x/v1", [READING], [ENVIRONMENT], lake):
        pass


@pytest.mark.parametrize(("name", "policy"), [("gold", "gold"), ("null", "null-likely"), ("random", "random-informed")])
def test_scripted_policies_have_names(checkpoint, name, policy):
    with open_policy(name, [READING], [ENVIRONMENT], checkpoint[1]) as played:
        assert played.name == policy
