import json
from dataclasses import replace
from functools import partial

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agent_world.identity import VersionId
from agent_world.rollouts.episode import PinMismatchError
from agent_world.rollouts.rewards import UnjudgeableTaskError
from agent_world.serving.limits import ServingLimits
from agent_world.serving.mcp.attempts import task_offer
from agent_world.serving.metrics import Metrics
from agent_world.world import BoundTask
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.serving.offers import attempt, tool
from tests.serving.servers import http_server, over_both
from tests.toy import TOOLS

BY_NAME = {task.task_id: task for task in (READING, WRITING, PROGRAM)}


def over_task(name: str):
    return over_both(partial(attempt, name), f"attempt({name!r})")


def over_http(name: str):
    """Run a check that takes the URL of this task."""

    def decorate(check):
        def run() -> None:
            async def main() -> None:
                async with http_server(attempt(name)) as (url,):
                    await check(url)

            anyio.run(main)

        return run

    return decorate


async def play_gold(client, task):
    for call in task.plan:
        assert not (await client.call_tool(call.tool, call.arguments)).is_error
    return await client.call_tool("submit_answer", task.answer)


@over_task("toy-write")
async def test_an_agent_is_told_acts_answers_and_hears_that_it_passed(target, _):
    async with Client(target) as client:
        assert client.instructions.startswith(WRITING.instruction)
        [prompt] = (await client.list_prompts()).prompts
        [message] = (await client.get_prompt(prompt.name)).messages
        assert message.content.text == client.instructions
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed) == [*(tool.name for tool in TOOLS), "reply_to_user", "submit_answer"]
        submit = listed["submit_answer"]
        assert submit.input_schema == WRITING.answer_schema
        assert (submit.annotations.read_only_hint, submit.annotations.destructive_hint) == (False, True)
        judged = await play_gold(client, WRITING)
        assert not judged.is_error
        assert judged.structured_content == {"outcome": "pass"}


@pytest.mark.parametrize("name", BY_NAME)
def test_gold_passes_and_answering_at_once_depends_on_whether_something_was_to_be_done(name):
    task = BY_NAME[name]

    async def main() -> None:
        async with http_server(attempt(name)) as (url,):
            async with Client(url) as client:
                assert (await play_gold(client, task)).structured_content == {"outcome": "pass"}
            async with Client(url) as client:
                judged = await client.call_tool("submit_answer", task.answer)
                expected = "fail" if task.writes else "pass"
                assert judged.structured_content == {"outcome": expected}

    anyio.run(main)


@over_http("toy-read")
async def test_a_wrong_answer_fails_and_says_nothing_more(url):
    async with Client(url) as client:
        judged = await client.call_tool("submit_answer", {"author": "Ana Ruiz", "copies": 1})
        assert judged.structured_content == {"outcome": "fail"}
        assert [json.loads(content.text) for content in judged.content] == [{"outcome": "fail"}]


@over_http("toy-read")
async def test_after_the_answer_every_further_call_is_refused(url):
    async with Client(url) as client:
        await client.call_tool("submit_answer", {"author": "Ana Ruiz", "copies": 1})
        for name, arguments in [
            ("submit_answer", READING.answer),
            ("search_books", {"title": "maps"}),
            ("reply_to_user", {"text": "please"}),
        ]:
            late = await client.call_tool(name, arguments)
            assert late.is_error
            assert json.loads(late.content[0].text)["error"]["code"] == "episode_over"
            assert "(fail)" in late.content[0].text


@over_http("toy-read")
async def test_an_answer_of_another_shape_is_refused_and_not_judged(url):
    async with Client(url) as client:
        for answer in ({}, {"author": "Bo Lindqvist"}, {"author": "Bo Lindqvist", "copies": "one"}):
            refused = await client.call_tool("submit_answer", answer)
            assert refused.is_error
            assert "invalid_arguments" in refused.content[0].text
        assert (await play_gold(client, READING)).structured_content == {"outcome": "pass"}


@over_http("toy-read")
async def test_an_answer_that_is_too_long_is_refused_and_the_episode_goes_on(url):
    async with Client(url) as client:
        for _ in range(2):
            refused = await client.call_tool("submit_answer", {"author": "x" * 70_000, "copies": 1})
            assert refused.is_error
            error = json.loads(refused.content[0].text)["error"]
            assert error["code"] == "malformed_step"
            assert "65536 characters" in error["message"]
        assert (await play_gold(client, READING)).structured_content == {"outcome": "pass"}


@over_http("toy-read")
async def test_the_user_can_be_spoken_to(url):
    async with Client(url) as client:
        heard = await client.call_tool("reply_to_user", {"text": "Which library?"})
        assert "nothing to add" in heard.structured_content["user"]
        assert (await client.call_tool("reply_to_user", {"text": 5})).is_error


