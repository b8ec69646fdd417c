"""What the environment runtime costs, each figure beside its floor, measured in the same run.

CPU is that of this process and of all its descendants, the sandbox's among them; wall time is said where it is meant.

``python -m benchmarks.runtime [--only NAME] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import mcp_types as types
import psutil
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from agent_world.environments.model import SQLITE_FILE, Column, Database, Environment, Table, Tool
from agent_world.environments.session import Session
from agent_world.environments.state import normalised
from agent_world.identity import Digest, VersionId, sha256
from agent_world.rollouts.verifier import verify
from agent_world.sandbox import default_sandbox
from agent_world.sandbox.guest_code import PYTHON
from agent_world.serving.application import Application
from agent_world.serving.http import EVENT_LOOP, serve_http
from agent_world.serving.limits import ServingLimits
from agent_world.serving.mcp.environments import environment_offer
from agent_world.tasks.model import Knobs, Task

_OBJECT = {"type": "object", "properties": {}, "additionalProperties": True}
_KEY = {
    "type": "object", "properties": {"key": {"type": "integer"}}, "required": ["key"], "additionalProperties": False,
}  # fmt: skip

_READ = '''
def read(world, *, key):
    """One row by its key."""
    return dict(world.db.execute("SELECT key, name, amount FROM items WHERE key = ?", (key,)).fetchone())
'''
_WRITE = '''
def write(world, *, key):
    """Raise the amount of one row."""
    world.db.execute("UPDATE items SET amount = amount + 1 WHERE key = ?", (key,))
    return {"key": key}
'''
_VERIFIER = '''
def verify(answer, gold, initial, final):
    """The answer, and the one row that should have changed."""
    failed = [] if answer == gold else ["answer"]
    amount = "SELECT amount FROM items WHERE key = 1"
    before, after = (state.db.execute(amount).fetchone()[0] for state in (initial, final))
    return failed if after == before + 1 else [*failed, "state"]
'''
_CLONES = """
import os, resource, socket, sys
sys.path.insert(0, sys.argv[1])
import jail

def spent():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

ours, theirs = socket.socketpair()
before, count = spent(), int(sys.argv[2])
for _ in range(count):
    pid = jail.clone()
    if pid == 0:
        theirs.send(theirs.recv(64))
        os._exit(0)
    ours.send(b"line")
    ours.recv(64)
    os.waitpid(pid, 0)
print((spent() - before) / count)
"""
_SPIN = '''
def spin(world, *, key):
    """Never come back."""
    while True:
        pass
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measure. `floor` is what the machine takes for the least that must be done, in the same unit."""

    name: str
    value: float
    unit: str
    goal: str
    floor: float | None = None


class Cost:
    """CPU seconds of a block."""

    cpu = 0.0


@contextmanager
def cost() -> Iterator[Cost]:
    """Measure a block; wait inside it for whatever must be counted."""
    found, before = Cost(), cpu_of_all()
    yield found
    found.cpu = cpu_of_all() - before


