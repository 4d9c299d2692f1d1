"""What ops mean that have to do with other cores; and how cores of one run meet."""

from __future__ import annotations

import threading

import numpy as np
from mlir import ir

from .core import Core, dtype_of, function


class Meeting:
    """Where the cores of a run wait for each other: each on a thread, one at a time, in their order."""

    def __init__(self, cores: int):
        self.cores, self.turn, self.arrived, self.ended = cores, 0, 0, 0
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    def run(self, core: Core, body) -> None:
        """The life of one core; `body` runs when it is its turn."""
        try:
            self._wait_for_turn(core.core)
            body()
            self.ended += 1
            if self.arrived:
                raise RuntimeError(f"core {core.core} has ended, others wait in sync_all")
        except BaseException as error:
            self.error = self.error or error
        self._pass_on()

    def arrive(self, core: Core) -> None:
        if self.ended:
            raise RuntimeError(f"core {core.core} waits in sync_all, others have ended")
        self.arrived = (self.arrived + 1) % self.cores
        self._pass_on()
        self._wait_for_turn(core.core)

    def _pass_on(self) -> None:
        with self.changed:
            self.turn = (self.turn + 1) % self.cores
            self.changed.notify_all()

    def _wait_for_turn(self, core: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.turn == core or self.error)
        if self.error:
            raise RuntimeError("another core has failed")


def run_together(cores: list[Core], body) -> None:
    """Runs `body(core)` for every core; a `sync_all` in it makes them wait for each other."""
    meeting = Meeting(len(cores))
    threads = []
    for core in cores:
        core.meeting = meeting
        threads.append(threading.Thread(target=meeting.run, args=(core, lambda core=core: body(core)), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if meeting.error:
        raise meeting.error


def workspaces(kernel: ir.Operation, rows: int, cores: int) -> dict[ir.Operation, np.ndarray]:
    """The scratch memory of a launch, by the op that asks for it. Nothing is in it: bytes 0xFF."""
    found = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tile.workspace":
            view = op.opview
            times = {"launch": 1, "core": cores, "row": rows}[view.per]
            memory = np.empty((times, view.elements), dtype_of(ir.MemRefType(view.memory.type).element_type))
            memory.view(np.uint8).fill(0xFF)
            found[op.operation] = memory
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return found


@function("tile.block_rows")
def _block_rows(run: Core, op, rows):
    parts = op.opview.parts or 1
    if run.cores % parts:
        raise ValueError(f"{run.cores} cores make no groups of {parts}")
    groups = run.cores // parts
    group, part = divmod(run.core, parts)
    share, rest = divmod(int(rows), groups)
    first = group * share + min(group, rest)
    last = first + share + (group < rest)
    return np.int64(first), np.int64(last), np.int64(part), np.int64(share + (rest > 0))


@function("tile.core")
def _core(run: Core, op):
    return np.int64(run.core), np.int64(run.cores)


@function("tile.workspace")
def _workspace(run: Core, op):
    return run.workspaces[op]


@function("tile.sync_all")
def _sync_all(run: Core, op):
    run.meeting.arrive(run)
    return ()
