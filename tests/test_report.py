"""Reports of kernels that ran on the twin: numbers, JSON, Perfetto, the page, and Program.profile."""

import dataclasses
import itertools
import json
import struct
from html.parser import HTMLParser
from pathlib import Path

import jascend as ja
import jax.numpy as jnp
import numpy as np
import pytest
from jascend.backends.ascend import targets, twin
from jascend.backends.ascend.report import needed_bytes, operator_cycles, profile_launch, profile_run, roofline
from jascend.backends.ascend.report.html import microseconds, size, ticks

KERNELS = Path(__file__).parent / "data" / "twin_cost"
COSTS = targets.costs("ascend910b")
CHECKED = {"schema", "name", "target", "microseconds", "launch_microseconds", "cycles", "launches", "gm_read_bytes",
           "gm_write_bytes", "pipes", "roofline_microseconds", "roofline_ratio", "roofline", "findings", "library_calls", "kernels",
           "model"}  # fmt: skip


@pytest.fixture(scope="module")
def stream():
    """Four cores that each add two tiles of 4096 halves."""
    library = twin.build(KERNELS / "add.cpp")
    x, y, z = (np.full(4 * 2 * 4096, i, np.float16) for i in (1, 2, 0))
    report = profile_launch(library, "add_stream", [x, y, z], blocks=4, tiling=struct.pack("III", 2, 4096, 2))
    assert (z == 3).all()
    return report


@pytest.fixture(scope="module")
def filtered():
    """The filter on a small batch, compiled and profiled."""

    def scaled_filter(logits, temperature, p, k):
        return ja.apply_top_k_top_p(logits / temperature[:, None], p, k)

    rng = np.random.default_rng(0)
    arguments = (
        jnp.asarray(rng.normal(0, 3, (3, 1000)), jnp.float32),
        jnp.asarray([1.0, 0.7, 2.0], jnp.float32),
        jnp.asarray([0.9, 0.5, 1.0], jnp.float32),
        jnp.asarray([50, 10, 0], jnp.int32),
    )
    program = ja.compile(scaled_filter, *arguments)
    return program, arguments, program.profile(*arguments)


def test_numbers_of_a_run(stream):
    assert stream.launches == 1 and stream.findings == []
    assert stream.gm_read_bytes == 2 * 4 * 2 * 8192 and stream.gm_write_bytes == 4 * 2 * 8192
    assert stream.microseconds == pytest.approx((COSTS.launch + COSTS.tiling_copy + stream.cycles / COSTS.clock) * 1e6)
    assert set(stream.pipes) == {"S", "V", "MTE2", "MTE3"} and all(0 < share < 1 for share in stream.pipes.values())
    copied = 4 * 8192 / COSTS.read * COSTS.clock  # of one core, which reads all the time but at the end
    assert copied < stream.cycles < copied * 1.6
    assert stream.pipes["MTE2"] == pytest.approx(copied / stream.cycles)
    kernel = stream.kernels[0]
    assert kernel.blocks == 4 and kernel.copy_pieces == 4 * 2 * 3 and kernel.unknown == ()
    assert kernel.instructions == {"V": 8, "MTE2": 16, "MTE3": 8} and kernel.vector_repeats == 4 * 2 * 32


def test_two_buffers_are_faster_than_one():
    library = twin.build(KERNELS / "add.cpp")
    arrays = [np.ones(8 * 4096, np.float16) for _ in range(3)]
    one, two = (
        profile_launch(library, "add_stream", arrays, blocks=1, tiling=struct.pack("III", 8, 4096, buffers)).cycles
        for buffers in (1, 2)
    )
    assert two < one * 0.95


def test_lines_name_the_calls(stream):
    lines = {(line.api, line.pipe): line for line in stream.kernels[0].lines}
    source = (KERNELS / "add.cpp").read_text().splitlines()
    (add,) = [line for line in stream.kernels[0].lines if line.api == "Add"]
    assert source[add.line - 1].strip() == add.text == "Add(zLocal, xLocal, yLocal, t.tile);"
    assert add.count == 2 and add.cycles == pytest.approx(2 * (32 * (1 + COSTS.bank_read) + 0.2 * 24)) and add.gm_bytes == 0
    assert lines["DataCopy", "MTE3"].gm_bytes == 2 * 8192
    exposed = sum(line.exposed_cycles for line in stream.kernels[0].lines)
    assert exposed == pytest.approx(stream.cycles, rel=0.02)


def test_the_roofline_is_of_the_arrays_once(stream):
    needed = 3 * 4 * 2 * 8192
    assert stream.roofline.compulsory_bytes == needed and stream.roofline.bound == "memory"
    assert stream.roofline_microseconds == pytest.approx((COSTS.launch + needed / COSTS.total) * 1e6)
    assert stream.roofline_ratio == pytest.approx(stream.microseconds / stream.roofline_microseconds)


