# %% [markdown]
# # The adversary's game
#
# What does ε mean? There are two tables that differ by one person. One of them is chosen by a coin, something is released
# from it, and an adversary who knows both tables, the program and everything else says which one it was. A promise of
# privacy is a bound on how good any such guess can be. This notebook plays the game: with honest mechanisms, and with two
# that were written by somebody in a hurry.

# %%
from dataclasses import dataclass

import numpy as np

import curador as cu
from curador.audit import game

SURE = "0.9999"  # a true claim is refuted once in 10,000 games, at most

# %% [markdown]
# ## An honest mechanism
#
# A count of 42 or 43 people, with Laplace noise for ε = 1. The adversary uses the best test there is, the likelihood
# ratio. His advantage is his rate of true alarms less that of false ones. It is measured, so it may come out a little
# above what is proved about anybody's; whether it does so by more than chance is what the verdict says.

# %%
noise = cu.Laplace.calibrate(epsilon=1, sensitivity=1)
played = game(noise, 42, 43, samples=30_000, confidence=SURE)
print(played)

# %%
# Figure: On the left, true against false alarms of the adversary who plays against Laplace noise, with a confidence band,
# along the curve that is proved for every adversary. On the right, his beliefs after each release, none beyond the
# bounds.
cu.plots.game(played)

# %% [markdown]
# ## What smaller ε buys
#
# With ε = 0.1 the guess is hardly better than a coin. With ε = 5 the noise is a formality.

# %%
for epsilon in ("0.1", "0.5", "1", "2", "5"):
    one = game(cu.Laplace.calibrate(epsilon=epsilon, sensitivity=1), 42, 43, samples=20_000, confidence=SURE)
    belief = one.posterior
    print(
        f"ε = {epsilon:>3}   right {100 * belief.right:5.1f} % of the time"
        f"   advantage {one.advantage:.3f} of at most {one.proved_advantage:.3f}"
    )

# %% [markdown]
# ## A mechanism in a hurry
#
# Somebody needs a mean and adds noise for "sensitivity 1", as a textbook says
# ([E16](../explanation/textbook-corrected.md#e16-a-noisy-mean-needs-bounds)). Ten ages between 0 and 120: one person
# moves the mean by up to 12. The claim is ε = 1. The adversary only knows the two tables, and learns to tell their
# outputs apart from examples.


# %%
@dataclass(frozen=True)
class NoisyMean:
    """A mean with Laplace noise of scale 1, whatever the data."""

    def release_many(self, ages: list[int], size: int) -> np.ndarray:
        """Return noisy means."""
        return np.mean(ages) + cu.Laplace(scale=1, sensitivity=1).release_many(0, size)


ages = [31, 45, 22, 67, 50, 38, 29, 54, 41]
claimed = game(NoisyMean(), [*ages, 0], [*ages, 120], samples=20_000, confidence=SURE, loss=cu.Pure(epsilon=1))
print(claimed)

# %% [markdown]
# The claim is refuted, and not by a little. The right sensitivity repairs it:

# %%
spread = cu.sensitivity.bounded_mean(0, 120, 10, adjacency="replace_one", norm="l1")
mended = cu.Laplace.calibrate(epsilon=1, sensitivity=spread)
print(game(mended, np.mean([*ages, 0]), np.mean([*ages, 120]), samples=20_000, confidence=SURE))

# %% [markdown]
# ## Noise from a library for statistics
#
# The law is right, the bits are not: floating-point noise near 0 is finer than what 1 + noise can be
# ([E21](../explanation/textbook-corrected.md#e21-floating-point-laplace-noise-betrays-the-answer)). An adversary who
# looks at the last bits needs no statistics at all.


# %%
@dataclass(frozen=True)
class FloatLaplace:
    """Laplace noise from NumPy's floats: what everybody writes first."""

    def release_many(self, value: float, size: int) -> np.ndarray:
        """Return value + noise, in floating point."""
        return value + np.random.default_rng().laplace(size=size)


def last_bits(released: np.ndarray) -> np.ndarray:
    """Return 0 where an output cannot come from 1 + noise, and 1 where it can."""
    return (released * 2.0**53 == np.round(released * 2.0**53)).astype(float)


print(game(FloatLaplace(), 0.0, 1.0, samples=20_000, confidence=SURE, attack=last_bits, loss=cu.Pure(epsilon=1)))

# %% [markdown]
# More attacks and worlds: [play the adversary's game](../how-to/play-the-game.md). That nothing is refuted proves
# nothing: another adversary, or other worlds, may do better. Proofs are on the other side, in [how ε is
# certified](../explanation/accounting.md) and [exact noise](../explanation/exact-noise.md).
