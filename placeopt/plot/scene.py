"""Drawings as lists of shapes on a sheet: one drawing for pages (SVG) and for paper (matplotlib).

Lengths are pixels; y grows downwards. Colours are ``ink``, ``soft``, ``line`` and ``paper``, which
follow light and dark pages, or ``#rrggbb``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.plot.markup import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

#: What the named colours are on paper; pages give them by the style sheet.
_ON_PAPER = {"ink": "#1c2430", "soft": "#566171", "line": "#dfe4ea", "paper": "#ffffff"}
#: Width of a character, as a share of the size of its text.
_CHARACTER = 0.56
#: Shapes of a sheet up to which they keep their titles, so that a page stays small.
_MAX_TITLED = 4000
#: Pixels to an inch: a sheet of 800 pixels is as wide as a page of a journal.
_PIXELS = 110

Place = tuple[float, float]


@dataclass(frozen=True)
class Outline:
    """A line through places, or the area that it encloses; `title` shows on pointing at it."""

    places: Sequence[Place]
    fill: str = ""
    stroke: str = ""
    line_width: float = 1.0
    dash: str = ""
    opacity: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Disc:
    """A circle."""

    place: Place
    radius: float
    fill: str = "paper"
    stroke: str = ""
    line_width: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Words:
    """One line of text; `anchor` is ``start``, ``middle`` or ``end``."""

    place: Place
    text: str
    anchor: str = "start"
    size: float = 12.0
    colour: str = "ink"
    bold: bool = False


@dataclass
class Scene:
    """A sheet and the shapes on it, in the order in which they are drawn.

    Attributes
    ----------
    width, height : float
    shapes : list
    """

    width: float
    height: float
    shapes: list[Outline | Disc | Words] = field(default_factory=list)

    # -- drawing -----------------------------------------------------------------------------------

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle; style as of `Outline`."""
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        self.shapes.append(Outline(corners, **style))

    def line(self, *places: Place, **style: Any) -> None:
        """Draw a line through places; style as of `Outline`."""
        self.shapes.append(Outline(places, **({"stroke": "ink"} | style)))

    def area(self, places: Iterable[Place], **style: Any) -> None:
        """Fill what a line encloses; style as of `Outline`."""
        self.shapes.append(Outline(tuple(places), **style))

    def disc(self, x: float, y: float, radius: float, **style: Any) -> None:
        """Draw a circle; style as of `Disc`."""
        self.shapes.append(Disc((x, y), radius, **style))

    def mark(
        self, kind: str, x: float, y: float, radius: float, colour: str, title: str = ""
    ) -> None:
        """Draw a mark around a place: a ``dot``, ``square``, ``diamond``, ``ring`` or ``cross``."""
        r = radius
        if kind == "dot":
            self.disc(x, y, r, fill=colour, title=title)
        elif kind == "ring":
            self.disc(x, y, r, fill="", stroke=colour, line_width=1.5, title=title)
        elif kind == "square":
            self.box(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, fill=colour, title=title)
        elif kind == "diamond":
            r *= 1.3
            corners = [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
            self.area(corners, fill=colour, title=title)
        else:
            self.line((x - r, y - r), (x + r, y + r), stroke=colour, line_width=0.8, title=title)
            self.line((x - r, y + r), (x + r, y - r), stroke=colour, line_width=0.8)

    def words(self, x: float, y: float, text: object, *, within: float = 0, **style: Any) -> None:
        """Write a line of text, cut to a width where one is given; style as of `Words`."""
        shown = str(text)
        if within:
            most = max(1, int(within / (_CHARACTER * style.get("size", 12.0))))
            shown = shown if len(shown) <= most else shown[: most - 1] + "\u2026"
        self.shapes.append(Words((x, y), shown, **style))

    def legend(self, x: float, y: float, entries: Iterable[tuple[str, str, str]]) -> float:
        """Name colours in rows from (x, y); return where the next row would be.

        An entry is (kind, colour, text); its kind is ``area``, ``line``, ``dash`` or one of `mark`.
        """
        left = x
        for kind, colour, text in entries:
            length = 28 + _CHARACTER * 12 * len(text)
            if left > x and left + length > self.width:
                left, y = x, y + 20
            if kind == "area":
                self.box(left, y - 9, 12, 10, fill=colour)
            elif kind not in ("line", "dash"):
                self.mark(kind, left + 6, y - 4, 4.5, colour)
            else:
                dash = "4 3" if kind == "dash" else ""
                self.line((left, y - 4), (left + 13, y - 4), stroke=colour, line_width=2, dash=dash)
            self.words(left + 18, y, text)
            left += length + 14
        return y + 20

    # -- as a page shows it ------------------------------------------------------------------------

    def svg(self, label: str, *, themed: bool = True) -> str:
        """Return the sheet as SVG; `label` is for those who cannot see it.

        With `themed` the named colours are those of the page; without, those of paper.
        """
        titled = len(self.shapes) <= _MAX_TITLED
        inside = "".join(_svg_of(shape, themed, titled) for shape in self.shapes)
        family = 'font-family="system-ui, sans-serif"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" {family} role="img" '
            f'aria-label="{clean(label)}">{inside}</svg>'
        )

    # -- for paper ---------------------------------------------------------------------------------

    def figure(self, title: str = "") -> Figure:
        """Return the sheet as a matplotlib figure, with a title above it."""
        room = 26 if title else 0
        drawn = new_figure(self.width / _PIXELS, (self.height + room) / _PIXELS)
        drawn.set_layout_engine("none")
        axes = drawn.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, -room)
        axes.axis("off")
        for k, shape in enumerate(self.shapes):
            _draw(axes, shape, k)
        if title:
            axes.text(8, -8, title, fontsize=_points(12), parse_math=False)
        return drawn


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that draws without a display and without global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=200, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _points(size: float) -> float:
    """Return a size in pixels in points."""
    return size * 72 / _PIXELS


