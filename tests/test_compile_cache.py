"""Compiled programs on disk: found again, keyed by content, safe to share, never trusted blindly."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import jascend as ja
from jascend.backends.ascend import cache
from jascend.backends.ascend import compile as backend

SPECS = (jax.ShapeDtypeStruct((2, 1000), np.float32), jax.ShapeDtypeStruct((2,), np.int32))


def top_k(logits, k):
    return ja.apply_top_k_top_p(logits, None, k)


@pytest.fixture
def directory(monkeypatch, tmp_path):
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path))
    return tmp_path / "programs"


@pytest.fixture
def builds(monkeypatch):
    """The names of what was compiled and not found."""
    names = []
    real = backend.compile_module

    def counted(module, target, *, name, **kwargs):
        names.append(name)
        return real(module, target, name=name, **kwargs)

    monkeypatch.setattr(backend, "compile_module", counted)
    return names


def program(**options):
    """Compiled in a thread: the lines of a test that lead here are not part of the program's locations."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ja.compile, top_k, *SPECS, **options).result()


def test_an_equal_program_is_found(directory, builds):
    first, second = program(), program()
    assert builds == ["top_k"]
    assert second.kernels == first.kernels
    assert second.explain() == first.explain()
    assert [second.ir(stage) for stage in ("import", "tile", "ascendc")] == [
        first.ir(stage) for stage in ("import", "tile", "ascendc")
    ]


def test_another_target_is_another_program(directory, builds):
    program()
    program(target="ascend950")
    assert len(builds) == 2 and len(list(directory.iterdir())) == 2


def test_a_plugin_counts_by_its_content(directory, builds, tmp_path):
    plugin = tmp_path / "plugin.py"
    head = '"""Nothing."""\nfrom jascend import passes\n\n@passes.rewrite("ascend.sort")\n'
    text = head + "def nothing_at_all(op, rewriter):\n"
    for number, body in enumerate(("    return True\n", "    return True\n", "    return 1\n")):
        plugin.write_text(text + body)
        program(plugins=[str(plugin)])
        assert len(builds) == (1, 1, 2)[number]


def test_other_sources_are_another_compiler(directory, builds, monkeypatch):
    program()
    monkeypatch.setattr(cache, "_compiler", lambda: "changed")
    program()
    assert len(builds) == 2


DAMAGES = (lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-1] + b"!")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_compiled_anew(directory, builds, damage):
    first = program()
    (entry,) = directory.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    assert program().kernels == first.kernels
    assert len(builds) == 2
    assert program().kernels == first.kernels  # the entry is good again
    assert len(builds) == 2


def test_a_directory_that_cannot_be_written_to_is_no_error(monkeypatch, builds, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path / "file"))
    assert program().kernels and program().kernels
    assert len(builds) == 2


def test_an_error_is_not_kept(directory):
    for _ in range(2):
        with pytest.raises(ja.errors.Unsupported):
            ja.compile(lambda x: jax.numpy.linalg.inv(x), jax.ShapeDtypeStruct((4, 4), np.float32))
    assert not directory.exists()


def test_a_hit_takes_less_than_5_ms(directory):
    text = program()._traced.text

    def look_up():
        start = time.perf_counter()
        found = cache.compiled(text, "ascend910b", "top_k", (), lambda: pytest.fail("it is there"))
        assert found.kernels
        return time.perf_counter() - start

    assert min(look_up() for _ in range(20)) < 0.005


def test_eight_processes_at_once(directory):
    script = (
        "import jax, numpy as np, jascend as ja\n"
        "def top_k(x, k): return ja.apply_top_k_top_p(x, None, k)\n"
        "p = ja.compile(top_k, jax.ShapeDtypeStruct((2, 1000), np.float32), jax.ShapeDtypeStruct((2,), np.int32))\n"
        "print(hash(p.kernels[0].source))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(8)
    ]
    printed = {process.communicate(timeout=240)[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 8
    assert len(printed) == 1
    assert len(list(directory.iterdir())) == 1  # one entry, and no temporary file left
