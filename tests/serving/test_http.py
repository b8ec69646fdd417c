import io
import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anyio
import httpx
import psutil
import pytest
from mcp import Client

from agent_world.errors import BadInputError
from agent_world.serving import http as http_module
from agent_world.serving.access_log import AccessLog
from agent_world.serving.application import Application
from agent_world.serving.door import Door, door_for
from agent_world.serving.http import serve_http
from agent_world.serving.limits import ServingLimits
from agent_world.serving.metrics import Counter, Histogram, Metrics
from tests.serving.offers import ODD, TASKS, TOY, library
from tests.serving.servers import http_server

TOKEN = "a-token-of-more-than-sixteen"
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
SPOKEN = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def asking(*offers, headers=None, **options):
    """A plain HTTP client of a server; `at_root` makes URLs of it."""
    async with http_server(*(offers or (library(),)), **options) as urls:
        async with httpx.AsyncClient(base_url=urls[0], headers={**SPOKEN, **(headers or {})}, timeout=30) as client:
            yield client


def at_root(client: httpx.AsyncClient, path: str) -> str:
    return str(client.base_url.copy_with(raw_path=path.encode()))


def refusal_of(answer: httpx.Response) -> str:
    """The code of a refusal: where MCP is spoken it is an error of JSON-RPC."""
    body = answer.json()
    if "jsonrpc" in body:
        assert (body["jsonrpc"], body["id"], type(body["error"]["code"])) == ("2.0", None, int)
        assert answer.url.path.endswith("/mcp")
        return body["error"]["data"]["code"]
    assert list(body) == ["error"]
    assert body["error"].keys() == {"code", "message"}
    return body["error"]["code"]


def test_health_needs_no_body_and_waits_for_none():
    async def main() -> bytes:
        async with http_server(library(), door=Door(token=TOKEN)) as (url,):
            address = httpx.URL(url)
            with anyio.fail_after(20):
                async with await anyio.connect_tcp(address.host, address.port) as stream:
                    await stream.send(b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
                    return await stream.receive()

    assert anyio.run(main).startswith(b"HTTP/1.1 405")


def test_the_server_says_that_it_is_well():
    async def main() -> None:
        async with asking() as client:
            answer = await client.get(at_root(client, "/health"))
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})

    anyio.run(main)


def test_what_is_not_there_says_where_something_is():
    async def main() -> None:
        async with asking() as client:
            answer = await client.post(at_root(client, "/"))
            assert (answer.status_code, refusal_of(answer)) == (404, "no_such_path")
            assert "/mcp" in answer.json()["error"]["message"]
            answer = await client.post(at_root(client, "/metrics"))
            assert (answer.status_code, refusal_of(answer)) == (405, "method_not_allowed")

    anyio.run(main)


@pytest.mark.parametrize("path", ["/mcp", "/metrics", "/nothing"])
def test_without_the_token_nothing_is_answered(path):
    async def main() -> None:
        async with asking(door=Door(token=TOKEN)) as client:
            others = ("", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN)
            for headers in ({}, *({"Authorization": given} for given in others)):
                answer = await client.post(at_root(client, path), headers=headers, json=OPENING)
                assert (answer.status_code, refusal_of(answer)) == (401, "unauthorised"), headers
                assert answer.headers["WWW-Authenticate"] == "Bearer"

    anyio.run(main)


def test_with_the_token_everything_is_and_health_needs_none():
    async def main() -> None:
        async with asking(door=Door(token=TOKEN)) as client:
            assert (await client.get(at_root(client, "/health"))).status_code == 200
            for scheme in ("Bearer", "bearer"):
                headers = {"Authorization": f"{scheme} {TOKEN}"}
                assert (await client.post(at_root(client, "/mcp"), headers=headers, json=OPENING)).status_code == 200
                assert (await client.get(at_root(client, "/metrics"), headers=headers)).status_code == 200

    anyio.run(main)


