"""An answer as a picture: bytes against query length, and the split counts of the device.

Equal answers give equal bytes with one version of matplotlib, which only this module imports, and
only where a picture is asked for.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeproof.spec.errors import InputError

from .answer import Answer
from .counts import Counts, counts
from .series import Curve, Series, series, spans_decades

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_plot", "write_plot"]

_ENDINGS = (".svg", ".png")
_SIZE, _DPI = (12.0, 6.0), 100  # inches
_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "routeproof",
}
# Okabe and Ito's colours, which the colour-blind tell apart, and a marker each.
_LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"))
_REFERENCE = ("#777777", ".")
_NO_SPLIT = "#E4E4E4"
_TICKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_RING: dict[str, Any] = {"marker": "o", "mec": "black", "ms": 8, "ls": "none"}
# Room for viewers that set the text in a wider font.
_LEGEND: dict[str, Any] = {"fontsize": 8, "frameon": False, "borderpad": 1.5}
_BOX = {"boxstyle": "round", "facecolor": "white"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be written, before anything runs."""
    if path.suffix not in _ENDINGS:
        raise InputError(f"--plot {path}: a picture ends in {' or '.join(_ENDINGS)}")
    if not path.parent.is_dir():
        raise InputError(f"--plot {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"--plot {path}: is a folder")
    is_new = not path.exists()
    try:
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise InputError(f"--plot {path}: {error.strerror}") from error
    try:
        import matplotlib as _  # noqa: F401, ICN001 - whether there is one
    except ImportError as error:
        raise InputError("--plot needs matplotlib: pip install 'routeproof[plot]'") from error


def write_plot(path: Path, answer: Answer) -> None:
    """Draw the answer; the path's ending says in which format."""
    import matplotlib as mpl

    curves, regimes = series(answer), counts(answer)
    form = path.suffix.removeprefix(".")
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    picture = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever the user's own style is
        mpl.rcParams.update(_STYLE)
        figure = _drawn(answer, curves, regimes)
        figure.savefig(picture, format=form, dpi=_DPI, metadata=metadata)
    path.write_bytes(picture.getvalue())


def _drawn(answer: Answer, curves: Series, regimes: Counts | None) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    figure.suptitle(_title(answer))
    left, right = figure.subplots(1, 2)
    handles = list(_draw_bytes(left, answer, curves))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, **_LEGEND)
    if regimes is None:
        right.text(0.5, 0.5, "No reachable route splits its KV length", ha="center")
        right.set_axis_off()
        return figure
    handles = [*_draw_counts(right, regimes), *_draw_states(right, regimes)]
    figure.legend(handles=handles, loc="outside lower right", **_LEGEND)
    return figure


def _title(answer: Answer) -> str:
    """Model, device and envelope in one line."""
    known = {(one.section, one.name): one.value for one in answer.question.facts}
    node = [known["node", name] for name in ("num_heads", "kv_num_heads", "head_size")]
    heads = "{} heads, {} KV heads, head size {}".format(*node)
    device = known.get(("device", "preset"), f"compute capability {known['device', 'sm']}")
    ranges = ", ".join(f"{one} {known['envelope', one]}" for one in ("batch", "query", "total"))
    run = f"{known['run', 'ladder']} ladder, alias {known['run', 'alias']}"
    model, count = known.get(("node", "preset"), heads), known["device", "sms"]
    return f"{model} on {device} ({count} multiprocessors): {ranges}; {run}"


def _draw_bytes(axes: Axes, answer: Answer, found: Series) -> Iterator[Artist]:
    """The left panel; yields what its legend shows."""
    from matplotlib.ticker import MaxNLocator

    first, last = found.lengths
    axes.set_yscale("log", base=2)
    if spans_decades(found.lengths):
        axes.set_xscale("log", base=2)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: _in_units(value))
    axes.grid(visible=True, alpha=0.3)
    axes.set_title("Exact maximum by query length and route")
    drawn = {length for curve in (*found.curves, found.reference) for length in curve.maxima}
    axes.set_xlabel(f"query length (tokens), {len(drawn)} of {first:,}..{last:,}")
    axes.set_ylabel("workspace (bytes)")
    for curve, look in zip(found.curves, itertools.cycle(_LOOKS), strict=False):
        yield _draw_curve(axes, curve, look, curve.route)
    yield _draw_curve(axes, found.reference, _REFERENCE, "unfused on the same states")
    for route in dict.fromkeys(route for _, route, _ in answer.question.unsized):
        yield axes.plot([], [], ls="none", label=f"{route}: reachable, its recipe is not known")[0]
    yield axes.plot([], [], **_RING, mfc="none", label="the answer's maxima, by phase and alias")[0]
    yield axes.plot([], [], "--", color="black", lw=1.2, label="a route's structural bound")[0]
    if answer.structural_bytes is not None:
        label = f"structural bound of all routes: {_in_units(answer.structural_bytes)}"
        yield axes.axhline(answer.structural_bytes, color="black", lw=5, alpha=0.2, label=label)


