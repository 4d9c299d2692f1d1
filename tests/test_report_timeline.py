"""The model's timeline, on traces small enough to work out by hand."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from jascend.backends.ascend import targets, twin
from jascend.backends.ascend.report import profile_kernel
from jascend.backends.ascend.report.instructions import Rates, split, step_cycles, vector_cycles
from jascend.backends.ascend.report.memory import Memory, active_cores, shared_rates, traffic_seconds
from jascend.backends.ascend.report.profile import python_line
from jascend.backends.ascend.report.timeline import simulate
from jascend.backends.ascend.twin.library import NOWHERE, TRACE_DTYPE

COSTS = targets.costs("ascend910b")
PLACES = [("", "", 0), ("Add", "kernel.cpp", 1), ("DataCopy", "kernel.cpp", 2), ("DataCopy", "kernel.cpp", 3),
          ("GetValue", "kernel.cpp", 4)]  # fmt: skip
ADD, LOAD, STORE, GET = range(1, 5)


def with_facts(**values):
    """The product's costs with some of them other than they are."""
    facts = COSTS.facts | {name: dataclasses.replace(COSTS.facts[name], value=value) for name, value in values.items()}
    return dataclasses.replace(COSTS, facts=facts)


# No cost of issuing, so that sums are round; flags cost 10 cycles, or 40 with the scalar unit.
ROUND = with_facts(issue=0, scalar=0)


def row(step, pipe, to="S", **fields):
    record = np.zeros((), TRACE_DTYPE)
    record["address"] = NOWHERE
    record["step"], record["pipe"], record["to"] = twin.STEPS.index(step), twin.PIPES.index(pipe), twin.PIPES.index(to)
    for name, value in fields.items():
        record[name] = value
    return record


def add(repeats=64):
    return row("instruction", "V", place=ADD, repeats=repeats, width=4)


def load(size, offset=0, argument=0, pieces=1):
    return row("instruction", "MTE2", place=LOAD, bytes=size, offset=offset, argument=argument, pieces=pieces)


def store(size, offset=0, argument=1):
    return row("instruction", "MTE3", place=STORE, bytes=size, offset=offset, argument=argument, pieces=1)


def get(size=0):
    return row("instruction", "S", place=GET, bytes=size)


def put(pipe, to, serial):
    return row("set", pipe, to, serial=serial)


def wait(pipe, to, serial):
    return row("wait", pipe, to, serial=serial)


def barrier(pipe="V"):
    return row("barrier", pipe, pipe)


SYNC = row("sync_all", "ALL", "ALL")
ALONE = Rates(read=COSTS.read, read_l2=COSTS.read_l2, write=COSTS.write)


def steps_of(*rows):
    return np.stack(rows) if rows else np.zeros(0, TRACE_DTYPE)


def run(*rows, costs=ROUND, record=False):
    steps = steps_of(*rows)
    occupied, rest = step_cycles(steps, PLACES, np.zeros(len(steps)), ALONE, costs)
    return simulate(steps, occupied, rest, len(PLACES), costs, record)


def given(rows, cycles, costs):
    """Instructions that take as many cycles as `cycles` says for their pipe, and nothing after."""
    steps = steps_of(*rows)
    occupied = np.array([cycles.get(twin.PIPES[s["pipe"]], 0) if s["step"] == 0 else 0 for s in steps], float)
    return simulate(steps, occupied, np.zeros(len(steps)), len(PLACES), costs)


def test_one_instruction_is_its_start_and_its_repeats():
    assert run(add(64)).cycles == pytest.approx(24 + 64)


@pytest.mark.parametrize(
    "addresses, blocks, repeats, extra",
    [
        # The scenarios of the guide's sample: written, read, read; cycles beyond 88.
        ((0x20000, 0, 0x10100), (1, 1, 1), (8, 8, 8), 0),
        ((0x10000, 0, 0x4000), (1, 1, 1), (8, 8, 8), 64 * 1.03),  # one bank
        ((0x14100, 0, 0x10000), (1, 1, 1), (8, 8, 8), 64 * 1.03),  # one bank group
        ((0x4000, 0, 0x10100), (1, 1, 1), (8, 8, 8), 0),  # the write comes a repeat later
        ((0x4020, 0, 0x10100), (1, 1, 1), (8, 8, 8), 64 * 0.79),
        ((0x10100, 0, 0x10100), (1, 1, 1), (8, 8, 8), 0),  # in place
        ((0x10100, 0, 0x10100), (1, 0, 1), (8, 1, 8), 32 * 1.03),  # one block a repeat meets every other one
        ((0x10100, 0, 0x10100), (1, 0, 1), (8, 8, 8), 0),
        ((0x10000, 0, NOWHERE), (1, 1, 1), (8, 8, 8), 0),  # one operand only
        ((0x100, 0x20, NOWHERE), (1, 1, 1), (8, 8, 8), 64 * 0.79),
    ],
)
def test_operands_that_collide_in_banks(addresses, blocks, repeats, extra):
    step = add(64)
    step["address"], step["block_stride"], step["repeat_stride"] = addresses, blocks, repeats
    assert run(step).cycles == pytest.approx(88 + extra)


