"""Privacy curves to many digits, written apart from the accountant so that it can judge it.

Everything here is slow, plain and computed with 60 digits. A curve is a function

    delta(epsilon) = p_inf + E_P[(1 - e^(epsilon - L))_+],   L = log dP/dQ,

and a loss is known by its moment function M(s) = E_P[e^(sL); L < inf]. Three ways lead to a curve:

    terms     M(s) = sum c e^(s l) / (s + 1/2)^m with exact rational l. Atoms have m = 0, the continuous part
              of a Laplace or bounded-range loss m = 1; products stay in this form, and each term has a
              closed inverse (the residues at 0, -1 and -1/2).
    pairs     mixtures of unit normals with an increasing loss: one Poisson-subsampled Gaussian, groups of
              it, replace-one. The hockey-stick divergence is a difference of two normal tails.
    Fourier   any composition whose characteristic function decays, by the tilted sum of period T; the tilt,
              the period and the number of frequencies are free, and the value must not depend on them.

Parameters are exact (int or Fraction); an epsilon may be a float, which then means exactly its binary value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import mpmath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

MP: Any = mpmath.mp.clone()  # a context of our own: nobody else's precision moves
MP.dps = 60
NEGLIGIBLE = MP.mpf(10) ** -75

Real: TypeAlias = Any  # an mpf of MP; mpmath ships no types
Exact: TypeAlias = int | Fraction
Curve: TypeAlias = "Callable[[Any], Real]"
Nodes: TypeAlias = "list[tuple[Real, Real]]"  # (P-mass, loss)
Key: TypeAlias = tuple[Fraction, Fraction, int]  # the loss is first + log(second); third counts 1/(s + 1/2)


def number(value: Any) -> Real:
    """The 60-digit number nearest to an int, Fraction, float or mpf."""
    if isinstance(value, Fraction):
        return MP.mpf(value.numerator) / value.denominator
    return MP.mpf(value)


# --------------------------------------------------------------------------------------------------- terms


@dataclass(frozen=True, slots=True)
class Terms:
    """A loss law whose moment function is a sum of terms c e^(s l) / (s + 1/2)^m, plus mass at infinity."""

    terms: Mapping[Key, Real]
    infinite: Real


NOTHING = Terms({(Fraction(0), Fraction(1), 0): MP.mpf(1)}, MP.mpf(0))


def atoms(pairs: Iterable[tuple[Exact, Real]], infinite: Real = 0) -> Terms:
    """The law with the given (rational loss, probability) atoms."""
    terms: dict[Key, Real] = defaultdict(lambda: MP.mpf(0))
    for loss, mass in pairs:
        terms[Fraction(loss), Fraction(1), 0] += mass
    return Terms(dict(terms), MP.mpf(infinite))


def randomized_response(epsilon: Exact, categories: int = 2) -> Terms:
    """The truth is kept with probability e^eps / (e^eps + k - 1), else another category is drawn."""
    grow = MP.exp(number(epsilon))
    total = grow + categories - 1
    law = [(epsilon, grow / total), (-epsilon, 1 / total)]
    return atoms([*law, (0, (categories - 2) / total)] if categories > 2 else law)


def approximate(epsilon: Exact, delta: Exact) -> Terms:
    """The four-point pair that dominates every (epsilon, delta) mechanism."""
    share = 1 - number(delta)
    pure = randomized_response(epsilon)
    return Terms({key: share * mass for key, mass in pure.terms.items()}, number(delta))


def discrete_laplace(scale: Exact, shift: int) -> Terms:
    """Integer noise with mass proportional to e^(-|x|/scale), against itself moved by shift."""
    scale = Fraction(scale)
    decay = MP.exp(-number(1 / scale))
    peak = (1 - decay) / (1 + decay)
    end = 1 / (1 + decay)  # the mass of x <= 0
    inner = [(Fraction(shift - 2 * x) / scale, peak * decay**x) for x in range(1, shift)]
    return atoms([(shift / scale, end), *inner, (-shift / scale, end * decay**shift)])


def discrete_gaussian(sigma2: Exact, shift: int) -> Terms:
    """Integer noise with mass proportional to e^(-x^2 / (2 sigma2)); the rest (< 1e-70) is infinite."""
    sigma2 = Fraction(sigma2)
    reach = math.ceil(math.sqrt(2 * float(sigma2) * math.log(1e76))) + 2
    weights = {x: MP.exp(-number(x * x / (2 * sigma2))) for x in range(-reach - shift, reach + shift + 1)}
    total = MP.fsum(weights.values())
    kept = [x for x in weights if abs(x) <= reach]
    law = [(shift * (shift - 2 * x) / (2 * sigma2), weights[x] / total) for x in kept]
    return atoms(law, infinite=1 - MP.fsum(mass for _, mass in law))


def finite(p: Sequence[Exact], q: Sequence[Exact]) -> Terms:
    """An arbitrary finite pair in the direction P against Q; the losses are logarithms of exact ratios."""
    terms: dict[Key, Real] = defaultdict(lambda: MP.mpf(0))
    for above, below in zip(p, q, strict=True):
        if above and below:
            terms[Fraction(0), Fraction(above) / Fraction(below), 0] += number(Fraction(above))
    lost = sum((Fraction(above) for above, below in zip(p, q, strict=True) if not below), Fraction(0))
    return Terms(dict(terms), number(lost))


def laplace(epsilon: Exact) -> Terms:
    """Atoms of mass 1/2 at eps and e^-eps/2 at -eps, and the density e^((l - eps)/2) / 4 between them."""
    eps, one, fall = Fraction(epsilon), Fraction(1), MP.exp(-number(epsilon))
    ends = {(eps, one, 0): MP.mpf(1) / 2, (-eps, one, 0): fall / 2}
    return Terms({**ends, (eps, one, 1): MP.mpf(1) / 4, (-eps, one, 1): -fall / 4}, MP.mpf(0))


def bounded_range(epsilon: Exact) -> Terms:
    """The dominating density e^(-eps/2) e^(l/2) / (2 (1 - e^-eps)) on (-eps, eps), without atoms."""
    eps, one, fall = Fraction(epsilon), Fraction(1), MP.exp(-number(epsilon))
    height = 1 / (2 * (1 - fall))
    return Terms({(eps, one, 1): height, (-eps, one, 1): -fall * height}, MP.mpf(0))


def compose(first: Terms, second: Terms) -> Terms:
    """The law of the sum of two independent losses."""
    terms: dict[Key, Real] = defaultdict(lambda: MP.mpf(0))
    for (shift, ratio, order), mass in first.terms.items():
        for (other_shift, other_ratio, other_order), other in second.terms.items():
            terms[shift + other_shift, ratio * other_ratio, order + other_order] += mass * other
    return Terms(dict(terms), 1 - (1 - first.infinite) * (1 - second.infinite))


def power(law: Terms, count: int) -> Terms:
    """The law of count independent copies; two atoms go by the binomial theorem, so count may be 10,000."""
    if len(law.terms) != 2:
        result = NOTHING
        for _ in range(count):
            result = compose(result, law)
        return result
    (high, up), (low, down) = law.terms.items()
    terms: dict[Key, Real] = {}
    mass, step = down**count, up / down
    for i in range(count + 1):
        shift, ratio = i * high[0] + (count - i) * low[0], high[1] ** i * low[1] ** (count - i)
        terms[shift, ratio, i * high[2] + (count - i) * low[2]] = mass
        mass = mass * step * (count - i) / (i + 1)
    return Terms(terms, 1 - (1 - law.infinite) ** count)


def compose_all(laws: Iterable[tuple[Terms, int]]) -> Terms:
    """The law of all the (law, count) together."""
    result = NOTHING
    for law, count in laws:
        result = compose(result, power(law, count))
    return result


def term_losses(law: Terms) -> list[tuple[Real, int, Real]]:
    """The terms as (loss, order, coefficient)."""
    return [
        (number(shift) + (MP.log(number(ratio)) if ratio != 1 else 0), order, mass)
        for (shift, ratio, order), mass in law.terms.items()
    ]


def inverse(order: int, above: Real) -> Real:
    """The function of x whose transform is e^(s l) / ((s + 1/2)^order s (s + 1)), at above = l - x > 0.

    Residues: 2^m at 0, -(-2)^m e^-u at -1, and the Taylor coefficient of order m - 1 at -1/2.
    """
    value = MP.mpf(2) ** order - MP.mpf(-2) ** order * MP.exp(-above)
    if not order:
        return value
    steps = range(order - 1, -1, -2)
    taylor = MP.fsum(MP.mpf(2) ** (order - 1 - j) * above**j / math.factorial(j) for j in steps)
    return value - 4 * MP.exp(-above / 2) * taylor


def terms_curve(law: Terms, mu: Any = 0) -> Curve:
    """The curve of a law of terms, alone or (atoms only) together with one Gaussian mechanism of that mu."""
    losses = term_losses(law)
    if not mu:
        return lambda eps: (
            law.infinite
            + MP.fsum(mass * inverse(order, loss - number(eps)) for loss, order, mass in losses if loss > number(eps))
        )
    if any(order for _, order, _ in losses):
        raise ValueError("terms with a continuous part and a Gaussian go through fourier_curve")
    return lambda eps: law.infinite + MP.fsum(mass * gaussian_delta(mu, number(eps) - loss, mass) for loss, _, mass in losses)


def normal_tail(z: Real) -> Real:
    """P[N(0, 1) > z], accurate in relative terms on both sides."""
    return MP.erfc(z / MP.sqrt(2)) / 2


def gaussian_delta(mu: Any, epsilon: Any, weight: Any = 1) -> Real:
    """The Gaussian mechanism's delta at any real epsilon; 0 where it cannot matter with the given weight."""
    mu, epsilon = number(mu), number(epsilon)
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near > 5 and weight * MP.exp(-near * near / 2) < NEGLIGIBLE:
        return MP.mpf(0)
    return normal_tail(near) - MP.exp(epsilon) * normal_tail(far)


