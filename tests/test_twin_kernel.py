"""A whole kernel in the style of the generated ones, and what the checker says when one synchronisation is taken out."""

import re
from pathlib import Path

import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (the fixture)

from jascend.backends.ascend import twin

SOURCE = Path(__file__).parent / "data" / "twin" / "softmax.cpp"
f32 = np.float32


def launch(library, entry="softmax_rows", rows=7, columns=1000, threshold=0.002, blocks=3):
    x = np.random.default_rng(3).normal(size=(rows, columns)).astype(f32)
    y, kept, count = np.zeros_like(x), np.zeros_like(x), np.zeros(rows, np.int32)
    padded = -(-columns // 512) * 512
    tiling = np.array([rows, columns, padded], np.uint32).tobytes() + f32(threshold).tobytes()
    run = library.launch(entry, [x, y, kept, count], tiling=tiling, blocks=blocks)
    return run, x, y, kept, count


@pytest.fixture(scope="module")
def library():
    return twin.build(SOURCE)


@pytest.mark.parametrize("columns, blocks", [(1000, 3), (512, 1), (7, 8), (4096, 2)])
def test_kernel_is_right_and_clean(library, columns, blocks):
    run, x, y, kept, count = launch(library, columns=columns, blocks=blocks)
    assert run.findings == [], run.describe()
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=3e-6)
    np.testing.assert_array_equal(count, (y > f32(0.002)).sum(1))
    for r in range(len(x)):
        np.testing.assert_array_equal(kept[r, : count[r]], y[r][y[r] > f32(0.002)])
        assert not kept[r, count[r]:].any()


def test_results_do_not_depend_on_the_blocks(library):
    outputs = [launch(library, blocks=blocks)[2].tobytes() for blocks in (1, 2, 7)]
    assert len(set(outputs)) == 1


def test_same_kernel_on_950():
    run, x, y, _, _ = launch(twin.build(SOURCE, target="ascend950"))
    assert run.findings == [], run.describe()
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-6)


SYNC = re.compile(r"^\s*(SetFlag|WaitFlag|PipeBarrier<PIPE_V>)")


def mutants():
    """The kernel with one barrier, or one matching pair of flags, taken out."""
    text = SOURCE.read_text()
    start = text.index('extern "C"')
    lines = text[start:].splitlines()
    found = {}
    for i, line in enumerate(lines):
        if "PipeBarrier<PIPE_V>" in line:
            found[f"barrier_{i}"] = [i]
        match = re.match(r"\s*SetFlag<HardEvent::(\w+)>\((\w+)\);", line)
        if match and line.startswith("    "):
            wait = f"WaitFlag<HardEvent::{match[1]}>({match[2]});"
            later = [k for k in range(i, len(lines)) if lines[k].strip() == wait and lines[k].startswith("    ")]
            if later:
                found[f"{match[1]}_{match[2]}_{i}".lower()] = [i, later[0]]
    return text[:start], lines, found


PREFIX, LINES, MUTANTS = mutants()


@pytest.fixture(scope="module")
def mutated(tmp_path_factory):
    text = PREFIX
    for name, removed in MUTANTS.items():
        body = "\n".join("" if i in removed else line for i, line in enumerate(LINES))
        text += body.replace("softmax_rows", f"softmax_{name}") + "\n"
    source = tmp_path_factory.mktemp("mutants") / "mutants.cpp"
    source.write_text(text)
    return twin.build(source)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_missing_synchronisation_is_found(mutated, name):
    run = launch(mutated, f"softmax_{name}")[0]
    assert {f.kind for f in run.findings} == {"missing-sync"}, run.describe()


def test_there_are_mutants_of_every_kind():
    kinds = {re.sub(r"_\w+", "", name) if name.startswith("barrier") else "_".join(name.split("_")[:2]) for name in MUTANTS}
    assert {"barrier", "v_mte2", "mte2_v", "v_s", "v_mte3", "mte3_s", "s_mte3"} <= kinds and len(MUTANTS) > 12
