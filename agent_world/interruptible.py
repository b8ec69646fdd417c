"""Imported first by a process that will import much for its parent: Ctrl-C then ends it without a word."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
