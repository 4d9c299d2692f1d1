"""A report as one page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from jascend.backends.ascend import targets
from jascend.backends.ascend.twin import PIPES

from .style import STYLE

if TYPE_CHECKING:
    from .profile import KernelProfile, Line
    from .report import Report

_LANES = {"S": "scalar", "V": "vector", "MTE2": "GM to UB", "MTE3": "UB to GM"}
_LEFT, _WIDTH, _LANE, _GAP = 96, 900, 34, 8  # of the pictures, in pixels
_BINS = 450
_CLOSE = 48  # instructions in the close-up
_SHOWN_LINES = 24


def render(report: Report) -> str:
    """The page."""
    title = html.escape(f"{report.name} on {report.target}")
    kernels = "".join(_kernel(kernel) for kernel in report.kernels)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        f"<p>Modelled from a run on the twin of the Ascend C runtime; nothing here was measured on a device. The model "
        f"is for ranking: see the constants at the end, and docs/cost_model.md for its errors.</p>\n"
        f"{_tiles(report)}\n{_findings(report)}\n{kernels}\n{_library_calls(report)}\n"
        f"{_constants(report)}\n</main>\n</body>\n</html>\n"
    )


def microseconds(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def size(count: float) -> str:
    """Bytes with a binary unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _tiles(report: Report) -> str:
    bound = report.roofline
    tiles = [
        ("Modelled time", f"{microseconds(report.microseconds)} µs", "with launches"),
        ("Roofline", f"{microseconds(report.roofline_microseconds)} µs", f"{bound.bound} bound"),
        ("Times roofline", f"{report.roofline_ratio:.2f} ×", "1 is the bound"),
        ("GM read", size(report.gm_read_bytes), "L2 hit or not"),
        ("GM written", size(report.gm_write_bytes), "all blocks"),
        ("Bytes needed", size(bound.compulsory_bytes), "once each"),
        ("Launches", str(report.launches), f"{microseconds(report.launch_microseconds)} µs of it"),
    ]
    cells = (f'<div class="tile"><span>{name}</span><b>{value}</b><small>{note}</small></div>' for name, value, note in
             tiles)  # fmt: skip
    return f'<div class="tiles">{"".join(cells)}</div>'


def _findings(report: Report) -> str:
    if not report.findings:
        return '<p><span class="good">✓</span> The checker of the twin has no findings.</p>'
    items = "".join(f"<li>{html.escape(str(finding))}</li>" for finding in report.findings)
    return f'<section class="card"><h3 class="bad">Findings of the checker</h3><ul>{items}</ul></section>'


def _kernel(kernel: KernelProfile) -> str:
    facts = (
        f"{kernel.blocks} blocks on {kernel.cores} vector cores · {kernel.cycles:,.0f} cycles, "
        f"{microseconds(kernel.seconds * 1e6)} µs with {microseconds(kernel.launch_seconds * 1e6)} µs of launch · "
        f"{kernel.syncs} SyncAll · {size(kernel.gm_read_bytes)} read, {size(kernel.l2_read_bytes)} of it from L2 · "
        f"{size(kernel.gm_write_bytes)} written"
    )
    unknown = ""
    if kernel.unknown:
        names = html.escape(", ".join(kernel.unknown))
        unknown = f'<p class="bad">Taken as one cycle a repeat, for want of a figure: {names}</p>'
    parts = [
        _card("How busy the busiest core's pipes are", _utilisation(kernel)),
        _card(f"Timeline of the busiest core (block {kernel.busiest})", _overview(kernel)),
        _card("A closer look at the middle of it", _close_up(kernel)),
        _card("Time of each block", _blocks(kernel)) if kernel.blocks > 1 else "",
        _card("Python lines, by the time that they add", _python_lines(kernel)),
        _card("Calls, by the time that they add", _lines(kernel)),
    ]
    return f"<h2>{html.escape(kernel.name)}</h2><p>{facts}</p>{unknown}{''.join(parts)}"


def _library_calls(report: Report) -> str:
    """The calls of CANN's libraries; their time is no more than a bound."""
    rows = [
        ((html.escape(call.name), False), (microseconds(call.seconds * 1e6), True), (size(call.read_bytes), True),
         (size(call.write_bytes), True), (f"{call.flops:,}", True))
        for call in report.library_calls
    ]  # fmt: skip
    header = [("operator", False), ("µs, at least", True), ("read", True), ("written", True), ("operations", True)]
    return _card("Library calls, estimated from their bytes and operations", _table(header, rows) if rows else "")


def _card(title: str, body: str) -> str:
    return f'<section class="card"><h3>{title}</h3>{body}</section>' if body else ""


def _bar(share: float, style: str = "V") -> str:
    return f'<div class="bar"><i class="{style}" style="width:{100 * min(share, 1):.1f}%"></i></div>'


def _table(header: Iterable[tuple[str, bool]], rows: Iterable[Iterable[tuple[str, bool]]]) -> str:
    """Cells are (HTML, whether it is a number)."""

    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}{' class=n' if n else ''}>{text}</{tag}>" for text, n in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f'<div class="wide"><table><thead>{row(header, "th")}</thead><tbody>{body}</tbody></table></div>'