def test_fewer_cores_take_longer():
    library = twin.build(KERNELS / "add.cpp")
    arrays = [np.ones(8 * 4096, np.float16) for _ in range(3)]
    many, few = (
        profile_launch(
            library, "add_stream", arrays, blocks=8, tiling=struct.pack("III", 1, 4096, 1), cores=cores
        ).cycles
        for cores in (8, 2)
    )
    assert few == pytest.approx(4 * many)


def test_a_run_that_was_not_traced_is_refused():
    library = twin.build(KERNELS / "add.cpp")
    run = library.launch("add_resident", [np.zeros(4096, np.float32)], blocks=1)
    with pytest.raises(ValueError, match="add_resident was launched without trace=True"):
        profile_run(run, "ascend910b", name="add_resident")


def test_json_has_every_number(stream, tmp_path):
    text = stream.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == text
    data = json.loads(text)
    assert set(data) == CHECKED and data["schema"] == 1
    for name in ("microseconds", "cycles", "gm_read_bytes", "gm_write_bytes", "roofline_ratio", "launches"):
        assert data[name] == getattr(stream, name)
    kernel = data["kernels"][0]
    assert kernel["core_cycles"] == pytest.approx([stream.cycles] * 4) and kernel["busiest"] == 0
    assert {"api", "file", "line", "text", "python", "pipe", "count", "cycles", "exposed_cycles", "gm_bytes"} == set(
        kernel["lines"][0]
    )
    assert data["model"]["launch"] == {"value": 4e-6, "unit": "s", "kind": "derived",
                                       "source": targets.COSTS[2201].facts["launch"].source}  # fmt: skip


def test_perfetto_has_the_events_in_order(stream, tmp_path):
    stream.to_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    starts = [event["ts"] for event in slices]
    assert starts == sorted(starts) and all(event["dur"] >= 0 for event in slices)
    assert starts[0] >= 4.0 and max(e["ts"] + e["dur"] for e in slices) <= stream.microseconds + 1e-9
    for thread in {event["tid"] for event in slices}:  # slices of one pipe do not overlap
        own = [event for event in slices if event["tid"] == thread]
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-9 for a, b in itertools.pairwise(own))
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"V", "MTE2", "MTE3", "block 0", "block 3"} <= names
    assert sum(event["name"] == "Add" for event in slices) == 2


class Page(HTMLParser):
    """Reads a page and fails where its tags do not match."""

    VOID = ("meta",)

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.tags = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def test_a_program_of_two_launches(stream):
    two = dataclasses.replace(stream, kernels=stream.kernels * 2)
    assert two.launches == 2 and two.microseconds == 2 * stream.microseconds and two.pipes == pytest.approx(stream.pipes)
    slices = [event for event in json.loads(two.to_perfetto())["traceEvents"] if event["ph"] == "X"]
    first, second = ([event for event in slices if event["pid"] == process] for process in (0, 1))
    assert slices == first + second and second[0]["ts"] - first[0]["ts"] == pytest.approx(stream.microseconds)
    Page(two.to_html())


def test_the_page_has_the_numbers(filtered, tmp_path):
    _, _, report = filtered
    report.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    words = "".join(page.words)
    for shown in (microseconds(report.microseconds), f"{report.roofline_ratio:.2f}", size(report.gm_read_bytes),
                  size(report.gm_write_bytes), "test_report.py:", report.kernels[0].name, "no findings"):  # fmt: skip
        assert shown in words, shown
    for pipe, share in report.pipes.items():
        assert pipe in words and f"{share:.1%}" in words
    assert sum(tag == "svg" for tag, _ in page.tags) == 3
    links = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("href", "src")]
    assert links == [] and "url(" not in text and "<script" not in text  # nothing from elsewhere
    assert "prefers-color-scheme: dark" in text and "<html lang" in text


def test_findings_are_in_the_report(tmp_path):
    source = (KERNELS / "add.cpp").read_text().replace("PipeBarrier<PIPE_V>();", "")
    (tmp_path / "add.cpp").write_text(source)
    library, addresses = twin.build(tmp_path / "add.cpp"), struct.pack("III", 0, 0x4000, 0x8000)
    report = profile_launch(library, "add_resident", [np.zeros(4096, np.float32)], blocks=1, tiling=addresses)
    assert {finding.kind for finding in report.findings} == {"missing-sync"}
    assert "missing-sync" in report.to_html() and "missing-sync" in json.loads(report.to_json())["findings"][0]


