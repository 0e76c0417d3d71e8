"""Convex learning over matrices of bounded nuclear norm: records (a, b, y), models X, losses of the number a'Xb.

losses.py      what a record costs, with constants that clipping enforces; problems with a known answer
records.py     records as whole numbers; margins and sums that are exact; which record of a pass is met when
task.py        what an optimiser is given and gives back; the nuclear ball: projection and linear minimisation
noise.py       a sequence of releases that is accounted as one; decaying sums on a ladder of shifts: correlated noise
gradient.py    the optimisers with all records in every step: projected gradient, Frank–Wolfe
stochastic.py  Frank–Wolfe in one pass: with correlated noise, and as the thesis has it
tree.py        Frank–Wolfe in one pass, on binary trees of gradients
solvers.py     the optimisers by name, and forecasts

An optimiser is a schedule that reads no data, and a run.
"""