def _utilisation(kernel: KernelProfile) -> str:
    rows = [
        ((f'<span class="dot {pipe}"></span>{pipe} <small>{_LANES[pipe]}</small>', False), (_bar(share, pipe), False),
         (f"{share:.1%}", True), (f"{kernel.instructions.get(pipe, 0):,}", True))
        for pipe, share in kernel.pipes.items()
    ]  # fmt: skip
    return _table([("pipe", False), ("", False), ("occupied", True), ("instructions, all blocks", True)], rows)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _overview(kernel: KernelProfile) -> str:
    """The share of time that each pipe is occupied, in slices of the launch."""
    if not kernel.cycles:
        return ""
    edges = np.linspace(0, kernel.cycles, _BINS + 1)
    shapes = []
    for lane, pipe in enumerate(_LANES):
        chosen = kernel.events.pipe == PIPES.index(pipe)
        starts, ends = kernel.events.start[chosen], kernel.events.end[chosen]
        shares = _busy_until(starts, ends, edges)
        shares = np.clip(np.diff(shares) / (edges[1] - edges[0]), 0, 1)
        shapes.append(_area(shares, lane, pipe))
    return _picture("".join(shapes), 0.0, kernel.cycles / _clock(kernel) * 1e6)


def _busy_until(starts: np.ndarray, ends: np.ndarray, times: np.ndarray) -> np.ndarray:
    """How long intervals that do not overlap, in order, have lasted up to each time."""
    if not len(starts):
        return np.zeros(len(times))
    marks = np.column_stack([starts, ends]).ravel()
    lasted = np.column_stack([np.zeros(len(starts)), ends - starts]).ravel().cumsum()
    return np.interp(times, marks, lasted, left=0.0)


def _area(shares: np.ndarray, lane: int, pipe: str) -> str:
    bottom = lane * (_LANE + _GAP) + _LANE
    step = _WIDTH / len(shares)
    points = [f"M{_LEFT},{bottom}"]
    for i, share in enumerate(shares):
        y = bottom - share * _LANE
        points.append(f"L{_LEFT + i * step:.1f},{y:.1f}L{_LEFT + (i + 1) * step:.1f},{y:.1f}")
    points.append(f"L{_LEFT + _WIDTH},{bottom}Z")
    return f'<path class="{pipe}" d="{"".join(points)}"/>'


def _close_up(kernel: KernelProfile) -> str:
    """Single instructions, around the middle of the run."""
    events, to_us = kernel.events, 1e6 / _clock(kernel)
    if not len(events.start):
        return ""
    order = np.argsort(events.start, kind="stable")
    first = max(0, len(order) // 2 - _CLOSE // 2)
    window = order[first : first + _CLOSE]
    begin, end = events.start[window[0]], events.end[window].max()
    scale = _WIDTH / max(end - begin, 1e-9)
    shapes = []
    for i in np.flatnonzero((events.end > begin) & (events.start < end)):
        pipe = PIPES[events.pipe[i]]
        if pipe not in _LANES:
            continue
        left, right = max(events.start[i], begin), min(events.end[i], end)
        x, width = _LEFT + (left - begin) * scale, max((right - left) * scale, 1)
        y = list(_LANES).index(pipe) * (_LANE + _GAP)
        api, file, line = events.places[events.place[i]]
        took = f"{(events.end[i] - events.start[i]) * to_us:.3f} µs"
        moved = f", {size(int(events.bytes[i]))}" if events.bytes[i] else ""
        title = html.escape(f"{api}, {PurePath(file).name}:{line}: {took}{moved}")
        shapes.append(f'<rect class="{pipe}" x="{x:.1f}" y="{y}" width="{max(width - 1, 0.8):.1f}" height="{_LANE}" '
                      f'rx="2"><title>{title}</title></rect>')  # fmt: skip
        if width > 6.5 * len(api) + 6:
            shapes.append(f'<text class="in" x="{x + 4:.1f}" y="{y + _LANE / 2 + 4}">{html.escape(api)}</text>')
    return _picture("".join(shapes), begin * to_us, end * to_us)


def _picture(shapes: str, begin: float, end: float) -> str:
    """Lanes with their names, an axis in microseconds, and what is in the lanes."""
    lanes = len(_LANES) * (_LANE + _GAP)
    parts = []
    for i, pipe in enumerate(_LANES):
        y = i * (_LANE + _GAP)
        parts.append(f'<rect class="back" x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_LANE}" rx="3"/>')
        parts.append(f'<text class="lane" x="0" y="{y + 15}">{pipe}</text>')
        parts.append(f'<text x="0" y="{y + 29}">{_LANES[pipe]}</text>')
    parts.append(shapes)
    for tick in ticks(begin, end):
        x = _LEFT + (tick - begin) / max(end - begin, 1e-9) * _WIDTH
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{lanes - _GAP}" y2="{lanes}"/>'
                     f'<text x="{x:.1f}" y="{lanes + 13}" text-anchor="middle">{tick:g}</text>')  # fmt: skip
    parts.append(f'<text x="{_LEFT + _WIDTH + 30}" y="{lanes + 13}" text-anchor="end">µs</text>')
    view = f"0 0 {_LEFT + _WIDTH + 34} {lanes + 20}"
    return f'<div class="wide"><svg viewBox="{view}" role="img" aria-label="timeline">{"".join(parts)}</svg></div>'