# --------------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True, slots=True)
class Pair:
    """Two mixtures of unit normals, as (weight, centre), whose log ratio increases with x."""

    p: tuple[tuple[Real, Real], ...]
    q: tuple[tuple[Real, Real], ...]

    def density(self, x: Any) -> Real:
        """The density of P at x."""
        root = MP.sqrt(2 * MP.pi)
        return MP.fsum(w * MP.exp(-((x - c) ** 2) / 2) for w, c in self.p) / root

    def loss(self, x: Any) -> Real:
        """The loss log(p/q) at x, the common factor e^(-x^2/2) left out of both."""
        top, bottom = (MP.fsum(w * MP.exp(c * x - c * c / 2) for w, c in side) for side in (self.p, self.q))
        return MP.log(top / bottom)

    def slope(self, x: Any) -> Real:
        """The derivative of the loss: the mean centre under P's posterior weights less that under Q's."""
        means = []
        for side in (self.p, self.q):
            weights = [w * MP.exp(c * x - c * c / 2) for w, c in side]
            means.append(MP.fdot(weights, [c for _, c in side]) / MP.fsum(weights))
        return means[0] - means[1]

    def limits(self) -> tuple[Real, Real]:
        """The infimum and supremum of the loss."""
        ends = []
        for pick in (min, max):
            (up, above), (down, below) = (pick(side, key=lambda entry: entry[1]) for side in (self.p, self.q))
            unbounded = MP.inf if pick is max else -MP.inf
            ends.append(MP.log(up / down) if above == below else unbounded)
        return ends[0], ends[1]