# -- SVG -------------------------------------------------------------------------------------------


def _colour(name: str, themed: bool) -> str:
    if not name:
        return "none"
    return f"var(--{name})" if themed and name in _ON_PAPER else _ON_PAPER.get(name, name)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg_of(shape: Outline | Disc | Words, themed: bool, titled: bool) -> str:
    if isinstance(shape, Words):
        (x, y), bold = shape.place, ' font-weight="600"' if shape.bold else ""
        anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
        return (
            f'<text x="{_n(x)}" y="{_n(y)}" style="fill:{_colour(shape.colour, themed)}" '
            f'font-size="{shape.size:g}"{anchor}{bold}>{clean(shape.text)}</text>'
        )
    style = f"fill:{_colour(shape.fill, themed)}"
    if shape.stroke:
        style += f";stroke:{_colour(shape.stroke, themed)};stroke-width:{shape.line_width:g}"
    if isinstance(shape, Disc):
        (x, y), tag = shape.place, "circle"
        attributes = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(shape.radius)}"'
    else:
        tag = "path"
        attributes = f'd="{_path(shape)}"'
        style += f";stroke-dasharray:{shape.dash}" if shape.dash else ""
        style += f";opacity:{shape.opacity:g}" if shape.opacity < 1 else ""
    title = f"<title>{clean(shape.title)}</title>" if shape.title and titled else ""
    end = f">{title}</{tag}>" if title else "/>"
    return f'<{tag} {attributes} style="{style}"{end}'


def _path(shape: Outline) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in shape.places) + ("z" if shape.fill else "")


# -- matplotlib ------------------------------------------------------------------------------------


def _draw(axes: Any, shape: Outline | Disc | Words, order: int) -> None:
    from matplotlib.patches import Circle, Polygon

    if isinstance(shape, Words):
        sides = {"start": "left", "middle": "center", "end": "right"}
        axes.text(
            *shape.place,
            shape.text,
            fontsize=_points(shape.size),
            color=_ON_PAPER.get(shape.colour, shape.colour),
            ha=sides[shape.anchor],
            va="baseline",
            fontweight="bold" if shape.bold else "normal",
            parse_math=False,
            zorder=order,
        )
        return
    style: dict[str, Any] = {
        "facecolor": _colour(shape.fill, False),
        "edgecolor": _colour(shape.stroke, False),
        "linewidth": _points(shape.line_width) if shape.stroke else 0,
        "zorder": order,
    }
    if isinstance(shape, Disc):
        axes.add_patch(Circle(shape.place, shape.radius, **style))
        return
    if shape.dash:
        style["linestyle"] = (0, tuple(_points(float(part)) for part in shape.dash.split()))
    closed = bool(shape.fill)
    axes.add_patch(Polygon(shape.places, closed=closed, alpha=shape.opacity, **style))


