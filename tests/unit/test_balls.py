"""Balls: what is said of a number is proved of it, and what is not proved fails."""

from __future__ import annotations

import math
import random
import threading
import time
from fractions import Fraction

import flint
import pytest

from curador.errors import NumericalFailure
from curador.numerics import balls
from curador.numerics.balls import MOST, SMALLEST, ball, is_positive, near, outward, raise_precision


def noise():
    """A number that cancels completely: 0, in a ball that shrinks and never says so."""
    return ball(2).sqrt() ** 2 - 2


def hidden(exponent):
    """2 to a power behind a cancellation of as many bits."""
    return (ball(2).sqrt() + ball(Fraction(2) ** exponent)) - ball(2).sqrt()


@pytest.mark.parametrize("answer", [near, outward, is_positive])
def test_noise_never_passes_for_a_value(answer):
    """A formula that cancels completely fails instead of giving a sign, 0 or something small."""
    with pytest.raises(NumericalFailure, match=f"{MOST} bits"):
        answer(noise)


@pytest.mark.parametrize("value", [0, -1, Fraction(-1, 10**400)])
@pytest.mark.parametrize("answer", [near, outward])
def test_a_number_that_is_not_positive_is_refused(answer, value):
    """The premise is checked where a ball can."""
    with pytest.raises(NumericalFailure, match="above 0"):
        answer(lambda: ball(value))


@pytest.mark.parametrize("exponent", [-1, -60, -1000, -1073])
def test_bits_are_added_until_the_value_is_there(exponent):
    """What is left after a cancellation has all its places."""
    assert near(lambda: hidden(exponent)) == 2.0**exponent
    low, high = outward(lambda: hidden(exponent))
    assert low <= 2.0**exponent <= high <= math.nextafter(math.nextafter(low, 1), 1)
    assert is_positive(lambda: hidden(exponent))
    assert not is_positive(lambda: -hidden(exponent))


def test_rationals_are_rounded_once():
    """The nearest float of a rational, and floats on both sides of it; subnormal ones too."""
    random.seed(3)
    for _ in range(300):
        exact = Fraction(random.getrandbits(90) + 1, random.getrandbits(90) + 1) * Fraction(2) ** random.randint(-1070, 900)
        assert near(lambda exact=exact: ball(exact)) == float(exact)
        low, high = outward(lambda exact=exact: ball(exact))
        assert Fraction(low) <= exact <= Fraction(high)


def test_ends_of_the_floats():
    """Positive is never 0; beyond the largest float is infinity, and the bounds stay bounds."""
    assert near(lambda: ball(-(10**300)).exp()) == SMALLEST
    assert outward(lambda: ball(-(10**300)).exp()) == (0, SMALLEST)
    assert near(lambda: ball(10**300).exp()) == near(lambda: ball(2**1024 - 1)) == math.inf
    assert outward(lambda: ball(10**300).exp()) == (math.nextafter(math.inf, 0), math.inf)
    assert near(lambda: ball(2**1023)) == 2.0**1023


def test_an_engine_that_forgets_the_radius_is_caught(monkeypatch):
    """A seeded bug: by its midpoint alone, noise has a sign; the test of noise above sees it."""
    right = balls._sign  # noqa: SLF001 -- where the bug is seeded
    monkeypatch.setattr(balls, "_sign", lambda value: right(value.mid()))
    with pytest.raises(pytest.fail.Exception):
        test_noise_never_passes_for_a_value(is_positive)


def test_more_bits_are_asked_for_a_bounded_number_of_times():
    """128 bits, doubled nine times; then it is a failure, and the precision is as before."""
    asked = []
    before = flint.ctx.prec
    with pytest.raises(NumericalFailure):
        raise_precision(lambda: asked.append(flint.ctx.prec))
    assert asked == [128 * 2**k for k in range(10)]
    assert flint.ctx.prec == before


def test_threads_do_not_take_each_others_precision():
    """The precision belongs to the process: a formula waits until another thread's is done."""
    begun, seen = threading.Event(), {}

    def slow():
        begun.set()
        time.sleep(0.1)
        return flint.ctx.prec

    def work(bits):
        seen[bits] = raise_precision(slow, fewest=bits)

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (100, 3000)]
    threads[0].start()
    begun.wait(10)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert seen == {100: 100, 3000: 3000}