def test_the_token_is_nowhere_to_be_read():
    log, metrics = io.StringIO(), Metrics()

    async def main() -> None:
        async with asking(door=Door(token=TOKEN), log=AccessLog(log), metrics=metrics) as client:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            assert TOKEN not in (await client.post(at_root(client, "/mcp"), json=OPENING)).text
            assert TOKEN not in (await client.post(at_root(client, "/mcp"), headers=headers, json=OPENING)).text
            await client.get(f"{at_root(client, '/metrics')}?token={TOKEN}", headers=headers)
            await client.get(at_root(client, f"/{TOKEN}"), headers=headers)

    anyio.run(main)
    assert len(log.getvalue().splitlines()) == 4
    assert TOKEN not in log.getvalue() + metrics.render() + repr(Door(token=TOKEN))


def test_a_page_of_another_site_cannot_reach_the_server():
    async def main() -> None:
        async with asking() as client:
            for path in ("/mcp", "/metrics"):
                for host in ("evil.example", "127.0.0.1.evil.example:80", "[", "", "10.0.0.1", "evil@127.0.0.1"):
                    answer = await client.post(at_root(client, path), headers={"Host": host}, json=OPENING)
                    assert (answer.status_code, refusal_of(answer)) == (421, "unknown_host"), host
                for origin in ("https://evil.example", "http://127.0.0.1.evil.example", "null", "http://["):
                    answer = await client.post(at_root(client, path), headers={"Origin": origin}, json=OPENING)
                    assert (answer.status_code, refusal_of(answer)) == (403, "foreign_origin"), origin
            for origin in ("http://localhost:6274", "http://127.0.0.1", "http://[::1]:80"):
                assert (
                    await client.post(at_root(client, "/mcp"), headers={"Origin": origin}, json=OPENING)
                ).status_code == 200, origin

    anyio.run(main)


def test_others_are_let_in_by_a_token_only():
    for host in ("0.0.0.0", "::", "10.1.2.3", "library.example"):
        with pytest.raises(BadInputError, match="AGENT_WORLD_TOKEN"):
            door_for(host)
        door = door_for(host, token=TOKEN, names=["Public.example"])
        for known in ("public.example", "10.9.8.7:80", "[fe80::1]:80", "localhost:8765", f"{socket.gethostname()}:1"):
            assert door.knows(known), known
        assert not door.knows("evil.example"), "an address cannot be rebound, a name can"
    for host in ("127.0.0.1", "127.0.0.53", "localhost", "::1"):
        assert not door_for(host).knows("10.9.8.7")
        assert door_for(host).knows(f"[{host}]:80" if ":" in host else f"{host}:80")


def test_that_a_page_comes_from_an_address_lets_nobody_in():
    async def main() -> None:
        door = door_for("0.0.0.0", token=TOKEN, names=["public.example", "10.1.1.1"])
        async with asking(door=door, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            for origin, status in {
                "http://10.9.8.7": 403,
                "http://10.9.8.7:8765": 403,
                "http://[fe80::1]:80": 403,
                "http://127.0.0.2": 403,
                "http://10.1.1.1:80": 200,
                "https://public.example": 200,
                "http://localhost:6274": 200,
            }.items():
                headers = {"Origin": origin, "Host": "10.9.8.7:8765"}
                answer = await client.post(at_root(client, "/mcp"), headers=headers, json=OPENING)
                assert answer.status_code == status, origin
                assert status == 200 or refusal_of(answer) == "foreign_origin"

    anyio.run(main)


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "ünd noch viel länger", "with a\nline in the middle"])
def test_a_token_that_is_none_is_refused_at_once(token):
    with pytest.raises(BadInputError, match="the token"):
        Door(token=token)


def test_a_body_that_is_too_large_is_refused_whether_its_size_is_declared_or_not():
    async def main() -> None:
        limits = ServingLimits(body_bytes=2000)
        async with asking(limits=limits) as client:

            async def pieces():
                for _ in range(30):
                    yield b"x" * 100

            for content in (b"x" * 2001, pieces()):
                answer = await client.post(
                    at_root(client, "/mcp"), content=content, headers={"Content-Type": "application/json"}
                )
                assert (answer.status_code, refusal_of(answer)) == (413, "too_large")
            assert (await client.post(at_root(client, "/mcp"), json=OPENING)).status_code == 200

    anyio.run(main)


