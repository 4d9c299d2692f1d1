"""The model that fusions are decided by, against the twin on the grid that its figures are fitted to."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import cost_figures

TARGETS = ("ascend910b", "ascend950")


@pytest.mark.parametrize("target", TARGETS)
def test_estimates_are_near_the_twins_times(target):
    graphs = cost_figures.written(target)
    assert len(graphs) >= 40
    for name, runs in graphs.items():
        assert all(1 / cost_figures.WITHIN <= ratio <= cost_figures.WITHIN for ratio in cost_figures.errors_of(runs, target)), name


@pytest.mark.parametrize("target", TARGETS)
def test_decisions_are_those_of_the_twin(target):
    for name, runs in cost_figures.written(target).items():
        assert cost_figures.regret_of(runs, target) <= cost_figures.REGRET, name


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_the_measurements_are_those_of_the_kernels_there_are(target):
    """Some of each kind: what has changed since the file was written shows."""
    written = cost_figures.written(target)
    grid = dict(cost_figures.graphs(target))
    assert list(grid) == list(written)
    for name in [name for name in grid if "16x" in name and "128256" not in name]:
        found = cost_figures.measured(grid[name], target)
        for label, run in found.items():
            for (work, us), (known, then) in zip(run, written[name][label], strict=True):
                assert work == known and us == pytest.approx(then, rel=0.1), (name, work)