def ticks(begin: float, end: float, wanted: int = 8) -> list[float]:
    """Round numbers between begin and end."""
    span = max(end - begin, 1e-9)
    step = 10.0 ** np.floor(np.log10(span / wanted))
    step *= next((m for m in (1, 2, 5, 10) if span / (step * m) <= wanted), 10)
    first = np.ceil(begin / step - 1e-9)
    return [float(round(i * step, 9)) + 0.0 for i in np.arange(first, np.floor(end / step + 1e-9) + 1)]


def _blocks(kernel: KernelProfile) -> str:
    times = [cycles / _clock(kernel) * 1e6 for cycles in kernel.core_cycles]
    most, height, step = max(times) or 1.0, 70, _WIDTH / len(times)
    bars = "".join(
        f'<rect class="block" x="{_LEFT + i * step:.1f}" y="{height * (1 - time / most):.1f}" rx="1" '
        f'width="{max(step - 2, 0.5):.1f}" height="{height * time / most:.1f}">'
        f"<title>block {i}: {microseconds(time)} µs</title></rect>"
        for i, time in enumerate(times)
    )
    labels = (f'<text x="0" y="11">{microseconds(most)} µs</text><text x="0" y="{height}">0</text>'
              f'<text x="{_LEFT}" y="{height + 14}">block 0</text>'
              f'<text x="{_LEFT + _WIDTH}" y="{height + 14}" text-anchor="end">block {len(times) - 1}</text>'
              )  # fmt: skip
    return (f'<div class="wide"><svg viewBox="0 0 {_LEFT + _WIDTH + 34} {height + 20}" role="img" '
            f'aria-label="time of each block">{bars}{labels}</svg></div>')  # fmt: skip


# -- tables ------------------------------------------------------------------------------------------------------------


def _python_lines(kernel: KernelProfile) -> str:
    by_line: dict[str, list[Line]] = {}
    for line in kernel.lines:
        by_line.setdefault(line.python, []).append(line)
    if set(by_line) <= {""}:
        return ""
    total = sum(line.exposed_cycles for line in kernel.lines) or 1.0
    rows = []
    for python, lines in sorted(by_line.items(), key=lambda item: -sum(line.exposed_cycles for line in item[1])):
        exposed = sum(line.exposed_cycles for line in lines)
        name = f"<code>{html.escape(python)}</code>" if python else "<small>copies and helpers, for no one line</small>"
        rows.append([(name, False), (_bar(exposed / total), False), (f"{exposed / total:.1%}", True),
                     (microseconds(exposed / _clock(kernel) * 1e6), True), (str(len(lines)), True)])  # fmt: skip
    return _table([("line", False), ("", False), ("share", True), ("adds µs", True), ("calls", True)], rows)


def _lines(kernel: KernelProfile) -> str:
    total = sum(line.exposed_cycles for line in kernel.lines) or 1.0
    to_us = 1e6 / _clock(kernel)
    rows = []
    for line in kernel.lines[:_SHOWN_LINES]:
        where = f"{PurePath(line.file).name}:{line.line}" + (f" · for {line.python}" if line.python else "")
        text = html.escape(line.text if len(line.text) < 110 else line.text[:107] + "...")
        moved = size(line.gm_bytes) if line.gm_bytes else ""
        rows.append([
            (f"<code>{text or html.escape(line.api)}</code><small>{html.escape(where)}</small>", False),
            (f'<span class="dot {line.pipe}"></span>{line.pipe}', False), (f"{line.count:,}", True), (moved, True),
            (microseconds(line.cycles * to_us), True), (microseconds(line.exposed_cycles * to_us), True),
            (f"{line.exposed_cycles / total:.1%}{_bar(line.exposed_cycles / total, line.pipe)}", True),
        ])  # fmt: skip
    header = [("call", False), ("pipe", False), ("times", True), ("bytes", True), ("occupies µs", True),
              ("adds µs", True), ("share", True)]  # fmt: skip
    rest = len(kernel.lines) - _SHOWN_LINES
    more = f"<p>and {rest} more calls, in the JSON</p>" if rest > 0 else ""
    return _table(header, rows) + more


def _constants(report: Report) -> str:
    rows = [
        [(f"<code>{name}</code>", False), (f"{fact.value:g}", True), (html.escape(fact.unit), False),
         (f'<span class="bad">{fact.kind}</span>' if fact.kind == "guess" else fact.kind, False),
         (f"<small>{html.escape(fact.source)}</small>", False)]
        for name, fact in targets.costs(report.target).facts.items()
    ]  # fmt: skip
    table = _table([("constant", False), ("value", True), ("unit", False), ("kind", False), ("source", False)], rows)
    return f"<details><summary>Constants of the model, and where they are from</summary>{table}</details>"


def _clock(kernel: KernelProfile) -> float:
    return targets.costs(kernel.target).clock