def test_a_body_that_does_not_come_to_its_end_is_refused_in_the_end():
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"

    async def main() -> bytes:
        async with http_server(library(), limits=ServingLimits(body_s=0.5)) as (url,):
            address = httpx.URL(url)
            async with await anyio.connect_tcp(address.host, address.port) as stream:
                await stream.send(head)

                async def trickle() -> None:
                    while True:
                        await stream.send(b" ")
                        await anyio.sleep(0.05)

                with anyio.fail_after(30):
                    async with anyio.create_task_group() as group:
                        group.start_soon(trickle)
                        answer = await stream.receive()
                        group.cancel_scope.cancel()
            return answer

    answer = anyio.run(main)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"too_slow"' in answer
    assert b"connection: close" in answer


async def ended(stream: anyio.abc.ByteReceiveStream) -> bool:
    """Whether the server has closed a connection, within a time that only a fault makes long."""
    with anyio.move_on_after(30):
        try:
            await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: x\r\n"])
def test_a_client_that_does_not_say_what_it_wants_is_left(monkeypatch, said):
    monkeypatch.setattr(http_module, "_HEAD_S", 0.3)

    async def main() -> None:
        async with http_server(library()) as (url,):
            address = httpx.URL(url)
            async with await anyio.connect_tcp(address.host, address.port) as stream:
                if said:
                    await stream.send(said)
                assert await ended(stream)

    anyio.run(main)


def test_so_many_connections_are_served_at_once_and_no_more():
    limits = ServingLimits(sessions=1)

    async def main() -> None:
        async with asking(limits=limits) as client, AsyncExitStack() as stack:
            address = client.base_url
            first = await client.get(at_root(client, "/health"))
            others = [
                await stack.enter_async_context(await anyio.connect_tcp(address.host, address.port))
                for _ in range(limits.connections)
            ]
            full = await client.get(at_root(client, "/health"))
            await others[0].aclose()
            with anyio.fail_after(30):
                while (again := await client.get(at_root(client, "/health"))).status_code != 200:
                    await anyio.sleep(0.05)
            assert (first.status_code, full.status_code, again.status_code) == (200, 503, 200)

    anyio.run(main)


def test_mcp_sessions_and_episodes_share_their_places():
    async def main() -> None:
        async with asking(library(), tasks=TASKS, limits=ServingLimits(sessions=2)) as client:
            episodes, asked = at_root(client, "/v1/episodes"), {"episodes": [{"task": "toy-read"}]}
            path = at_root(client, "/mcp")
            session = await client.post(path, json=OPENING)
            episode = await client.post(episodes, json=asked)
            assert (session.status_code, episode.status_code) == (200, 201)
            for refused in (await client.post(path, json=OPENING), await client.post(episodes, json=asked)):
                assert (refused.status_code, refusal_of(refused)) == (503, "server_full")
            await client.delete(f"{episodes}/{episode.json()['episodes'][0]['id']}")
            assert (await client.post(path, json=OPENING)).status_code == 200
            metrics = (await client.get(at_root(client, "/metrics"))).text
            assert "agent_world_mcp_sessions 2" in metrics
            assert "agent_world_episodes 0" in metrics

    anyio.run(main)


