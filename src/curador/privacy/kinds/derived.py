"""Losses made of others: of a secret subsample, and towards a group, where no simpler record says it.

Each is made from the other: a group of a sample is a Group of a Subsampled.
What a sample of a base loses that is known by its Rényi curve alone is `without_replacement_renyi`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from attrs import frozen

from curador.errors import InvalidParameter, NotPrivate, require
from curador.numerics.exact import Number, positive, rational, whole
from curador.numerics.rounding import UNIT, float_up, up
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency, as_adjacency
from curador.privacy.kinds.finite import add_rows
from curador.privacy.kinds.promises import Pure, basic_of_pure, concentrated_of_pure
from curador.privacy.laws import cells
from curador.privacy.laws.normal_mixtures import Mixture
from curador.privacy.laws.resolve import GaussianShift, directed_rows, dominating_rows, finite_rows, gaussian_shift
from curador.privacy.laws.side import Direction, Side, Sides
from curador.privacy.loss import GROUP, SUBSAMPLE, Composed, Loss, Scheme, parts_of
from curador.privacy.rules import (
    Rows,
    Traits,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    describe,
    exact_rows,
    gaussian_squares,
    grouped,
    law,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    read_body,
    renyi_stand_in,
    say_nothing,
    single_concentrated,
    single_pure,
    store_as,
    traits_of,
    two_faced,
    unsampled,
    write_body,
)

# ---- samples of what is known by its Rényi curve ---------------------------------------------------------------------------


def without_replacement_renyi(
    divergence: Callable[[int], float], *, rate: Number, alpha: Number, one_pair: bool = False
) -> float:
    """Return a bound of D_α of a subsample without replacement from the base curve at orders 2 … α and ∞.

    Claim   (α−1) D'_α ≤ log(1 + q² C(α,2) min(4(e^D₂ − 1), 2e^D₂) + Σ_{j=3..α} q^j C(α,j) T_j),
            T_j = e^((j−1) D_j) min(2, (e^D∞ − 1)^j), and with one_pair also T_j ≤ 4 √(B(2⌊j/2⌋) B(2⌈j/2⌉)),
            B(l) = Σ_i (−1)^i C(l,i) e^((i−1) D_i), the central moments.
    Needs   `divergence(j)` bounds the base under replace-one, divergence(0) standing for the order ∞; α whole. one_pair: the
            values are the divergences of one pair at all orders (as for Gaussian noise), not mere bounds.
            Looser than the loss's own `renyi`, which knows the pair; for bases known by their curve alone.
    Rounds  Up. Source: [WBK19, Thm. 27]
    """
    order = whole(alpha, "alpha", least=2)
    share = positive(rate, "rate")
    require(share <= 1, "rate", "at most 1", rate)
    curve = {j: divergence(j) for j in (0, *range(2, order + 2 + order % 2))}
    central = _central_moments(curve, order + order % 2) if one_pair else {}
    total = 0.0
    for j in range(2, order + 1):
        term = _wor_term(j, curve)
        if j == 2:
            term = min(term, 4.0 * math.expm1(min(curve[2], 700.0)))
        elif one_pair:
            term = min(term, 4.0 * math.sqrt(central[j - j % 2] * central[j + j % 2]))
        total += math.exp(j * math.log(share) + math.log(math.comb(order, j)) + math.log(term)) if term > 0.0 else 0.0
    return up(math.log1p(total * (1 + 1e-13 * order)) / (order - 1), 8) if math.isfinite(total) else math.inf


def _wor_term(j: int, curve: dict[int, float]) -> float:
    spread = math.expm1(min(curve[0], 300.0))  # only whether its power exceeds 2 matters
    last = 2.0 if spread > 2.0 ** (1 / j) else spread**j
    exponent = (j - 1) * curve[j]
    return math.inf if exponent > 690.0 else math.exp(exponent) * last


def _central_moments(curve: dict[int, float], largest: int) -> dict[int, float]:
    """B(l) for even l; the alternating sums cancel, so they are taken with 400 digits."""
    with localcontext() as context:
        context.prec = 400
        moments = [Decimal(1), Decimal(1), *((Decimal(curve[i]) * (i - 1)).exp() for i in range(2, largest + 1))]
        return {
            size: max(float(sum((-1) ** i * math.comb(size, i) * moments[i] for i in range(size + 1))) * (1 + 1e-15), 0.0)
            for size in range(2, largest + 1, 2)
        }


# ---- the records -----------------------------------------------------------------------------------------------------------


LARGEST_SAMPLED_GROUP = 200
"""A group in a Poisson sample is a mixture of size + 1 Gaussians."""

_LARGEST_FOLDED = 256


# ---- samples --------------------------------------------------------------------------------------------------------


@frozen
class Subsampled(Loss):
    """A loss under secret subsampling; made by `loss.subsample`, which knows which have a proof."""

    base: Loss
    rate: Fraction
    scheme: Scheme
    adjacency: Adjacency  # pyright: ignore[reportIncompatibleMethodOverride] -- a frozen field may stand for a property


@SUBSAMPLE.answered_by
def subsample(loss: Loss, *, rate: Number, scheme: Scheme, adjacency: Adjacency | str | None) -> Loss:
    """Return the loss of the mechanism run on a secret random subsample.

    Claim   poisson, add-or-remove-one: if (P, Q) dominates the mechanism, ((1−q)Q + qP, Q) dominates it when a record
            leaves, and its mirror when one comes. Source: [ZDW22]
            poisson, replace-one: proved here for Gaussian noise, (1−q)N(0) + qN(±1). Source: [ZDW22]; for vectors
            docs/explanation/accounting.md, theorem 8
            without replacement, replace-one: δ'(ε') = q δ(log(1 + (e^ε' − 1)/q)). Source: [BBG18, Thm. 9]
            The same scheme twice is that scheme with the product of the rates.
    Needs   The base loss is about the mechanism under the same neighbours (for poisson replace-one: its add-or-remove-one
            sensitivity), and the subsample stays secret.
    """
    exact = positive(rate, "rate")
    require(exact <= 1, "rate", "at most 1", rate)
    near = _adjacency_of(scheme, adjacency)
    if loss.adjacency is not None and loss.adjacency is not near:
        raise InvalidParameter(
            subject="adjacency",
            rule=f"must be that of the loss ({loss.adjacency})",
            got=str(near),
            hint="poisson goes with add_or_remove_one, without_replacement with replace_one.",
        )
    records = [record for record, _ in parts_of(loss)]
    if len(records) == 1 and isinstance(loss, Subsampled):
        if loss.scheme != scheme:
            raise NotPrivate("no rule is proved for one subsampling scheme inside another")
        return Subsampled(loss.base, loss.rate * exact, scheme, near)
    for record in records:
        _refuse_unproved(record, scheme, near)
    return Subsampled(loss, exact, scheme, near)


def _adjacency_of(scheme: str, adjacency: Adjacency | str | None) -> Adjacency:
    if scheme == "poisson":
        return ADD_OR_REMOVE_ONE if adjacency is None else as_adjacency(adjacency)
    if scheme == "without_replacement":
        if adjacency is not None and as_adjacency(adjacency) is not REPLACE_ONE:
            raise NotPrivate("sampling without replacement is proved for replace_one only: the sample's size is public")
        return REPLACE_ONE
    raise InvalidParameter.must_be("scheme", '"poisson" or "without_replacement"', scheme)


def _refuse_unproved(record: Loss, scheme: Scheme, adjacency: Adjacency) -> None:
    single_pure(record)  # an unknown record is refused there
    reason = unsampled(record, scheme)
    if reason is not None:
        raise reason
    if scheme == "poisson" and adjacency is REPLACE_ONE and not traits_of(record).gaussian:
        raise NotPrivate(
            "poisson subsampling under replace_one is proved for Gaussian noise only.",
            hint='use adjacency="add_or_remove_one", or scheme="without_replacement".',
        )


def _all_gaussian(loss: Loss) -> bool:
    return all(traits_of(record).gaussian for record, _ in parts_of(loss))


store_as(
    "Subsampled",
    Subsampled,
    write=lambda loss: {
        "rate": str(loss.rate),
        "scheme": loss.scheme,
        "adjacency": str(loss.adjacency),
        "base": write_body(loss.base),
    },
    read=lambda has: read_body(has.pop("base")).subsample(
        rate=rational(has.pop("rate"), "rate"), scheme=has.pop("scheme"), adjacency=as_adjacency(has.pop("adjacency"))
    ),
)
describe(
    Subsampled,
    Traits(
        directional=True,
        gaussian=False,
        attains_pure=False,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(True, Subsampled)
say_nothing(
    Subsampled,
    closed_tradeoff,
    exact_rows,
    gaussian_squares,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
)


@single_pure.of(Subsampled)
def _(record: Subsampled) -> Fraction | None:
    """Claim: log(1 + q(e^ε − 1)) for either scheme. Source: [BBG18, Thm. 8, Thm. 9]. Rounds: up."""
    base = record.base.pure_epsilon
    if base is None:
        return None
    epsilon = float_up(base)
    if epsilon > 700:
        return base
    return min(base, Fraction(up(math.log1p(up(float_up(record.rate) * up(math.expm1(epsilon), 4), 2)), 4)))


basic_amounts.of(Subsampled)(basic_of_pure)


@law.of(Subsampled)
def _(record: Subsampled, count: int, direction: Direction, out: Sides) -> None:
    shape = gaussian_shift(record.base, count, record.rate)
    weights = (float(1 - record.rate), float(record.rate))
    if record.scheme == "poisson" and record.adjacency is not ADD_OR_REMOVE_ONE:
        if shape is None:
            raise NotPrivate("poisson subsampling under replace_one is proved for Gaussian noise only")
        for side, mu, spread in _share_sides(shape, out):
            side.mixtures.append(Mixture(1.0 / mu, weights, weights, -1, count, spread))
    elif record.scheme == "poisson" and shape is not None:
        _mixture(shape, weights, count, direction, out)
    else:
        _cells(record, shape, count, direction, out)


def _mixture(
    shape: GaussianShift,
    weights: tuple[float, ...],
    count: int,
    direction: Direction,
    out: Sides,
) -> None:
    p, q = (weights, (1.0,)) if direction is Direction.LEAVES else ((1.0,), weights)
    for side, mu, spread in _share_sides(shape, out):
        side.mixtures.append(Mixture(1.0 / mu, p, q, 1, count, spread))


def _share_sides(shape: GaussianShift, out: Sides) -> list[tuple[Side, float, float]]:
    """Each side with its μ and what doubt of μ² is left: a fine grid's doubt is round-off, a coarser one parts the sides."""
    doubt = shape.doubt
    if doubt <= 1e-14:
        return [(out.above, shape.above, doubt), (out.below, shape.below, doubt)]
    up, down = math.sqrt(1 + doubt), math.sqrt(1 - doubt)
    return [(out.above, shape.above * up, 4 * UNIT), (out.below, shape.below * down, 4 * UNIT)]


def _cells(
    record: Subsampled,
    shape: GaussianShift | None,
    count: int,
    direction: Direction,
    out: Sides,
) -> None:
    """Subsampling of everything else: exact where the base is finite, by the two twins of its cells otherwise.

    Claim   Without replacement the symmetric pair dominates and none has it: below stands the directed pair of the data set
            in which everybody else holds the other value, which is that of a Poisson sample of the same rate.
    Source  [BBG18, Thm. 9] above; docs/explanation/accounting.md, "What a reading is", below.
    """
    parts = parts_of(record.base)
    if not parts or record.base.pure_epsilon == 0:
        return
    leaves = direction is Direction.LEAVES
    rows = finite_rows(record.base) if shape is None else None
    if rows is not None:
        add_rows(dominating_rows(rows, record.rate, record.scheme, leaves=leaves), count, Sides(out.above, out.above))
        if out.below is not out.above:
            add_rows(directed_rows(rows, record.rate, leaves=leaves), count, Sides(out.below, out.below))
        return
    upper, lower = _base_cells(record.base, shape)
    for pair, side, build in ((upper, out.above, cells.dominating_law), (lower, out.below, cells.dominated_law)):
        if isinstance(pair, list):
            add_rows(directed_rows(pair, record.rate, leaves=leaves), count, Sides(side, side))
            continue
        if record.scheme == "poisson" or side is out.below:
            mixed = cells.sample_poisson(pair, record.rate, leaves=leaves)
        else:
            mixed = cells.sample_without_replacement(pair, record.rate)
        built = build(mixed, count)
        finite, beyond = built if isinstance(built, tuple) else (built, 0.0)
        side.others.append(finite)
        side.infinite(Fraction(0), Fraction(beyond), count)


def _base_cells(base: Loss, shape: GaussianShift | None) -> tuple[cells.CellPair, cells.CellPair | Rows]:
    """The base's cells above; below cells too, or the exact rows of a mechanism that attains it."""
    if shape is not None:
        doubt = shape.doubt
        up, down = (1 + 1e-12, 1 - 1e-12) if doubt <= 1e-12 else (math.sqrt(1 + doubt), math.sqrt(1 - doubt))
        return cells.gaussian_cells(shape.above * up), cells.gaussian_cells(shape.below * down)
    parts = parts_of(base)
    found = noise_cells(parts[0][0]) if len(parts) == 1 and parts[0][1] == 1 else None
    if found is None:
        raise NotPrivate(
            "no subsampling rule is proved for this base: it is neither finite, nor Gaussian, nor a single noise record.",
            hint="subsample each mechanism by itself if each sees its own sample.",
        )
    return found


@cut_bound.of(Subsampled)
def _(record: Subsampled) -> Callable[[float], float] | None:
    """Claim: D_α of Gaussian noise on a sample without replacement, from that of the noise. Rounds: up.

    Source  [WBK19, Thm. 27].
    """
    if record.scheme != "without_replacement" or not _all_gaussian(record.base):
        return None

    def bound(alpha: float) -> float:
        order, rho = max(2, math.ceil(alpha)), record.base.rho
        if not isinstance(rho, Fraction) or order > _LARGEST_FOLDED:
            return math.inf
        slope = float_up(rho)
        return without_replacement_renyi(
            lambda j: math.inf if j == 0 else j * slope, rate=record.rate, alpha=order, one_pair=True
        )

    return bound


@grouped.of(Subsampled)
def _(record: Subsampled, size: int) -> Loss:
    """Claim: Poisson samples of Gaussian noise have a rule of their own; else only a pure ε multiplies."""
    if record.scheme == "poisson" and record.adjacency is ADD_OR_REMOVE_ONE and _all_gaussian(record.base):
        if size > LARGEST_SAMPLED_GROUP:
            raise NotPrivate(f"groups in a subsample are accounted up to {LARGEST_SAMPLED_GROUP} people; got {size}")
        return Group(record, size)
    epsilon = record.pure_epsilon
    if epsilon is None:
        raise NotPrivate("no group rule is proved for this Subsampled loss: it is neither pure nor Gaussian")
    return Pure(epsilon=size * epsilon, adjacency=record.adjacency)


# ---- groups ---------------------------------------------------------------------------------------------------------


@frozen
class Group(Loss):
    """A loss towards `size` people where no simpler record says it; made by `loss.group`."""

    base: Loss
    size: int

    @property
    def adjacency(self) -> Adjacency | None:
        """That of the base."""
        return self.base.adjacency


@GROUP.answered_by
def group(loss: Loss, size: int) -> Loss:
    """Return the loss towards a group of `size`.

    Claim   If `loss` bounds every pair of neighbours, the result bounds every pair at distance `size`. Independent releases:
            each by itself, by the rule of its kind; what has none is refused.
    """
    if size == 1:
        return loss
    if isinstance(loss, Composed):
        return Composed(tuple((group(record, size), count) for record, count in loss.parts))
    return grouped(loss, size)


store_as(
    "Group",
    Group,
    write=lambda loss: {"size": loss.size, "base": write_body(loss.base)},
    read=lambda has: read_body(has.pop("base")).group(whole(has.pop("size"), "size")),
)
describe(
    Group,
    Traits(
        directional=True,
        gaussian=False,
        attains_pure=False,
        attains_infinity=False,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(True, Group)
say_nothing(
    Group,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    gaussian_squares,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
)


@single_pure.of(Group)
def _(record: Group) -> Fraction | None:
    base = record.base.pure_epsilon
    return None if base is None else record.size * base


basic_amounts.of(Group)(basic_of_pure)


@law.of(Group)
def _(record: Group, count: int, direction: Direction, out: Sides) -> None:
    """Claim: under Poisson sampling a group of k enters as Binomial(k, q) shifts of the Gaussian. Source: [Gan24]."""
    base = record.base
    shape = gaussian_shift(base.base, count, base.rate) if isinstance(base, Subsampled) else None
    if shape is None or not isinstance(base, Subsampled):
        raise NotPrivate(f"no group rule is proved for {type(base).__name__} losses of this kind")
    rate, size = base.rate, record.size
    weights = tuple(float(math.comb(size, j) * rate**j * (1 - rate) ** (size - j)) for j in range(size + 1))
    _mixture(shape, weights, count, direction, out)


@grouped.of(Group)
def _(record: Group, size: int) -> Loss:
    return Group(record.base, record.size * size)


# ---- both -----------------------------------------------------------------------------------------------------------


single_concentrated.of(Subsampled, Group)(concentrated_of_pure)


@unsampled.of(Subsampled, Group)
def _(record: Subsampled | Group, scheme: Scheme) -> NotPrivate | None:
    del scheme
    return NotPrivate(f"no subsampling rule is proved for a sum that holds a {type(record).__name__} loss")
