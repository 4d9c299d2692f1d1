"""`insert-sync` on random kernels: whatever path a run takes, all conflicting instructions are ordered and all flags
meet.

The kernels are run here by vector clocks over the pipes, with a number of iterations and branches drawn anew for every
loop and `if` that nothing else decides; nothing of the pass's own reasoning is used.
"""

from __future__ import annotations

import random

import pytest
from mlir import ir
from mlir.dialects import arith

import jascend.dialect
from jascend.passes import insert_sync
from jascend.passes.pipe_order import Barrier, Flag, Pair
from jascend.passes.pipeline import run_pipeline

PIPES = ("S", "V", "MTE2", "MTE3")
BUFFERS = 5
MEMORY = 'memref<?xf32, "gm">'
FLAT = 'memref<64xf32, "ub">'

ONE_BRANCH_ENDS_THE_LOOP = f"""
func.func @k(%x: {MEMORY}, %n: index, %p: i1) attributes {{ascend.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = "ascendc.local_tensor"() {{name_hint = "a", offset = 0 : i64}} : () -> {FLAT}
  %m = arith.divsi %n, %c2 : index
  %w:2 = scf.while (%go = %c1, %i = %c0) : (index, index) -> (index, index) {{
    %goes = arith.cmpi ne, %go, %c0 : index
    %less = arith.cmpi slt, %i, %m : index
    %both = arith.andi %goes, %less : i1
    scf.condition(%both) %go, %i : index, index
  }} do {{
  ^bb0(%go: index, %i: index):
    "ascendc.copy_in"(%a, %x, %n, %n) : ({FLAT}, {MEMORY}, index, index) -> ()
    %u = scf.if %p -> index {{
      scf.yield %c1 : index
    }} else {{
      scf.yield %c0 : index
    }}
    %j = arith.addi %i, %c1 : index
    scf.yield %u, %j : index, index
  }}
  return
}}
"""