def cpu_of_all() -> float:
    """CPU seconds of this process, of its live descendants and of those of them that are reaped."""
    total = time.process_time()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def environment(rows: int, mark: str = "") -> Environment:
    """A table of `rows` items and three tools; `mark` makes tools and data unlike those of any other."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE items (key INTEGER PRIMARY KEY, name TEXT NOT NULL, amount INTEGER NOT NULL)")
    db.executemany("INSERT INTO items VALUES (?, ?, ?)", ((n, f"item {n}{mark}", n % 97) for n in range(rows)))
    db.commit()
    data = db.serialize()
    columns = tuple(
        Column(name=name, type=kind, role=role, words=name, original=name, nullable=False, distinct=rows)
        for name, kind, role in (("key", "integer", "identifier"), ("name", "text", "label"),
                                 ("amount", "integer", "measure"))
    )  # fmt: skip
    table = Table(name="items", singular="item", plural="items", columns=columns, primary_key=("key",), rows=rows)
    database = Database(
        database_id="bench", theme=VersionId("theme@0"), round=0, tables=(table,), documents=(),
        digest=Digest(sha256(data)),
    )  # fmt: skip
    tools = tuple(
        Tool(
            tool_id=f"bench/{name}", name=name, description=name, input_schema=_KEY, output_schema=_OBJECT,
            writes=name == "write", source=f"{source}\n# {mark}\n", pattern="get", tables=("items",),
        )
        for name, source in (("read", _READ), ("write", _WRITE), ("spin", _SPIN))
    )  # fmt: skip
    return Environment(
        environment_id="bench", version=VersionId(f"bench{mark}@{rows}"), title="bench", description="",
        theme=VersionId("theme@0"), database=database, database_version=VersionId("database@0"), tools=tools,
        tool_versions=tuple(VersionId(f"{tool.tool_id}@0") for tool in tools), files={SQLITE_FILE: data},
    )  # fmt: skip


def episode(world: Environment) -> None:
    """A session, one call, its end."""
    with world.session(seed=7) as session:
        check(session, "read", 1)


def check(session: Session, tool: str, key: int) -> None:
    """One call that must succeed: a failing tool would be cheap."""
    found = session.call(tool, {"key": key})
    if found.status != "ok":
        raise RuntimeError(f"{tool} {key}: {found.value}")


def sessions() -> Iterator[Figure]:
    """A session from a known environment, and from one that no worker has seen."""
    known = environment(120)
    for _ in range(20):
        episode(known)
    with cost() as found:
        for _ in range(300):
            episode(known)
    yield Figure(
        name="new session of a known environment, call, close", value=found.cpu / 300 * 1e3, unit="ms CPU",
        goal="<= 5", floor=_cloned() * 1e3,
    )  # fmt: skip
    fresh = [environment(120, f" {n}") for n in range(100)]
    with cost() as found:
        for each in fresh:
            episode(each)
    yield Figure(name="the same of an environment never seen", value=found.cpu / 100 * 1e3, unit="ms CPU", goal="<= 15")


def resets() -> Iterator[Figure]:
    """What a larger snapshot adds to a new session: wall time, beside a file copy of the same bytes."""
    small = environment(2)
    for rows, goal in ((120, "<= 0.3"), (1_000, "<= 0.5"), (100_000, "<= 2 x floor")):
        world = environment(rows)
        added = median(_opened(world) for _ in range(60)) - median(_opened(small) for _ in range(60))
        yield Figure(
            name=f"reset to a snapshot of {rows:,} rows, over one of two rows", value=added * 1e3, unit="ms wall",
            goal=goal, floor=_copied(world.files[SQLITE_FILE]) * 1e3,
        )  # fmt: skip


def _opened(world: Environment) -> float:
    start = time.perf_counter()
    episode(world)
    return time.perf_counter() - start


def _copied(data: bytes) -> float:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        source, target = Path(folder) / "a", Path(folder) / "b"
        source.write_bytes(data)
        times = []
        for _ in range(60):
            start = time.perf_counter()
            shutil.copyfile(source, target)
            times.append(time.perf_counter() - start)
        return median(times)


def calls() -> Iterator[Figure]:
    """Calls through the sandbox, beside a line sent to another process and back; flat in the number of rows."""
    small, large = environment(100), environment(1_000_000)
    with small.session(seed=7) as first, large.session(seed=7) as second, _echo() as echo, on_one_processor():
        for tool, goal in (("read", "<= 2 x floor"), ("write", "<= 0.2")):
            ours = [lambda n, s=each, t=tool: check(s, t, n % 100) for each in (first, second)]
            floor, few, many = _per_call_in_turn([echo, *ours])
            yield Figure(name=f"{tool} call", value=few * 1e3, unit="ms wall", goal=goal, floor=floor * 1e3)
            yield Figure(name=f"{tool} call, 1,000,000 rows / 100 rows", value=many / few, unit="x", goal="<= 1.2")


@contextmanager
def on_one_processor() -> Iterator[None]:
    """Keep this process and its sandbox on one processor.

    Whether the two ends of a call are on one or on two is chance, and makes more of a difference than the call.
    """
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    before = [process.cpu_affinity() for process in family]
    for process in family:
        process.cpu_affinity([min(os.sched_getaffinity(0))])
    try:
        yield
    finally:
        for process, processors in zip(family, before, strict=True):
            with suppress(psutil.NoSuchProcess):
                process.cpu_affinity(processors)


def _per_call(call: Callable[[int], object], count: int = 2_000) -> float:
    return _per_call_in_turn([call], count)[0]


def _per_call_in_turn(calls: Sequence[Callable[[int], object]], count: int = 2_000) -> list[float]:
    """The median of each, one call of each after the other, so that all meet the same machine."""
    times: list[list[float]] = [[] for _ in calls]
    for n in range(count):
        for call, found in zip(calls, times, strict=True):
            start = time.perf_counter()
            call(n)
            found.append(time.perf_counter() - start)
    return [median(found) for found in times]


@contextmanager
def _echo() -> Iterator[Callable[[int], object]]:
    """A call that sends a JSON line to another process and has it back."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        with theirs.makefile("rwb", buffering=0) as lines:
            while line := lines.readline():
                lines.write(json.dumps(json.loads(line)).encode() + b"\n")
        os._exit(0)
    theirs.close()
    line = json.dumps({"tool": "read", "arguments": {"key": 1}, "n": 1}).encode() + b"\n"

    def call(_: int) -> object:
        ours.sendall(line)
        return json.loads(ours.recv(65_536))

    yield call
    ours.close()
    os.waitpid(pid, 0)


