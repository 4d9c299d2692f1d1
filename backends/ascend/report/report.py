"""What a person or a program asks of a modelled run: numbers, JSON, a trace for Perfetto, a page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from jascend.backends.ascend import targets
from jascend.backends.ascend.twin import Library, Run
from jascend.backends.ascend.twin.targets import TARGETS

from . import html, perfetto
from .libraries import LibraryEstimate
from .profile import KernelProfile, profile_kernel
from .roofline import Roofline, roofline

SCHEMA = 1  # of the JSON; raised when a field changes its meaning


@dataclass(frozen=True)
class Report:
    """A program's modelled time on a product, and where it goes.

    The model ranks kernels; docs/cost_model.md says how far it is from measurements.

    Attributes:
        name, target: of the program.
        kernels: one KernelProfile a launch, in order.
        roofline: the least time any program for this could take.
        library_calls: one LibraryEstimate a call of CANN's libraries, in order.
        outputs: what the run returned.
    """

    name: str
    target: str
    kernels: tuple[KernelProfile, ...]
    roofline: Roofline
    outputs: object = None
    library_calls: tuple[LibraryEstimate, ...] = ()

    @property
    def launches(self) -> int:
        """How many kernels were launched, those of the libraries included."""
        return len(self.kernels) + len(self.library_calls)

    @property
    def microseconds(self) -> float:
        """All launches one after another, each with its launch cost; library calls as estimated."""
        return sum(part.seconds for part in (*self.kernels, *self.library_calls)) * 1e6

    @property
    def library_microseconds(self) -> float:
        """The part of `microseconds` that is an estimate of library calls."""
        return sum(call.seconds for call in self.library_calls) * 1e6

    @property
    def launch_microseconds(self) -> float:
        """The part of `microseconds` that launching costs."""
        return sum(part.launch_seconds for part in (*self.kernels, *self.library_calls)) * 1e6

    @property
    def cycles(self) -> float:
        """Cycles of all kernels, launch cost and library calls not."""
        return sum(kernel.cycles for kernel in self.kernels)

    @property
    def gm_read_bytes(self) -> int:
        """Bytes read from global memory, each as often as it is read, L2 hit or not; by library calls, once."""
        return sum(kernel.gm_read_bytes for kernel in self.kernels) + sum(
            call.read_bytes for call in self.library_calls
        )

    @property
    def gm_write_bytes(self) -> int:
        """Bytes written to global memory."""
        return sum(kernel.gm_write_bytes for kernel in self.kernels) + sum(
            call.write_bytes for call in self.library_calls
        )

    @property
    def roofline_microseconds(self) -> float:
        """The bound: `roofline` in microseconds."""
        return self.roofline.seconds * 1e6

    @property
    def roofline_ratio(self) -> float:
        """`microseconds` over `roofline_microseconds`: 1 is as fast as the product allows."""
        return self.microseconds / self.roofline_microseconds

    @property
    def pipes(self) -> dict[str, float]:
        """For each pipe, the share of `cycles` for which the busiest core's is occupied."""
        names = dict.fromkeys(pipe for kernel in self.kernels for pipe in kernel.pipes)
        busy = {p: sum(kernel.pipes.get(p, 0.0) * kernel.cycles for kernel in self.kernels) for p in names}
        return {pipe: cycles / self.cycles if self.cycles else 0.0 for pipe, cycles in busy.items()}

    @property
    def findings(self) -> list:
        """What the twin's checker found in any launch."""
        return [finding for kernel in self.kernels for finding in kernel.findings]

    @cached_property
    def data(self) -> Mapping:
        """Everything as plain data: what `to_json` writes."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "target": self.target,
            "microseconds": self.microseconds,
            "launch_microseconds": self.launch_microseconds,
            "cycles": self.cycles,
            "launches": self.launches,
            "gm_read_bytes": self.gm_read_bytes,
            "gm_write_bytes": self.gm_write_bytes,
            "pipes": self.pipes,
            "roofline_microseconds": self.roofline_microseconds,
            "roofline_ratio": self.roofline_ratio,
            "roofline": asdict(self.roofline) | {"bound": self.roofline.bound},
            "findings": [str(finding) for finding in self.findings],
            "library_calls": [asdict(call) for call in self.library_calls],
            "kernels": [_kernel_data(kernel) for kernel in self.kernels],
            "model": {name: asdict(fact) for name, fact in targets.costs(self.target).facts.items()},
        }

    def to_json(self, path: str | os.PathLike | None = None) -> str:
        """The numbers as JSON text, also written to `path` if there is one. `schema` numbers the format."""
        return _written(json.dumps(self.data, indent=1), path)

    def to_perfetto(self, path: str | os.PathLike | None = None) -> str:
        """The busiest core's instructions as Chrome trace events, for ui.perfetto.dev; also written to `path`."""
        return _written(perfetto.render(self), path)

    def to_html(self, path: str | os.PathLike | None = None) -> str:
        """One page with everything in it, light or dark as the reader's system; also written to `path`."""
        return _written(html.render(self), path)

    def __str__(self) -> str:
        shares = ", ".join(f"{pipe} {share:.0%}" for pipe, share in self.pipes.items())
        shares += f"; library calls {self.library_microseconds:.1f} us, an estimate" if self.library_calls else ""
        return (
            f"{self.name} on {self.target} (model): {self.microseconds:.1f} us, {self.roofline_ratio:.1f} x the "
            f"roofline of {self.roofline_microseconds:.1f} us; {self.gm_read_bytes} B read, "
            f"{self.gm_write_bytes} B written; {shares}"
        )


