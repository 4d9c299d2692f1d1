"""The model against the measured points, and the document that shows it."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("cost_model_benchmark", ROOT / "benchmarks" / "cost_model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_additions_are_within_15_percent(benchmark):
    additions = benchmark.CASES[:5]
    assert [case.measured for case in additions] == [88, 154, 139, 6909, 184.5]
    for case in additions:
        assert abs(case.error) < 0.15, case.name


def test_whole_kernels_are_within_a_factor_of_two(benchmark):
    outside = [case.name for case in benchmark.CASES if not 0.5 < 1 + case.error < 2]
    assert not outside


def test_the_document_shows_what_the_model_gives(benchmark):
    document = benchmark.DOCUMENT.read_text()
    assert benchmark.filled(document, benchmark.tables()) == document, "run benchmarks/cost_model.py --write"