def test_other_instructions_have_no_pattern_of_banks():
    step = row("instruction", "V", place=LOAD, repeats=64, width=4)
    step["address"], step["block_stride"], step["repeat_stride"] = (0x10000, 0, 0), 1, 8
    assert run(step).cycles == pytest.approx(88)


def test_a_barrier_makes_the_next_instruction_wait_for_the_result():
    assert run(add(64), barrier(), add(64)).cycles == pytest.approx(2 * (24 + 64))
    assert run(add(64), add(64)).cycles == pytest.approx(0.2 * 24 + 64 + 24 + 64)  # the rest of the start-up is hidden


def test_a_barrier_holds_its_own_pipe_only():
    free = run(add(64), barrier("V"), load(64), record=True)
    assert free.starts[2] == 0
    held = run(add(64), barrier("ALL"), load(64), record=True)
    assert held.starts[2] == pytest.approx(88)


def test_two_pipes_with_an_event():
    result = run(load(8192), put("MTE2", "V", 1), wait("MTE2", "V", 1), add(32), record=True)
    copied = 8192 / COSTS.read * COSTS.clock
    assert result.starts[3] == pytest.approx(copied + 10)
    assert result.cycles == pytest.approx(copied + 10 + 24 + 32)
    assert result.exposed[LOAD] == pytest.approx(copied) and result.exposed[ADD] == pytest.approx(10 + 24 + 32)


def test_without_an_event_pipes_overlap():
    assert run(load(8192), add(32)).cycles == pytest.approx(8192 / COSTS.read * COSTS.clock)


def test_a_flag_waits_for_what_its_pipe_waits_for():
    """A set on a pipe that is itself held comes after what holds it."""
    rows = [load(8192), put("MTE2", "V", 1), wait("MTE2", "V", 1), put("V", "MTE3", 2), wait("V", "MTE3", 2), store(64)]
    copied = 8192 / COSTS.read * COSTS.clock
    assert run(*rows, record=True).starts[5] == pytest.approx(copied + 10 + 10)


def tiles(buffers, count):
    """Load, add, load, add, ...: a load waits until the addition `buffers` tiles ago is over."""
    rows = []
    for i in range(count):
        if i >= buffers:
            rows.append(wait("V", "MTE2", 1000 + i - buffers))
        rows += [load(64), put("MTE2", "V", i + 1), wait("MTE2", "V", i + 1), add(), put("V", "MTE2", 1000 + i)]
    return rows


@pytest.mark.parametrize("vector, one, two", [(80, 8 * 180, 8 * 100 + 80), (150, 8 * 250, 100 + 8 * 150)])
def test_two_buffers_overlap_copies_and_additions(vector, one, two):
    costs = with_facts(issue=0, scalar=0, flag=0, flag_scalar=0)
    cycles = {"MTE2": 100, "V": vector}
    assert given(tiles(1, 8), cycles, costs).cycles == one
    assert given(tiles(2, 8), cycles, costs).cycles == two


def test_the_scalar_unit_waits_and_then_issues():
    rows = [add(64), put("V", "S", 1), wait("V", "S", 1), get(), add(64)]
    assert run(*rows).cycles == pytest.approx(88 + 40 + 10 + 24 + 64)
    assert run(*rows[:-1]).busy[twin.PIPES.index("S")] == pytest.approx(10)
    assert run(get(size=4)).cycles == COSTS.scalar_gm


def test_issuing_takes_the_scalar_unit_time():
    costs = with_facts(issue=6, scalar=2)
    assert run(add(1), barrier(), add(1), costs=costs, record=True).starts[0] == 6
    many = run(*[load(32)] * 100, costs=costs)
    assert many.busy[twin.PIPES.index("S")] == 600
    assert many.cycles == pytest.approx(6 + 99 * COSTS.copy_issue + COSTS.read_latency)  # issue hides behind the copies


