"""Lines of Python in what the twin finds: through jax.jit, and inside functions of the kernel's own."""

import dataclasses

import jax
import numpy as np
import pytest
from processes import FOUR_DEVICES, run
from test_twin import PROLOGUE, cache, entry  # noqa: F401  (cache is a fixture)

import jascend as ja
from jascend.backends.ascend import project, twin
from jascend.backends.ascend.report import report as reports
from jascend.backends.ascend.twin import toolchain

KERNEL = PROLOGUE + """
template <typename T>
__aicore__ inline void Put(const LocalTensor<T> &dst, T value, uint32_t count)
{
    Duplicate(dst, value, count);
}
__aicore__ inline void Twice(const LocalTensor<float> &dst) { Put<float>(dst, 1.0f, 8); Adds(dst[1], dst, 1.0f, 8); }
""" + entry("lines", 0, """    InitSocState();
    LocalTensor<float> f(TPosition::VECCALC, 0, 64);
    // demo.py:3
    Put(f[4], 1.0f, 8); Put(f[5],
        float(8 * (1 + 0)), 8);
    // demo.py:9
    if (f.GetSize() > 8)
        Put(f[4], 1.0f, 8);
    for (int i = 0; i < 2; ++i) {
        // demo.py:12
        Twice(f);
    }
    // demo.py:15
    Duplicate(f[6], 1.0f, 8);""")


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    source = tmp_path_factory.mktemp("lines") / "lines.cpp"
    source.write_text(KERNEL)
    return twin.build(source, follow=["Put", "Twice"])


def test_a_finding_in_a_function_names_its_caller(lines):
    text = KERNEL.splitlines()
    run = lines.launch("lines", [], blocks=1, auto_sync=True, trace=True)
    found = [f for f in run.findings if f.kind == "misaligned"]
    inside = text.index("    Duplicate(dst, value, count);") + 1
    seen = [(f.kernel_line, text[f.caller_line - 1].strip().split("(")[0] if f.caller_line else "", f.python) for f in found]
    assert seen[:2] == [(inside, "Put", "demo.py:3"), (inside, "Put", "demo.py:9")]
    assert seen[2][1:] == ("Twice", "demo.py:12") and seen[3][1:] == ("", "demo.py:15")
    assert [f.count for f in found] == [2, 1, 2, 1]
    assert f"lines.cpp:{inside}, called on line {found[0].caller_line} (demo.py:3): misaligned" in str(found[0])
    trace = run.trace[0]
    assert len(trace.callers) == len(trace.places) and sum(map(bool, trace.callers)) == 4
    assert trace.places[-1][0] == "Duplicate" and trace.callers[-1] == 0


def test_the_report_names_the_callers_line(lines):
    report = reports.profile_run(lines.launch("lines", [], blocks=1, auto_sync=True, trace=True), "ascend910b")
    told = {(line.api, line.python) for line in report.kernels[0].lines}
    assert {("Duplicate", "demo.py:3"), ("Duplicate", "demo.py:9"), ("Adds", "demo.py:12"), ("Duplicate", "demo.py:15")} <= told


def test_without_follow_there_is_no_caller(tmp_path):
    (tmp_path / "lines.cpp").write_text(KERNEL)
    found = twin.build(tmp_path / "lines.cpp").launch("lines", [], blocks=1, auto_sync=True).findings
    assert {f.caller_line for f in found} == {0} and found[0].python == ""


@pytest.mark.parametrize("text, expected", [
    ("\n  F(1, g(2));\n", "\n  (twin::CalledFrom(2), F(1, g(2)), twin::CalledFrom(0));\n"),
    ("\n  F<half>(a,\n    b);\n", "\n  (twin::CalledFrom(2), F<half>(a,\n    b), twin::CalledFrom(0));\n"),
    ("\nvoid F(int a) {}\n", "\nvoid F(int a) {}\n"), ("\n  x = F(1);\n", "\n  x = F(1);\n"),
    ("\n  MyF(1); xF(2);\n", "\n  MyF(1); xF(2);\n"), ("\n  F(1) + 2;\n", "\n  F(1) + 2;\n"), ("\n  F(1", "\n  F(1"),
])
def test_calls_are_followed_where_they_are_statements(text, expected):
    assert toolchain.follow_calls(text, ("F",)) == expected


# ---- generated kernels ----


def arguments(rows=3, vocabulary=72):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, vocabulary)).astype(np.float32), np.full(rows, 0.8, np.float32), np.full(rows, 5, np.int32)


def spoilt(monkeypatch):
    """Kernels without their first wait for a copy, and with a copy in that is too long."""
    build = project.build_for_twin

    def changed(kernel, target):
        lines = kernel.source.splitlines()
        del lines[next(i for i, line in enumerate(lines) if "WaitFlag<HardEvent::MTE2_V>" in line)]
        text = "\n".join(lines).replace("const uint32_t bytes = count *", "const uint32_t bytes = 2049 * count *", 1)
        return build(dataclasses.replace(kernel, source=text + "\n"), target)

    monkeypatch.setattr(project, "build_for_twin", changed)


