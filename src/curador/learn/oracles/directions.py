"""Directions one after the other, each drawn by bingham.py in what the earlier ones leave over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curador.learn.sums import Floats

if TYPE_CHECKING:
    from curador.learn.release import Releaser


def direction(releaser: Releaser, name: str, matrix: Floats, *, extent: float) -> Floats:
    """Draw one direction of a symmetric matrix; one release of `name`.

    extent  R: how far apart the eigenvalues of one record's change of the matrix are at most (`range_of`)
    Claim   Costs one direction of the releaser's plan: its log-ratio spans at most β R = 1/multiplier. In real arithmetic.
    Needs   A plan of directions: `direction_plan`, or `make_plan` of a goal without δ with a part that is `drawn`.
    """
    return releaser.direction(name, matrix, extent=extent)


def directions(releaser: Releaser, name: str, matrix: Floats, *, extent: float, count: int) -> Floats:
    """Draw `count` orthonormal directions, as rows; `count` releases of `name`.

    Claim   Each is a direction of Q'AQ, Q a public basis of what is orthogonal to the earlier ones: eigenvalues of Q'(A −
            A')Q lie between those of A − A', so R is the same.
    """
    size = len(matrix)
    found = np.empty((min(count, size), size))
    rest = np.eye(size)  # columns span what is left
    for index in range(len(found)):
        left = rest.shape[1]
        if left == 1:  # no choice is left; the sphere has two points, and the sign is free
            found[index] = rest[:, 0]
            break
        inner = direction(releaser, name, rest.T @ matrix @ rest, extent=extent)
        found[index] = rest @ inner
        complete = np.linalg.qr(np.column_stack([inner, np.eye(left)]))[0]
        rest = rest @ complete[:, 1:left]
    return found
