"""Error bars of smooth expressions of means and variances, as CORR, COVAR and REGR: in moments, each over its released count.

Let x_i be measurements, n_i the counts of their rows, and y_i = x_i/n_i. What is released of y_i is off by (N_i − y_i
N_n)/ñ_i without any rest, N being noises and ñ the released count, which is known. So for h, a function of y,

    h(ỹ) − h(y) = Σ h_i(y) (N_i − y_i N_n)/ñ_i + ½ Σ h_ij(ξ) (ỹ_i − y_i)(ỹ_j − y_j),   h_i the slopes, h_ij the bends.

If all have one count, the first sum times ñ is one linear form whose coefficients are not random; it knows nothing of how far
the count may be off. Of several counts the parts have no noise in common, and what the counts' noise changes of their sum is
little and bounded.

quotient   θ = a/b is where h = a − θb is 0, so θ̃ − θ = h(ỹ)/b(ỹ) and the divisor is known, too: Fieller's set of smooth a, b
n h(y)     as REGR_SXY: ñ h(ỹ) − n h(y) is ñ times the same, with h(y) N_n/ñ added
n/(n + c)  as in COVAR_SAMP: a factor that the count's own interval encloses
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan import enclosure as on
from curador.plan import smooth as jets
from curador.plan.aggregates import Linear, Mean, Variance
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import ROUND_OFF, combined_reaches, own_reach, ratio_law
from curador.plan.model import estimates_of
from curador.plan.parts import affine_form, bare_divisor, jet_of
from curador.plan.ratio_sums import turn_of_parts, turned_reach
from curador.plan.smooth import BOX_SHARE, Jet
from curador.query.tree import Call, Estimated, Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.model import BlockPlan
    from curador.plan.price import Noise
    from curador.query.tree import Node

_Fraction: TypeAlias = "tuple[Node, Node | None]"

_ROUNDS = 6
_FURTHER = 256.0, 64.0, 16.0, 4.0


@dataclass(frozen=True, slots=True)
class OfMoments:
    """above/below · count^degree · count/(count + added), where above and below are of moments alone.

    counts   by measurement: over which count it is a moment
    count    the one that stands by itself, if one does
    """

    counts: tuple[tuple[int, int], ...]
    above: Node
    below: Node | None
    degree: int
    count: int
    added: Fraction | None = None


# ---- what an expression is of ---------------------------------------------------------------------------------------


def of_moments(node: Node, block: BlockPlan) -> OfMoments | None:
    """Return an expression as a function of moments; None where it is none. Needs: it is smooth."""
    counts, alone = dict[int, int](), set[int]()
    for index in estimates_of(node):
        estimate = block.estimates[index]
        if isinstance(estimate, Linear):
            if [c for _, c in estimate.terms] != [Fraction(1)]:
                return None
            alone |= set(estimate.measurements)
        elif isinstance(estimate, Mean | Variance):
            for measured in estimate.measurements:
                if measured != estimate.count and counts.setdefault(measured, estimate.count) != estimate.count:
                    return None
    if not counts or len(alone) > 1 or not alone <= set(counts.values()) or set(counts) & set(counts.values()):
        return None
    count = next(iter(alone or set(counts.values())))
    added = None
    if isinstance(node, Call) and node.function == "/":
        form = affine_form(bare_divisor(node.arguments[1]), block)
        if form is not None and form.terms == ((count, Fraction(1)),) and form.constant:
            node, added = node.arguments[0], form.constant
    degree = _degree(node, block)
    if degree not in ((1,) if added is not None else (0, 1)):
        return None
    above, below = _fraction(node)
    if below is not None and degree:
        return None
    return OfMoments(tuple(sorted(counts.items())), above, below, int(degree or 0) if added is None else 0, count, added)


def _degree(node: Node, block: BlockPlan) -> Fraction | None:
    """By which power of t an expression grows if the measurements of one count are multiplied by t; None where by none."""
    match node:
        case Literal(value=bool()):
            return None
        case Literal(value=int() | Fraction()):
            return Fraction(0)
        case Estimated():
            estimate = block.estimates[node.index]
            if isinstance(estimate, Linear):
                return Fraction(1) if estimate.terms and not estimate.constant else None
            plain = isinstance(estimate, Mean) or (isinstance(estimate, Variance) and not estimate.sample)
            return Fraction(0) if plain else None
        case Call(function="cast" | "neg", arguments=(inner,)):
            return _degree(inner, block)
        case Call(function="sqrt", arguments=(inner,)):
            found = _degree(inner, block)
            return None if found is None else found / 2
        case Call(function="+" | "-" | "*" | "/", arguments=(one, other)):
            degrees = _degree(one, block), _degree(bare_divisor(other) if node.function == "/" else other, block)
            if degrees[0] is None or degrees[1] is None:
                return None
            if node.function in {"+", "-"}:
                return degrees[0] if degrees[0] == degrees[1] else None
            return degrees[0] + degrees[1] if node.function == "*" else degrees[0] - degrees[1]
        case _:
            return None


def _fraction(node: Node) -> _Fraction:
    """The expression as one quotient of two that have none; of a root of a quotient nothing is taken apart."""
    match node:
        case Call(function="cast", arguments=(inner,)):
            return _fraction(inner)
        case Call(function="neg", arguments=(inner,)):
            above, below = _fraction(inner)
            return _call("neg", above), below
        case Call(function="/", arguments=(one, other)) if not isinstance(other, Literal):
            (above, below), (beside, under) = _fraction(one), _fraction(bare_divisor(other))
            return _product(above, under), _product(below, beside)
        case Call(function="*", arguments=(one, other)):
            (above, below), (beside, under) = _fraction(one), _fraction(other)
            return _call("*", above, beside), None if below is under is None else _product(below, under)
        case Call(function="+" | "-", arguments=(one, other)):
            (above, below), (beside, under) = _fraction(one), _fraction(other)
            if below == under:
                return _call(node.function, above, beside), below
            return _call(node.function, _product(above, under), _product(beside, below)), _product(below, under)
        case _:
            return node, None


def _call(function: str, *arguments: Node) -> Call:
    return Call(function, arguments, Type.FLOAT)


def _product(one: Node | None, other: Node | None) -> Node:
    """a · b, of which one may be nothing."""
    if one is None or other is None:
        found = one if other is None else other
        return Literal(1, Type.INTEGER) if found is None else found
    return _call("*", one, other)


# ---- where it lies --------------------------------------------------------------------------------------------------


def moments_interval(
    one: OfMoments,
    block: BlockPlan,
    measured: Mapping[int, FloatArray],
    noises: Sequence[Noise],
    miss: Fraction,
    rough: ColumnEnclosure,
) -> ColumnEnclosure | None:
    """Return where the expression of the numbers before noise lies, in every row; None where a moment has no law.

    Claim   In each row it is missed with probability at most `miss`: `rough` and the intervals of moments and counts have
            BOX_SHARE of that each, and the linear form has the rest. Where all hold, θ lies within W/b(ỹ) of θ̃, W being the
            form's reach and the rest, at the largest slopes and bends that moments and θ allow. What allows θ at all is what
            `rough` does; where that has no end, |θ| ≤ T if no larger θ is accepted, which is seen of a/θ − b, |1/θ| ≤ 1/T.
            Each narrower θ allows a smaller W.
    Needs   `rough` misses with at most BOX_SHARE · miss. Noises are independent, and of integers.
    Rounds  Outward.
    Source  As above; `combined_reaches`, which grows with each |coefficient|, and the turn of `plan/ratio_sums.py`.
    """
    counts = dict(one.counts)
    rows, level = len(measured[one.count]), 1 - BOX_SHARE * miss / (len(counts) + len(set(counts.values())))
    released = {index: np.where(measured[index] > 0, measured[index], np.nan) for index in set(counts.values())}
    box, errors = {index: jets.constant(Fraction(1), rows) for index in released}, dict[int, "FloatArray"]()
    for index, count in counts.items():
        law = ratio_law(((index, Fraction(1)),), ((count, Fraction(1)),), noises, level)
        if law is None:
            return None
        centre = measured[index] / released[count]
        low, high = law.ends(centre, measured[index], measured[count])
        errors[index] = np.maximum(centre - low, high - centre)
        box[index] = _variable(index, centre, low, high)
    reaches = {index: float(own_reach(noises[index], 1 - level)) for index in released}  # type: ignore[arg-type]
    form = _Form(counts, box, errors, released, reaches, noises, (1 - 2 * BOX_SHARE) * miss)
    above = jet_of(one.above, block, box, rows)
    if one.below is None:
        half, value = form.reach(above, one.count if one.degree else None), above.centre
        if one.degree:
            value = on.multiply(value, on.exactly(released[one.count], np.zeros(rows, np.bool_)))
            half = half * released[one.count] * ROUND_OFF
        found = value.low - half, value.high + half
    else:
        found = _quotient(form, above, jet_of(one.below, block, box, rows), rough if one.added is None else on.unknown(rows))
    where = on.round_outward(*found, np.zeros(rows, np.bool_))
    if one.added is not None:
        where = on.multiply(where, _factor(released[one.count], reaches[one.count], float(one.added)))
    low, high = np.maximum(where.low, rough.low), np.minimum(where.high, rough.high)
    sure = np.isfinite(where.low) & np.isfinite(where.high) & (low <= high)
    return ColumnEnclosure(np.where(sure, low, rough.low), np.where(sure, high, rough.high), rough.null & ~sure)


def _variable(index: int, centre: FloatArray, low: FloatArray, high: FloatArray) -> Jet:
    sure = np.zeros(len(centre), np.bool_)
    middle = on.round_outward(centre, centre, sure)
    unit = np.ones(len(centre))
    return Jet(middle, on.round_outward(low, high, sure), {index: ColumnEnclosure(unit, unit, sure)}, {})


def _factor(count: FloatArray, reach: float, added: float) -> ColumnEnclosure:
    """n/(n + c) over what the count can be; unknown where n + c may be 0 or less."""
    with np.errstate(all="ignore"):
        ends = [one / (one + added) for one in (count - reach, count + reach)]
    known = (count - reach > 0) & (count - reach + added > 0)
    low, high = np.minimum(*ends) * (1 - 1e-15), np.maximum(*ends) * (1 + 1e-15)
    return ColumnEnclosure(np.where(known, low, -np.inf), np.where(known, high, np.inf), ~known)


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """What the noise of a function of moments is made of; reaches: how far the counts' noises go."""

    counts: Mapping[int, int]
    box: Mapping[int, Jet]
    errors: Mapping[int, FloatArray]
    released: Mapping[int, FloatArray]
    reaches: Mapping[int, float]
    noises: Sequence[Noise]
    miss: Fraction

    def reach(self, jet: Jet, by_rows: int | None = None) -> FloatArray:
        """Return how far h(ỹ) is from h(y), or ñ h(ỹ) from n h(y) over ñ; infinite where slopes or bends are. Rounds: up."""
        rows = len(jet.value.low)
        nothing = on.exactly(np.zeros(rows), np.zeros(rows, np.bool_))
        levels = {count: jet.value if count == by_rows else nothing for count in self.released}
        held, sizes = list[int](), list["FloatArray"]()
        for index, slope in jet.slopes.items():
            count = self.counts[index]
            levels[count] = on.subtract(levels[count], on.multiply(slope, self.box[index].value))
            held.append(index)
            sizes.append(np.maximum(np.abs(slope.low), np.abs(slope.high)) / self.released[count])
        for count, level in levels.items():
            held.append(count)
            sizes.append(np.maximum(np.abs(level.low), np.abs(level.high)) / self.released[count])
        coefficients = np.stack(sizes, axis=-1) * ROUND_OFF
        finite = np.all(np.isfinite(coefficients), axis=-1)
        coefficients = np.where(finite[:, None], coefficients, 0.0)
        rest = np.zeros(rows)
        for (i, j), bend in jet.bends.items():
            rest = rest + bend * self.errors[i] * self.errors[j] * (0.5 if i == j else 1.0)
        slips = [size * self.released[self.counts[i]] * self.errors[i] for i, size in zip(jet.slopes, sizes, strict=False)]
        if by_rows is not None:  # the count's own noise, times h(y)
            most = np.maximum(np.abs(jet.value.low), np.abs(jet.value.high))
            slips.append(most * self.reaches[by_rows] / self.released[by_rows])
        linear = self._linear(held, coefficients, np.sum(slips, axis=0))
        return np.where(finite, (linear + rest) * ROUND_OFF, np.inf)

    def _linear(self, held: Sequence[int], coefficients: FloatArray, slips: FloatArray) -> FloatArray:
        """The reach of the linear form; slips: what the parts of it come to one by one, within their own intervals.

        Claim   Of several counts, with k = n/ñ for each, λ the middle of the largest and the smallest, and s the half of
                their difference over λ, every k is λ(1 + δ), |δ| ≤ s. So the form differs from λ times that with n for ñ,
                whose coefficients are not random and at most 1/(1 − s) times those over ñ, by s/(1 − s) times the slips. Of
                Gaussian noises the turn says more.
        """
        if len(self.released) == 1:
            return combined_reaches(held, coefficients, self.noises, self.miss)
        near = [(reach, count - reach) for count, reach in ((self.released[c], self.reaches[c]) for c in self.released)]
        parts = [np.where(low > reach, reach / np.where(low > reach, low, 1.0), np.nan) for reach, low in near]
        gaussians = [noise for noise in (self.noises[index] for index in held) if isinstance(noise, DiscreteGaussian)]
        if len(gaussians) == len(held):
            return turned_reach(gaussians, coefficients, parts, self.miss)
        sine = turn_of_parts(parts)
        away = np.where(sine < 1, sine / (1 - sine), np.nan) * ROUND_OFF
        reach = combined_reaches(held, coefficients, self.noises, self.miss)
        return np.where(np.isfinite(away), reach * (1 + away) + away * slips, np.inf)


