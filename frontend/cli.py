"""The command `jascend`: compile, explain, report, twin, doctor.

Exit codes: 0; 1 where the compiler refuses the program or the checker finds faults; 2 for a mistake on the command
line; 130 after Ctrl-C; 141 when the reader of a pipe has left. JAX and MLIR are loaded by the commands that need them.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from jascend.cli_terminal import Problem, discard_output

# The class of usage errors comes from click or from typer's own copy of it, by typer's version.
_ClickException = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="JAX inference graphs to Ascend C kernels, and kernels on a twin of the Ascend C runtime.",
)


def main(argv: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard_output()
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF) or error.filename:
            raise
        discard_output()
        print(f"jascend: error: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1


def _run(argv: list[str]) -> int:
    if sys.stdout is None:  # closed by who started us
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    command = typer.main.get_command(app)
    try:
        with command.make_context("jascend", list(argv)) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except _ClickException as error:
        error.show()
        return error.exit_code
    except Problem as problem:
        print(f"jascend: error: {problem}", file=sys.stderr)
        return problem.code
    return 0


def print_json(data) -> None:
    sys.stdout.write(json.dumps(data, indent=1) + "\n")


# -- options that commands share ------------------------------------------------------------------------------------

Function = Annotated[
    str, typer.Argument(metavar="MODULE:FN", help="a module's name or a .py file, and a function of it")
]
Specs = Annotated[
    list[str] | None,
    typer.Option(
        "--spec",
        help="an argument, in order: DTYPE[DIM,...], such as f32[8,128256], with a symbol for any batch: "
        "f32[b,128256], or with contents: i32[8]:50",
    ),
]
Constraints = Annotated[
    list[str] | None,
    typer.Option("--constraint", metavar="TEXT", help="what bounds a symbol of --spec, such as 'b <= 4096'"),
]
TargetName = Annotated[str, typer.Option("--target", help="ascend910b, ascend910_93 or ascend950")]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", metavar="FILE", help="passes and operators of your own: a .py, .pdll or .mlir file, or a module"
    ),
]
Forbid = Annotated[
    list[str] | None, typer.Option("--forbid", metavar="NAME", help="a pass to leave out, such as raise-sampling")
]
Force = Annotated[
    list[str] | None, typer.Option("--force", metavar="NAME", help="a fusion to do also where it does not pay")
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="write the generated project there")]


# -- commands -------------------------------------------------------------------------------------------------------


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"jascend {metadata.version('jascend')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


@app.command()
def compile(
    function: Function,
    spec: Specs = None,
    constraint: Constraints = None,
    target: TargetName = "ascend910b",
    plugin: Plugins = None,
    forbid: Forbid = None,
    force: Force = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Compiles a JAX function to Ascend C kernels, and writes the project around them with `-o`."""
    from jascend import cli_program

    program, _ = cli_program.compiled(function, spec, target, plugin, forbid, force, constraint)
    cli_program.write(program, output)
    if as_json:
        return print_json(cli_program.summary(program, output))
    cli_program.print_summary(program, output)


@app.command()
def explain(
    function: Function,
    spec: Specs = None,
    constraint: Constraints = None,
    target: TargetName = "ascend910b",
    plugin: Plugins = None,
    forbid: Forbid = None,
    force: Force = None,
    output: Output = None,
    remarks: Annotated[bool, typer.Option("--remarks", help="What passes decided inside of kernels as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Says what the compiler did with a function, what it did not do, and why, line by line."""
    from jascend import cli_program

    program, _ = cli_program.compiled(function, spec, target, plugin, forbid, force, constraint)
    cli_program.write(program, output)
    if as_json:
        return print_json({"name": program.name, "target": target, "remarks": cli_program.remarks(program, remarks)})
    typer.echo(program.explain(remarks))


@app.command()
def report(
    function: Function,
    spec: Specs = None,
    target: TargetName = "ascend910b",
    plugin: Plugins = None,
    forbid: Forbid = None,
    force: Force = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="baseline|PLUGIN,...",
            help="compare with the program compiled without plugins, --forbid and --force, or with other plugins",
        ),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="vector cores of the product; 40 for a 910B3")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write a page with all numbers")] = None,
    perfetto: Annotated[Path | None, typer.Option(metavar="FILE", help="write a trace for ui.perfetto.dev")] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Runs a function's kernels on the twin and models their time: pipes, bytes, cycles, roofline.

    Arguments are filled as their `--spec` says: random, or for example `f32[8]:0.9`, `i32[8]:1..64`, `f32[8,9]:@x.npy`.
    """
    from jascend import cli_program

    programs = [cli_program.compiled(function, spec, target, plugin, forbid, force)]
    if compare:
        others = None if compare == "baseline" else compare.split(",")
        programs.append(cli_program.compiled(function, spec, target, others, all_plugins=False))
    reports = [cli_program.profiled(program, arguments, cores) for program, arguments in programs]
    cli_program.write(programs[0][0], output)
    cli_program.write_report(reports[0], html, perfetto)
    if as_json:
        print_json(cli_program.report_data(*reports))
    else:
        cli_program.print_report(*reports, label=compare)
    if any(each.findings for each in reports):
        raise typer.Exit(1)


@app.command()
def twin(
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL.cpp", help="any Ascend C source")],
    entry: Annotated[str | None, typer.Option(help="the kernel's name; needed where the source has several")] = None,
    array: Annotated[
        list[str] | None,
        typer.Option(help="a parameter, in order: f32[1024]:random, outputs too: f32[1024]:empty"),
    ] = None,
    tiling: Annotated[str | None, typer.Option(metavar="HEX|FILE", help="the tiling data's bytes")] = None,
    tiling_key: Annotated[int, typer.Option(min=0, help="what TILING_KEY_IS compares with")] = 0,
    workspace: Annotated[int, typer.Option(metavar="BYTES", min=0, help="size of the workspace")] = 0,
    blocks: Annotated[int, typer.Option(min=1, max=4096, help="how many blocks run it")] = 1,
    target: TargetName = "ascend910b",
    define: Annotated[list[str] | None, typer.Option(metavar="A=B", help="a preprocessor definition")] = None,
    include: Annotated[list[Path] | None, typer.Option(metavar="DIR", help="a directory with headers")] = None,
    before: Annotated[
        list[Path] | None,
        typer.Option(metavar="HEADER", help="a header to read before the source, such as its tiling's"),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.001, help="end the kernel after this")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compiles a kernel with the host's C++ compiler, runs it, and reports faults and counts.

    The exit code is 1 if the checker has findings.
    """
    from jascend import cli_twin

    run = cli_twin.run(
        kernel, entry, array or [], tiling, define or [], include or [], before or [], target,
        tiling_key=tiling_key, workspace_bytes=workspace, blocks=blocks, timeout=timeout,
    )  # fmt: skip
    if as_json:
        print_json(cli_twin.data(run))
    else:
        cli_twin.show(run)
    if run.findings:
        raise typer.Exit(1)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Says what is installed, what works with it, and what to do about the rest.

    The exit code is 1 if something is missing without which `jascend` does not work.
    """
    from jascend import cli_doctor

    checks = cli_doctor.checks()
    if as_json:
        print_json(cli_doctor.data(checks))
    else:
        cli_doctor.show(checks)
    if any(check.state == cli_doctor.BROKEN for check in checks):
        raise typer.Exit(1)


if __name__ == "__main__":
    sys.exit(main())
