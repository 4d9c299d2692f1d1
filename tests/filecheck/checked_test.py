"""A lit test format that fails a test which checks nothing.

FileCheck is content with a file that asks for `module`, and a RUN line without FileCheck passes whatever comes out. So
a test must have RUN lines, each must end in FileCheck on the test itself or verify diagnostics, and the file must hold
something for each of them to find.
"""

import re

import lit.formats
import lit.Test

_FILECHECK = re.compile(r"\|\s*(?:\S*/)?FileCheck\b([^|]*)")
_SUFFIXES = re.compile(r"(?:-(?:NEXT|SAME|DAG|LABEL|NOT|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?")
_SAYS_NOTHING = re.compile(r"(?:(?:builtin\.)?module|[\s{}()])*")


class CheckedTest(lit.formats.ShTest):
    def __init__(self):
        super().__init__(execute_external=False)

    def execute(self, test, litConfig):
        with open(test.getSourcePath(), encoding="utf-8") as file:
            problem = why_vacuous(file.read())
        if problem:
            return lit.Test.Result(lit.Test.FAIL, f"{test.getSourcePath()}: {problem}\n")
        return super().execute(test, litConfig)


def why_vacuous(text: str) -> str | None:
    """What keeps the test from checking anything, or None."""
    commands = _run_lines(text)
    if not commands:
        return "has no RUN line"
    return next((problem for command in commands if (problem := _why_command_is_vacuous(command, text))), None)


def _run_lines(text: str) -> list[str]:
    lines = re.findall(r"^\s*(?://|#)\s*RUN:\s*(.*?)\s*$", text, flags=re.MULTILINE)
    return re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()


def _why_command_is_vacuous(command: str, text: str) -> str | None:
    if re.search(r"(?<!\S)--verify-diagnostics(?!\S)", command):
        if not re.search(r"expected-(?:error|warning|remark|note)", text):
            return f"verifies diagnostics but expects none: {command}"
        return None
    piped = _FILECHECK.search(command)
    if piped is None:
        return f"RUN line without a pipe into FileCheck: {command}"
    if "%s" not in piped[1].split():
        return f"FileCheck does not check this file: {command}"
    named = re.findall(r"--?check-prefix(?:es)?[= ](\S+)", piped[1])
    prefixes = [prefix for names in named for prefix in names.split(",")] or ["CHECK"]
    for prefix in prefixes:
        directives = re.findall(rf"(?<![\w-]){re.escape(prefix)}((?:-[\w-]+)?(?:\{{LITERAL\}})?):(.*)", text)
        unknown = next((suffix for suffix, _ in directives if not _SUFFIXES.fullmatch(suffix)), None)
        if unknown:
            return f"unknown directive {prefix}{unknown}"
        if not any(_asks(suffix, content) for suffix, content in directives):
            return f"no {prefix} line asks for anything in particular: {command}"
    return None


def _asks(suffix: str, content: str) -> bool:
    """Whether a directive fails on output that lacks something. NOT does not: it holds of no output at all."""
    return suffix not in ("-NOT", "-EMPTY") and not _SAYS_NOTHING.fullmatch(content)