def test_profile_of_a_program(filtered):
    program, arguments, report = filtered
    assert jnp.array_equal(report.outputs, program(*arguments))
    assert report.launches == len(report.kernels) == 1 and report.findings == []
    assert report.name == "scaled_filter" and report.target == "ascend910b"
    assert report.gm_read_bytes >= 3 * 1000 * 4 and report.gm_write_bytes == 3 * 1000 * 4
    assert report.roofline.compulsory_bytes == 2 * 3 * 1000 * 4 + 3 * 3 * 4
    assert report.roofline.vector_cycles == pytest.approx(4 * 3000 / 64)
    assert 1 < report.roofline_ratio < 1000
    lines = {line.python for kernel in report.kernels for line in kernel.lines}
    assert any(line.startswith("test_report.py:") for line in lines)
    assert "scaled_filter on ascend910b (model)" in str(report)


def needed_of(function, *arrays, **options):
    program = ja.compile(function, *arrays, **options)
    (kernel,) = program.kernels
    return needed_bytes(program.ir("fused"), kernel.name, arrays)


def test_of_q_a_sampler_needs_what_belongs_to_survivors():
    rng = np.random.default_rng(0)
    logits, q = rng.normal(size=(4, 500)).astype(np.float32), rng.exponential(size=(4, 500)).astype(np.float32)
    k, p = np.array([50, 0, 2000, 7], np.int32), np.array([1, 1, 0.9, 1], np.float32)
    sample = lambda x, k, p, q: ja.top_k_top_p_sample(2 * x, k, p, q).logits_select_idx
    assert needed_of(sample, logits, k, p, q) == [None, None, None, 4 * (50 + 500 + 1 + 7)]
    constant = lambda x, q: ja.top_k_top_p_sample(x, 5, 1.0, q, 0.0).logits_select_idx
    assert needed_of(constant, logits, q) == [None, 4 * 4 * 5]
    computed = lambda x, k, p, q: ja.top_k_top_p_sample(x, k + 1, p, q).logits_select_idx
    assert needed_of(computed, logits, k, p, q) == [None, None, None, 4 * 4]
    without = lambda x, k, p: ja.top_k_top_p_sample(x, k, p).logits_select_idx
    assert needed_of(without, logits, k, p) == [None] * 3

    def drawn(x, q, k):  # of |q|
        return ja.top_k_top_p_sample(ja.apply_top_k_top_p(x, k=k), 5000, 1.0, q, eps=0.0).logits_select_idx

    assert needed_of(drawn, logits, q, k, force="fuse-sampling") == [None, 4 * (50 + 500 + 500 + 7), None]


def test_profile_on_fewer_cores(filtered):
    program, arguments, report = filtered
    fewer = program.profile(*arguments, cores=2)
    assert [report.kernels[0].blocks, fewer.kernels[0].blocks, fewer.kernels[0].cores] == [3, 2, 2]
    assert jnp.array_equal(fewer.outputs, report.outputs) and fewer.microseconds > report.microseconds


def test_profile_checks_its_arguments(filtered):
    program, arguments, _ = filtered
    with pytest.raises(ValueError, match="must be float32"):
        program.profile(arguments[0].astype(jnp.bfloat16), *arguments[1:])


def test_profile_of_no_rows():
    def nothing(logits, k):
        return ja.apply_top_k_top_p(logits, None, k)

    arguments = jnp.zeros((0, 64), jnp.float32), jnp.zeros((0,), jnp.int32)
    report = ja.compile(nothing, *arguments).profile(*arguments)
    assert report.launches == 0 and report.microseconds == 0 and report.pipes == {}
    Page(report.to_html())


def test_vector_work_of_operators():
    text = """
    func.func @main(%x: tensor<4x128xf32>, %k: tensor<4xi32>) -> tensor<4x128xf32> {
      %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>}
         : (tensor<4x128xf32>, tensor<4xi32>) -> tensor<4x128xf32>
      return %0 : tensor<4x128xf32>
    }"""
    assert operator_cycles(text) == 4 * 512 / 64
    assert roofline("ascend910b", 0, 1.85e9 * 48).seconds == pytest.approx(1 + 4e-6)
    assert roofline("ascend910b", 0, 1.85e9 * 48, cores=24).bound == "vector"


@pytest.mark.parametrize("begin, end", [(0, 781.4), (405.37, 407.6), (0, 0.003), (5, 5)])
def test_ticks_are_round_and_inside(begin, end):
    marks = ticks(begin, end)
    assert len(marks) <= 9 and all(begin - 1e-9 <= mark <= end + 1e-9 for mark in marks)
    assert all(len(f"{mark:g}") <= 7 for mark in marks)


def test_sizes():
    assert [size(n) for n in (0, 1023, 2048, 3 << 20, 5 << 30)] == ["0 B", "1023 B", "2.0 KiB", "3.0 MiB", "5.0 GiB"]
