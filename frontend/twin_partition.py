"""Operators on the twin over several devices: each device launches kernels for the rows it has.

XLA knows nothing of a custom call's rows, and would gather them all on every device. Here the rows are dimensions that
may be split, the rest are not. Operators whose rows depend on each other, as in routing, are not treated so.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import jax
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def row_dimensions(name: str, avals, params) -> list[int] | None:
    """How many leading dimensions of each operand are rows; None for an operator that is not row-wise. `params` names
    the operands of an operator that has others too."""
    from jascend.dialect import ASCEND  # not before it is needed: MLIR takes long to load

    by_row = {operand.name: operand.by_row for operand in ASCEND.by_name[f"ascend.{name}"].operands}
    if not any(by_row.values()) or not avals or avals[0].ndim < 2:
        return None
    rows = avals[0].shape[:-1]
    names = params.get("names", ())
    counts = []
    for i, aval in enumerate(avals):
        shared = i < len(names) and not by_row[names[i]]
        if shared and aval.ndim > 2:
            return None  # under vmap it may have dimensions of its own among the rows'
        if not shared and aval.shape[: len(rows)] != rows:
            return None
        counts.append(0 if shared else len(rows))
    return counts


def with_devices(ctx):
    """The lowering's context with devices, where there are several; None where a program is for one, or is one device's
    own.

    JAX keeps the devices from lowerings that do not ask for them. What is wanted of them is the mesh's shape, so that
    any will do.
    """
    axes = ctx.module_context.axis_context
    number = getattr(axes, "num_devices", 1)
    if number == 1:
        return None
    if axes.device_assignment is None:
        axes = dataclasses.replace(axes, device_assignment=tuple(jax.devices("cpu")[:number]))
    return ctx.replace(module_context=ctx.module_context.replace(axis_context=axes))


_ROW_AXES = [f"rows{i}" for i in range(8)]


def _mesh_of_rows(sharding, shape, rows: int) -> Mesh:
    """A mesh of the sharding's devices, in their order, with an axis for each row dimension, and others.

    How the columns are split does not count: they will be together.
    """
    indices = sharding.devices_indices_map(tuple(shape))  # in the order of the devices
    size = sharding.shard_shape(tuple(shape))
    places = [tuple((index[d].start or 0) // max(size[d], 1) for d in range(rows)) for index in indices.values()]
    parts = [1 + max(place[d] for place in places) for d in range(rows)]
    devices = np.array(list(indices), dtype=object)
    spare = devices.size // math.prod(parts)
    # Which way round the axes are: those of the rows in any order, with others before, between and after them.
    for order in itertools.permutations(range(rows)):
        for gaps in _factors(spare, rows + 1):
            extents = [gaps[0], *(extent for d, gap in zip(order, gaps[1:], strict=True) for extent in (parts[d], gap))]
            where = np.indices(extents).reshape(len(extents), -1)
            found = [tuple(where[2 * order.index(d) + 1, i] for d in range(rows)) for i in range(devices.size)]
            if found == places:
                names = ["other0", *(n for i, d in enumerate(order) for n in (_ROW_AXES[d], f"other{i + 1}"))]
                return Mesh(devices.reshape(extents), names)
    return Mesh(devices.reshape([1] * rows + [-1]), [*_ROW_AXES[:rows], "other"])  # an order of its own: rows together


def _factors(number: int, count: int):
    """The ways to write the number as a product of so many factors."""
    if count == 1:
        yield (number,)
        return
    for factor in range(1, number + 1):
        if number % factor == 0:
            for rest in _factors(number // factor, count - 1):
                yield (factor, *rest)


def over_rows(run, avals, counts: list[int], results):
    """`run`, a function of operands of any number of rows, so that XLA may split the rows over devices.

    Args:
      run: what to do with all rows, or with some.
      avals, results: the operands and results with all rows.
      counts: of `row_dimensions`.
    """
    rows = max(counts)

    def shardings(mesh, avals, counts):
        lead = [name if mesh.shape[name] > 1 else None for name in _ROW_AXES[:rows]]
        return [NamedSharding(mesh, PartitionSpec(*lead[:n])) for _, n in zip(avals, counts, strict=True)]

    def partition(_, args, outs):
        args, outs = jax.tree.leaves(args), jax.tree.leaves(outs)
        mesh = _mesh_of_rows(args[0].sharding, args[0].shape, rows)
        split, together = shardings(mesh, args, counts), shardings(mesh, outs, [rows] * len(outs))
        return mesh, lambda *operands: list(run(*operands)), together, tuple(split)

    def infer(_, args, outs):
        args, outs = jax.tree.leaves(args), jax.tree.leaves(outs)
        return shardings(_mesh_of_rows(args[0].sharding, args[0].shape, rows), outs, [rows] * len(outs))

    # One factor a row dimension, the same in all operands and results, and one of its own for each other dimension.
    row_factors, own = [f"r{i}" for i in range(rows)], []

    def factors(aval, n):
        names = row_factors[:n]
        for _ in range(len(aval.shape) - n):
            own.append(f"c{len(own)}")
            names.append(own[-1])
        return " ".join(names)

    left = ", ".join(factors(aval, n) for aval, n in zip(avals, counts, strict=True))
    right = ", ".join(factors(aval, rows) for aval in results)
    call = custom_partitioning(lambda *operands: list(run(*operands)))
    call.def_partition(partition, infer_sharding_from_operands=infer, sharding_rule=f"{left} -> {right}",
                       need_replication_factors=tuple(own))  # fmt: skip
    return call