def test_small_copies_cost_their_issue_or_when_waited_for_the_latency():
    fenced = run(load(32), put("MTE2", "S", 1), wait("MTE2", "S", 1))
    assert fenced.cycles == pytest.approx(COSTS.read_latency + 40)
    assert run(store(4), put("MTE3", "S", 1), wait("MTE3", "S", 1)).cycles == pytest.approx(COSTS.write_latency + 40)


def test_pieces_and_starts_off_the_grid_slow_a_copy_down():
    plain = run(load(8192)).cycles
    assert run(load(8192, offset=2)).cycles == pytest.approx(plain * COSTS.unaligned)
    assert run(load(8192, offset=32)).cycles == plain
    assert run(load(8192, pieces=2048)).cycles == pytest.approx(2048 * COSTS.copy_piece)


def test_exposed_time_sums_to_the_whole():
    result = run(*tiles(2, 5), get(), barrier(), add(), costs=COSTS)
    assert result.exposed.sum() == pytest.approx(result.cycles, abs=2 * COSTS.scalar)


# -- the vector table --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api, width, repeats, cycles", [
    ("Add", 4, 64, 64), ("Exp", 4, 64, 128), ("Exp", 2, 64, 256), ("GatherMask", 4, 10, 20), ("Gather", 4, 10, 128),
    ("WholeReduceMax", 4, 8, 56), ("BlockReduceSum", 4, 8, 8), ("Sort32", 4, 4, 64), ("MrgSort", 4, 64, 1024),
    ("CreateVecIndex", 4, 64, 64 * 25),           # a chain: each repeat waits for the one before
    ("ReduceMax", 4, 64, 64 * 7 + 24 + 7 * 2 + 24 + 7),  # rounds of 64, then 2, then 1 repeats
    ("Sort", 4, 16, 256 + 2 * (256 + 16 + 24)),   # runs of 32, then two levels of merges with a copy back
    ("Sort", 4, 1, 16),
    ("Sigmoid", 4, 40, 60 + 3 * 24),  # ten repeats of four steps
    ("Unheard", 4, 3, 3),
])  # fmt: skip
def test_cycles_of_vector_work(api, width, repeats, cycles):
    assert vector_cycles(api, width, np.array([repeats]), COSTS)[0] == pytest.approx(cycles)


def test_every_vector_api_of_the_twin_has_a_cost():
    headers = (Path(twin.__file__).parent / "include" / "twin").glob("*.h")
    text = "".join(header.read_text() for header in headers)
    names = set(re.findall(r'(?:Call call\(|Elementwise<[^"]*>\()"(\w+)"(?:, PIPE_V|, \d)', text))
    assert {"Cast", "Select", "Sort32"} <= names
    for costs in targets.COSTS.values():
        only_950 = {"Scatter"} - costs.vector.keys()
        assert names - costs.vector.keys() == only_950, "add them to `targets.py`"


def test_950_builds_a_ramp_at_once():
    assert vector_cycles("CreateVecIndex", 4, np.array([64]), targets.costs("ascend950"))[0] == 64


# -- memory ------------------------------------------------------------------------------------------------------------


def test_cores_share_the_bandwidth():
    def rates(cores, size=1 << 20):
        return shared_rates([steps_of(load(size), store(size))] * cores, 48, COSTS)

    assert rates(1).read == COSTS.read and rates(34).read == COSTS.read
    assert rates(40).read == pytest.approx(COSTS.total / 40) and rates(48).read == pytest.approx(COSTS.total / 48)
    assert rates(96).read == rates(48).read  # the second half runs after the first
    assert rates(48).write == pytest.approx(COSTS.total_both / 48)


def test_a_core_with_a_long_tail_is_not_held_to_its_share():
    assert active_cores([100, 0, 0, 0], 48) == 1 and active_cores([100, 100, 50, 0], 48) == 2.5
    programs = [steps_of(load(47 << 20))] + [steps_of(load(1 << 20))] * 47
    assert shared_rates(programs, 48, COSTS).read == COSTS.read


def test_what_was_copied_before_comes_from_l2():
    memory = Memory(COSTS)
    copies = steps_of(load(8192), load(8192), load(8192, offset=8192), load(8192, offset=12288))
    assert memory.epoch([copies])[0].tolist() == [0, 1, 0, 0.5]
    other = memory.epoch([steps_of(load(4096, argument=1), load(8192)), steps_of(load(4096, argument=1))])
    assert other[0].tolist() == [0, 1] and other[1].tolist() == [1]  # block 1 follows block 0


