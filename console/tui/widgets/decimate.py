"""Curves cut down to the width they are drawn at, with their gaps kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Finite pieces of a curve, each to be drawn by itself, and the places where it is not finite."""

    curves: tuple[tuple[Floats, Floats], ...]
    gaps: Floats


def decimate(x: Sequence[float] | Floats, y: Sequence[float | None] | Floats, width: int) -> Pieces:
    """At most two points, least and greatest, per column of `width`. None, NaN and inf make gaps."""
    xs = np.asarray(x, dtype=np.float64)
    ys = np.asarray([np.nan if value is None else value for value in y], dtype=np.float64)
    finite = np.isfinite(ys)
    gaps = xs[~finite]
    edges = np.flatnonzero(np.diff(finite.astype(np.int8))) + 1
    span = float(xs[-1] - xs[0]) if len(xs) else 0.0
    curves = []
    for piece in np.split(np.arange(len(xs)), edges):
        if len(piece) and finite[piece[0]]:
            share = int(np.ceil(width * (xs[piece[-1]] - xs[piece[0]]) / span)) if span > 0 else 1
            curves.append(_thin(xs[piece], ys[piece], max(1, share)))
    return Pieces(tuple(curves), gaps)


def _thin(xs: Floats, ys: Floats, width: int) -> tuple[Floats, Floats]:
    if len(xs) <= 2 * width or xs[-1] <= xs[0]:
        return xs, ys
    column = np.minimum(((xs - xs[0]) / (xs[-1] - xs[0]) * width).astype(np.int64), width - 1)
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1, [len(xs)]))
    kept: list[int] = []
    for first, end in pairwise(bounds):
        part = ys[first:end]
        kept.extend(sorted({int(first + part.argmin()), int(first + part.argmax())}))
    return xs[kept], ys[kept]