def line_of(word):
    """test_twin_lines.py:N of the line below with that comment."""
    with open(__file__) as file:
        number = next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(f"# {word}"))
    return f"test_twin_lines.py:{number}"


def test_findings_in_jit_name_the_callers_line_of_each_function(monkeypatch):
    """Two functions with the same kernel, each with its own line; helpers of the kernel's text too."""
    spoilt(monkeypatch)

    def one(logits, p, k):
        return ja.apply_top_k_top_p(logits, p, k)  # one

    def two(logits, p, k):
        kept = ja.apply_top_k_top_p(logits, p, k)  # two
        return kept * 2

    with ja.lowering("twin"):
        for function, word in [(one, "one"), (two, "two")]:
            with pytest.raises(jax.errors.JaxRuntimeError) as caught:
                jax.block_until_ready(jax.jit(function)(*arguments()))
            lines = str(caught.value).splitlines()[1:]
            findings = [line for line in lines if ": " in line]
            assert len(findings) > 1 and all(f"({line_of(word)}): " in line for line in findings), "\n".join(lines)
            assert any(", called on line " in line for line in findings)


def test_an_operator_jitted_as_it_is_names_the_call(monkeypatch):
    spoilt(monkeypatch)
    jitted = jax.jit(ja.apply_top_k_top_p)
    with ja.lowering("twin"), pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jitted(*arguments(rows=4)))  # jitted
    assert f"({line_of('jitted')}): " in str(caught.value)


def test_findings_of_a_program_name_the_line_in_helpers_too(monkeypatch):
    spoilt(monkeypatch)

    def function(logits, p, k):
        return ja.apply_top_k_top_p(logits, p, k)  # program

    program = ja.compile(function, *arguments())
    with pytest.raises(RuntimeError) as caught:
        program(*arguments())
    lines = [line for line in str(caught.value).splitlines() if "called on line" in line]
    assert lines and all(f"({line_of('program')})" in line for line in lines), str(caught.value)


# ---- several devices ----


def test_rows_over_several_devices_stay_local():
    run(
        """
import re, numpy as np, jax, jascend as ja
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
assert len(jax.devices()) == 4
x = np.random.default_rng(0).normal(size=(8, 304)).astype(np.float32)
p, k = np.full(8, .8, np.float32), np.arange(8, dtype=np.int32)
expected = np.asarray(ja.apply_top_k_top_p(x, p, k))
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
function = lambda x, p, k: ja.apply_top_k_top_p(x * 1, p, k)
collectives = lambda text: re.findall(r"(all-gather|all-reduce|all-to-all|collective-permute)\\(", text)
with ja.lowering("twin"):
    # spec of the logits; rows that a device's kernel gets; whether anything moves: columns do, rows never
    for spec, rows, moved in [(P(("a", "b")), 2, False), (P("a"), 4, False), (P("b"), 4, False), (P("a", "b"), 4, True),
                              (P(None, "b"), 8, True), (P(), 8, False)]:
        args = [jax.device_put(a, NamedSharding(mesh, P(*spec[: a.ndim]))) for a in (x, p, k)]
        compiled = jax.jit(function).lower(*args).compile()
        text = compiled.as_text()
        call, = [line for line in text.splitlines() if "jascend_twin_launch" in line]
        assert f"f32[{rows},304]" in call and f"blocks = {rows} " in call, call
        assert bool(collectives(text)) == moved, (spec, collectives(text))
        out = compiled(*args)
        np.testing.assert_array_equal(out, expected)
        assert out.sharding.spec == P(*spec[:1]) or out.sharding.is_fully_replicated, out.sharding
    # vmap has two dimensions of rows
    args = [jax.device_put(a.reshape(2, 4, *a.shape[1:]), NamedSharding(mesh, P("a", "b"))) for a in (x, p, k)]
    compiled = jax.jit(jax.vmap(function)).lower(*args).compile()
    assert not collectives(compiled.as_text())
    np.testing.assert_array_equal(compiled(*args), expected.reshape(2, 4, 304))
    # shard_map as before
    mapped = jax.shard_map(function, mesh=mesh, in_specs=(P(("a", "b")),) * 3, out_specs=P(("a", "b")))
    np.testing.assert_array_equal(mapped(x, p, k), expected)
    np.testing.assert_array_equal(jax.jit(function)(x, p, k), expected)  # one device
""",
        **FOUR_DEVICES,
    )


@pytest.mark.parametrize("wrong", ["Sort33(f, 8);", "double x = 1;"])
def test_the_compiler_s_errors_name_the_line_of_python(tmp_path, wrong):
    body = f"    LocalTensor<float> f(TPosition::VECCALC, 0, 64);\n    // demo.py:7\n    {wrong}\n"
    file = tmp_path / "kernel.cpp"
    file.write_text(PROLOGUE + entry("wrong", 0, body))
    with pytest.raises(twin.CompileError, match=r"kernel.cpp:\d+(:\d+)? \(demo.py:7\): error: "):
        twin.build(file)
