"""What the commands share: problems, output, and work that takes its time."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading

from rich.console import Console
from rich.markup import escape


class Problem(Exception):
    """What a command could not do, for the person who typed it. `code` is the exit code."""

    def __init__(self, message: str, code: int = 1):
        super().__init__(message)
        self.code = code


def usage(message: str) -> Problem:
    return Problem(message, code=2)


def check_target(name: str) -> None:
    from jascend.backends.ascend.targets import TARGETS

    if name not in TARGETS:
        raise usage(f"unknown target '{name}': there are {', '.join(TARGETS)}")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console() -> Console:
    """For stdout. Where that is no terminal, nothing is cut to fit."""
    return _Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1000)


def discard_output() -> None:
    """Sends what stdout still holds nowhere: Python flushes once more at exit, and would complain once more."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def working(text: str):
    """Shows on a terminal that something takes its time."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    return Console(stderr=True).status(escape(text))


def run_kernels(text: str, function, *args, **kwargs):
    """Calls a function that runs kernels, and shows `text` meanwhile. Python hands Ctrl-C on only between instructions
    of its own, and a kernel has none: so the function runs in a thread, which is left behind then."""
    outcome: list = []

    def call():
        try:
            outcome.append((function(*args, **kwargs), None))
        except BaseException as error:  # handed to the caller
            outcome.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        with working(text):
            while thread.is_alive():
                thread.join(0.1)
    except KeyboardInterrupt:
        os._exit(130)
    result, error = outcome[0]
    if error is not None:
        raise error
    return result
