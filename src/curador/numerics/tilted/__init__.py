"""δ(ε) of many independent losses from one tilted Fourier sum, with every error term explicit.

Let L be the sum of independent losses under P, M(s) = E[e^(sL); L < ∞], and D(x) = E[(1 − e^(x−L))₊; L < ∞],
so that δ(x) = P[L = ∞] + D(x). For any tilt θ > 0 and period T > 0, with s_k = θ + 2πik/T (Poisson summation),

    (1/T) Σ_k M(s_k) e^(−s_k ε) / (s_k (s_k + 1))  =  Σ_m e^(θ m T) D(ε + mT)  ≥  D(ε).

Aliasing (m ≠ 0) therefore has a sign and a Chernoff bound; what is left out beyond the last frequency is bounded by
each family's own decay; round-off is carried through the product. Proofs: docs/explanation/accounting.md.

    moments.py    what a family of losses must be able to say; many records on many frequencies
    plan.py       which tilt, period and number of frequencies: any choice is valid, a bad one only widens
    sums.py       the sum itself, plain or smoothed by a little Gaussian loss (for laws with atoms); the same for losses on a
                  common lattice: no truncation; direct enumeration where the law has few atoms; what neighbouring periods add
    enclosure.py  chooses among them; certified intervals for δ(ε) and ε(δ); sets far outputs apart
"""