# -- scales ----------------------------------------------------------------------------------------


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers from `low` to `high`, about so many.

    Examples
    --------
    >>> ticks(0, 10, 5), ticks(0.13, 0.52, 4)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.2, 0.3, 0.4, 0.5])
    """
    rough = (high - low) / max(1, count)
    if not rough > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(times for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def roomy(values: Iterable[ArrayLike]) -> tuple[float, float]:
    """Return the ends of a scale with a little room beyond the values.

    Examples
    --------
    >>> roomy([[1.0, 2.0]]), roomy([5.0, 5.0])
    ((0.96, 2.04), (4.75, 5.25))
    """
    every = np.concatenate([np.atleast_1d(np.asarray(one, dtype=float)) for one in values])
    low, high = float(every.min()), float(every.max())
    room = 0.04 * (high - low) or 0.05 * abs(low) or 1.0
    return low - room, high + room


def powers(low: float, high: float) -> list[float]:
    """Return the powers of ten from `low` to `high`, every so many that ten fit; or round numbers.

    Examples
    --------
    >>> powers(3, 2000), powers(20, 50)
    ([10.0, 100.0, 1000.0], [20.0, 30.0, 40.0, 50.0])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return ticks(low, high, 4)
    return [10.0**k for k in range(first, last + 1, 1 + (last - first) // 10)]


@dataclass(frozen=True)
class Panel:
    """A part of a scene with two scales.

    Attributes
    ----------
    scene : Scene
    left, top, width, height : float
    x, y : tuple of float
        The values at the left and right end, and at the lower and upper end.
    log : bool
        Whether the horizontal scale is logarithmic.
    """

    scene: Scene
    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    log: bool = False

    def at(self, x: float, y: float) -> Place:
        """Return the place of a pair of values."""
        low, high, value = (math.log(v) if self.log else v for v in (*self.x, x))
        across = (value - low) / (high - low) if high != low else 0.5
        up = (y - self.y[0]) / (self.y[1] - self.y[0]) if self.y[1] != self.y[0] else 0.5
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def grid(self, x_name: str, y_name: str, *, y_format: str = ",.10g") -> None:
        """Draw lines at round values, their numbers, and the names of both scales."""
        bottom, scene = self.top + self.height, self.scene
        for value in powers(*self.x) if self.log else ticks(*self.x, int(self.width / 70)):
            x, _ = self.at(value, self.y[0])
            scene.line((x, self.top), (x, bottom), stroke="line")
            scene.words(x, bottom + 16, f"{value:,.10g}", anchor="middle", colour="soft")
        for value in ticks(*self.y, max(2, int(self.height / 42))):
            _, y = self.at(self.x[0], value)
            scene.line((self.left, y), (self.left + self.width, y), stroke="line")
            text = f"{value:{y_format}}"
            scene.words(self.left - 6, y + 4, text, anchor="end", colour="soft")
        if x_name:
            middle = self.left + self.width / 2
            scene.words(middle, bottom + 34, x_name, anchor="middle")
        scene.words(self.left - 40, self.top - 9, y_name, bold=True)

    def steps(self, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
        """Draw a line that keeps each value until the next place."""
        self.scene.line(*self.staircase(x, y), **style)

    def staircase(self, x: ArrayLike, y: ArrayLike) -> list[Place]:
        """Return the places of a line that keeps each value until the next place.

        The last value of `x` is where the line ends; `y` may be as long, or one shorter.
        """
        places = np.asarray(x, dtype=float)
        values = np.asarray(y, dtype=float)[: len(places)]
        values = np.append(values, values[-1:])[: len(places)]
        changes = np.append(True, np.diff(values) != 0)
        changes[-1] = True
        places, values = places[changes], values[changes]
        across = np.repeat(places, 2)[1:]
        along = np.repeat(values, 2)[:-1]
        return [self.at(a, b) for a, b in zip(across.tolist(), along.tolist(), strict=True)]
