# %% [markdown]
# # Local privacy and shuffling
#
# So far somebody was trusted: the curator, who has the table. In local privacy nobody is. Each person randomizes the own
# answer before it leaves the device, and the collector sees random answers only. That costs accuracy. Shuffling gives a
# part of it back: if nobody can tell who sent which report, each of them says much less about its sender.

# %%
import numpy as np

import curador as cu
from curador import local
from curador.plots.style import BLUE, RED, figure, key_beside, style

# %% [markdown]
# ## One delicate question
#
# "Have you driven after drinking?" Each person tells the truth with probability e/(1 + e), and lies otherwise [War65]:
# that is 1-private, whatever the collector does with it. Of 50,000 made-up people 12 % have. Nobody's report says much,
# and the share comes out all the same.

# %%
people = 50_000
draw = np.random.default_rng(3)
truth = draw.random(people) < 0.12
answers = np.where(truth, "yes", "no")
protocol = local.frequencies(["no", "yes"], epsilon=1)
estimate = protocol.estimate(protocol.privatise(answers))
for row in estimate.rows:
    held = int(np.sum(answers == row["value"]))
    print(
        f"{row['value']:3}  truth {held:6,}   estimate {row['count']:6,.0f}, from {row['low']:6,.0f} to {row['high']:6,.0f}"
    )

# %% [markdown]
# What runs on a person's device is small and needs no library. It is the same law:

# %%
device = protocol.client()
print("ten reports on yes (1), of which some are no (0):", [device.report(1) for _ in range(10)])

# %% [markdown]
# ## Many possible answers
#
# Which of 64 words do people use? Lying about one of 64 drowns the truth, so other protocols are better: `frequencies`
# weighs them and takes the one with the least error [WBLJ17].

# %%
words = [f"word {place:02}" for place in range(64)]
shares = 1 / np.arange(1, 65)
used = draw.choice(words, people, p=shares / shares.sum())
for epsilon in (1, 3):
    chosen = local.frequencies(words, epsilon=epsilon)
    direct = local.frequencies(words, epsilon=epsilon, method="direct")
    errors = [one.standard_error(people) / people for one in (chosen, direct)]
    print(f"ε = {epsilon}: {chosen.name:9} ± {100 * errors[0]:.2f} %   direct ± {100 * errors[1]:.2f} %")

# %%
chosen = local.frequencies(words, epsilon=1)
found = chosen.estimate(chosen.privatise(used))
top = found.top(12)

# %%
# Figure: Estimated number of people for each of the twelve most frequent words with its interval, and the true numbers,
# most of which lie inside.
with style():
    drawing, (axes,) = figure(height=3.2)
    places = np.arange(len(top))
    middle = np.array([row["count"] for row in top])
    reach = np.abs(np.array([[row["low"], row["high"]] for row in top]).T - middle)
    axes.errorbar(places, middle, yerr=reach, fmt="o", color=BLUE, markersize=4, label="estimate, 95 %")
    held = [int(np.sum(used == row["value"])) for row in top]
    axes.plot(places, held, linestyle="none", marker="_", markersize=14, color=RED, label="truth")
    axes.set_xticks(places, [row["value"].removeprefix("word ") for row in top])
    axes.set(xlabel="word", ylabel="people")
    key_beside(axes)
drawing

# %% [markdown]
# ## The price of trusting nobody
#
# The same counts through a curator, for the same ε = 1, would be off by about three people. Locally they are off by
# hundreds, and the error grows with the root of the number of people.

# %%
central = cu.DiscreteLaplace.calibrate(epsilon=1, sensitivity=cu.sensitivity.histogram("replace_one", "l1"))
print(f"central: ± {float(central.variance) ** 0.5:.1f} people")
print(f"local:   ± {chosen.standard_error(people):.0f} people")

# %% [markdown]
# ## Shuffling
#
# Somebody whom the collector cannot see into mixes the reports and takes off who sent them. Each report is still
# ε₀-private by itself. Among many others it is far more private: what one person loses towards the collector falls about
# as one over the root of the number of people.

# %%
ordinary = local.frequencies(["no", "yes"], epsilon=2)
print("alone          ε = 2")
for reports in (1_000, 10_000, 100_000):
    mixed = local.shuffled(ordinary, reports=reports)
    print(f"among {reports:8,}  ε = {mixed.epsilon(delta='1e-6'):.4f} at δ = 10⁻⁶")

# %%
# Figure: ε after shuffling against the number of reports, for several local ε, on logarithmic axes: the lines fall as
# reports become more.
cu.plots.shuffle(("1", "2", "4"), reports=(100, 1_000, 10_000, 100_000, 1_000_000))

# %% [markdown]
# It needs a shuffler who does not talk to the collector, one report a person, and honest others: reports of liars do not
# count. With devices, files of reports, means and frequent words: [local privacy](../how-to/local.md).