class Writer:
    """Makes the text of a kernel."""

    def __init__(self, seed: int, branches: float = 0.1):
        self.random = random.Random(seed)
        self.branches = branches  # how many of the ops in a block are branches
        self.lines: list[str] = []
        self.count = 0

    def kernel(self) -> str:
        # Some buffers share addresses, in part.
        starts = [self.random.choice((0, 128, 256, 512)) + 256 * self.random.randrange(3) for _ in range(BUFFERS)]
        head = [
            f"func.func @k(%x: {MEMORY}, %y: {MEMORY}, %n: index, %p: i1, %s: f32) attributes {{ascend.kernel}} {{",
            "%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index", "%c2 = arith.constant 2 : index",
            "%c64 = arith.constant 64 : index", "%true = arith.constant true",
            *(f'%b{i} = "ascendc.local_tensor"() {{name_hint = "b{i}", offset = {start} : i64}} : () -> {FLAT}'
              for i, start in enumerate(starts)),
            '%d = "ascendc.local_tensor"() {name_hint = "d", offset = 768 : i64} : () -> memref<128xf32, "ub">',
            f'%d0 = "ascendc.view"(%d, %c0) : (memref<128xf32, "ub">, index) -> {FLAT}',
        ]  # fmt: skip
        self.conditions: list[tuple[str, str]] = []  # of which one holds, and is known to, where the other one does not
        self.block(0, [*(f"%b{i}" for i in range(BUFFERS)), "%d0"])
        return "\n".join([*head, *self.lines, "return", "}"])

    def block(self, depth: int, buffers: list[str], first: str = "") -> None:
        known = len(self.conditions)
        for _ in range(self.random.randint(1, 5 if depth else 6)):
            kind = self.random.random()
            if depth < 3 and kind < 0.15:
                self.loop(depth, buffers)
            elif depth < 3 and kind < 0.15 + self.branches:
                self.lines.append(f"scf.if {self.condition(first)} {{")
                self.block(depth + 1, buffers)
                if self.random.random() < 0.5:
                    self.lines.append("} else {")
                    self.block(depth + 1, buffers)
                self.lines.append("}")
            else:
                self.instruction(buffers)
        del self.conditions[known:]

    def condition(self, induction: str) -> str:
        """Of a branch: drawn anew, false in a loop's first iteration, or true where another one is false."""
        kind = self.random.random()
        if kind < 0.3:
            return "%p"
        self.count += 1
        n = self.count
        if induction and kind < 0.6:
            self.lines.append(f"%t{n} = arith.cmpi sgt, {induction}, %c0 : index")
            return f"%t{n}"
        if not self.conditions or self.random.random() < 0.3:
            self.lines += [
                f"%f{n} = arith.cmpf olt, %s, %s : f32",
                f"%k{n} = arith.select %f{n}, %c0, %c1 : index",
                f"%g{n} = arith.cmpi sgt, %k{n}, %c0 : index", f"%h{n} = arith.xori %f{n}, %true : i1",
            ]
            self.conditions.append((f"%f{n}", self.random.choice((f"%g{n}", f"%h{n}"))))
        return self.random.choice(self.random.choice(self.conditions))

    def loop(self, depth: int, buffers: list[str]) -> None:
        self.count += 1
        n = self.count
        last = self.random.choice((f"%m{n}", f"%m{n}", "%c2", "%c1"))
        self.lines.append(f"%m{n} = arith.divsi %n, %c2 : index")
        kind = self.random.random()
        if kind < 0.3:
            self.while_loop(depth, buffers, n, last)
            return
        if kind < 0.6:
            self.lines.append(f"scf.for %i{n} = %c0 to {last} step %c1 {{")
            self.block(depth + 1, buffers, f"%i{n}")
            self.lines.append("}")
            return
        if self.random.random() < 0.6:
            self.lines.append(f"%any{n} = arith.cmpi slt, %c0, {last} : index")
            self.copy_in("%d0", f"%any{n}")
        self.lines += [
            f"%e{n} = scf.for %i{n} = %c0 to {last} step %c1 iter_args(%slot{n} = %c0) -> index {{",
            f"%other{n} = arith.subi %c1, %slot{n} : index",
            f"%at{n} = arith.muli %slot{n}, %c64 : index",
            f"%to{n} = arith.muli %other{n}, %c64 : index",
            f'%this{n} = "ascendc.view"(%d, %at{n}) : (memref<128xf32, "ub">, index) -> {FLAT}',
            f'%that{n} = "ascendc.view"(%d, %to{n}) : (memref<128xf32, "ub">, index) -> {FLAT}',
        ]
        if self.random.random() < 0.4:
            self.lines += [
                f"%next{n} = arith.addi %i{n}, %c1 : index",
                f"%more{n} = arith.cmpi slt, %next{n}, {last} : index",
            ]
            self.copy_in(f"%that{n}", f"%more{n}")
        self.block(depth + 1, [*buffers, f"%this{n}", f"%that{n}", f"%this{n}"], f"%i{n}")
        self.lines += [f"scf.yield %other{n} : index", "}"]

    def while_loop(self, depth: int, buffers: list[str], n: int, last: str) -> None:
        """One that branches in its body end, perhaps."""
        self.lines += [
            f"%w{n}:2 = scf.while (%go{n} = %m{n}, %i{n} = %c0) : (index, index) -> (index, index) {{",
            f"%goes{n} = arith.cmpi ne, %go{n}, %c0 : index", f"%less{n} = arith.cmpi slt, %i{n}, {last} : index",
            f"%both{n} = arith.andi %goes{n}, %less{n} : i1",
            f"scf.condition(%both{n}) %go{n}, %i{n} : index, index", "} do {", f"^bb0(%go{n}: index, %i{n}: index):",
        ]  # fmt: skip
        known = len(self.conditions)
        self.block(depth + 1, buffers, f"%i{n}")
        goes_on = self.branches_that_end(depth + 1, buffers)
        if self.random.random() < 0.5:
            self.block(depth + 1, buffers)
        del self.conditions[known:]
        self.lines += [f"%j{n} = arith.addi %i{n}, %c1 : index", f"scf.yield {goes_on}, %j{n} : index, index", "}"]

    def branches_that_end(self, depth: int, buffers: list[str]) -> str:
        """A number, by branches and branches in them: of some it is known whether it is 0."""
        self.count += 1
        n = self.count
        kind = self.random.random()
        if depth > 3 or kind < 0.5:
            self.lines.append(f"%u{n} = arith.divsi %n, %c2 : index")
            return self.random.choice((f"%u{n}", "%c0", "%c0", "%c1"))
        self.lines.append(f"%u{n} = scf.if {self.condition('')} -> index {{")
        for after in ("} else {", "}"):
            known = len(self.conditions)
            if self.random.random() < 0.7:
                self.block(depth + 1, buffers)
            value = self.branches_that_end(depth + 1, buffers)
            if self.random.random() < 0.3:
                self.block(depth + 1, buffers)
            del self.conditions[known:]
            self.lines += [f"scf.yield {value} : index", after]
        return f"%u{n}"

    def instruction(self, buffers: list[str]) -> None:
        a, b = self.random.choice(buffers), self.random.choice(buffers)
        memory = self.random.choice(("%x", "%y"))
        kind = self.random.randrange(8)
        if kind < 3:
            self.lines.append(f'"ascendc.exp"({a}, {b}) : ({FLAT}, {FLAT}) -> ()')
        elif kind < 5:
            self.copy_in(a)
        elif kind < 6:
            self.lines.append(f'"ascendc.copy_out"({memory}, {a}, %n, %n) : ({MEMORY}, {FLAT}, index, index) -> ()')
        elif kind < 7:
            self.lines.append(f'"ascendc.duplicate"({a}, %s) : ({FLAT}, f32) -> ()')
        else:
            self.count += 1
            self.lines.append(f'%v{self.count} = "ascendc.get_value"({a}, %c1) : ({FLAT}, index) -> f32')

    def copy_in(self, buffer: str, condition: str = "") -> None:
        """Of nothing, perhaps, where a condition does not hold."""
        memory, count = self.random.choice(("%x", "%y")), "%n"
        if condition and self.random.random() < 0.7:
            self.count += 1
            count = f"%count{self.count}"
            self.lines.append(f"{count} = arith.select {condition}, %c64, %c0 : index")
        self.lines.append(
            f'"ascendc.copy_in"({buffer}, {memory}, %n, {count}) : ({FLAT}, {MEMORY}, index, index) -> ()'
        )