def test_what_was_copied_long_ago_does_not():
    small = with_facts(l2=65536)
    sweep = [load(32768, offset=offset) for offset in range(0, 131072, 32768)]
    assert Memory(small).epoch([steps_of(*sweep, *sweep)])[0].tolist() == [0] * 8
    assert Memory(COSTS).epoch([steps_of(*sweep, *sweep)])[0].tolist() == [0] * 4 + [1] * 4


def test_all_bytes_together_need_time():
    programs = [steps_of(load(1 << 20), store(1 << 20))] * 2
    assert traffic_seconds(programs, [np.zeros(2)] * 2, COSTS) == pytest.approx((4 << 20) / COSTS.total_both)
    assert traffic_seconds(programs, [np.array([1, 0])] * 2, COSTS) == pytest.approx((2 << 20) / COSTS.total_both)


# -- launches ----------------------------------------------------------------------------------------------------------


def launched(*blocks):
    total = {"gm_read_bytes": 0, "gm_write_bytes": 0, "instructions": {}, "repeats": 0, "copies": 0}
    return twin.Run([], [], {"blocks": [], "total": total, "tiling_bytes": 0}, [twin.Trace(steps_of(*rows), PLACES) for rows in blocks])


def test_cores_meet_in_sync_all():
    short, long = add(100), add(1000)
    one = profile_kernel(launched([short, SYNC, long], [long, SYNC, short]), "ascend910b", name="k")
    issue = COSTS.issue
    assert one.cycles == pytest.approx(2 * (issue + 24 + 1000) + COSTS.sync_all * COSTS.clock)
    assert one.syncs == 1 and one.core_cycles == pytest.approx([2 * (issue + 24) + 1100] * 2)
    assert one.seconds == pytest.approx(COSTS.launch + one.cycles / COSTS.clock)
    assert [len(part) for part in split(twin.Trace(steps_of(short, SYNC, long), PLACES))] == [1, 1]


def test_flags_set_before_sync_all_have_come():
    rows = [add(), put("V", "MTE2", 7), SYNC, wait("V", "MTE2", 7), load(8192)]
    assert profile_kernel(launched(rows), "ascend910b", name="k").syncs == 1


def test_more_blocks_than_cores_take_turns():
    def cycles(blocks, cores):
        return profile_kernel(launched(*[[add(1000)]] * blocks), "ascend910b", name="k", cores=cores).cycles

    assert cycles(4, 4) == cycles(1, 4)
    assert cycles(4, 2) == pytest.approx(2 * cycles(1, 4)) and cycles(5, 2) == pytest.approx(3 * cycles(1, 4))


def test_copies_slow_down_until_all_cores_keep_to_the_shared_bandwidth():
    """48 cores that read and write at once: each rate alone is possible, both together are not."""
    rows = [step for i in range(16) for step in (load(1 << 20, offset=i << 20), store(1 << 20, offset=i << 20))]
    blocks = [[np.array(step) for step in rows] for _ in range(48)]
    for block, steps in enumerate(blocks):
        for step in steps:
            step["offset"] += block << 24
    profile = profile_kernel(launched(*blocks), "ascend910b", name="k")
    least = 48 * 32 * (1 << 20) / COSTS.total_both * COSTS.clock
    assert least * 0.99 <= profile.cycles <= least * 1.02


def test_a_run_without_a_trace_is_refused():
    with pytest.raises(ValueError, match="trace=True"):
        profile_kernel(twin.Run([], [], {}), "ascend910b", name="k")
    with pytest.raises(ValueError, match="unknown target"):
        profile_kernel(launched([add()]), "ascend310p", name="k")


def test_an_empty_block_takes_no_time():
    profile = profile_kernel(launched([], [add()]), "ascend910b", name="k")
    assert profile.core_cycles[0] == 0 and profile.busiest == 1


def test_python_line_is_the_nearest_comment_above():
    source = ["// user.py:1", 'extern "C" void k()', "    // user.py:7", "    Add();", "    Exp();", "    // user.py:9"]
    assert [python_line(source, n) for n in (4, 5, 2)] == ["user.py:7", "user.py:7", "user.py:1"]
    assert python_line(source[1:2] + source[3:], 2) == ""


def test_every_constant_has_a_source():
    for costs in targets.COSTS.values():
        for name, fact in costs.facts.items():
            assert fact.kind in ("documented", "measured", "derived", "guess") and fact.source and fact.unit, name
    with pytest.raises(AttributeError, match="no cost 'nothing'"):
        COSTS.nothing  # noqa: B018
