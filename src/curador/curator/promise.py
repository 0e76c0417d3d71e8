"""What a study promises, as what somebody who wants to find out about one person can gain at most: numbers and sentences.

All of it is a function of the study: it speaks of everything that will ever be released, and not of what was spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from curador.numerics.rounding import LIBM_ULPS, float_up, up
from curador.privacy.adjacency import Adjacency
from curador.privacy.odds import accuracy, belief_after, true_positive_bound
from curador.text import rounded_text

if TYPE_CHECKING:
    from curador.study.model import Study

FALSE_ALARMS: Final = Fraction(1, 100)
PRIORS: Final = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
"""How sure somebody was before."""


@dataclass(frozen=True, slots=True)
class Belief:
    """How sure somebody can become of what is true about one unit.

    after      at most so sure; `except_for` is the chance that it is more. Both are rounded up
    """

    before: Fraction
    after: float
    except_for: float


@dataclass(frozen=True, slots=True)
class PromisedOdds:
    """What an adversary gains at most from everything that a study will ever release.

    right     how often a guess is right, where a coin is right half of the time
    found     of those who are there, how many are found by whom wrongly accuses FALSE_ALARMS of the others
    factor    how many times as likely anything becomes by one unit's rows, but for δ

    Claim   The numbers are those of the promise, not of what was spent: they hold for ever.
    Rounds  Up, all.
    """

    right: float
    found: float
    factor: float
    beliefs: tuple[Belief, ...]

    @property
    def even(self) -> Belief:
        """The belief of somebody who was 50 % sure."""
        return next(one for one in self.beliefs if one.before == Fraction(1, 2))


def odds_of(study: Study) -> PromisedOdds:
    """Return the odds of a study's promise."""
    epsilon, delta = study.budget.epsilon, study.budget.delta or Fraction(0)
    factor = up(math.exp(min(float_up(epsilon), 700.0)), LIBM_ULPS)
    beliefs = tuple(Belief(prior, *belief_after(epsilon, delta, prior=prior)) for prior in PRIORS)
    found = float(true_positive_bound(FALSE_ALARMS, epsilon=epsilon, delta=delta))
    return PromisedOdds(accuracy(epsilon, delta), found, factor, beliefs)


def odds_words(study: Study, odds: PromisedOdds) -> list[str]:
    """Return the odds as four sentences."""
    unit, delta = study.unit_name, study.budget.delta
    but = f", but for a part of {rounded_text(delta, up=True, digits=3)}" if delta else ""
    if study.adjacency is Adjacency.REPLACE_ONE:
        guessed, absent, beside = (
            "which of two sets of rows it has",
            "have the one set",
            "with its one set of rows as with another",
        )
    else:
        guessed, absent, beside = "whether it is in the data", "are not there", f"with the {unit} as without"
    present = "have the other" if study.adjacency is Adjacency.REPLACE_ONE else "are"
    return [
        f"Somebody knows every row but those of one {unit}, sees every answer, and guesses {guessed}.",
        f"The guess is right at most {per_cent(odds.right)} of the time; a coin is right 50 %.",
        f"Who accuses 1 % of those who {absent} finds at most {per_cent(odds.found)} of those who {present}.",
        f"Whatever is seen is at most {rounded_text(Fraction(odds.factor), up=True)} times as likely {beside}{but}.",
    ]


def belief_words(study: Study, belief: Belief) -> list[str]:
    """Return how sure somebody can become, in one or two sentences for somebody who has never heard of ε."""
    unit = study.unit_name
    what = f"of the rows of one {unit}" if study.adjacency is Adjacency.REPLACE_ONE else f"that one {unit} is in the data"
    if belief.except_for >= 1.0:
        return [f"δ is so large that no limit holds for how sure somebody can become {what}."]
    after = per_cent(belief.after)
    became = "all but certain" if after == "100 %" else f"at most {after} sure"
    held = f"Somebody who was {per_cent(belief.before)} sure {what} can become {became}"
    if belief.except_for == 0.0:
        return [f"{held}, over the whole life of the study."]
    return [
        f"{held}.",
        f"The chance that this fails is at most one in {one_in(belief.except_for)}, over the whole life of the study.",
    ]


def per_cent(part: float | Fraction) -> str:
    """Return a part in per cent. Rounds: up, to three digits."""
    return f"{rounded_text(100 * Fraction(part), up=True, digits=3)} %"


_WORDS: Final = {10**exponent: word for exponent, word in ((3, "a thousand"), (6, "a million"), (7, "ten million"))}


def one_in(chance: float) -> str:
    """Return N of "a chance of one in N". Rounds: N down, to two digits."""
    whole = math.floor(1 / Fraction(chance))
    size = 10 ** max(len(str(whole)) - 2, 0)
    number = whole // size * size
    return _WORDS.get(number, f"{number:,}")


def odds_record(odds: PromisedOdds) -> dict[str, Any]:
    """Return the odds as texts of decimals. Rounds: up."""

    def decimal(value: float | Fraction) -> str:
        return rounded_text(Fraction(value), up=True, digits=6)

    return {
        "right_at_most": decimal(odds.right),
        "false_alarms": decimal(FALSE_ALARMS),
        "found_at_most": decimal(odds.found),
        "times_as_likely_at_most": decimal(odds.factor),
        "beliefs": [
            {
                "sure_before": decimal(belief.before),
                "sure_after_at_most": decimal(belief.after),
                "except_with_chance": decimal(belief.except_for),
            }
            for belief in odds.beliefs
        ],
    }
