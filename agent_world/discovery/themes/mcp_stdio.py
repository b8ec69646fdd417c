"""M1 themes: real MCP servers, started as they are and asked for their tools over stdio.

The reply is read as raw JSON-RPC, because the typed client drops the whole list when one tool is malformed; every tool
is then checked on its own. Noise on the server's standard output is kept as a warning, never as an error.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agent_world.discovery.text import plain_text
from agent_world.discovery.themes.documents import Draft, ThemeDocument, UnusableDocumentError
from agent_world.discovery.themes.vocabulary import of_tools
from agent_world.errors import AgentWorldError
from agent_world.identity import canonical_json

PROTOCOL_VERSION = "2025-06-18"
_MAX_PAGES = 50
_MAX_LINE = 16_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An installed server. `arguments` may hold "{workdir}", an empty folder made for the introspection."""

    name: str
    version: str
    command: tuple[str, ...]
    summary: str
    licence: str
    arguments: tuple[str, ...] = ()


class McpError(AgentWorldError):
    """A server that could not be asked; `noise` is what it printed instead."""

    def __init__(self, server: str, why: str, noise: str = "") -> None:
        super().__init__(server, why, noise)
        self.server, self.why, self.noise = server, why, noise

    def __str__(self) -> str:
        heard = f" (it printed: {self.noise[-200:]!r})" if self.noise else ""
        return f"MCP server {self.server}: {self.why}{heard}; start it by hand, or leave it out"


class McpConnector:
    """The servers installed below `folder` by `make install`: a Python environment or an npm prefix each.

    They are asked once, all at the same time: what takes long is that each of them starts.
    """

    def __init__(self, folder: Path, timeout_s: float = 30.0) -> None:
        self._folder, self._timeout_s = folder, timeout_s

    def documents(self) -> Iterator[ThemeDocument]:
        """One document a server: its configuration and its raw answers. A server that fails gives an error document."""
        yield from self._documents

    @cached_property
    def _documents(self) -> list[ThemeDocument]:
        servers = installed_servers(self._folder)
        with ThreadPoolExecutor(max(1, len(servers))) as threads:
            return list(threads.map(self._document, servers))

    def _document(self, server: McpServer) -> ThemeDocument:
        told: dict[str, Any] = {
            "name": server.name,
            "version": server.version,
            "summary": server.summary,
            "arguments": list(server.arguments),
        }
        try:
            told.update(introspect(server, timeout_s=self._timeout_s))
        except McpError as error:
            told["error"] = str(error)
        return ThemeDocument(
            source="M1", origin=f"mcp_stdio:{server.name}", licence=server.licence, data=canonical_json(told).encode()
        )

    def parse(self, document: ThemeDocument) -> Draft:
        """The server's own words: summary, instructions and tools."""
        told = json.loads(document.data)
        if "error" in told:
            raise UnusableDocumentError(document.origin, "no_answer", told["error"])
        tools = tuple(told["tools"])
        nouns, verbs = of_tools(
            tool for tool in tools if isinstance(tool, Mapping) and isinstance(tool.get("name"), str)
        )
        description = plain_text(f"{told['summary']}. {told.get('instructions') or ''}")[:2000]
        title = told["name"].rpartition("/")[2].replace("-", " ").replace("mcp", "").replace("server", "").strip()
        return Draft(
            document=document,
            title=title.capitalize(),
            description=description,
            raw_tools=tools,
            nouns=nouns,
            verbs=verbs,
        )


def installed_servers(folder: Path) -> list[McpServer]:
    """The servers found below `folder`, by name."""
    servers = [_python_server(home) for home in sorted(folder.glob("*/bin")) if (home / home.parent.name).is_file()]
    servers += [_node_server(path) for path in folder.glob("npm/*/node_modules/@modelcontextprotocol/server-*")]
    return sorted(servers, key=lambda server: server.name)