def _draw_curve(axes: Axes, curve: Curve, look: tuple[str, str], name: str) -> Artist:
    """Points, as a line would claim what lies between them; lines for what bounds them all."""
    colour, marker = look
    sizes = "no exact maximum" if curve.exact is None else f"{_in_units(curve.exact)} exact"
    if curve.structural is not None:
        axes.axhline(curve.structural, color=colour, ls="--", lw=1.2)
        sizes += f", {_in_units(curve.structural)} bound"
    elif curve.exact is not None:
        axes.axhline(curve.exact, color=colour, ls=":", lw=1.2)
    for length, size in curve.attained:
        axes.plot([length], [size], **_RING, mfc=colour)
    lengths, maxima = [*curve.maxima], [*curve.maxima.values()]
    style: dict[str, Any] = {"ls": "none", "marker": marker, "ms": 3, "color": colour}
    return axes.plot(lengths, maxima, **style, label=f"{name}: {sizes}")[0]


def _draw_counts(axes: Axes, found: Counts) -> Iterator[Artist]:
    """The map; yields what its legend shows."""
    import matplotlib as mpl
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    most = max(3, int(found.counts.max()))
    mesh = axes.pcolormesh(
        _edges(found.blocks),
        _edges(found.work),
        found.counts,
        norm=LogNorm(2, most),
        cmap=mpl.colormaps["viridis"].with_extremes(under=_NO_SPLIT),
        rasterized=True,
    )
    ticks = range(2, most + 1) if most <= 12 else [one for one in _TICKS if one <= most]
    bar = axes.figure.colorbar(mesh, ax=axes, label="splits", ticks=[*ticks], format="%d")
    bar.minorticks_off()
    axes.set_title("Splits of the KV length on this device")
    axes.set_xlabel("KV blocks")
    axes.set_ylabel("work items (batch x heads x blocks of queries)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    yield Patch(facecolor=_NO_SPLIT, label="1 split")
    filled = f"device filled: 1 split from {found.filled:,} work items on"
    yield axes.axhline(found.filled - 0.5, color="black", label=filled)


def _edges(values: Sequence[int]) -> list[float]:
    """Half-way between neighbours, and half a step beyond the ends."""
    inner = [(one + two) / 2 for one, two in itertools.pairwise(values)]
    return [values[0] - 0.5, *inner, values[-1] + 0.5]


def _draw_states(axes: Axes, found: Counts) -> Iterator[Artist]:
    """Numbers where the answer's maxima lie; yields what the numbers mean."""
    top, places = found.work[-1], dict[tuple[int, int], list[str]]()
    for number, state in enumerate(found.states, 1):
        places.setdefault((state.blocks, min(state.work, top)), []).append(str(number))
        is_above = "" if state.work <= top else ", above the map"
        label = (
            f"{', '.join(state.labels)}: {_many(state.count, 'split')} "
            f"({_many(state.work, 'work item')}{is_above}, {_many(state.blocks, 'KV block')})"
        )
        yield axes.plot([], [], ls="none", marker=f"${number}$", color="black", label=label)[0]
    for place, numbers in places.items():
        axes.annotate(", ".join(numbers), place, ha="center", va="center", bbox=_BOX)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _in_units(size: float) -> str:
    """Bytes in the largest binary unit of which there is at least one."""
    unit = 0
    while size >= 1024 and unit + 1 < len(_UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:.3g} {_UNITS[unit]}" if size < 1000 else f"{size:.0f} {_UNITS[unit]}"
