"""Writes the reference page of every dialect: `python -m jascend.dialect docs/dialects`."""

import argparse
from pathlib import Path

from . import DIALECTS


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m jascend.dialect", description="Writes a reference page a dialect.")
    parser.add_argument("directory", type=Path, help="where to; made where it is missing")
    directory = parser.parse_args(arguments).directory
    directory.mkdir(parents=True, exist_ok=True)
    for dialect in DIALECTS.values():
        (directory / f"{dialect.name}.md").write_text(dialect.reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
