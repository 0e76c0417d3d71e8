"""Convex learning over matrices of bounded nuclear norm: records (a, b, y), models X, losses of the number a'Xb.

losses.py    what a record costs, with constants that clipping enforces
records.py   records as whole numbers; margins and sums that are exact
ball.py      the nuclear ball: projection and linear minimisation
gradient.py, frank_wolfe.py, stochastic.py, toeplitz.py, tree.py   the optimisers: a schedule that reads no data, and a run
ladder.py    decaying sums on a ladder of shifts: the correlated noise of toeplitz.py
noise.py     a sequence of releases that is accounted as one
task.py      what an optimiser is given and gives back
solvers.py   the optimisers by name, and forecasts
problems.py  a generator of problems with a known answer
"""
