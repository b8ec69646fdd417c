"""Code objects that one session makes and others run: source that many sessions run is compiled once."""

from __future__ import annotations

import binascii
import marshal
from types import CodeType


def compiled(source: str) -> str:
    """`source` as a code object, none of which is run: marshal's form in base64.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    return binascii.b2a_base64(marshal.dumps(compile(source, "<source>", "exec")), newline=False).decode()


def loaded(text: str) -> CodeType:
    """The code object that `compiled` gave as `text`."""
    code = marshal.loads(binascii.a2b_base64(text))
    if not isinstance(code, CodeType):
        raise TypeError(f"{type(code).__name__} is no code object")
    return code