@pytest.mark.parametrize("name", BY_NAME)
def test_nothing_that_a_client_can_get_tells_what_is_judged(name):
    task = BY_NAME[name]
    marked = replace(
        task,
        verifier=task.verifier and f"# SECRET-V\n{task.verifier}",
        solution=task.solution and f"# SECRET-S\n{task.solution}",
        rubric=tuple(replace(criterion, name=f"SECRET-{criterion.name}") for criterion in task.rubric),
    )
    bound = BoundTask(version=VersionId("secret@0"), task=marked, environment=ENVIRONMENT)

    async def main() -> None:
        async with http_server(task_offer(bound)) as (url,), Client(url) as client:
            shown = [
                client.instructions,
                (await client.list_tools()).model_dump_json(),
                (await client.list_prompts()).model_dump_json(),
                (await client.get_prompt("task")).model_dump_json(),
            ]
            for ask in (
                client.list_resources,
                client.list_resource_templates,
                partial(client.read_resource, "document://toy-library/rules.yaml"),
                partial(client.read_resource, "file:///proc/self/environ"),
                partial(client.get_prompt, "gold"),
            ):
                with pytest.raises(MCPError) as refused:
                    await ask()
                shown.append(str(refused.value))
            wrong = {
                field: {"string": "SOMEBODY", "integer": 999, "array": []}[kind["type"]]
                for field, kind in task.answer_schema["properties"].items()
            }
            for called, arguments in [
                ("verify", {"answer": wrong}),
                ("solve", {}),
                ("get_book", {"book_id": "ZZ"}),
                ("submit_answer", {"no": 1}),
                ("submit_answer", wrong),
                ("submit_answer", wrong),
            ]:
                shown.append((await client.call_tool(called, arguments)).model_dump_json())
            everything = "\n".join(shown)
            assert "SECRET" not in everything
            for value in task.answer.values():
                if not isinstance(value, int):
                    assert json.dumps(value) not in everything

    anyio.run(main)


def test_attempts_side_by_side_do_not_touch_each_other():
    async def main() -> None:
        async with http_server(attempt("toy-write")) as (url,), Client(url) as first, Client(url) as second:
            for call in WRITING.plan:
                await first.call_tool(call.tool, call.arguments)
            failed = await second.call_tool("submit_answer", WRITING.answer)
            assert failed.structured_content == {"outcome": "fail"}, "only the first one lent the book"
            passed = await first.call_tool("submit_answer", WRITING.answer)
            assert passed.structured_content == {"outcome": "pass"}

    anyio.run(main)


def test_a_tool_that_is_called_like_the_answer_keeps_its_name():
    source = 'def submit_answer(world):\n    return {"text": "mine"}\n'
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    environment = replace(ENVIRONMENT, tools=(*TOOLS, tool("submit_answer", source, schema)))
    bound = BoundTask(version=VersionId("task@0"), task=READING, environment=environment)

    async def main() -> None:
        async with http_server(task_offer(bound)) as (url,), Client(url) as client:
            assert (await client.call_tool("submit_answer", {})).structured_content == {"text": "mine"}
            assert "submit_answer_ once" in client.instructions
            judged = await client.call_tool("submit_answer_", READING.answer)
            assert judged.structured_content == {"outcome": "pass"}

    anyio.run(main)


def test_a_long_observation_is_cut_as_for_any_policy_and_its_structure_is_whole():
    source = 'def catalogue(world):\n    return {"titles": ["Winter Maps"] * 5000}\n'
    titles = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"titles": titles}, "additionalProperties": False}
    environment = replace(ENVIRONMENT, tools=(*TOOLS, tool("catalogue", source, schema)))
    bound = BoundTask(version=VersionId("task@0"), task=READING, environment=environment)

    async def main() -> None:
        async with http_server(task_offer(bound)) as (url,), Client(url) as client:
            seen = await client.call_tool("catalogue", {})
            assert not seen.is_error
            assert len(seen.structured_content["titles"]) == 5000
            with bound.episode() as episode:
                assert json.loads(seen.content[0].text) == episode.call("catalogue", {}).value
            assert len(seen.content[0].text) < 20_000

    anyio.run(main)


def test_when_the_calls_are_used_up_the_answer_can_still_be_given():
    async def main() -> None:
        async with http_server(attempt(limits=ServingLimits(calls=1))) as (url,), Client(url) as client:
            assert not (await client.call_tool("get_book", {"book_id": "B3"})).is_error
            assert "call_limit" in (await client.call_tool("get_book", {"book_id": "B3"})).content[0].text
            judged = await client.call_tool("submit_answer", READING.answer)
            assert judged.structured_content == {"outcome": "pass"}

    anyio.run(main)


def test_a_verifier_that_fails_is_an_infra_error_and_counted_as_such():
    broken = replace(PROGRAM, verifier="def verify(answer, gold, initial, final):\n    raise ValueError(str(gold))\n")
    bound = BoundTask(version=VersionId("task@0"), task=broken, environment=ENVIRONMENT)
    metrics = Metrics()

    async def main() -> None:
        async with http_server(task_offer(bound, metrics=metrics), metrics=metrics) as (url,):
            async with Client(url) as client:
                judged = await client.call_tool("submit_answer", PROGRAM.answer)
                assert judged.structured_content == {"outcome": "infra_error"}
                assert "Letters Home" not in judged.model_dump_json()
            async with Client(url) as client:
                await client.call_tool("get_book", {"book_id": "B3"})

    anyio.run(main)
    counted = metrics.render().splitlines()
    for outcome in ("infra_error", "abandoned"):
        assert f'agent_world_mcp_episodes_total{{served="toy-program",outcome="{outcome}"}} 1' in counted


def test_a_task_that_could_not_be_attempted_is_not_offered():
    other = replace(ENVIRONMENT, version=VersionId("toy-library@1"))
    with pytest.raises(PinMismatchError):
        task_offer(BoundTask(version=VersionId("task@0"), task=READING, environment=other))
    with pytest.raises(UnjudgeableTaskError):
        empty = replace(READING, rubric=())
        task_offer(BoundTask(version=VersionId("task@0"), task=empty, environment=ENVIRONMENT))
