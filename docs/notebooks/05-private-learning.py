# %% [markdown]
# # Private learning
#
# A model is an answer, too: its coefficients are numbers computed from people's rows. The estimators of `curador.learn`
# have the shape of scikit-learn's and release noise with every number. This notebook fits one, reads what it cost, and
# shows what noise does as the number of records grows.

# %%
import numpy as np

from curador import learn
from curador.plots.learning import spectrum
from curador.plots.style import figure, key_beside, stroke, style

draw = np.random.default_rng(5)


def made_up(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return flats of so many people: area in m² and distance to the centre in km, and what they pay."""
    area, distance = draw.uniform(20, 140, count), draw.uniform(0, 25, count)
    rent = 300 + 9 * area - 18 * distance + draw.normal(0, 120, count)
    return np.column_stack([area, distance]), rent


# %% [markdown]
# ## Before anything is spent
#
# What can be expected of so many records, with so much noise? `dry_run` reads no data.

# %%
model = learn.PrivateLinearRegression(
    epsilon=1, delta=1e-6, bounds_X=([20, 0], [140, 25]), bounds_y=(0, 2_500), n_nominal=20_000
)
print(model.dry_run())

# %% [markdown]
# ## Fit, and read the card
#
# The card says what left: a handful of noisy sums, from which everything else is computed. The true coefficients are 9
# and −18.

# %%
flats, rents = made_up(20_000)
model.fit(flats, rents)
print(model.privacy_)
print()
for name, value, error in zip(("area", "distance"), model.coef_, model.coef_error_, strict=True):
    print(f"{name:9} {value:8.2f} ± {2 * error:.2f}")

# %% [markdown]
# ## More people, less noise
#
# The noise is the same for 1,000 people and for 30,000; what it does to the coefficients is not. The last line is least
# squares without privacy: people differ, and that error remains.

# %%
counts = [1_000, 3_000, 10_000, 30_000]
levels = (0.3, 1, 3)
errors: dict[str, list[float]] = {**{f"ε = {epsilon}": [] for epsilon in levels}, "without noise": []}


def fitted(epsilon: float, flats: np.ndarray, rents: np.ndarray) -> float:
    """Return a private coefficient of the area."""
    box = {"bounds_X": ([20, 0], [140, 25]), "bounds_y": (0, 2_500), "n_nominal": len(rents)}
    return float(learn.PrivateLinearRegression(epsilon=epsilon, delta=1e-6, **box).fit(flats, rents).coef_[0])


for count in counts:
    tables = [made_up(count) for _ in range(10)]
    for epsilon in levels:
        off = [fitted(epsilon, *table) - 9 for table in tables]
        errors[f"ε = {epsilon}"].append(float(np.sqrt(np.mean(np.square(off)))))
    plain = [np.linalg.lstsq(np.column_stack([one, np.ones(count)]), paid, rcond=None)[0][0] - 9 for one, paid in tables]
    errors["without noise"].append(float(np.sqrt(np.mean(np.square(plain)))))

# %%
# Figure: Error of the coefficient of the area against the number of people, for three ε and without noise: all lines fall
# as people become more, and the one without noise lies lowest.
with style():
    drawing, (axes,) = figure(height=3.2)
    for place, (name, values) in enumerate(errors.items()):
        axes.plot(counts, values, marker="o", markersize=3, label=name, **stroke(place))
    axes.set(xscale="log", yscale="log", xlabel="people", ylabel="error of the coefficient of the area")
    key_beside(axes)
drawing

# %% [markdown]
# ## Directions
#
# Principal components of rows with 20 numbers, of which two directions matter. What stands above the edge of the noise is
# told apart from what may be noise.

# %%
directions = np.linalg.qr(draw.normal(size=(20, 2)))[0]
rows = draw.normal(size=(10_000, 2)) * [0.5, 0.3] @ directions.T + draw.normal(0, 0.02, (10_000, 20))
components = learn.PrivatePCA(3, epsilon=1, delta=1e-6, row_norm=1.0, n_nominal=10_000).fit(rows)
agreement = np.linalg.norm(components.components_[:2] @ directions) ** 2 / 2
print("above the noise:", components.n_significant_, "   share of the two directions found:", round(float(agreement), 3))

# %%
# Figure: Noisy variances of the components in falling order, with the edge of the noise: two stand above it.
spectrum(components)

# %% [markdown]
# Rows that stay where they are, and a budget that is kept: [learn from a table](../how-to/learn.md). What is promised and
# what is not: [what private learning promises](../explanation/learning.md).