class Run:
    """One run of a kernel by vector clocks."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.sequence = dict.fromkeys(PIPES, 0)
        self.clocks = {pipe: dict.fromkeys(PIPES, 0) for pipe in PIPES}
        self.flags: dict[tuple, dict] = {}
        self.accesses: list[tuple] = []  # place, start, end, pipe, sequence, writes, op
        self.values: dict[ir.Value, object] = {}

    def block(self, block: ir.Block) -> list:
        for view in block.operations:
            op = view.operation
            if op.name in ("scf.yield", "scf.condition", "func.return"):
                return [self.values.get(value) for value in op.operands]
            getattr(self, op.name.replace(".", "_"), self.instruction)(op)
        return []

    def scf_if(self, op) -> None:
        holds = self.values.get(op.operands[0])
        choice = self.random.randrange(2) if holds is None else int(not holds)
        if choice < len(op.regions) and len(op.regions[choice].blocks):
            self.values.update(zip(op.results, self.block(op.regions[choice].blocks[0])))

    def scf_while(self, op) -> None:
        carried = [self.values[value] for value in op.operands]
        before, body = (region.blocks[0] for region in op.regions)
        while True:
            self.values.update(zip(before.arguments, carried))
            goes_on, *carried = self.block(before)
            if not goes_on:
                break
            self.values.update(zip(body.arguments, carried))
            carried = self.block(body)
        self.values.update(zip(op.results, carried))

    def scf_for(self, op) -> None:
        first, last = (self.values.get(value) for value in list(op.operands)[:2])
        carried = [self.values[value] for value in list(op.operands)[3:]]
        body = op.regions[0].blocks[0]
        for i in range(first, last):
            self.values.update(zip(body.arguments, [i, *carried]))
            carried = self.block(body)
        self.values.update(zip(op.results, carried))

    def arith_constant(self, op) -> None:
        self.values[op.results[0]] = op.attributes["value"].value

    def arith_addi(self, op) -> None:
        self.values[op.results[0]] = self.values[op.operands[0]] + self.values[op.operands[1]]

    def arith_subi(self, op) -> None:
        self.values[op.results[0]] = self.values[op.operands[0]] - self.values[op.operands[1]]

    def arith_cmpf(self, op) -> None:
        self.values[op.results[0]] = bool(self.random.randrange(2))

    def arith_select(self, op) -> None:
        condition, a, b = (self.values[value] for value in op.operands)
        self.values[op.results[0]] = a if condition else b

    def arith_cmpi(self, op) -> None:
        a, b = (self.values[value] for value in op.operands)
        predicate = arith.CmpIPredicate(op.attributes["predicate"].value).name
        self.values[op.results[0]] = {"slt": a < b, "sgt": a > b, "ne": a != b}[predicate]

    def arith_andi(self, op) -> None:
        self.values[op.results[0]] = all(self.values[value] for value in op.operands)

    def arith_xori(self, op) -> None:
        self.values[op.results[0]] = self.values[op.operands[0]] != self.values[op.operands[1]]

    def arith_muli(self, op) -> None:
        self.values[op.results[0]] = self.values[op.operands[0]] * self.values[op.operands[1]]

    def arith_divsi(self, op) -> None:
        """How often a loop runs that nothing decides."""
        self.values[op.results[0]] = self.random.choice((0, 1, 2, 3))

    def ascendc_local_tensor(self, op) -> None:
        self.values[op.results[0]] = op.attributes["offset"].value

    def ascendc_view(self, op) -> None:
        self.values[op.results[0]] = self.values[op.operands[0]] + 4 * self.values[op.operands[1]]

    def at_issue(self, pipe: str) -> dict:
        clock = self.clocks[pipe]
        for other, sequence in self.clocks["S"].items():
            clock[other] = max(clock[other], sequence)
        return clock

    def ascendc_set_flag(self, op) -> None:
        key = op.attributes["event"].value, op.attributes["event_id"].value
        assert key not in self.flags, f"{key} is set twice"
        source = key[0].split("_")[0]
        self.flags[key] = {**self.at_issue(source), source: self.sequence[source]}

    def ascendc_wait_flag(self, op) -> None:
        key = op.attributes["event"].value, op.attributes["event_id"].value
        assert key in self.flags, f"{key} is not set"
        clock = self.at_issue(key[0].split("_")[1])
        for pipe, sequence in self.flags.pop(key).items():
            clock[pipe] = max(clock[pipe], sequence)

    def ascendc_pipe_barrier(self, op) -> None:
        pipe = op.attributes["pipe"].value
        for one in PIPES if pipe == "ALL" else (pipe,):
            for other in PIPES if pipe == "ALL" else (pipe,):
                self.clocks[one][other] = self.sequence[other]

    def instruction(self, op) -> None:
        definition = jascend.dialect.ASCENDC.by_name[op.name]
        pipe = definition.pipe
        if op.name == "ascendc.copy_in" and self.values.get(op.operands[3]) == 0:
            return
        clock = self.at_issue(pipe)
        self.sequence[pipe] += 1
        new = []
        for operand, value in zip(definition.operands, op.operands):
            if operand.role:
                start = self.values.get(value)
                place, start, end = (value.arg_number, 0, 1) if start is None else ("ub", start, start + 256)
                new.append((place, start, end, pipe, self.sequence[pipe], operand.role != "in", op))
        for one in new:
            for other in self.accesses:
                if one[0] != other[0] or one[1] >= other[2] or other[1] >= one[2] or not (one[5] or other[5]):
                    continue
                once = one[0] != "ub" and one[3] == other[3] and one[6] == other[6]
                ordered = other[4] <= clock[other[3]] or (other[3] == "S" and not other[5])
                assert ordered or once, f"nothing orders\n{other[6]}\nand\n{one[6]}"
        self.accesses += new
        if len(self.accesses) % 64 < len(new):  # what every pipe knows of cannot be in disorder any more
            known = {p: min(self.clocks[q][p] for q in PIPES) for p in PIPES}
            self.accesses = [a for a in self.accesses if a[4] > known[a[3]] and (a[3] != "S" or a[5])]


@pytest.mark.parametrize("part", range(4))
def test_every_path_of_random_kernels_is_ordered(part):
    check_kernels(range(part * 25, part * 25 + 25))


@pytest.mark.parametrize("ids", [1, 2])
def test_flags_that_do_double_duty(ids, monkeypatch):
    """Where there are too few event ids, flags are merged."""
    monkeypatch.setattr(insert_sync, "EVENT_IDS", range(ids))
    check_kernels(range(200, 225))


def test_branches_that_exclude_each_other():
    check_kernels(range(30, 70), branches=0.3)


def test_what_a_flag_stands_for_where_a_loop_around_comes_back_to_one_that_runs_once():
    """It is what is known before that loop, and nothing that the loop has added when it ran before."""
    check_kernels((2018, 3195), branches=0.3)
    check_kernels((102949, 103001), branches=0.15)


def test_what_a_flag_carries_is_looked_at_again():
    """In the loop the flag before it makes no difference: there is one around. But the flag behind the loop, set before
    the one around is waited for, carries it to the last copy: the first copy is done, also where no iteration runs."""
    check(f"""
        func.func @k(%x: {MEMORY}, %y: {MEMORY}, %n: index, %s: f32) attributes {{ascend.kernel}} {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %a = "ascendc.local_tensor"() {{name_hint = "a", offset = 0 : i64}} : () -> {FLAT}
          %b = "ascendc.local_tensor"() {{name_hint = "b", offset = 256 : i64}} : () -> {FLAT}
          "ascendc.copy_out"(%x, %a, %n, %n) : ({MEMORY}, {FLAT}, index, index) -> ()
          %m = arith.divsi %n, %c2 : index
          scf.for %i = %c0 to %m step %c1 {{
            "ascendc.exp"(%b, %b) : ({FLAT}, {FLAT}) -> ()
            %f = arith.cmpf olt, %s, %s : f32
            "ascendc.duplicate"(%a, %s) : ({FLAT}, f32) -> ()
            scf.if %f {{
              "ascendc.copy_out"(%y, %a, %n, %n) : ({MEMORY}, {FLAT}, index, index) -> ()
            }} else {{
              "ascendc.exp"(%a, %b) : ({FLAT}, {FLAT}) -> ()
            }}
          }}
          "ascendc.copy_out"(%x, %a, %n, %n) : ({MEMORY}, {FLAT}, index, index) -> ()
          return
        }}""", seed=0, paths=20)  # fmt: skip


def test_what_decides_between_branches_is_looked_at_again():
    """Behind the first branch the flag makes no difference: the copy may just have run. But only because of the flag it
    has not before it is known which branch is taken."""

    def flag(program):
        body = program.blocks[the_loop(program).regions[0].blocks[0]]
        pair = Pair(insert_sync.PIPES.index("MTE3"), insert_sync.PIPES.index("V"))
        place = body.items[1]
        pair.set = program._insert(Flag(None, pair=pair), body, place)
        pair.wait = program._insert(Flag(None, pair=pair, is_wait=True), body, place)

    check_by_hand(f"""
        func.func @k(%x: {MEMORY}, %n: index, %s: f32) attributes {{ascend.kernel}} {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %a = "ascendc.local_tensor"() {{name_hint = "a", offset = 0 : i64}} : () -> {FLAT}
          %b = "ascendc.local_tensor"() {{name_hint = "b", offset = 256 : i64}} : () -> {FLAT}
          %m = arith.divsi %n, %c2 : index
          scf.for %i = %c0 to %m step %c1 {{
            "ascendc.exp"(%b, %b) : ({FLAT}, {FLAT}) -> ()
            %f = arith.cmpf olt, %s, %s : f32
            %k = arith.select %f, %c0, %c1 : index
            %g = arith.cmpi sgt, %k, %c0 : index
            scf.if %g {{
              "ascendc.copy_out"(%x, %a, %n, %n) : ({MEMORY}, {FLAT}, index, index) -> ()
            }}
            scf.if %f {{
              "ascendc.duplicate"(%a, %s) : ({FLAT}, f32) -> ()
            }}
          }}
          return
        }}""", flag)  # fmt: skip


def test_where_a_loop_goes_round_is_looked_at_again():
    """Behind the branches the barrier makes no difference: one of them has none. But that one ends the loop."""

    def barrier(program):
        [branch] = [op for op in program.controls if op.name == "scf.if"]
        block = program.blocks[branch.regions[0].blocks[0]]
        program._insert(Barrier(None, pipe="MTE2"), block, block.items[0])

    check_by_hand(ONE_BRANCH_ENDS_THE_LOOP, barrier)


def test_a_walk_that_is_looked_up_leaves_where_the_loop_goes_round_what_it_found():
    with jascend.dialect.make_context():
        module = ir.Module.parse(ONE_BRANCH_ENDS_THE_LOOP)
        program = insert_sync._Synchroniser(module.body.operations[0].operation, ())
        program.adding = True
        [branch] = [control for control in program.controls.values() if not control.is_loop]
        copied = program.instructions[0].leaves
        for state in (copied, 0, copied):
            assert program._control(branch, state) == program.before[branch.onward] == state


def the_loop(program):
    [loop] = [op for op, control in program.controls.items() if control.is_loop]
    return loop


def check_by_hand(text, add):
    """Of a kernel in which something is synchronised already: that this is needed is seen when it is taken away."""
    with jascend.dialect.make_context():
        module = ir.Module.parse(text)
        program = insert_sync._Synchroniser(module.body.operations[0].operation, ())
        add(program)
        program.synchronise()
        with module.operation.location:
            program.write()
        check_paths(module, seed=0, paths=20)


def check_kernels(seeds, branches=0.1):
    for seed in seeds:
        check(Writer(seed, branches).kernel(), seed)


def check(text, seed, paths=6):
    with jascend.dialect.make_context():
        check_paths(run_pipeline(ir.Module.parse(text), "insert-sync"), seed, paths)


def check_paths(module, seed, paths):
    kernel = module.body.operations[0]
    for path in range(paths):
        run = Run(1000 * seed + path)
        try:
            run.block(kernel.regions[0].blocks[0])
            assert not run.flags, f"never waited for: {list(run.flags)}"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, path {path}: {error}\n{module}") from None
