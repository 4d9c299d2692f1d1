"""Chrome trace events, which ui.perfetto.dev and chrome://tracing open. Times in microseconds.

One process a kernel, with a thread for each pipe of its busiest core, and one for each block that shows how long it
took.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING

from jascend.backends.ascend import targets
from jascend.backends.ascend.twin import PIPES

if TYPE_CHECKING:
    from .report import Report


def render(report: Report) -> str:
    """The trace as JSON text, events in the order of their start."""
    to_us = 1e6 / targets.costs(report.target).clock
    names, events = [], []
    begin = 0.0
    for process, kernel in enumerate(report.kernels):
        base = begin + kernel.launch_seconds * 1e6
        names.append(_name("process_name", process, 0, f"{kernel.name}, block {kernel.busiest}"))
        shown = kernel.events
        for thread in sorted(set(shown.pipe.tolist())):
            names.append(_name("thread_name", process, thread, PIPES[thread]))
        columns = (column.tolist() for column in (shown.start, shown.end, shown.pipe, shown.place, shown.bytes))
        for start, end, pipe, place, moved in zip(*columns, strict=True):
            api, file, line = shown.places[place]
            args = {"line": f"{PurePath(file).name}:{line}"} | ({"bytes": moved} if moved else {})
            events.append(_slice(api, process, pipe, base + start * to_us, (end - start) * to_us, args))
        for block, cycles in enumerate(kernel.core_cycles):
            thread = len(PIPES) + block
            names.append(_name("thread_name", process, thread, f"block {block}"))
            events.append(_slice(f"block {block}", process, thread, base, cycles * to_us, {}))
        begin += kernel.seconds * 1e6
    events.sort(key=lambda event: (event["ts"], event["pid"], event["tid"]))
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": names + events})


def _name(kind: str, process: int, thread: int, name: str) -> dict:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _slice(name: str, process: int, thread: int, start: float, duration: float, args: dict) -> dict:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": start, "dur": duration, "args": args}
