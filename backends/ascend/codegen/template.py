"""Templates of generated files: text with places `@name@`, so that braces, dollars and percent signs are just text."""

from __future__ import annotations

import re

_PLACE = re.compile(r"@([a-z][a-z0-9_]*)@")


def fill(template: str, **values: object) -> str:
    """The template with every place filled. A place or a value too many is a KeyError."""
    unused = set(values) - set(_PLACE.findall(template))
    if unused:
        raise KeyError(f"the template has no place for {', '.join(sorted(unused))}")
    return _PLACE.sub(lambda place: str(values[place.group(1)]), template)