def poisson_pair(mu: Any, rate: Any, direction: str = "remove", group: int = 1) -> Pair:
    """One Poisson-subsampled Gaussian step (group: that many records come and go together)."""
    mu, rate = number(mu), number(rate)
    sign = 1 if direction == "remove" else -1  # the add pair is reflected, so that its loss increases too
    mixture = tuple((math.comb(group, j) * rate**j * (1 - rate) ** (group - j), sign * j * mu) for j in range(group + 1))
    plain = ((MP.mpf(1), MP.mpf(0)),)
    return Pair(mixture, plain) if direction == "remove" else Pair(plain, mixture)


def replace_pair(mu: Any, rate: Any) -> Pair:
    """One Poisson-subsampled Gaussian step when a record is replaced: +mu against -mu, drawn with rate."""
    mu, rate = number(mu), number(rate)
    if rate == 1:
        return Pair(((MP.mpf(1), mu),), ((MP.mpf(1), -mu),))
    stay = (1 - rate, MP.mpf(0))
    return Pair((stay, (rate, mu)), (stay, (rate, -mu)))


def threshold(pair: Pair, epsilon: Real) -> Real:
    """The x at which the loss equals epsilon: Newton's steps kept inside a bracket."""
    low, high = MP.mpf(-8), MP.mpf(8)
    while pair.loss(low) > epsilon:
        low *= 2
    while pair.loss(high) < epsilon:
        high *= 2
    x = (low + high) / 2
    for _ in range(400):
        miss = pair.loss(x) - epsilon
        low, high = (x, high) if miss < 0 else (low, x)
        step = miss / pair.slope(x)
        # delta is stationary in the threshold, and a miss moves it by at most that much where the loss is flat
        if abs(step) < MP.mpf(10) ** -32 or abs(miss) < 1000 * MP.eps:
            return x - step
        x = x - step if low < x - step < high else (low + high) / 2
    raise ValueError("the loss does not reach epsilon")