def _quotient(form: _Form, above: Jet, below: Jet, rough: ColumnEnclosure) -> tuple[FloatArray, FloatArray]:
    """The ends of θ = a/b."""
    divisor = np.where(below.centre.low > 0, below.centre.low, np.nan)
    value = on.divide(above.centre, below.centre)
    middle = (value.low + value.high) / 2
    near, most = np.abs(middle) + form.reach(above) / divisor, np.full(len(middle), np.inf)
    for times in _FURTHER:  # of one and the same form, so that the last that says something may be taken
        far = times * near
        inverse = ColumnEnclosure(-1 / far, 1 / far, np.zeros(len(far), np.bool_))
        tops = np.maximum(np.abs(above.centre.low), np.abs(above.centre.high)) / far
        none = divisor - tops > form.reach(_less(_scaled(above, inverse), below)) * ROUND_OFF
        most = np.where(none, far, most)
    low, high = np.maximum(rough.low, -most), np.minimum(rough.high, most)
    for _ in range(_ROUNDS):
        theta = ColumnEnclosure(low, high, np.zeros(len(low), np.bool_))
        half = form.reach(_less(above, _scaled(below, theta))) / divisor * ROUND_OFF
        better = np.isfinite(half)
        low = np.where(better, np.maximum(low, value.low - half), low)
        high = np.where(better, np.minimum(high, value.high + half), high)
    return np.where(low <= high, low, -np.inf), np.where(low <= high, high, np.inf)


def _scaled(one: Jet, factor: ColumnEnclosure) -> Jet:
    """A function times a number that is enclosed."""
    return jets.times(one, Jet(factor, factor, {}, {}))


def _less(one: Jet, other: Jet) -> Jet:
    return jets.minus(one, other)
