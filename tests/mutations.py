"""Breaks a generated kernel in one place at a time, all places in one build.

The text gets a switch: a field `mutant` of the tiling data, which the kernel puts into a variable that every function of it
sees, chooses which fault is in force, so one compilation serves hundreds of mutants. Number 0 is the kernel itself.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jascend as ja
from jascend.backends.ascend import twin
from jascend.backends.ascend.codegen import tiling
from jascend.backends.ascend.plan import Launch as PlannedLaunch

_BLOCK = 32  # bytes
DELETIONS = ("flag", "barrier", "sync-all")
VARIATIONS = ("set", "wait", "direction", "barrier-pipe")  # half a deletion, or something else that orders nothing


@dataclass(frozen=True)
class Mutant:
    number: int
    kind: str
    text: str  # the line, or what is done to it
    lines: frozenset[int] = frozenset()  # what the fault is in; of a buffer, none

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class Launch:
    """What a kernel is given."""

    tiling: bytes
    inputs: tuple[np.ndarray, ...]
    like: tuple[np.ndarray, ...]  # arrays of the outputs' shapes and types
    blocks: int = 1
    workspace_bytes: int = 0


@dataclass(frozen=True)
class Subject:
    """A kernel's text, and launches that together exercise every path through it."""

    name: str
    source: str
    tiling_file: str
    tiling_header: str
    launches: tuple[Launch, ...]


def of_program(
    function, *calls: dict, target: str = "ascend910b", cores: tuple[int, ...] = (1,), rows: int | None = None,
    force: tuple[str, ...] = (), forbid: tuple[str, ...] = (), kernel: str = "", any_rows: bool = False,
) -> Subject:  # fmt: skip
    """A kernel of a program, the one or that whose name ends so, compiled for the arrays of the first of the calls and
    launched for each of them with each number of cores. `rows` compiles it for as many instead: how many cores share a row
    follows from that; `any_rows` for a symbol."""
    first = calls[0]
    if rows is not None or any_rows:
        given = jax.export.symbolic_shape("rows")[0] if any_rows else rows
        first = {name: jax.ShapeDtypeStruct((given, *a.shape[1:]), a.dtype) for name, a in calls[0].items()}
    program = ja.compile(function, **first, target=target, force=force, forbid=forbid)
    (chosen,) = (one for one in program.kernels if one.name.endswith(kernel))
    shape, launches = chosen.shape, []
    for call in calls:
        inputs = program._inputs((), call) if rows is None else [np.asarray(x) for x in jax.tree.leaves(call)]
        step, operands = _operands(program, chosen, inputs)
        launched = step.rows(chosen.rows_of) if rows is None else len(operands[0])
        shapes = [t.shape if rows is None else (launched, *t.shape[1:]) for t in step.types]
        like = tuple(np.zeros(shape, jnp.dtype(t.dtype)) for shape, t in zip(shapes, step.types))
        for number in cores:
            launch = Launch(
                tiling.pack(shape.data(launched, number)), tuple(operands), like, shape.blocks(launched, number),
                shape.workspace_bytes(launched, number),
            )  # fmt: skip
            launches.append(launch)
    return Subject(chosen.name, chosen.source, chosen.tiling_file, chosen.tiling_header, tuple(launches))


def _operands(program, chosen, inputs: list[np.ndarray]) -> tuple[PlannedLaunch, list[np.ndarray]]:
    """The step that launches a kernel, and what it is given where the program gets these inputs."""
    found, kernels = [], {kernel.name: kernel for kernel in program.kernels}

    def launch(step: PlannedLaunch, operands: list[np.ndarray]) -> list[np.ndarray]:
        if step.kernel != chosen.name:
            return program._launch(kernels[step.kernel], step, operands, lambda *_: None, False)
        found.append((step, operands))
        return [type_.filled(0) for type_ in step.types]

    program._plan_for(inputs).run(inputs, launch)
    return found[0]


