"""Writes the reference page of every dialect: `python -m jascend.dialect docs/dialects`."""

import sys
from pathlib import Path

from . import DIALECTS


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m jascend.dialect DIRECTORY", file=sys.stderr)
        return 2
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for dialect in DIALECTS.values():
        (directory / f"{dialect.name}.md").write_text(dialect.reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
