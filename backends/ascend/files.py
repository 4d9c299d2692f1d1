"""Files that are whole or not there: where generated and built ones are kept, and how they are written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_directory() -> Path:
    """Where generated sources and built objects are kept: $JASCEND_CACHE_DIR, else ~/.cache/jascend."""
    chosen = os.environ.get("JASCEND_CACHE_DIR")
    return Path(chosen) if chosen else Path.home() / ".cache" / "jascend"


def write_whole(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Writes a file in one step: a reader, or another process that writes it too, never sees half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
