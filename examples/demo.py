"""Decode logits of a real size through a generated kernel.

Compiles temperature scaling and the top-k top-p filter for ascend910b, writes the generated project, runs the generated
kernel on the twin, and compares what comes out with what JAX computes on the CPU, bit for bit.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja
from jascend.backends.ascend import twin

BATCH, VOCABULARY = 8, 128256


def filtered(logits, temperature, p, k):
    scaled = logits / temperature[:, None]
    return ja.apply_top_k_top_p(scaled, p, k)


def requests(rng):
    """A decode batch: peaked logits, and sampling parameters as users mix them."""
    logits = rng.normal(0.0, 3.0, (BATCH, VOCABULARY)).astype(np.float32)
    logits[np.arange(BATCH), rng.integers(0, VOCABULARY, BATCH)] += 12.0
    temperature = np.array([1.0, 0.7, 0.6, 1.3, 1.0, 0.8, 0.25, 1.0], np.float32)
    p = np.array([0.9, 0.95, 1.0, 0.5, 0.99, 0.8, 0.9, 0.0], np.float32)
    k = np.array([50, 20, 0, 1000, VOCABULARY, 1, 40, 50000], np.int32)
    return (*(jnp.asarray(x, jnp.bfloat16) for x in (logits, temperature, p)), jnp.asarray(k))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", default="build/demo", help="where the generated project goes")
    parser.add_argument("--target", default="ascend910b")
    options = parser.parse_args()
    console = Console()
    arguments = requests(np.random.default_rng(0))

    with console.status("compiling"):
        program = ja.compile(filtered, *arguments, target=options.target)
    console.print(f"compiled for {options.target}; what the compiler decided:")
    console.print(program.explain(), markup=False, highlight=False)
    directory = program.write(options.directory)

    table = Table("kernel", "lines", "bytes", "cores", "tiling")
    for kernel in program.kernels:
        lines, size = len(kernel.source.splitlines()), len(kernel.source.encode())
        table.add_row(kernel.name, f"{lines}", f"{size}", f"{kernel.blocks}", f"{kernel.tiling}")
    console.print(table)
    console.print(f"project written to {directory}", markup=False, highlight=False)

    expected = np.asarray(jax.jit(filtered)(*arguments))
    start = time.perf_counter()
    try:
        with console.status("running the kernel on the twin"):
            actual = np.asarray(program(*arguments))
    except twin.CompilerNotFound as error:
        console.print(f"[bold]The project is written, but the kernel cannot run here.[/bold] {error}")
        return 1
    console.print(
        f"twin: {VOCABULARY * BATCH} elements in {time.perf_counter() - start:.1f} s, checker on, no findings"
    )

    kept = np.sum(~np.isneginf(actual.astype(np.float32)), axis=1)
    console.print(f"kept per row: {kept.tolist()}", markup=False, highlight=False)
    different = int(np.sum(actual.view(np.uint16) != expected.view(np.uint16)))
    if different:
        print(f"demo: {different} of {actual.size} outputs differ")
        return 1
    print("demo: outputs match")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