def pair_curve(pair: Pair) -> Curve:
    """The curve of one step: P[x > t] - e^eps Q[x > t], t where the loss reaches eps."""
    least, most = pair.limits()

    def delta(epsilon: Any) -> Real:
        epsilon = number(epsilon)
        if epsilon >= most:
            return MP.mpf(0)
        if epsilon <= least:
            return 1 - MP.exp(epsilon)
        t = threshold(pair, epsilon)
        above = MP.fsum(w * normal_tail(t - c) for w, c in pair.p)
        return above - MP.exp(epsilon) * MP.fsum(w * normal_tail(t - c) for w, c in pair.q)

    return delta


def sampled_curves(base: Curve, rate: Any) -> tuple[Curve, Curve]:
    """Remove and add of one Poisson-subsampled step over any pair (P, Q), given the curve of P against Q.

    The mixture (1 - q) Q + q P exceeds e^eps Q where P exceeds (e^eps - 1 + q) / q times Q; the reversed pair
    has delta(eps) = 1 - e^eps (1 - delta(-eps)).
    """
    rate = number(rate)

    def remove(epsilon: Any) -> Real:
        grow = MP.exp(number(epsilon))
        return rate * base(MP.log((grow - 1 + rate) / rate)) if grow > 1 - rate else 1 - grow

    def add(epsilon: Any) -> Real:
        return 1 - MP.exp(number(epsilon)) * (1 - remove(-number(epsilon)))

    return remove, add


def mixed_with_atoms(curve: Curve, law: Terms) -> Curve:
    """The curve of a loss known by its curve composed with a law of atoms."""
    losses = term_losses(law)
    if any(order for _, order, _ in losses):
        raise ValueError("only atoms can be mixed into a curve")
    return lambda eps: law.infinite + MP.fsum(mass * curve(number(eps) - loss) for loss, _, mass in losses)


def pair_nodes(pair: Pair, *, tilt: float = 0, frequency: float = 0, digits: int = 50) -> Nodes:
    """Trapezoid nodes (P-mass, loss), good for moments at tilt + i t, |t| <= frequency, to about 10^-digits.

    The integrand is analytic for |Im x| < pi / spread of the centres; the step makes e^(-2 pi a / step) beat
    the growth of the integrand on the line Im x = a. The tilted integrand has its bumps between the centres
    moved by tilt + 1, so the window is a normal's beyond them.
    """
    centres = [float(c) for side in (pair.p, pair.q) for _, c in side]
    spread = max(centres) - min(centres)
    need = digits * math.log(10) + 8
    step = max(
        2 * math.pi * a / (need + a * a / 2 + spread * a * frequency - (2 * tilt + 1) * math.log(math.cos(spread * a / 2)))
        for a in (min(math.pi / spread, 16) * i / 50 for i in range(1, 50))
    )
    reach = math.ceil((math.sqrt(2 * need) + spread * (tilt + 1)) / step)
    points = [i * number(step) for i in range(-reach, reach + 1)]
    return [(pair.density(x) * number(step), pair.loss(x)) for x in points]


def prune(nodes: Nodes, *, tilt: float) -> Nodes:
    """The nodes that matter at one tilt."""
    sizes = [mass * MP.exp(number(tilt) * loss) for mass, loss in nodes]
    floor = max(sizes) * MP.mpf(10) ** -56
    return [node for node, size in zip(nodes, sizes, strict=True) if size > floor]


def pair_with_gaussian(pair: Pair, mu: Any) -> Curve:
    """The curve of one pair and one Gaussian mechanism: the latter's curve averaged over the pair's loss."""
    nodes = pair_nodes(pair, digits=36, frequency=12 / float(number(mu)))
    return lambda eps: MP.fsum(
        mass * gaussian_delta(mu, number(eps) - loss, mass) for mass, loss in nodes if mass > NEGLIGIBLE
    )


# ------------------------------------------------------------------------------------------------- Fourier