def introspect(server: McpServer, *, timeout_s: float = 30.0) -> dict[str, Any]:
    """What a server says about itself: instructions, and its tools exactly as sent (sorted by name).

    Raises:
        McpError: it does not start, dies, or does not answer in time.
    """
    with tempfile.TemporaryDirectory() as workdir:
        arguments = [argument.replace("{workdir}", workdir) for argument in server.arguments]
        with _Connection(server.name, [*server.command, *arguments], workdir, timeout_s) as connection:
            hello = connection.ask(
                "initialize",
                {
                    "protocolVersion": PROTOCOL_VERSION,
                    "capabilities": {},
                    "clientInfo": {"name": "agent-world", "version": "1"},
                },
            )
            connection.tell("notifications/initialized")
            tools: list[Any] = []
            cursor = None
            for _ in range(_MAX_PAGES):
                page = connection.ask("tools/list", {"cursor": cursor} if cursor else {})
                tools.extend(page.get("tools") or [])
                cursor = page.get("nextCursor")
                if not cursor:
                    break
            tools.sort(key=lambda tool: (str(tool.get("name")) if isinstance(tool, dict) else "", canonical_json(tool)))
            found = {"instructions": hello.get("instructions"), "tools": tools, "noise": connection.noise}
    return json.loads(json.dumps(found).replace(workdir, "{workdir}"))


class _Connection:
    """A server process and its JSON-RPC lines; leaving ends the process."""

    def __init__(self, name: str, command: Sequence[str], workdir: str, timeout_s: float) -> None:
        self._name, self._timeout_s = name, timeout_s
        self.noise: list[str] = []
        self._number = 0
        self._buffer = b""
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": workdir, "LANG": "C.UTF-8", "TZ": "UTC"}
        try:
            self._process = subprocess.Popen(
                command,
                cwd=workdir,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise McpError(name, f"does not start: {error}") from error
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ, "out")
        self._selector.register(self._process.stderr, selectors.EVENT_READ, "err")
        self._errors = b""

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        self._process.kill()
        self._process.communicate()

    def tell(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        deadline = time.monotonic() + self._timeout_s
        while True:
            message = self._read(deadline)
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise McpError(self._name, f"{method} failed: {message['error'].get('message')}")
                return message.get("result") or {}

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise McpError(self._name, "ended at once", self._heard()) from error

    def _read(self, deadline: float) -> Mapping[str, Any]:
        while True:
            line, mark, rest = self._buffer.partition(b"\n")
            if mark:
                self._buffer = rest
                try:
                    message = json.loads(line)
                except ValueError:
                    message = None
                if isinstance(message, dict):
                    return message
                if line.strip():
                    self.noise.append(line.decode("utf-8", "replace")[:500])
                continue
            remaining = deadline - time.monotonic()
            events = self._selector.select(remaining) if remaining > 0 else []
            if not events:
                raise McpError(self._name, f"no answer within {self._timeout_s:g} seconds", self._heard())
            for key, _ in events:
                self._take(key)

    def _take(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, 65536)
        if key.data == "err":
            self._errors = (self._errors + data)[-4096:]
            if not data:
                self._selector.unregister(key.fileobj)
            return
        if not data:
            raise McpError(self._name, "ended before it answered", self._heard())
        self._buffer += data
        if len(self._buffer) > _MAX_LINE:
            raise McpError(self._name, f"sent a line longer than {_MAX_LINE} bytes")

    def _heard(self) -> str:
        return self._errors.decode("utf-8", "replace") or " ".join(self.noise)


def _python_server(binaries: Path) -> McpServer:
    name = binaries.parent.name
    metadata: dict[str, str] = {}
    for path in sorted(
        binaries.parent.glob(f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info/METADATA")
    ):
        for line in path.read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines():
            key, _, value = line.partition(": ")
            metadata.setdefault(key, value)
    return McpServer(
        name=name,
        version=metadata.get("Version", ""),
        command=(str((binaries / name).absolute()),),
        summary=metadata.get("Summary", name),
        licence=metadata.get("License-Expression") or metadata.get("License", "not stated"),
    )


def _node_server(package: Path) -> McpServer:
    manifest = json.loads((package / "package.json").read_text(encoding="utf-8"))
    script = manifest.get("bin") or {}
    script = script if isinstance(script, str) else next(iter(script.values()), "dist/index.js")
    wants_folder = "filesystem" in package.name
    return McpServer(
        name=f"@{package.parent.name.lstrip('@')}/{package.name}",
        version=manifest.get("version", ""),
        command=("node", str((package / script).absolute())),
        summary=manifest.get("description") or package.name,
        licence=str(manifest.get("license", "not stated")),
        arguments=("{workdir}",) if wants_folder else (),
    )