def digests() -> Iterator[Figure]:
    """The digest after one changed row."""
    world = environment(1_000_000)
    with world.session(seed=7) as session:
        check(session, "write", 1)
        session.digest()  # of the snapshot itself, once
        times = []
        for n in range(20):
            check(session, "write", n * 50_000)
            start = time.perf_counter()
            session.digest()
            times.append(time.perf_counter() - start)
        yield Figure(
            name="digest after one more changed row of 1,000,000, of the first", value=times[0] * 1e3, unit="ms wall",
            goal="<= 1",
        )  # fmt: skip
        yield Figure(
            name="digest after twenty changed rows far apart", value=times[-1] * 1e3, unit="ms wall", goal="<= 20"
        )


def crowd() -> Iterator[Figure]:
    """Many live sessions: memory, whether all answer, and what one that loops does to the others."""
    world = environment(1_000)
    before = set(psutil.Process().children(recursive=True))
    with ExitStack() as stack:
        live = [stack.enter_context(world.session(seed=n)) for n in range(200)]
        for session in live:
            check(session, "read", 1)
        own = set(psutil.Process().children(recursive=True)) - before
        memory = sum(process.memory_full_info().uss for process in own) / 200 / 2**20
        yield Figure(name="memory of a live session, 200 live", value=memory, unit="MB USS", goal="<= 3")
        live += [stack.enter_context(world.session(seed=n)) for n in range(200, 500)]
        start = time.perf_counter()
        for session in live:
            check(session, "read", 1)
        wall = time.perf_counter() - start
        yield Figure(name="500 live: a call to each", value=wall, unit="s wall", goal="all answer")
        alone = _per_call(lambda n: check(live[n % 499], "read", 1), 998)
        looping = threading.Thread(target=live[499].call, args=("spin", {"key": 1}))
        looping.start()
        beside = _per_call(lambda n: check(live[n % 499], "read", 1), 998)
        live[499].stop()
        looping.join()
        yield Figure(name="a call while one session loops / without", value=beside / alone, unit="x", goal="<= 1.1")


def verifying() -> Iterator[Figure]:
    """`V_code` on an answer and on the state that a write left, in a sandbox of its own."""
    world = environment(120)
    task = Task(
        task_id="bench", kind="program", environments=(world.version,), instruction="", answer_schema=_KEY,
        answer={"key": 1}, plan=(), shape=(), rubric=(), state_diff={}, seed=0, verifier=_VERIFIER,
        knobs=Knobs(calls=1, distinct_tools=1, weak_share=0, independent_share=0, branches=0, loops=0, tables=1,
                    aggregates=0, writes=1, rewriting=0),
    )  # fmt: skip
    with world.session(seed=7) as session:
        check(session, "write", 1)
        initial, final = session.initial(), session.state()
        change = normalised(session.diff(), world.database)

    def judge() -> None:
        (found,) = verify(task, [{"key": 1}], initial, final, change)
        if found.error or found.failed:
            raise RuntimeError(f"V_code said {found}")

    for _ in range(20):
        judge()
    with cost() as found:
        for _ in range(200):
            judge()
    yield Figure(name="verify one task, V_code in its own sandbox", value=found.cpu / 200 * 1e3, unit="ms CPU",
                 goal="<= 2", floor=_cloned() * 1e3)  # fmt: skip
    box = default_sandbox()
    with cost() as found:
        for _ in range(200):
            box.run_code({}, "os:getpid")
    yield Figure(name="a session that does nothing, of the same sandbox", value=found.cpu / 200 * 1e3, unit="ms CPU",
                 goal="none", floor=_cloned() * 1e3)  # fmt: skip