class Laboratory:
    """One build of a subject with all its mutants."""

    def __init__(self, subject: Subject, directory: Path, target: str = "ascend910b"):
        self.subject = subject
        instrument = _Instrument(subject.source.splitlines())
        self.mutants = instrument.mutants
        directory.mkdir(parents=True, exist_ok=True)
        header = subject.tiling_header.replace("};", "    uint32_t mutant;\n};", 1)
        (directory / subject.tiling_file).write_text(header)
        file = directory / f"{subject.name}.cpp"
        file.write_text("\n".join(instrument.lines) + "\n")
        self.library = twin.build(file, include_dirs=(directory,), target=target)
        self.timeout = None
        start = time.monotonic()
        runs = [self.run(0, launch, trace=True) for launch in subject.launches]
        # A fault can make a loop's bounds anything.
        self.timeout = 5 + 20 * (time.monotonic() - start) / len(runs)
        self.expected = [outputs for outputs, _ in runs]
        self.findings = [finding for _, run in runs for finding in run.findings]
        self.reached = [{place[2] for trace in run.trace for place in trace.places} for _, run in runs]
        self.order = list(range(len(runs)))

    def run(self, number: int, launch: Launch, trace: bool = False) -> tuple[list[bytes], twin.Run]:
        """The outputs, and the run with what the checker says."""
        outputs = [np.frombuffer(b"\xee" * x.nbytes, np.uint8).copy() for x in launch.like]
        tiling = launch.tiling + struct.pack("<I", number)
        run = self.library.launch(
            self.subject.name, [*(x.copy() for x in launch.inputs), *outputs], tiling=tiling, blocks=launch.blocks,
            workspace_bytes=launch.workspace_bytes, timeout=self.timeout, trace=trace,
        )  # fmt: skip
        return [output.tobytes() for output in outputs], run

    def is_reached(self, mutant: Mutant) -> bool:
        """Whether a launch runs through the place of a fault."""
        return any(self._reaches(i, mutant) for i in self.order)

    def _reaches(self, i: int, mutant: Mutant) -> bool:
        return not mutant.lines or bool(mutant.lines & self.reached[i])

    def is_found(self, mutant: Mutant) -> bool:
        """Whether the checker has findings; where the fault is one of data, other results count too. The launch that
        found the last one is the first that is tried."""
        for i in [i for i in self.order if self._reaches(i, mutant)]:
            outputs, run = self.run(mutant.number, self.subject.launches[i])
            if run.findings or (mutant.kind not in DELETIONS and outputs != self.expected[i]):
                self.order.remove(i)
                self.order.insert(0, i)
                return True
        return False


