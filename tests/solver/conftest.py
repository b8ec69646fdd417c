from pathlib import Path

import pytest

from agent_world.sandbox import open_sandbox
from tests.solver.desk import flight_desk
from tests.solver.instructions import read_natural
from tests.solver.ward import hospital
from tests.toy import toy_environment

QUESTIONS = Path(__file__).with_name("toy_questions.jsonl")


@pytest.fixture(scope="session")
def worlds():
    return {one.environment_id: one for one in (toy_environment(), flight_desk(), hospital())}


@pytest.fixture(scope="session")
def questions():
    return {one.name: one for one in read_natural(QUESTIONS)}


@pytest.fixture(scope="session")
def sandbox():
    with open_sandbox() as opened:
        yield opened
