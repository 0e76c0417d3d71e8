"""What the page of an audit says in plain words, for somebody who answers for data and not for mathematics."""

from __future__ import annotations

from curador.plots.page import items, paragraph, text

TITLE = "Audit of curador's privacy claims"


def meaning(*, mechanisms: int, samples: int, false_alarm: float, passed: bool) -> str:
    """What was tried, what came of it, and how far to trust it."""
    outcome = (
        """Nothing of the kind was found. That is evidence, not proof: the proofs are theorems, written where each claim is
        made."""
        if passed
        else """Something was found, or the audit was too weak to find it: see the list above. Until that is explained, the
        numbers that this software states should not be relied on."""
    )
    return "\n".join(
        [
            paragraph(
                """curador answers questions about personal data with random noise, so that nobody can tell from an answer
                whether any one person's data were used. How little can be told is a number, ε (epsilon), sometimes with a
                second one, δ (delta). Small is private: at ε = 0.1 an answer changes the odds of any guess about a person by
                11 % at most, at ε = 1 by less than a factor of three. The software states these numbers. This page shows
                an attempt to prove them wrong."""
            ),
            paragraph(
                f"""Mechanisms tried: {mechanisms}. For each, two made-up data sets were taken that differ in one person
                and are hard for it. The software answered {samples:,} times for each. Then events were looked for that happen
                more often for one of them than the stated numbers allow. One such event refutes a claim. {outcome}"""
            ),
            paragraph(
                f"""Two numbers say how far to trust this page. A false alarm is rare: if every claim is true, anything here
                is marked as refuted with probability at most {false_alarm:.2g}. And a fault would be noticed: the column
                “flags from” says how many times too telling a mechanism must be to be flagged in 999 of 1,000 such audits,
                and programs with known mistakes were audited in the same run."""
            ),
        ]
    )


def limits() -> str:
    """What an audit cannot say."""
    return items(
        [
            "It tries one pair of data sets a mechanism. A fault that shows only for others is not seen.",
            """It does not look at your data. Whether bounds, caps and the unit of privacy are declared rightly is for the
            owner of a study to answer.""",
            "It does not look at who may ask, at logs, at the time an answer takes, or at copies of the data elsewhere.",
            "A bound of 0 means that so few samples show nothing there, not that nothing leaks.",
        ]
    )


def glossary() -> str:
    """The words that the page uses."""
    words = (
        ("ε, epsilon", "How much an answer may change the odds of any guess about one person, as the logarithm of a factor."),
        ("δ, delta", "The probability that is left out of that promise; 0 where there is none."),
        ("Claim", "What the mechanism's loss states: the number that budgets are charged with."),
        ("Lower bound", "The least number that is compatible with what was seen; above the claim it refutes it."),
        (
            "Rényi divergence",
            "Another measure of how far two worlds differ, by which the losses of many answers are added up.",
        ),
        ("Advantage", "By how much a guess from one answer is more often right than wrong, as a share of all guesses."),
        ("Seeded bug", "A program with a mistake that real ones have had, audited like the others; it must be caught."),
    )
    return f"<dl>{''.join(f'<dt>{text(word)}</dt><dd>{text(told)}</dd>' for word, told in words)}</dl>"


BOUNDS = """An event is chosen on a quarter of the releases and counted in the others; how often it happens in each
world is bounded by Clopper and Pearson's exact interval."""

BOUNDS_FIGURE = """Each mark is a lower bound of ε from samples, divided by the ε claimed. Left of the line the claim
stands; near it, the claim is as sharp as it can be and the audit as strong. A mark at 0: too few
samples for so small an ε or δ."""

GAMES = """An adversary sees one answer, knows both data sets, and says which one it came from. The curve shows how
often he is right when the answer came from the second, against how often he is wrong when it came from
the first; the theorem behind the claim draws the line that nobody gets above. Where that line is not to
be seen, the curve lies on it; an estimate may be above it by luck, its whole interval may not."""

CURVES = """An ε at one δ is one point of a claim. The loss of a mechanism says a δ for every ε, and a Rényi
divergence for every order; all of it is charged somewhere, so all of it is tested. Each dot is proved
by samples. A dot above the line would refute the claim."""

BUGS = """An audit that never fails proves nothing. Programs with mistakes that real ones have had, such as half
the noise, the same noise used twice, or noise made of floating-point numbers, were audited in the same
run."""

BUGS_FIGURE = """Full: this way catches the bug. Hollow: it was tried and sees nothing, as it must for mistakes of
another kind; that is why there are several. Empty: not tried, or not needed any more."""

REST = """Two more ways to be wrong: floats whose last bits tell what they hide, and noise of another law than the
one claimed."""