def test_when_all_sessions_are_taken_the_next_is_told_to_wait_for_one_to_end():
    metrics = Metrics()

    async def main() -> None:
        limits = ServingLimits(sessions=2)
        other = library(replace(TOY, environment_id="other-library"))
        async with asking(library(), other, limits=limits, metrics=metrics) as client:
            first_path, second_path = (at_root(client, f"/{name}-library/mcp") for name in ("toy", "other"))
            first = await client.post(first_path, json=OPENING)
            second = await client.post(second_path, json=OPENING)
            assert (first.status_code, second.status_code) == (200, 200)
            assert first_path != second_path
            third = await client.post(first_path, json=OPENING)
            assert (third.status_code, refusal_of(third)) == (503, "server_full")
            assert int(third.headers["Retry-After"]) > 0
            for _ in range(3):
                refused = await client.post(first_path, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
                assert refused.status_code in (400, 503), "what opens nothing takes no place for good"
            session = {"mcp-session-id": first.headers["mcp-session-id"]}
            assert (await client.delete(first_path, headers=session)).status_code == 200
            assert (await client.post(first_path, json=OPENING)).status_code == 200

    anyio.run(main)
    lines = metrics.render().splitlines()
    assert 'agent_world_mcp_sessions_total{served="toy-library"} 2' in lines
    assert any(line.startswith('agent_world_refusals_total{code="server_full"}') for line in lines)


def test_a_session_that_was_never_opened_or_has_ended_is_not_there():
    async def main() -> None:
        async with asking() as client:
            path = at_root(client, "/mcp")
            mine = (await client.post(path, json=OPENING)).headers["mcp-session-id"]
            await client.delete(path, headers={"mcp-session-id": mine})
            listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            for session in (mine, "0" * 32, "../x", ""):
                answer = await client.post(path, headers={"mcp-session-id": session}, json=listing)
                assert answer.status_code == 404, session

    anyio.run(main)


def test_an_idle_session_is_ended_with_all_it_holds_even_if_its_client_still_listens():
    async def main() -> None:
        async with http_server(library(), limits=ServingLimits(idle_s=0.3)) as (url,):
            async with httpx.AsyncClient(headers=SPOKEN, timeout=30) as client:
                opened = await client.post(url, json=OPENING)
                session = {"mcp-session-id": opened.headers["mcp-session-id"]}
                await client.post(url, headers=session, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
                async with client.stream("GET", url, headers=session) as stream:
                    assert stream.status_code == 200
                    call = {"name": "get_book", "arguments": {"book_id": "B3"}}
                    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
                    assert "Winter Maps" in (await client.post(url, headers=session, json=asked)).text
                    with anyio.fail_after(60):
                        async for _ in stream.aiter_bytes():
                            pass  # until the server ends it
                assert (await client.post(url, headers=session, json=asked)).status_code == 404

    anyio.run(main)


def test_requests_are_counted_and_described_in_the_format_of_prometheus():
    metrics = Metrics()

    async def main() -> None:
        async with asking(library(metrics=metrics), metrics=metrics) as client:
            url = str(client.base_url).rstrip("/")
            async with Client(url) as session:
                await session.call_tool("get_book", {"book_id": "B3"})
                await session.call_tool("get_book", {"book_id": "ZZ"})
                await session.call_tool("no_such_tool_whatever", {})
                text = (await client.get(at_root(client, "/metrics"))).text
            await client.get(at_root(client, "/nothing/whatever"))
            later = await client.get(at_root(client, "/metrics"))
            assert later.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            check(text, later.text)

    def check(text: str, later: str) -> None:
        samples = list(parsed(text))
        assert ('agent_world_tool_calls_total{served="toy-library",tool="get_book",status="ok"}', 1) in samples
        assert ('agent_world_tool_calls_total{served="toy-library",tool="get_book",status="refused"}', 1) in samples
        assert ("agent_world_mcp_sessions", 1) in samples
        assert ('agent_world_tool_call_seconds_bucket{served="toy-library",le="+Inf"}', 2) in samples
        assert ('agent_world_http_requests_total{path="other",method="GET",status="404"}', 1) in parsed(later)
        assert ("agent_world_mcp_sessions", 0) in parsed(later)
        assert "whatever" not in later, "what clients make up must not become labels without end"

    anyio.run(main)


def parsed(text: str) -> Iterator[tuple[str, float]]:
    """The samples of an exposition, each after its kind."""
    kinds: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+', line), line
            name, value = line.rsplit(" ", 1)
            bare = name.partition("{")[0]
            assert bare in kinds or re.sub("_(bucket|sum|count)$", "", bare) in kinds
            yield name, float(value)


def test_buckets_hold_what_is_below_them_and_labels_are_escaped():
    times = Histogram("seconds", "Times.", ("what",))
    for seconds in (0.0005, 0.001, 0.3, 99.0):
        times.observe(seconds, "x")
    lines = list(times.lines())
    assert 'seconds_bucket{what="x",le="0.001"} 2' in lines
    assert 'seconds_bucket{what="x",le="0.5"} 3' in lines
    assert 'seconds_bucket{what="x",le="10"} 3' in lines
    assert 'seconds_bucket{what="x",le="+Inf"} 4' in lines
    assert 'seconds_count{what="x"} 4' in lines
    odd = Counter("odd", "Odd.", ("label",))
    odd.add('a"b\\c\nd')
    assert list(odd.lines()) == [r'odd{label="a\"b\\c\nd"} 1']


def test_each_request_is_a_line_of_json_that_lets_nobody_in():
    log = io.StringIO()

    async def main() -> None:
        async with asking(log=AccessLog(log)) as client:
            opened = await client.post(at_root(client, "/mcp"), json=OPENING)
            session = opened.headers["mcp-session-id"]
            listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            await client.post(at_root(client, "/mcp"), headers={"mcp-session-id": session}, json=listing)
            await client.post(at_root(client, "/mcp"), headers={"mcp-session-id": session}, json=listing)
            await client.get(at_root(client, "/health?secret=hunter2"))
            await client.post(at_root(client, "/mcp"), headers={"Host": "evil.example"}, json={})
            assert session not in log.getvalue()
            assert "hunter2" not in log.getvalue()

    anyio.run(main)
    opened, first, second, health, refused = map(json.loads, log.getvalue().splitlines())
    assert (opened["method"], opened["path"], opened["status"], opened["client"]) == ("POST", "/mcp", 200, "127.0.0.1")
    assert opened["received"] == len(json.dumps(OPENING, separators=(",", ":")))
    assert opened["sent"] > 0
    assert opened["seconds"] >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", opened["time"])
    assert first["session"] == second["session"]
    assert "session" not in health
    assert health["path"] == "/health"
    assert (refused["status"], refused["refused"]) == (421, "unknown_host")


def test_a_log_that_cannot_be_written_ends_nothing():
    closed = io.StringIO()
    closed.close()

    async def main() -> None:
        async with asking(log=AccessLog(closed)) as client:
            for _ in range(2):
                assert (await client.get(at_root(client, "/health"))).status_code == 200

    anyio.run(main)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_the_server_ends_its_sessions_although_a_tool_hangs_and_a_client_listens(number):
    async def main() -> None:
        before = sessions_of_this_process()
        origins: list[str] = []
        asked: list[signal.Signals | None] = []

        async def serve() -> None:
            asked.append(await serve_http(Application([library(ODD)]), announce=origins.append))

        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            while not origins:
                await anyio.sleep(0.01)
            with anyio.fail_after(60):
                async with Client(f"{origins[0]}/mcp") as client:

                    async def hang() -> None:
                        with pytest.raises(Exception, match=r"."):
                            await client.call_tool("hangs", {})

                    group.start_soon(hang)
                    while sessions_of_this_process() == before:
                        await anyio.sleep(0.01)
                    signal.raise_signal(number)
                    while not asked:
                        await anyio.sleep(0.01)
        assert asked == [number]
        with anyio.fail_after(20):
            while sessions_of_this_process() > before:
                await anyio.sleep(0.01)

    anyio.run(main)


def test_a_port_that_is_taken_or_a_host_that_is_not_here_is_one_clear_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadInputError, match=f"port {port}"):
            anyio.run(lambda: serve_http(Application([library()]), port=port))
    with pytest.raises(BadInputError, match=r"192\.0\.2\.1"):
        anyio.run(lambda: serve_http(Application([library()]), host="192.0.2.1"))


def sessions_of_this_process() -> int:
    return sum(process.name() == "python3.11" for process in psutil.Process().children(recursive=True))
