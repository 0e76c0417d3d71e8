"""From loss records to laws: a dominating one above and an attainable one below, per direction.

`above` bounds what the records allow (its pair dominates every mechanism that a record describes); `below` is the loss of
some mechanism that the records describe, so that no honest accounting can go lower. For noise the two are the same.
The laws of each kind stand beside it, in `kinds`.
"""

from __future__ import annotations

from curador.privacy.laws.side import Direction, Side, Sides
from curador.privacy.loss import Loss, kinds_of
from curador.privacy.rules import law, traits_of, two_faced


def sides(loss: Loss, direction: Direction) -> tuple[Side, Side]:
    """Return the laws above and below all records of the loss, in one direction. The same object where they agree."""
    kinds = kinds_of(loss).values()
    above = Side()
    out = Sides(above, Side() if any(two_faced.some(parts) for parts in kinds) else above)
    for parts in kinds:
        add = law.answer_of(parts[0][0])
        for record, count in parts:
            add(record, count, direction, out)
    return out.above, out.below


def one_sided(loss: Loss) -> bool:
    """Whether the two directions differ."""
    return any(traits_of(parts[0][0]).directional for parts in kinds_of(loss).values())


def directions_of(loss: Loss) -> tuple[Direction, ...]:
    """Return the directions that must be looked at: both, or one where they are mirror images."""
    return tuple(Direction) if one_sided(loss) else (Direction.LEAVES,)