class _Instrument:
    """Puts switches into a kernel's text."""

    def __init__(self, lines: list[str]):
        self.source, self.lines = lines, list(lines)
        self.mutants: list[Mutant] = []
        text = "\n".join(lines)
        self.constants = {name: int(n) for name, n in re.findall(r"constexpr uint32_t (\w+) = (\d+);", text)}
        self.functions = _functions(lines)
        pattern = re.compile(r"(\s*LocalTensor<\w+> (\w+)[({]TPosition::VECCALC, )(\d+)(, (\w+)[)}];)")
        self.declared = {i: match for i, line in enumerate(lines) if (match := pattern.fullmatch(line))}
        self.flags()
        for i, line in enumerate(lines):
            text = line.strip()
            if text in ("PipeBarrier<PIPE_V>();", "PipeBarrier<PIPE_MTE2>();", "PipeBarrier<PIPE_MTE3>();"):
                other = "PIPE_MTE2" if "PIPE_V" in text else "PIPE_V"
                self.instead("barrier-pipe", f"PipeBarrier<{other}>();", i)
                self.without("barrier", i)
            elif text == "SyncAll();":
                self.without("sync-all", i)
        self.buffers()
        self.copies()
        self.switch()

    def switch(self) -> None:
        """Declares the switch and sets it where the kernel begins."""
        first = next(i for i, line in enumerate(self.lines) if line.startswith("using namespace"))
        begin = next(i for i, line in enumerate(self.lines) if "GET_TILING_DATA_WITH_STRUCT" in line)
        # All on the lines that there are: places in the text keep their numbers.
        self.lines[begin] += " mutant = tilingData.mutant;"
        self.lines[first] += " static uint32_t mutant;"

    def number(self, text: str) -> int | None:
        """The value of a constant in the text."""
        return int(text) if text.isdigit() else self.constants.get(text)

    def add(self, kind: str, text: str, *lines: int) -> str:
        """A new mutant; returns the condition under which its fault is in force."""
        self.mutants.append(Mutant(len(self.mutants) + 1, kind, text, frozenset(i + 1 for i in lines)))
        return f"mutant == {len(self.mutants)}"

    def without(self, kind: str, *numbers: int) -> None:
        statement, following = (self.source[numbers[0] + after].strip() for after in (0, 1))
        text = f"line {numbers[0] + 1}, {statement}, before {following}"
        condition = self.add(kind, text, *numbers)
        for i in numbers:
            self.lines[i] = f"if (!({condition})) {self.lines[i].strip()}"

    def instead(self, kind: str, statement: str, i: int, condition: str = "") -> str:
        """Another statement in place of one; returns the condition."""
        condition = condition or self.add(kind, f"line {i + 1}, {self.source[i].strip()}: {statement}", i)
        self.lines[i] = f"if ({condition}) {statement} else {self.lines[i].strip()}"
        return condition

    def flags(self) -> None:
        """A set with its wait, each alone where a function has only one of them."""
        for part in self.functions:
            self.flags_of(part)

    def flags_of(self, part: range) -> None:
        events = {}
        for i in part:
            found = re.fullmatch(r"(\s*)(Set|Wait)Flag<HardEvent::(\w+)>\((EVENT_ID\d)\);", self.source[i])
            if found:
                events[i] = len(found[1]), found[2], found[3], found[4]
        taken: set[int] = set()
        for i, (depth, what, *event) in events.items():
            if what == "Wait" or i in taken:
                continue
            later = [(j, *e) for j, e in events.items() if j > i and j not in taken and list(e[2:]) == event]
            group = [i, *(j for j, *_ in later[:1])]
            if later and later[0][1] > depth:  # set before a loop, for the wait of its first iteration
                inner = later[0][1]
                group += [j for j, d, w, *_ in later if w == "Set" and d == inner][:1]
                group += [j for j, d, w, *_ in later if w == "Wait" and d == depth][:1]
            if len(group) not in (2, 4):
                continue
            taken |= set(group)
            condition = self.add("event-id", f"line {i + 1}, {self.source[i].strip()}: another id", *group)
            wrong = "EVENT_ID5" if event[1] != "EVENT_ID5" else "EVENT_ID4"
            self.lines[i] = self.lines[i].replace(event[1], f"({condition} ? {wrong} : {event[1]})")
            source, target = event[0].split("_")
            condition = self.add("direction", f"line {i + 1}, {self.source[i].strip()}: the other way", *group)
            for j in group:
                self.instead("", self.source[j].strip().replace(event[0], f"{target}_{source}"), j, condition)
            # Of a primed pair, those in the loop.
            self.without("set", group[2] if len(group) > 2 else group[0])
            self.without("wait", group[1])
            self.without("flag", *group)
        for i in events.keys() - taken:
            self.without("flag", i)

    def visible(self, part: range) -> dict[str, int]:
        """The buffers of a function, of the class and its own, by the lines that declare them."""
        members = {match[2]: i for i, match in self.declared.items() if not any(i in other for other in self.functions)}
        return members | {match[2]: i for i, match in self.declared.items() if i in part}

    def buffers(self) -> None:
        found = self.declared
        across: dict[int, list[int]] = {i: [] for i in found}
        for part in self.functions:
            declared = self.visible(part)
            for name, others in _lives_across(self.source[part.start : part.stop], list(declared)).items():
                across[declared[name]] += [declared[other] for other in others]
        for i, match in found.items():
            address = match[3]
            # What a reduction to one element a repeat writes may start at any element: such buffers are short.
            if not match[5].isdigit() or int(match[5]) >= 8:
                misaligned = self.add("address", f"{match[2]} 4 bytes on")
                address = f"{address} + ({misaligned} ? 4 : 0)"
            other = next((found[j] for j in across[i] if found[j][3] != match[3]), None)
            if other is not None:
                overlapping = self.add("overlap", f"{match[2]} where {other[2]} is")
                address = f"({overlapping} ? {other[3]} : {address})"
            self.lines[i] = f"{match[1]}static_cast<uint32_t>({address}){match[4]}"

    def copies(self) -> None:
        element = {"float": 4, "int32_t": 4, "bfloat16_t": 2, "half": 2, "uint16_t": 2}
        memories = re.findall(r"GlobalTensor<(\w+)> (\w+);", "\n".join(self.source))
        types = {name: element.get(kind, 1) for kind, name in memories}
        i = 0
        while i < len(self.lines):
            if re.match(r"\s*Copy(In|InPadded|Out)\(", self.lines[i]):
                end = i
                while not self.lines[end].rstrip().endswith(";"):
                    end += 1
                statement = " ".join(line.strip() for line in self.lines[i : end + 1])
                self.lines[i : end + 1] = [self.copy(statement, i, types), *[""] * (end - i)]
            i += 1

    def copy(self, statement: str, line: int, types: dict[str, int]) -> str:
        call, arguments = statement.rstrip(";)").split("(", 1)[0], _arguments(statement)
        memory = next((name for name in types if re.search(rf"\b{name}\b", statement)), None)
        if memory is None:
            return statement
        block = _BLOCK // types[memory]
        count = self.number(arguments[2])
        if count is None:  # not known before the run: of a tail
            fewer = self.add("count", f"line {line + 1}, {statement}: one element fewer")
            arguments[2] += f" - ({fewer} ? 1 : 0)"
        # Half of a doubled buffer: up to its end the next copy overwrites what is too much. What a function is given may
        # be such a half.
        part = next(part for part in self.functions if line in part)
        declared = self.visible(part).get(re.match(r"\w+", arguments[0])[0])
        length = None if declared is None else self.number(self.declared[declared][5])
        surplus = block if count is None else max((length or 2 * count) - count, 0) + block
        more = self.add("length", f"line {line + 1}, {statement}: {surplus} elements more")
        arguments[2] += f" + ({more} ? {surplus} : 0)"
        if call.strip() == "CopyOut":
            more = self.add("count", f"line {line + 1}, {statement}: one element more")
            arguments[2] += f" + ({more} ? 1 : 0)"
        return f"{call}({', '.join(arguments)});"