def _kernel_data(kernel: KernelProfile) -> dict:
    """A kernel as plain data, without its single events."""
    kept = ("name", "target", "blocks", "cores", "cycles", "syncs", "gm_read_bytes", "gm_write_bytes", "l2_read_bytes",
            "pipes", "instructions", "vector_repeats", "copy_pieces", "busiest")  # fmt: skip
    return {field: getattr(kernel, field) for field in kept} | {
        "microseconds": kernel.seconds * 1e6,
        "launch_microseconds": kernel.launch_seconds * 1e6,
        "core_cycles": list(kernel.core_cycles),
        "rates": [asdict(rates) for rates in kernel.rates],
        "unknown_apis": list(kernel.unknown),
        "lines": [asdict(line) for line in kernel.lines],
    }


def _written(text: str, path: str | os.PathLike | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def profile_run(
    run: Run,
    target: str,
    *,
    name: str = "kernel",
    cores: int | None = None,
    compulsory_bytes: int | None = None,
    vector_cycles: float = 0.0,
) -> Report:
    """Models one launch on the twin.

    Args:
        run: of `Library.launch(..., trace=True)`.
        target: the product, such as "ascend910b".
        name: for the report.
        cores: vector cores of the product, 40 for a 910B3. None: as `targets.py` has it.
        compulsory_bytes: for the roofline; None: each array of the launch once.
        vector_cycles: for the roofline, over all cores.
    Raises:
        ValueError: the run was not traced, or there is no such target.
    """
    if compulsory_bytes is None:
        compulsory_bytes = _bytes_once(run.outputs)
    kernel = profile_kernel(run, target, name=name, cores=cores)
    return Report(name, target, (kernel,), roofline(target, compulsory_bytes, vector_cycles, cores), run.outputs)


def profile_launch(library: Library, entry: str, arrays: Sequence, *, cores: int | None = None, **options) -> Report:
    """Launches a kernel on the twin and models it. `options` as of `Library.launch`, `cores` as of `profile_run`."""
    run = library.launch(entry, arrays, trace=True, **options)
    target = next(name for name, known in TARGETS.items() if known is library.target)
    return profile_run(run, target, name=entry, cores=cores)


def _bytes_once(given: Sequence) -> int:
    """Of arrays and lists of arrays; an argument that is absent or a value has none."""
    arrays = [part for argument in given for part in (argument if isinstance(argument, (list, tuple)) else [argument])]
    return sum({part.ctypes.data: part.nbytes for part in arrays if isinstance(part, np.ndarray)}.values())
