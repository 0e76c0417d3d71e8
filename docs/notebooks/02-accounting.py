# %% [markdown]
# # How losses add up
#
# Every release costs privacy. What do many of them cost together? This notebook adds up losses in the ways that the
# textbooks teach, and by the exact account. The difference is paid in noise: who counts loosely adds more of it for the
# same promise.

# %%
import math

import curador as cu
from curador.plots.style import figure, key_beside, stroke, style

# %% [markdown]
# ## One release
#
# Laplace noise of scale 10 on a count is 1/10-private. Its loss is a record: it can be added, multiplied, stored, and
# asked. It is the record of the noise that is really drawn, whole steps of a grid of 2⁻³⁷, so its numbers are large.

# %%
noise = cu.Laplace(scale=10, sensitivity=1)
print("loss of one release:", noise.loss)
print("ε:", float(noise.loss.pure_epsilon), "   error bar at 95 %:", noise.interval("0.95"))

# %% [markdown]
# ## A hundred releases, four ways
#
# At δ = 10⁻⁶. Basic composition adds ε's. Advanced composition [DRV10] is the textbook's better way. A Rényi curve is
# better again. The last is the exact account, with an interval of which both ends are proved.

# %%
loss = 100 * noise.loss
epsilon, delta = 0.1, 1e-6
advanced = epsilon * math.sqrt(2 * 100 * math.log(1 / delta)) + 100 * epsilon * math.expm1(epsilon)
print(f"advanced   {advanced:.4f}")
for name, value in sorted(loss.readings(delta="1e-6").items(), key=lambda one: -one[1]):
    print(f"{name:10} {value:.4f}")
print("certified:", loss.epsilon_interval(delta="1e-6"))

# %% [markdown]
# ## As the number grows

# %%
counts = [1, 3, 10, 30, 100, 300, 1_000, 3_000]


def advanced_epsilon(k: int) -> float:
    """Return the textbook's advanced composition of k releases that are 0.1-private each."""
    return epsilon * math.sqrt(2 * k * math.log(1 / delta)) + k * epsilon * math.expm1(epsilon)


rows = {
    "basic: ε's added": [k * epsilon for k in counts],
    "advanced composition": [advanced_epsilon(k) for k in counts],
    "exact": [(k * noise.loss).epsilon(delta="1e-6") for k in counts],
}

# %%
# Figure: ε of many releases against their number, both axes logarithmic: the exact account lies below basic and advanced
# composition everywhere, and grows with the root of the number at first.
with style():
    drawing, (axes,) = figure(height=3.4)
    for place, (name, values) in enumerate(rows.items()):
        axes.plot(counts, values, marker="o", markersize=3, label=name, **stroke(place))
    axes.set(xscale="log", yscale="log", xlabel="releases with ε = 0.1 each", ylabel="ε of all of them, δ = 10⁻⁶")
    key_beside(axes)
drawing

# %% [markdown]
# ## Different mechanisms together
#
# Records of different kinds add just so. Nothing is rounded to a grid, so the interval stays narrow.

# %%
mixture = 200 * cu.Gaussian(sigma=15, sensitivity=1).loss + 50 * noise.loss + 20 * cu.RandomizedResponse(epsilon="0.3").loss
print("200 Gaussians, 50 Laplace, 20 randomized responses:", mixture.epsilon_interval(delta="1e-6"))

# %% [markdown]
# ## What an adversary gains
#
# Somebody must decide from the releases whether a person is in the table, and may raise a false alarm in 5 of 100 cases.
# How often will the person be found, at best? Without any release, in 5 of 100 cases.

# %%
for k in (1, 10, 100):
    missed = (k * noise.loss).tradeoff("0.05")
    print(f"{k:4} releases: found in at most {100 * (1 - float(missed)):5.1f} of 100 cases")

# %% [markdown]
# ## The noise that a promise needs
#
# The other way round: 100 numbers within ε = 1 at δ = 10⁻⁶. How much Gaussian noise? The textbook's formula with advanced
# composition, and the least that is proved.

# %%
least = cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1, count=100)
share = 1 / (2 * math.sqrt(2 * 100 * math.log(2e6)))
textbook = math.sqrt(2 * math.log(1.25 * 200 / 1e-6)) / share
print(f"textbook   σ = {textbook:7.1f}")
print(f"calibrated σ = {float(least.sigma):7.1f}   and ε = {(100 * least.loss).epsilon(delta='1e-6'):.6f}")

# %% [markdown]
# Why these numbers are certain: [how ε is certified](../explanation/accounting.md). Where the textbooks err: [the
# textbook, corrected](../explanation/textbook-corrected.md).
