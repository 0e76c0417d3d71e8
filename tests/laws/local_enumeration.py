"""The exact law of a client's report: every way in which its draws can fall, with its probability."""

from contextlib import ExitStack
from fractions import Fraction
from unittest import mock

from curador.local.client import duchi, laplace, memo, number, piecewise, prefix
from curador.local.client.chance import WHOLE

MODULES = (duchi, laplace, memo, number, piecewise, prefix)


class Cut(Exception):  # noqa: N818 -- no error: the way ends there
    """The way is too unlikely to be followed."""


class _Draws:
    """Answers draws by a list of choices, then by the first choice; remembers how likely the way was and where it forks."""

    def __init__(self, choices, cutoff):
        self.choices, self.place, self.cutoff = choices, 0, cutoff
        self.mass, self.forks = Fraction(1), []

    def choose(self, weights):
        if self.place < len(self.choices):
            chosen = self.choices[self.place]
        else:
            chosen = next(one for one, weight in enumerate(weights) if weight)
            taken = [fork[0] for fork in self.forks]
            head = self.choices + tuple(taken)
            self.forks.append((chosen, [(*head, one) for one, weight in enumerate(weights) if weight and one != chosen]))
        self.place += 1
        self.mass *= weights[chosen]
        if self.mass < self.cutoff:
            raise Cut
        return chosen

    def below(self, limit):
        return self.choose([Fraction(1, limit)] * limit)

    def coin(self, share):
        return self.choose([1 - Fraction(share, WHOLE), Fraction(share, WHOLE)]) == 1

    def coins(self, share, size):
        return sum(int(self.coin(share)) << place for place in range(size))


class _Standing:
    """What stands for the draws of all modules; `now` is the way that is being followed."""

    now = _Draws((), Fraction(0))

    def below(self, limit):
        return self.now.below(limit)

    def coin(self, share):
        return self.now.coin(share)

    def coins(self, share, size):
        return self.now.coins(share, size)


def exact_law(run, cutoff=Fraction(0)):
    """Return {output: probability} of run(), and the probability of the ways that were cut."""
    law, lost, todo, standing = {}, Fraction(0), [()], _Standing()
    with ExitStack() as stack:
        for module in MODULES:
            for name in ("below", "coin", "coins"):
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, getattr(standing, name)))
        while todo:
            draws = standing.now = _Draws(todo.pop(), cutoff)
            try:
                output = run(draws)
            except Cut:
                lost += draws.mass
            else:
                law[output] = law.get(output, Fraction(0)) + draws.mass
            for _, others in draws.forks:
                todo += others
    return law, lost
