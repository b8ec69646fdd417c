"""SIGINT and SIGTERM as something to wait for."""

from __future__ import annotations

import signal
import threading

import anyio


async def asked_to_end() -> signal.Signals:
    """The signal that asks this process to end, when it comes. Other threads than the main one wait in vain."""
    if threading.current_thread() is not threading.main_thread():
        await anyio.sleep_forever()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            return number
    raise AssertionError("the receiver has no end")