def _cloned() -> float:
    """CPU seconds of a clone of a bare Python into namespaces of its own, a line to it and back, and its end."""
    guest = resources.files("agent_world.sandbox") / "guest"
    command = [PYTHON, "-I", "-S", "-B", "-c", _CLONES, str(guest), "200"]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def mcp() -> Iterator[Figure]:
    """Calls over MCP and streamable HTTP, client and server in this process, one client and many side by side."""
    for clients, number in ((1, 300), (50, 20)):
        floor, spent = (
            anyio.run(_mcp_calls, app, clients, number, play, backend_options=EVENT_LOOP) / (clients * number) * 1e3
            for app, play in (
                (_NothingServed(), _call_nothing),
                (Application([environment_offer([environment(120)])]), _raise_amount),
            )
        )
        name = f"MCP call, client and server, {clients} session{'s' * (clients > 1)}"
        yield Figure(name=name, value=spent, unit="ms CPU", goal="<= 3", floor=floor)


async def _mcp_calls(app: Any, clients: int, number: int, play: Callable[[Client, int, int], Awaitable[None]]) -> float:
    """CPU seconds of the calls of so many clients, when the first of each is over."""
    found = Cost()
    async with anyio.create_task_group() as group:
        origin: list[str] = []
        ready = anyio.Event()
        group.start_soon(lambda: serve_http(app, announce=lambda url: (origin.append(url), ready.set())))
        await ready.wait()
        async with AsyncExitStack() as stack:
            url = f"{origin[0]}/mcp"
            live = [await stack.enter_async_context(Client(url, mode="legacy")) for _ in range(clients)]
            for client in live:
                await client.call_tool("read", {"key": 1})
            with cost() as found:
                async with anyio.create_task_group() as playing:
                    for each, client in enumerate(live):
                        playing.start_soon(play, client, each, number)
        group.cancel_scope.cancel()
    return found.cpu


class _NothingServed:
    """The floor: the official server, with the protocol that we speak and a tool that does nothing, on our port."""

    limits = ServingLimits()

    def __init__(self) -> None:
        server: Server[Any] = Server("nothing", on_list_tools=self._list, on_call_tool=self._call)
        self._manager = StreamableHTTPSessionManager(server, json_response=True)
        route = Route("/mcp", endpoint=self._manager.asgi_app)
        self._app = Starlette(routes=[route], lifespan=lambda _app: self._manager.run())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def end_sessions(self) -> None:
        """They end with the server."""

    async def _list(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="read", input_schema=_KEY, output_schema=_OBJECT)])

    async def _call(self, _context: Any, _params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="{}")], structured_content={})


async def _call_nothing(client: Client, key: int, number: int) -> None:
    for _ in range(number):
        await client.call_tool("read", {"key": key})


async def _raise_amount(client: Client, key: int, number: int) -> None:
    """Each client must find what it wrote itself, and no other."""
    for _ in range(number - 1):
        await client.call_tool("write", {"key": key})
    amount = (await client.call_tool("read", {"key": key})).structured_content["amount"]
    if amount != key % 97 + number - 1:
        raise RuntimeError(f"client {key} finds {amount}: sessions are mixed up")


PARTS = {each.__name__: each for each in (sessions, resets, calls, digests, crowd, verifying, mcp)}


def main() -> None:
    """Print a line a figure as it comes; write all of them to a file if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    default_sandbox()
    found = []
    print(f"{'what':<66} {'figure':>9} {'':<8} {'floor':>9}  goal")
    for name, part in PARTS.items():
        if options.only in (None, name):
            for figure in part():
                found.append(figure)
                floor = "" if figure.floor is None else f"{figure.floor:.3f}"
                print(f"{figure.name:<66} {figure.value:9.3f} {figure.unit:<8} {floor:>9}  {figure.goal}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in found], indent=2))


if __name__ == "__main__":
    sys.exit(main())