@dataclass(frozen=True, slots=True)
class Composition:
    """What a Fourier sum takes: one Gaussian mu^2, laws of terms and pairs of normals with their counts."""

    mu2: Real
    laws: tuple[tuple[Terms, int], ...] = ()
    pairs: tuple[tuple[Pair, int], ...] = ()

    def infinite(self) -> Real:
        """The mass at infinite loss."""
        kept = MP.mpf(1)
        for law, count in self.laws:
            kept *= (1 - law.infinite) ** count
        return 1 - kept

    def top(self) -> float:
        """The largest finite loss, infinite with a Gaussian part."""
        total = float("inf") if self.mu2 else 0.0
        for law, count in self.laws:
            total += count * float(max(loss for loss, _, _ in term_losses(law)))
        for pair, count in self.pairs:
            total += count * float(pair.limits()[1])
        return total


def term_moment(law: Terms, s: Any) -> Any:
    """M(s) of a law of terms."""
    half = s + MP.mpf(1) / 2
    return MP.fsum(mass * MP.exp(s * loss) / half**order for loss, order, mass in term_losses(law))


def log_moment(what: Composition, nodes: Sequence[Nodes], tilt: Any) -> Real:
    """K(tilt), the logarithm of the moment function on the real line."""
    tilt = number(tilt)
    total = what.mu2 * tilt * (tilt + 1) / 2
    for law, count in what.laws:
        total += count * MP.log(term_moment(law, tilt))
    for points, (_, count) in zip(nodes, what.pairs, strict=True):
        total += count * MP.log(MP.fsum(mass * MP.exp(tilt * loss) for mass, loss in points))
    return total


def log_chernoff(tilt: float) -> float:
    """The logarithm of the constant c(tilt) in D(x) <= c(tilt) e^(K(tilt) - tilt x)."""
    return tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)


def rotate(points: Nodes, tilt: Real, eta: Real) -> Iterator[Any]:
    """M(tilt + i k eta) / M(tilt) for k = 0, 1, ..., in 220-bit integers turned by a fixed angle."""
    bits = 220
    sizes = [mass * MP.exp(tilt * loss) for mass, loss in points]
    total = MP.fsum(sizes)
    state = [(int(MP.ldexp(size / total, bits)), 0) for size in sizes]
    turns = [MP.expj(eta * loss) for _, loss in points]
    turns = [(int(MP.ldexp(z.real, bits)), int(MP.ldexp(z.imag, bits))) for z in turns]
    while True:
        yield MP.mpc(*(MP.ldexp(sum(part), -bits) for part in zip(*state, strict=True)))
        state = [((a * c - b * d) >> bits, (a * d + b * c) >> bits) for (a, b), (c, d) in zip(state, turns, strict=True)]


@dataclass(frozen=True, slots=True)
class Plan:
    """The free choices of a Fourier sum: any tilt is right once the period and the reach are large enough."""

    tilt: float
    period: float
    reach: float


def scan(what: Composition, epsilon: float) -> list[tuple[float, float]]:
    """Tilts with the logarithm of their Chernoff bounds on delta(epsilon), finest around the least bound."""
    nodes: list[Nodes] = []
    covered = 0.0

    def bound(tilt: float) -> float:
        nonlocal nodes, covered
        if tilt > covered:
            covered = 2 * tilt
            nodes = [pair_nodes(pair, tilt=covered, digits=20) for pair, _ in what.pairs]
        return float(log_moment(what, nodes, tilt)) + log_chernoff(tilt) - tilt * epsilon

    tilt = 0.02 / deviation(what)
    found = [(tilt, bound(tilt))]
    best = found[0]
    while len(found) < 8 or found[-1][1] < best[1] + 40 or tilt < 1.6 * best[0]:
        tilt *= 1.3
        found.append((tilt, bound(tilt)))
        best = min(best, found[-1], key=lambda entry: entry[1])
    # heavy tails make the bound jump between neighbours: the best usable tilt may sit just below a cliff
    found += [(best[0] * x, bound(best[0] * x)) for x in (1.3 ** (i / 12) for i in range(-11, 12))]
    return found


def deviation(what: Composition) -> float:
    """The standard deviation of the loss, from a second difference of K at 0."""
    nodes = [pair_nodes(pair, digits=20) for pair, _ in what.pairs]
    low, middle, high = (log_moment(what, nodes, MP.mpf(i) / 1000) for i in range(3))
    return 1000 * math.sqrt(low - 2 * middle + high)


