"""Which protocol for which domain: the one with the least error, and of equals the one with the shortest report."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.errors import require
from curador.local.direct import Direct
from curador.local.hadamard import Hadamard
from curador.local.hashing import Hashing
from curador.local.protocol import domain_of, exact_epsilon
from curador.local.subset import Subset
from curador.local.unary import Unary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.local.protocol import Domain, Frequencies
    from curador.numerics.exact import Number

METHODS: dict[str, Callable[[Domain, Fraction], Frequencies]] = {
    "direct": lambda domain, epsilon: Direct(domain, epsilon=epsilon),
    "optimal_unary": lambda domain, epsilon: Unary(domain, epsilon=epsilon, kind="optimal"),
    "symmetric_unary": lambda domain, epsilon: Unary(domain, epsilon=epsilon, kind="symmetric"),
    "hashing": lambda domain, epsilon: Hashing(domain, epsilon=epsilon),
    "hadamard": lambda domain, epsilon: Hadamard(domain, epsilon=epsilon),
    "subset": lambda domain, epsilon: Subset(domain, epsilon=epsilon),
}

EQUAL = 1.02
"""Standard errors within 2 % count as equal."""

LONGEST_REPORT = 1 << 10
"""The most values for which a report has a bit a value: 128 bytes."""

LARGEST_HASHING = 1 << 14
"""The most values that a collector hashes: the work grows with the square of the domain."""


def frequencies(domain: int | Sequence[Any] | Domain, *, epsilon: Number, method: str = "auto") -> Frequencies:
    """Return the protocol by which people report one value of a public domain each.

    `domain` is a list of values, or how many there are. `method` is auto, direct, optimal_unary, symmetric_unary, hashing,
    hadamard or subset. auto takes the one with the least standard error, averaged over the values (which does not depend on
    how many people hold which); where several are within 2 % of it, the one with the shortest report:

    | values           | weighed                           | what comes out                                                 |
    |------------------|-----------------------------------|----------------------------------------------------------------|
    | 2                | direct                            | direct                                                         |
    | up to 1,024      | direct, hadamard, hashing, subset | direct below about e^ε values; subset for a handful at small ε;|
    |                  |                                   | else hashing, or hadamard where ε is about 1/10                |
    | up to 16,384     | direct, hadamard, hashing         | the same without sets, whose reports are too long              |
    | more             | direct, hadamard                  | hadamard: hashing's collector is too slow                      |
    """
    values, exact = domain_of(domain), exact_epsilon(epsilon)
    require(method in ("auto", *METHODS), "method", f"auto, {', '.join(METHODS)}", method)
    if method != "auto":
        return METHODS[method](values, exact)
    candidates = [METHODS[name](values, exact) for name in methods_for(values.size)]
    errors = [average_error(protocol) for protocol in candidates]
    equal = [protocol for protocol, error in zip(candidates, errors, strict=True) if error <= EQUAL * min(errors)]
    return min(equal, key=lambda protocol: protocol.report_bits)


def methods_for(size: int) -> tuple[str, ...]:
    """Return the methods that are weighed for a domain, the simplest first."""
    if size == 2:
        return ("direct",)
    if size <= LONGEST_REPORT:
        return ("direct", "hadamard", "hashing", "subset")
    return ("direct", "hadamard", "hashing") if size <= LARGEST_HASHING else ("direct", "hadamard")


def average_error(protocol: Frequencies) -> float:
    """Return the standard error of a share from one report, its square averaged over the values.

    The shares add up to 1, and variances are linear in them: so the average is the variance at a share of 1/size.
    """
    return protocol.variance(share=Fraction(1, protocol.size)) ** 0.5
