"""Who may come in over HTTP: by the names that the server goes by, the page that asks, and the token."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent_world.errors import BadInputError
from agent_world.serving.refusals import RefusedError

if TYPE_CHECKING:
    from starlette.datastructures import Headers

LEAST_TOKEN = 16
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_NOT_IN_A_HOST = frozenset("@/?#\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in. `names` are the hosts that the server may be called by, in lower case and without a port.

    With `addresses`, it may be called by any IP address as well: rebinding needs a name. A page that asks must always
    be of one of the names: that it comes from an address says nothing about whose it is. Without a token everybody may
    come who reaches the port.

    Raises:
        BadInputError: the token is too short to be one, or cannot stand in a header.
    """

    names: Collection[str] = _LOOPBACK_NAMES
    addresses: bool = False
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        token = self.token
        if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
            why = f"not {LEAST_TOKEN} or more printable ASCII characters"
            raise BadInputError(
                "the token", why, "make one: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )

    def check(self, headers: Headers) -> None:
        """Let a request in.

        Raises:
            RefusedError: by its Host or Origin header (a page of another site must not reach a server on loopback by
                rebinding a name), or for want of the token.
        """
        if not self.knows(headers.get("host")):
            raise RefusedError(421, "unknown_host", "This server does not go by the name in the Host header.")
        origin = headers.get("origin")
        if origin and _name(origin.partition("://")[2]) not in self.names:
            raise RefusedError(403, "foreign_origin", "Pages of other sites may not use this server.")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if self.token is not None and not (
            scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())
        ):
            message = "This server asks for its token: Authorization: Bearer <token>."
            raise RefusedError(401, "unauthorised", message, {"WWW-Authenticate": "Bearer"})

    def knows(self, host: str | None) -> bool:
        """Whether the server may be called by this Host header."""
        name = _name(host or "")
        return name in self.names or (self.addresses and _is_address(name))


def door_for(host: str, *, token: str | None = None, names: Collection[str] = ()) -> Door:
    """The door of a server that listens on `host`, a name or an address of this machine; `names` are its other names.

    Raises:
        BadInputError: others than this machine could come, and there is no token to keep them out; or it is none.
    """
    known = {name.lower() for name in names}
    if host in _LOOPBACK_NAMES or (_is_address(host) and ipaddress.ip_address(host).is_loopback):
        return Door(names=_LOOPBACK_NAMES | known | {host}, token=token)
    if token is None:
        why = "other machines could reach the server, and nothing would keep them out"
        raise BadInputError(f"host {host}", why, "put a token into AGENT_WORLD_TOKEN or into a file for --token-file")
    known |= {host.lower(), socket.gethostname().lower()}
    return Door(names=_LOOPBACK_NAMES | known, addresses=True, token=token)


def _name(host: str) -> str:
    """The name in a host with or without a port; empty when it is none."""
    if set(host) & _NOT_IN_A_HOST:
        return ""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
