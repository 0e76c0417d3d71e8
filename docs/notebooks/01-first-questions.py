# %% [markdown]
# # First questions
#
# A statistical office has asked 12,000 people where they live, how old they are and what they earn. It wants to publish
# numbers from that survey, and to owe nobody an apology. This notebook opens the table, looks at prices, asks, and
# compares the answers with the truth, which nobody can do with a real table: here the people are made up.

# %%
import numpy as np
import pyarrow as pa

import curador as cu

draw = np.random.default_rng(2026)
regions = ["centre", "coast", "hills", "islands", "north", "south"]
count = 12_000
survey = pa.table(
    {
        "person": np.arange(count),
        "region": draw.choice(regions, count, p=[0.32, 0.24, 0.15, 0.02, 0.12, 0.15]),
        "age": draw.integers(18, 90, count),
        "income": np.round(draw.lognormal(10.1, 0.55, count), 0),
    }
)

# %% [markdown]
# ## Declare
#
# Who is protected, what all answers together may cost, and what may stand in a column. Bounds are what the office knows
# about incomes in general. What lies above counts as the bound. Each person has one row, which is said by the cap.

# %%
curator = cu.open(
    survey,
    name="survey",
    unit="person",
    budget=cu.Budget(epsilon=2, delta="1e-7"),
    bounds={"age": (18, 100), "income": (0, 120_000)},
    values={"region": regions},
    caps={"rows": 1},
    max_units=100_000,
    ledger="survey.ledger",
    engine={"worker": "inline"},
)

# %% [markdown]
# ## Look at the price
#
# A preview reads no row and spends nothing. The error of a count is known before; that of a mean depends on how many
# people a region has, so it is told for three sizes.

# %%
question = "SELECT region, COUNT(*) AS people, AVG(income) AS income FROM survey GROUP BY region"
print(curator.preview(question, spend="10%"))

# %% [markdown]
# ## Ask

# %%
answer = curator.ask(question, spend="10%")
print(answer)

# %%
# Figure: Number of people and mean income of six regions, each with its error bar; the islands, with few people, have by
# far the widest bar of the mean.
drawing = answer.plot()
drawing.axes[1].locator_params(axis="x", nbins=4)
drawing

# %% [markdown]
# ## Compare with the truth
#
# Of intervals at 95 %, about one in twenty should miss. These are the errors of the means, in units of the half-width of
# their interval: beyond 1 is a miss. The true means are clamped as the answers are; what clamping took away is no error
# of the noise.

# %%
clamped = np.clip(survey["income"].to_numpy(), 0, 120_000)
where = survey["region"].to_numpy(zero_copy_only=False)
for row in answer.rows:
    truth = clamped[where == row["region"]].mean()
    half = (row["income_high"] - row["income_low"]) / 2
    off = (row["income"] - truth) / half
    print(f"{row['region']:8} truth {truth:8,.0f}   answer {row['income']:8,.0f} ± {half:6,.0f}   error {off:+.2f}")

# %% [markdown]
# ## The same question is free
#
# However it is spelled. Asking again and again does not average the noise away: it is the same noise.

# %%
again = curator.ask("select avg(income) as income, region, count(*) as people from survey group by region", spend="10%")
print("stored:", again.stored, " cost:", again.cost or "nothing")
print(curator.budget)

# %% [markdown]
# ## What is refused
#
# A refusal reads nothing, costs nothing, and says what to write instead. It is safe to show to anybody.

# %%
refused = [
    "SELECT * FROM survey WHERE person = 17",
    "SELECT person, income FROM survey",
    "SELECT SUM(EXP(income)) AS total FROM survey",
]
for statement in refused:
    try:
        curator.ask(statement, spend="1%")
    except cu.Refused as refusal:
        print(f"{statement}\n  {type(refusal).__name__}: {refusal}\n".replace("\nHint", "\n  Hint"))

# %% [markdown]
# ## The receipt
#
# Three sentences for a data-protection officer, and everything that a program needs to check them.

# %%
import textwrap

print(textwrap.fill(answer.receipt.plain, 100))
curator.close()

# %% [markdown]
# Next: [how losses add up](02-accounting.py), or the same with files and a shell: [from an empty folder to a first
# study](../tutorial/first-study.md).