def plan(what: Composition, epsilon: float, *, tilt_factor: float = 1) -> Plan:
    """A tilt near the saddle point, and a period at which aliasing is below 1e-36 of the Chernoff bound."""
    found = scan(what, epsilon)
    best = min(bound for _, bound in found)
    floor = best - 36 * math.log(10) - 6

    def period(tilt: float) -> float:
        right = min([what.top() - epsilon, *((bound - floor) / (x - tilt) for x, bound in found if x > tilt)])
        left = min([-floor / tilt, *((bound - floor) / (tilt - x) for x, bound in found if x < tilt)])
        return max(left, right)

    tilt = min((x for x, bound in found if bound < best + 3), key=period) * tilt_factor
    return Plan(tilt=tilt, period=period(tilt), reach=16 / deviation(what))


def tilted_sum(what: Composition, epsilon: Real, choice: Plan) -> Real | None:
    """(1/T) sum over k of M(s_k) e^(-s_k eps) / (s_k (s_k + 1)), s_k = tilt + 2 pi i k / T.

    None when the terms have not died out (12 in a row below 1e-38) within the reach of the choice.
    """
    tilt, eta = number(choice.tilt), 2 * MP.pi / number(choice.period)
    nodes = [pair_nodes(pair, tilt=choice.tilt, frequency=choice.reach) for pair, _ in what.pairs]
    nodes = [prune(points, tilt=choice.tilt) for points in nodes]
    turning = [rotate(points, tilt, eta) for points in nodes]
    bases = [(law, count, term_moment(law, tilt)) for law, count in what.laws]
    total, quiet = MP.mpf(0), 0
    for k in range(math.ceil(choice.reach / float(eta))):
        s = MP.mpc(tilt, k * eta)
        value = MP.exp(what.mu2 * (s * (s + 1) - tilt * (tilt + 1)) / 2) / (s * (s + 1))
        for (_, count), moments in zip(what.pairs, turning, strict=True):
            value *= MP.exp(count * MP.log(next(moments)))
        for law, count, base in bases:
            value *= MP.exp(count * MP.log(term_moment(law, s) / base))
        total += (2 if k else 1) * (value * MP.expj(-k * eta * epsilon)).real
        quiet = quiet + 1 if abs(value) < MP.mpf(10) ** -38 * total else 0
        if quiet == 12:
            return total * MP.exp(log_moment(what, nodes, tilt) - tilt * epsilon) / number(choice.period)
    return None


def fourier_curve(what: Composition, *, tilt_factor: float = 1, period_factor: float = 1.5) -> Curve:
    """The curve of a composition by the tilted Fourier sum; the two factors must not change its value."""

    def delta(epsilon: Any) -> Real:
        if epsilon >= what.top():
            return what.infinite()
        choice = plan(what, float(epsilon), tilt_factor=tilt_factor)
        choice = replace(choice, period=choice.period * period_factor)
        for _ in range(10):
            value = tilted_sum(what, number(epsilon), choice)
            if value is not None:
                return what.infinite() + value
            choice = replace(choice, reach=2 * choice.reach)
        raise ValueError("the characteristic function does not decay; a closed form is needed")

    return delta


def fourier_worst(first: Composition, second: Composition) -> Curve:
    """The worse of two directions; the second is summed only where Chernoff's bound does not rule it out."""
    nodes = [pair_nodes(pair, tilt=16, digits=20) for pair, _ in second.pairs]

    def delta(epsilon: Any) -> Real:
        value = fourier_curve(first)(epsilon)
        bounds = [
            log_moment(second, nodes, tilt) + log_chernoff(tilt) - tilt * number(epsilon) for tilt in (0.5, 1, 2, 4, 8, 16)
        ]
        if second.infinite() + MP.exp(min(bounds)) < value:
            return value
        return max(value, fourier_curve(second)(epsilon))

    return delta


# ------------------------------------------------------------------------------------------------ readings


def worst(*curves: Curve) -> Curve:
    """The larger of several curves, one for each direction."""
    return lambda eps: max(curve(eps) for curve in curves)


def epsilon_of(curve: Curve, delta: Any, *, digits: int = 30) -> Real:
    """The least epsilon >= 0 with curve(epsilon) <= delta, by bisection."""
    delta, low, high = number(delta), MP.mpf(0), MP.mpf(1)
    if curve(low) <= delta:
        return low
    while curve(high) > delta:
        low, high = high, 2 * high
    for _ in range(math.ceil(digits * math.log2(10)) + 1):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high
