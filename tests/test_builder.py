"""The builder of scalars, tiles and control flow."""

from mlir import ir
from mlir.dialects import arith, func

from jascend.dialect import make_context
from jascend.passes.builder import Builder


def test_a_constant_without_a_name_stands_once_at_the_start_of_its_function():
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):

            @func.FuncOp.from_py_func(ir.IndexType.get())
            def kernel(n):
                b = Builder(ir.Location.unknown())
                with b.stage("A stage that begins with a sum."):
                    total = b.index(4)
                    total = b.op(arith.addi, n, total)
                made = []

                def body(i):
                    made.extend([b.index(4), b.index(5), b.index(4, "four"), b.f32(4.0), b.f32(-0.0), b.f32(0.0)])
                    return []

                b.for_(b.index(4), total, b.index(1), [], body, induction="i")
                assert made[0] == b.index(4) and made[0] != made[2]
                assert made[4] != made[5]  # zeros of two signs

    kernel = module.body.operations[0]
    entry = [op for op in kernel.regions[0].blocks[0].operations]
    numbers = [str(op.operation.attributes["value"]) for op in entry if op.operation.name == "arith.constant"]
    assert numbers == [
        "4 : index", "1 : index", "5 : index", "4.000000e+00 : f32", "-0.000000e+00 : f32", "0.000000e+00 : f32",
    ]  # fmt: skip
    (told,) = [op for op in entry if "ascend.comment" in op.operation.attributes]
    assert told.operation.name == "arith.addi"
    assert module.operation.verify()

