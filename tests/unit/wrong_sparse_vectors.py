"""Six sparse vectors that are not private, after Lyu, Su and Li 2017, on integers with sensitivity 1.

Each is `name(values, threshold, epsilon, size, entropy) -> outputs`, one row a run, and claims to be epsilon-private.
VARIANTS holds for each a pair of neighbouring inputs and an event of the output whose two probabilities refute the claim.
Answers are 1 (above), 0 (below), −1 (not asked any more).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from curador.randomness.noise import laplace

HITS = 3
"""How many yeses the variants with a stop allow."""

SENTINEL = 1 << 40
"""What stands where a value-releasing variant releases no value."""


def _noise(scale, shape, entropy):
    return laplace(Fraction(scale)).draw(int(np.prod(shape)), entropy).reshape(shape)


def _stopped(passes, hits):
    before = np.cumsum(passes, axis=1) - passes
    return np.where(before >= hits, -1, passes).astype(np.int8)


def value_released(values, threshold, epsilon, size, entropy):
    """After the first yes its noisy value is released, from the noise that decided. After lecture notes of 2011."""
    half = Fraction(epsilon) / 2
    noisy = np.array(values) + _noise(2 / half, (size, len(values)), entropy)
    passes = noisy >= threshold + _noise(1 / half, (size, 1), entropy)
    answers = _stopped(passes, 1).astype(np.int64)
    return np.where(answers == 1, noisy, np.where(answers == 0, -SENTINEL, SENTINEL))


def noise_not_scaled(values, threshold, epsilon, size, entropy):
    """Three yeses, with noise on the answers as if for one. After a frequent-itemset paper of 2014."""
    noisy = np.array(values) + _noise(1 / (Fraction(epsilon) * 3 / 4), (size, len(values)), entropy)
    return _stopped(noisy >= threshold + _noise(1 / (Fraction(epsilon) / 4), (size, 1), entropy), HITS)


def no_query_noise(values, threshold, epsilon, size, entropy):
    """Noise on the threshold only. After a feature-selection paper of 2014."""
    return _stopped(np.array(values) >= threshold + _noise(1 / Fraction(epsilon), (size, 1), entropy), HITS)


def never_stops(values, threshold, epsilon, size, entropy):
    """Noise on both, for one yes, and no end of yeses. After a paper on Bayesian networks of 2015."""
    half = Fraction(epsilon) / 2
    noisy = np.array(values) + _noise(2 / half, (size, len(values)), entropy)
    return (noisy >= threshold + _noise(1 / half, (size, 1), entropy)).astype(np.int8)


def threshold_without_noise(values, threshold, epsilon, size, entropy):
    """Fresh noise for each answer against the bare threshold: every no costs as much as a yes."""
    noisy = np.array(values) + _noise(2 / Fraction(epsilon), (size, len(values)), entropy)
    return _stopped(noisy >= threshold, 1)


def threshold_released(values, threshold, epsilon, size, entropy):
    """The right answers, then the noisy threshold they were compared with, as if it were used up. Last column: its noise."""
    half = Fraction(epsilon) / 2
    level = _noise(1 / half, (size, 1), entropy)
    noisy = np.array(values) + _noise(2 / half, (size, len(values)), entropy)
    answers = _stopped(noisy >= threshold + level, 1)
    return np.concatenate([answers, level], axis=1)


@dataclass(frozen=True)
class Variant:
    """A wrong mechanism, two neighbouring inputs, and the output row whose probabilities refute its claim."""

    mechanism: Callable
    one: tuple[int, ...]
    other: tuple[int, ...]
    threshold: int
    epsilon: int
    row: tuple[int, ...]

    def happened(self, outputs):
        """In which runs the event happened."""
        return (np.asarray(outputs) == np.array(self.row)).all(axis=1)


VARIANTS = {
    "value released": Variant(value_released, (0,) * 7, (1,) * 7, 0, 1, (-SENTINEL,) * 6 + (0,)),
    "noise not scaled": Variant(noise_not_scaled, (0,) * 3 + (1,) * 3, (1,) * 3 + (0,) * 3, 0, 1, (0, 0, 0, 1, 1, 1)),
    "no query noise": Variant(no_query_noise, (0, 1), (1, 0), 0, 1, (0, 1)),
    "never stops": Variant(never_stops, (0,) * 5 + (1,) * 5, (1,) * 5 + (0,) * 5, 0, 1, (0,) * 5 + (1,) * 5),
    "threshold without noise": Variant(threshold_without_noise, (0,) * 6, (1,) * 6, 0, 1, (0,) * 6),
    "threshold released": Variant(threshold_released, (0,) * 8, (1,) * 8, 0, 1, (0,) * 8 + (0,)),
}