def _arguments(call: str) -> list[str]:
    """The arguments of a call, as text."""
    inside = call[call.index("(") + 1 : call.rindex(")")]
    found, depth, start = [], 0, 0
    for i, letter in enumerate(inside):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(inside[start:i].strip())
            start = i + 1
    return [*found, inside[start:].strip()]


def _lives_across(lines: list[str], names: list[str]) -> dict[str, list[str]]:
    """For each buffer, those that are written while it waits to be read again."""
    places: dict[str, list[int]] = {name: [] for name in names}
    written: dict[str, list[int]] = {name: [] for name in names}
    known, branches = set(names), _branches(lines)
    for i, line in _statements(lines):
        if "LocalTensor<" in line:
            continue
        used = [word for word in re.findall(r"\w+", line) if word in known]
        for name in used:
            places[name].append(i)
        if used and re.match(rf"\s*([\w ]+ = )?\w+(<\w+>)?\({used[0]}\b", line):
            written[used[0]].append(i)

    def is_between(line: int, name: str) -> bool:
        """Whether a buffer is next read, and not written, after a line, and was used before it."""
        on_the_way = [place for place in places[name] if not _exclude(branches[place], branches[line])]
        later = [place for place in on_the_way if place > line]
        earlier = [place for place in on_the_way if place < line]
        return bool(earlier) and bool(later) and line not in places[name] and later[0] not in written[name]

    return {
        name: [other for other in names if other != name and any(is_between(line, name) for line in written[other])]
        for name in names
    }


def _functions(lines: list[str]) -> list[range]:
    """The lines of each function: one, or those of a class."""
    found = []
    for start, line in enumerate(lines):
        if line.strip() == "{":
            end = lines.index(line.replace("{", "}"), start)
            found.append(range(start, end + 1))
    return found


def _statements(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Each statement with the number of its first line."""
    first, parts = 0, []
    for i, line in enumerate(lines):
        if not parts:
            first = i
        parts.append(line)
        if re.search(r"([;{}]|//.*)\s*$", line) or not line.strip():
            yield first, " ".join(parts)
            parts = []


def _branches(lines: list[str]) -> list[dict[int, int]]:
    """For each line the branches that it is in: which one, by the line where the first of them begins."""
    found, around = [], []
    for i, line in enumerate(lines):
        if line.strip().startswith("}"):
            first, branch = around.pop()
            if "else" in line:
                around.append((first, branch + 1))
        found.append(dict(around))
        if line.rstrip().endswith("{") and "else" not in line:
            around.append((i, 0))
    return found


def _exclude(one: dict[int, int], other: dict[int, int]) -> bool:
    return any(one[first] != other[first] for first in one.keys() & other.keys())
