"""`jascend.compile`, `Program` and `jascend.jit`: what users see, and what they see when something is wrong."""

import gc
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jascend as ja
from jascend.passes import lower_to_tile  # noqa: F401, registers ours
from jascend.passes.lowerings import lowering


def shape(*dims, dtype=np.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def filtered(logits, temperature, p, k):
    scaled = logits / temperature[:, None]
    return {"out": ja.apply_top_k_top_p(scaled, p, k)}


SPECS = (shape(4, 300), shape(4), shape(4), shape(4, dtype=np.int32))


@pytest.fixture(scope="module")
def program():
    return ja.compile(filtered, *SPECS, target="ascend910b")


def arrays():
    rng = np.random.default_rng(0)
    return (
        rng.normal(0, 3, (4, 300)).astype(np.float32),
        np.array([1, 0.5, 2, 0.7], np.float32),
        np.array([0.9, 0.5, 1, 0], np.float32),
        np.array([5, 0, 300, 7], np.int32),
    )


def line_of(function, text):
    """Where a piece of a function's source stands, as `file:line`."""
    lines, first = inspect.getsourcelines(function)
    return f"{os.path.basename(__file__)}:{first + next(i for i, line in enumerate(lines) if text in line)}"


def test_the_result_has_the_function_s_structure(program):
    out = program(*arrays())
    assert list(out) == ["out"]
    assert isinstance(out["out"], jax.Array)
    np.testing.assert_array_equal(out["out"], jax.jit(filtered)(*arrays())["out"])


def test_keyword_arguments():
    logits, _, p, k = arrays()
    compiled = ja.compile(ja.apply_top_k_top_p, logits, p=p, k=k)
    np.testing.assert_array_equal(compiled(logits, p=p, k=k), ja.apply_top_k_top_p(logits, p=p, k=k))
    with pytest.raises(TypeError, match="compiled for arguments of structure"):
        compiled(logits, p, k)


def test_a_jitted_function_compiles_too():
    logits, temperature, p, k = arrays()
    compiled = ja.compile(jax.jit(filtered), logits, temperature, p, k)
    np.testing.assert_array_equal(compiled(logits, temperature, p, k)["out"], filtered(logits, temperature, p, k)["out"])


def test_non_contiguous_arguments(program):
    logits, *rest = arrays()
    strided = np.empty((300, 8), np.float32).T[::2]
    strided[:] = logits
    assert not strided.flags.c_contiguous
    np.testing.assert_array_equal(program(strided, *rest)["out"], program(logits, *rest)["out"])


@pytest.mark.parametrize(
    ("position", "wrong", "message"),
    [
        (0, np.zeros((5, 300), np.float32), r"filtered: logits must be float32\[4, 300\], as compiled, but is float32\[5, 300\]"),
        (3, np.zeros(4, np.float32), r"filtered: k must be int32\[4\], as compiled, but is float32\[4\]"),
    ],
)
def test_arguments_that_differ_from_the_compiled_ones(program, position, wrong, message):
    arguments = list(arrays())
    arguments[position] = wrong
    with pytest.raises(ValueError, match=message):
        program(*arguments)


def test_explain_says_what_fused_and_where(program):
    text = program.explain()
    assert "apply_top_k_top_p, with" in text
    assert "div computed inside" in text
    assert line_of(filtered, "ja.apply_top_k_top_p") in text


def test_stages(program):
    assert '"ascend.apply_top_k_top_p"' in program.ir("import")
    assert "{ascend.launch}" in program.ir("fused")
    assert '"tile.load"' in program.ir("tile")
    assert '"ascendc.copy_in"' in program.ir("ascendc")
    with pytest.raises(ValueError, match="stage must be one of import, fused, tile, ascendc, got 'jaxpr'"):
        program.ir("jaxpr")


def test_the_text_names_the_lines_it_came_from(program):
    source = program.kernels[0].source
    division = source[: source.index("Div(")].splitlines()
    assert next(line for line in reversed(division) if "//" in line).strip() == "// " + line_of(filtered, "scaled =")


def test_generated_text_keeps_to_what_the_device_has(program):
    source = program.kernels[0].source
    code = re.sub(r"//.*", "", source)
    assert not re.search(r"\bdouble\b|std::|#include <|\bassert\b", code)
    # Addresses are 64 bits wide before the multiplication.
    assert re.search(r"const int64_t rowOffset = row \* kRowLength;", code)
    assert "for (int64_t row" in code
    assert max(map(len, source.splitlines())) <= 130


def test_write(program, tmp_path):
    directory = program.write(tmp_path / "a" / "project")
    name = program.kernels[0].name
    assert (directory / "op_kernel" / f"{name}.cpp").read_text() == program.kernels[0].source
    assert "rowsPerCore" in (directory / "op_kernel" / f"{name}_tiling.h").read_text()
    (operator,) = json.loads(next(directory.glob("Jascend*.json")).read_text())
    assert operator["op"].startswith("Jascend")
    assert [x["name"] for x in operator["input_desc"]] == ["logits", "temperature", "p", "k"]
    assert [x["type"] for x in operator["output_desc"]] == [["float"]]
    assert sorted(p.name for p in (directory / "ir").iterdir()) == [
        "1_import.mlir", "2_fused.mlir", "3_tile.mlir", "4_ascendc.mlir",
    ]  # fmt: skip
    with pytest.raises(ja.errors.Unsupported, match="project must be 'custom_op' or 'direct', but is 'torch'"):
        program.write(tmp_path, project="torch")
    with pytest.raises(ja.errors.Unsupported, match="soc must be 'ascend910b' for ascend910b, but is 'ascend910_95'"):
        program.write(tmp_path, soc="ascend910_95")


def test_the_same_program_gives_the_same_bytes(tmp_path):
    def files(directory):
        ja.compile(filtered, *SPECS).write(directory)
        return {p.relative_to(directory): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}

    assert files(tmp_path / "a") == files(tmp_path / "b")


def unsupported(logits, k):
    factors = jnp.linalg.cholesky(logits[:, :2])
    roots = jnp.cbrt(logits) + factors[:, :1]
    return ja.apply_top_k_top_p(roots, k=k)


def test_unsupported_operations_are_listed_with_their_lines():
    with pytest.raises(ja.errors.Unsupported) as caught:
        ja.compile(unsupported, shape(2, 64), shape(2, dtype=np.int32))
    text = str(caught.value)
    assert "unsupported cannot be compiled for ascend910b" in text
    assert re.search(rf"{line_of(unsupported, 'cholesky')}:\d+: error: unsupported operation 'cholesky'", text)
    assert re.search(rf"{line_of(unsupported, 'jnp.cbrt')}:\d+: error: unsupported operation 'cbrt': kernels", text)
    assert "    factors = jnp.linalg.cholesky(logits[:, :2])" in text  # the line itself, under it a caret


def test_a_result_that_an_operator_takes_too_has_a_kernel_of_its_own():
    def both(logits, k):
        scaled = logits * 2.0
        return scaled, ja.apply_top_k_top_p(scaled, k=k)

    logits, k = arrays()[0], arrays()[3]
    program = ja.compile(both, logits, k)
    assert [kernel.name for kernel in program.kernels] == ["jascend_both_row_wise", "jascend_both_apply_top_k_top_p"]
    for actual, expected in zip(program(logits, k), jax.jit(both)(logits, k)):
        np.testing.assert_array_equal(actual, expected)


def test_an_operator_without_a_kernel_is_unsupported():
    refused = "'ascend.apply_top_k_top_p_with_sorted' is generated for a fixed row length of 1 to 1048576"
    long = (2, (1 << 20) + 1)
    with pytest.raises(ja.errors.Unsupported, match=refused):
        ja.compile(lambda x, i: ja.apply_top_k_top_p_with_sorted(x, i, k=3), shape(*long), shape(*long, dtype=np.int32))


def test_an_operator_without_a_lowering_is_unsupported(monkeypatch):
    monkeypatch.delitem(lowering._lowerings, "ascend.sort")
    with pytest.raises(ja.errors.Unsupported, match="unsupported operation 'sort': no kernel is generated for it"):
        ja.compile(lambda x: ja.sort(x), shape(2, 71))


@pytest.mark.parametrize("target", ["ascend310p", "", "ASCEND910B"])
def test_unknown_targets_are_refused_by_name(target):
    with pytest.raises(ja.errors.Unsupported, match="must be one of ascend910b, ascend910_93, ascend950"):
        ja.compile(filtered, *SPECS, target=target)


def test_too_long_rows_are_refused():
    with pytest.raises(ja.errors.Unsupported, match="fixed row length of 1 to 1048576"):
        ja.compile(ja.apply_top_k_top_p, shape(1, 2**24 + 1), k=3)


def test_operator_errors_come_through_with_their_code():
    with pytest.raises(ja.errors.ParamInvalid) as caught:
        ja.compile(filtered, shape(4, 300), shape(4), shape(5), shape(4, dtype=np.int32))
    assert caught.value.code == 161002


def test_names_that_are_no_identifiers():
    logits = np.ones((1, 64), np.float32)
    lower = lambda float, **kw: ja.apply_top_k_top_p(float, **kw)  # noqa: E731  a C++ word as argument, a lambda as function
    compiled = ja.compile(lower, logits, k=np.array([3], np.int32))
    assert compiled.kernels[0].name == "jascend_lambda_apply_top_k_top_p"
    assert compiled.kernels[0].parameters[0].name not in ("float", "")
    np.testing.assert_array_equal(compiled(logits, k=np.array([3], np.int32)), logits)


def test_jit_compiles_once_per_shape():
    seen = []

    @ja.jit(target="ascend910b")
    def keep(logits, k):
        seen.append(logits.shape)
        return ja.apply_top_k_top_p(logits, k=k)

    logits = np.arange(128, dtype=np.float32).reshape(2, 64)
    k = np.array([1, 2], np.int32)
    for rows in (logits, logits[::-1], logits[:1]):
        np.testing.assert_array_equal(keep(rows, k[: len(rows)]), ja.apply_top_k_top_p(rows, k=k[: len(rows)]))
    assert seen == [(2, 64), (1, 64)]


def test_many_processes_share_the_cache(tmp_path):
    """Two processes compile and run the same kernel into one empty cache at once."""
    script = textwrap.dedent("""
        import numpy as np, jascend as ja
        x = np.arange(64, dtype=np.float32).reshape(1, 64)
        print(*np.asarray(ja.compile(lambda x: ja.moe_gating_top_k(x, 3), x)(x).expert_idx)[0])
    """)
    environment = {**os.environ, "JASCEND_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [process.communicate(timeout=240)[0].strip() for process in started] == ["63 62 61"] * 2


def test_without_a_compiler_everything_but_the_run_works(tmp_path):
    script = textwrap.dedent("""
        import numpy as np, jascend as ja
        from jascend.backends.ascend import twin
        x, k = np.ones((1, 64), np.float32), np.array([3], np.int32)
        program = ja.compile(lambda x, k: ja.apply_top_k_top_p(x, k=k), x, k)
        program.write("project")
        try:
            program(x, k)
        except twin.CompilerNotFound as error:
            print(error)
    """)
    environment = {k: v for k, v in os.environ.items() if k != "CXX"}
    environment |= {"PATH": str(tmp_path), "JASCEND_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "apt-get install g++" in done.stdout
    assert list((tmp_path / "project" / "op_kernel").glob("*.cpp"))


def test_the_pass_that_leaves_wrong_ir_is_named(tmp_path):
    plugin = tmp_path / "wrong.py"
    plugin.write_text(
        "from jascend.passes import rewrite\nfrom mlir import ir\n\n"
        "@rewrite('ascend.sort')\ndef wrong(op, rewriter):\n"
        "    op.operation.attributes['descending'] = ir.UnitAttr.get()\n    return True\n"
    )
    with pytest.raises(ja.errors.Unsupported, match="the IR is invalid after pass 'wrong' of plugin .*wrong.py"):
        ja.compile(ja.sort, shape(2, 64), plugins=[plugin])


def test_little_is_left_to_a_collection(tmp_path, monkeypatch):
    """What the passes build of what refers to each other is taken apart. A collection of 45,000 objects took 25 ms."""
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path))
    row = shape(1, 32000)
    specs = (row, shape(1, dtype=np.int32), shape(1), row)

    def sampler(logits, k, p, q):
        return ja.top_k_top_p_sample(logits, k, p, q, is_need_logits=True)

    gc.collect()
    gc.disable()
    try:
        program = ja.compile(sampler, *specs, target="ascend910b")
        found = gc.collect()
    finally:
        gc.enable()
    assert program.kernels[0].source.count("\n") > 500  # one of the long kernels
    assert found < 10_000, found
