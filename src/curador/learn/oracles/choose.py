"""Which oracle finds the directions: said by name, or chosen from public numbers."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from curador.errors import InvalidParameter, require, sentence

Method: TypeAlias = Literal["analyze_gauss", "power", "lanczos", "bingham", "oja"]

METHODS: tuple[Method, ...] = ("analyze_gauss", "power", "lanczos", "bingham", "oja")

LARGEST_MATRIX = 5000
"""Up to this many features a whole second moment is released and decomposed: 200 MB."""


def choose(method: object, *, pure: bool, size: int, low_rank: bool = True, exact: bool = False) -> Method:
    """Return the method that "auto" stands for, or the one that was named.

    pure      whether no δ may be spent
    size      the number of features
    low_rank  whether one record's matrix has about the same Frobenius as operator norm, as Σ v v' of rows has
    exact     whether only integer noise will do, as through a curator

    no δ                     bingham, which needs none; exactly: the second moment with Laplace noise
    low rank, size ≤ 5000    analyze_gauss: no iteration, and its error falls with the square of the gap
    else                     lanczos: no matrix, noise by the operator norm
    oja                      only by name: it reproduces the thesis, and needs a δ (`oja_plan` refuses none)

    A function of public numbers, never of data.
    """
    require(size >= 1, "the number of features", "at least 1", size)
    if not isinstance(method, str) or method not in {"auto", *METHODS}:
        raise InvalidParameter(sentence("method", "'auto', " + ", ".join(map(repr, METHODS)), method))
    if method != "auto":
        return cast("Method", method)
    if pure and not exact:
        return "bingham"
    return "analyze_gauss" if low_rank and size <= LARGEST_MATRIX else "lanczos"
