"""An audit as one file for people: what was tried, what was found, what it means, with figures; to be read, printed, kept.

The words of the page are plain ones, for somebody who answers for data and not for mathematics.

The figures are: bounds against claims, whole curves against samples, and which tester catches which seeded bug.

The page stands alone: no scripts, no network, every word escaped, every figure described in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from curador.audit.exhibits import METHODS
from curador.audit.run import Report
from curador.audit.trial import LIMIT
from curador.errors import InvalidParameter, require
from curador.markup import TableCell, items, number, page, paragraph, table, text
from curador.plots.page import drawing
from curador.plots.style import BLUE, CYCLE, DARK, GREEN, GREY, MARKS, PATTERNS, RED, key_below, side_by_side, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.audit.exhibits import Catch
    from curador.audit.game import Game
    from curador.audit.testers import Divergences, ProfilePoint
    from curador.audit.trial import TrialRow


# ---- audit words -----------------------------------------------------------------------------------------------------------


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

# ---- audit figures ---------------------------------------------------------------------------------------------------------


_LINE = 0.21  # inches a line of names
_WIDTH = 8.8


def bounds_against_claims(rows: Sequence[TrialRow]) -> Figure:
    """Return one line a mechanism, and on it every lower bound of ε as a share of the ε claimed; right of 1 is refuted."""
    require(len(rows) > 0, "rows", "at least one", "none")
    names = list(dict.fromkeys(row.mechanism for row in rows))
    asked = list(dict.fromkeys(row.asked for row in rows))
    with style():
        drawn, (axes,) = side_by_side(1, height=1.4 + _LINE * len(names), width=_WIDTH)
        for place, word in enumerate(asked):
            some = [row for row in rows if row.asked == word and not math.isnan(row.ratio)]
            heights = [names.index(row.mechanism) + 0.22 * (place - (len(asked) - 1) / 2) for row in some]
            axes.plot(
                [min(row.ratio, _MOST) for row in some],
                heights,
                linestyle="none",
                marker=MARKS[place % len(MARKS)],
                color=CYCLE[place % len(CYCLE)],
                markersize=4.5,
                label=f"made for ε = {word}",
            )
        _mark_refuted(axes, rows, names)
        axes.axvline(1.0, color=RED, linestyle=PATTERNS[1], linewidth=1.6, label="the claim")
        axes.axvspan(1.0, _MOST + 0.05, color=RED, alpha=0.07, linewidth=0)
        axes.set_xlim(-0.02, _MOST + 0.05 if any(row.ratio > 1.0 for row in rows) else 1.12)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_yticks(range(len(names)), names, fontsize=8.5)
        axes.set_xlabel("lower bound of ε that the samples prove, as a share of the ε claimed")
        key_below(axes, columns=len(asked) + 1)
    return drawn


_MOST = 2.0  # larger ratios stand at the edge


def _mark_refuted(axes: Axes, rows: Sequence[TrialRow], names: list[str]) -> None:
    wrong = [row for row in rows if not row.holds]
    if wrong:
        places = [min(row.ratio, _MOST) if not math.isnan(row.ratio) else _MOST for row in wrong]
        heights = [names.index(row.mechanism) for row in wrong]
        axes.plot(
            places, heights, linestyle="none", marker="X", markersize=9, color=RED, markeredgecolor=DARK, label="refuted"
        )


def curves_against_samples(profile: Divergences) -> Figure:
    """Return the claimed δ at every ε and the claimed Rényi divergence at every order, with what samples prove of each."""
    with style():
        drawn, (left, right) = side_by_side(2, height=3.9)
        _curve(left, profile.deltas)
        left.set_xlabel("ε")
        left.set_ylabel("δ")
        left.set_title("δ at ε", fontsize=10)
        _curve(right, profile.renyi)
        right.set_xscale("log", base=2)
        shown = [point.at for point in profile.renyi if math.isfinite(point.at)]
        right.set_xticks(shown, [f"{at:g}" for at in shown])
        right.set_xticks([], minor=True)
        right.set_xlabel("order α")
        right.set_ylabel("Rényi divergence")
        right.set_title("Rényi divergence of order α", fontsize=10)
    return drawn


def _curve(axes: Axes, points: Sequence[ProfilePoint]) -> None:
    some = [point for point in points if math.isfinite(point.at) and math.isfinite(point.claimed)]
    places = [point.at for point in some]
    axes.plot(places, [point.claimed for point in some], color=RED, linestyle=PATTERNS[1], label="claimed: no more than this")
    bounds = [point.bound for point in some]
    axes.vlines(places, 0.0, bounds, color=BLUE, linewidth=1.0, alpha=0.5)
    axes.plot(
        places, bounds, color=BLUE, linestyle="none", marker="o", markersize=5.5, label="proved by samples: at least this"
    )
    wrong = [point for point in some if not point.holds]
    if wrong:
        at, bound = [point.at for point in wrong], [point.bound for point in wrong]
        axes.plot(at, bound, color=RED, linestyle="none", marker="X", markersize=9, markeredgecolor=DARK, label="refuted")
    axes.set_ylim(bottom=0.0)
    key_below(axes, columns=1)


def caught_by(catches: Sequence[Catch]) -> Figure:
    """Return one line a seeded bug and one column a tester: full where it caught the bug, hollow where it did not."""
    require(len(catches) > 0, "catches", "at least one", "none")
    with style():
        drawn, (axes,) = side_by_side(1, height=1.3 + _LINE * len(catches), width=_WIDTH)
        for wanted, colour, inside, label in (
            (True, GREEN, GREEN, "caught"),
            (False, GREY, "white", "looked at, not caught"),
        ):
            places = [(x, y) for y, row in enumerate(catches) for x, by in enumerate(row.by) if by is wanted]
            axes.plot(
                [x for x, _ in places],
                [y for _, y in places],
                linestyle="none",
                marker="o",
                markersize=7.5,
                markerfacecolor=inside,
                markeredgecolor=colour,
                label=label,
            )
        missed = [y for y, row in enumerate(catches) if not row.caught]
        if missed:
            axes.plot([-0.62] * len(missed), missed, linestyle="none", marker="X", markersize=8, color=RED, label="survived")
        axes.set_xlim(-0.8, len(METHODS) - 0.4)
        axes.set_ylim(len(catches) - 0.4, -0.6)
        axes.set_xticks(range(len(METHODS)), METHODS, fontsize=8.5)
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(catches)), [row.name for row in catches], fontsize=8.5)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, fontsize=8.5)
    return drawn


# ---- audit report ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Findings:
    """Everything that a page tells."""

    report: Report
    games: tuple[Game, ...]
    profiles: tuple[Divergences, ...]
    catches: tuple[Catch, ...]
    when: datetime

    @property
    def violations(self) -> tuple[str, ...]:
        return (
            *self.report.violations,
            *(_first(profile.violations, "points of its curves") for profile in self.profiles if profile.violations),
            *(f"{game.name}: the adversary wins more than is proved that anybody can" for game in self.games if game.refuted),
        )

    @property
    def passed(self) -> bool:
        return self.report.passed and not self.violations

    @property
    def false_alarm(self) -> float:
        """Of anything on the page, at most: whatever the parts have to do with each other, their probabilities add up."""
        beside = [1.0 - profile.confidence for profile in self.profiles] + [game.false_alarm for game in self.games]
        return self.report.family + math.fsum(beside)


def _first(told: Sequence[str], what: str) -> str:
    """The first of several sentences, and how many more there are: all of them are in the table."""
    return told[0] if len(told) == 1 else f"{told[0]}; and {len(told) - 1} more {what}"


def write_html(
    report: Report,
    path: str | Path,
    *,
    games: Sequence[Game] = (),
    profiles: Sequence[Divergences] = (),
    catches: Sequence[Catch] = (),
    when: datetime | None = None,
) -> Path:
    """Write an audit to one HTML file that needs nothing else, and return its path.

    games, profiles and catches (`audit.game`, `audit.divergences`, `audit.exhibits.catch`) are shown where given; `when`
    is the time that the page tells, now unless said otherwise. Figures need matplotlib, from the extra `plots`.
    """
    target = writable(path)
    target.write_text(document(report, games=games, profiles=profiles, catches=catches, when=when), encoding="utf-8")
    return target


def writable(path: str | Path) -> Path:
    """Return the path, refused where no file can be written or no figure drawn: to be asked before an audit of minutes."""
    from importlib.util import find_spec

    target = Path(path)
    hint = "pip install 'curador[plots]' brings it"
    require(find_spec("matplotlib") is not None, "html", "left out where matplotlib is not installed", str(path), hint)
    require(_can_be_written(target), "html", "a file that can be written, in a folder that exists", str(path))
    return target


def _can_be_written(target: Path) -> bool:
    """Whether it can, by trying: what is there stays as it is, and what is not is not left behind."""
    new = not target.exists()
    try:
        with target.open("ab"):
            pass
    except OSError:
        return False
    if new:
        target.unlink()
    return True


def document(
    report: Report,
    *,
    games: Sequence[Game] = (),
    profiles: Sequence[Divergences] = (),
    catches: Sequence[Catch] = (),
    when: datetime | None = None,
) -> str:
    """Return the page as text."""
    found = _Findings(_require_report(report), tuple(games), tuple(profiles), tuple(catches), when or datetime.now(UTC))
    told = meaning(
        mechanisms=len({row.mechanism for row in report.rows}),
        samples=report.samples,
        false_alarm=found.false_alarm,
        passed=found.passed,
    )
    sections = (
        ("meaning", "What this means", told),
        ("bounds", "Every claim against a lower bound", _bounds(found)),
        ("games", "The adversary's game", _games(found)),
        ("curves", "Whole curves against samples", _curves(found)),
        ("bugs", "Can this audit fail? Seeded bugs", _bugs(found)),
        ("rest", "Bits and laws", _bits_and_laws(report)),
        ("limits", "What an audit cannot say", limits()),
        ("words", "Words", glossary()),
    )
    kept = [(key, text(name), inside) for key, name, inside in sections if inside]
    contents = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, _ in kept)
    body = [
        f'<section aria-labelledby="{key}"><h2 id="{key}">{name}</h2>\n{inside}\n</section>' for key, name, inside in kept
    ]
    main = "\n".join([f'<nav aria-label="Contents"><ol>{contents}</ol></nav>', *body])
    return page(TITLE, header=_header(found), main=main, footer=_footer(found))


def _require_report(report: object) -> Report:
    if not isinstance(report, Report):
        raise InvalidParameter.must_be("report", "a report of curador.audit.audit", type(report).__name__)
    return report


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _header(found: _Findings) -> str:
    report = found.report
    refuted = f"Claims refuted: {len(found.violations)}" if found.violations else "No claim was refuted"
    caught = sum(row.caught for row in report.mutants)
    bugs = f"{caught} of {len(report.mutants)} seeded bugs were caught" if report.mutants else "No seeded bugs were tried"
    blind = f"Nothing was learned about {', '.join(report.powerless)}"
    every = len(report.tried) + len(report.untried)
    part = f"Only {len(report.tried)} of {every} mechanisms were looked at, and of the others this page says nothing"
    whole = part if report.untried else "Every mechanism was looked at with power"
    power = blind if report.powerless else whole
    passed = "Passed" if not report.untried else f"Passed for {len(report.tried)} of {every} mechanisms"
    when = found.when.strftime("%d %B %Y, %H:%M %Z").strip()
    alarms = [
        *(f"Refuted: {told}." for told in found.violations),
        *(f"Survived: the seeded bug “{name}” was not caught, so this audit is too weak." for name in report.survivors),
        *(f"No power: no row of {name} would flag even {LIMIT:g} times too much." for name in report.powerless),
    ]
    return "\n".join(
        [
            f"<h1>{text(TITLE)}</h1>",
            f'<p class="soft">{text(f"{when}. {report.samples:,} releases of each mechanism in each of two worlds.")}</p>',
            f'<div class="verdict {"good" if found.passed else "bad"}">',
            f'<p class="word">{passed if found.passed else "Not passed"}</p>',
            paragraph(f"{refuted}. {bugs}. {power}."),
            paragraph(
                f"If everything is right, any alarm on this page has a probability of at most {found.false_alarm:.2g}."
            ),
            "</div>",
            items(alarms),
        ]
    )


def _footer(found: _Findings) -> str:
    import platform

    used = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "scipy", "matplotlib"))
    return paragraph(
        f"""Made {found.when.isoformat(timespec="seconds")} by curador {_version("curador")} with Python
        {platform.python_version()}, {used}. Another run draws new noise: its numbers differ in their last digits, its
        verdict should not. This file needs no network and holds no data about anybody: all inputs were invented."""
    )


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "unknown"


# ---- sections -------------------------------------------------------------------------------------------------------


def _mark(*, holds: bool) -> TableCell:
    return TableCell("stands" if holds else "REFUTED", good=holds)


def _share(value: float) -> TableCell:
    return number("" if math.isnan(value) else f"{value:.3f}")


def _bounds(found: _Findings) -> str:

    rows = found.report.rows
    most = max((row.ratio for row in rows if not math.isnan(row.ratio)), default=0.0)
    told = f"""{len(rows)} lower bounds of ε as shares of the ε claimed, the largest {most:.3f}; the table that follows has
    the numbers."""
    lines = [
        (
            row.mechanism,
            [
                _mark(holds=row.holds),
                number(row.asked),
                number("0" if row.delta == 0 else f"{row.delta:.2g}"),
                number(f"{row.claim:.4g}"),
                number(f"{row.bound:.4g}"),
                _share(row.ratio),
                number("> 64×" if math.isinf(row.detectable) else f"{row.detectable:.2f}×"),
                TableCell(row.event),
            ],
        )
        for row in rows
    ]
    heads = ("mechanism", "verdict", "ε asked", "at δ", "ε claimed", "ε at least", "share", "flags from", "event")
    drawn = drawing(
        bounds_against_claims(rows),
        key="f-bounds",
        title="Lower bounds against claims",
        told=told,
        caption=BOUNDS_FIGURE,
    )
    sure = f" Each bound is wrong with probability at most {found.report.alpha:.1e}."
    return "\n".join(
        [paragraph(BOUNDS + sure), drawn, table("Lower bounds of ε by samples, against the claims", heads, lines)]
    )


def _games(found: _Findings) -> str:
    if not found.games:
        return ""
    from curador.plots.game import game as figure_of

    lines = [
        (
            game.name,
            [
                _mark(holds=not game.refuted),
                number(f"{game.advantage:.4f}"),
                number(f"{game.advantage_low:.4f} to {game.advantage_high:.4f}"),
                number(f"{game.proved_advantage:.4f}"),
                number(f"{game.epsilon_lower:.4g}"),
                number(f"{game.proved_epsilon:.4g}"),
                number(f"{game.delta:.3g}"),
            ],
        )
        for game in found.games
    ]
    heads = ("mechanism", "verdict", "advantage", "interval", "at most", "ε at least", "ε claimed", "at δ")
    pieces = [paragraph(GAMES), table("What the adversary reached, against what is proved", heads, lines)]
    for place, game in enumerate(found.games):
        told = f"""Left: true against false positive rates; the advantage is {game.advantage:.4f}, proved at most
        {game.proved_advantage:.4f}. Right: the adversary's belief in the second world, which puts {game.posterior.mean:.3f}
        on the true one on average."""
        caption = f"{game.name}: {game.worlds[0]} or {game.worlds[1]}, {game.samples:,} releases each, attack: {game.attack}."
        sure = f" It is refuted wrongly with probability at most {game.false_alarm:.2g}."
        title = f"The game against {game.name}"
        pieces.append(drawing(figure_of(game), key=f"f-game{place}", title=title, told=told, caption=caption + sure))
    return "\n".join(pieces)


def _curves(found: _Findings) -> str:
    if not found.profiles:
        return ""

    pieces = [paragraph(CURVES)]
    for place, profile in enumerate(found.profiles):
        name = profile.name
        title = f"Claimed curves of {name}, and what samples prove"
        told = f"{len(profile.deltas)} values of δ and {len(profile.renyi)} divergences; the tables that follow have them."
        caption = f"{name}, {profile.samples:,} releases a world. All points together are wrong with probability at most "
        sure = f"{1.0 - profile.confidence:.2g}."
        made = curves_against_samples(profile)
        pieces.append(f"<h3>{text(name)}</h3>")
        pieces.append(drawing(made, key=f"f-curves{place}", title=title, told=told, caption=caption + sure))
        pieces.append(_points(f"{name}: δ at ε", ("ε", "δ claimed", "δ at least"), profile.deltas))
        pieces.append(_points(f"{name}: Rényi divergences", ("order", "claimed", "at least"), profile.renyi))
    return "\n".join(pieces)


def _points(caption: str, heads: tuple[str, str, str], points: Sequence[ProfilePoint]) -> str:
    lines = [
        (
            f"{point.at:.4g}",
            [
                _mark(holds=point.holds),
                number(f"{point.claimed:.4g}"),
                number(f"{point.bound:.4g}"),
                _share(point.ratio),
                TableCell(point.by),
            ],
        )
        for point in points
    ]
    return table(caption, (heads[0], "verdict", *heads[1:], "share", "by"), lines) if lines else ""


def _bugs(found: _Findings) -> str:
    report = found.report
    if not found.catches and not report.mutants:
        return ""

    pieces = [paragraph(BUGS)]
    if found.catches:
        caught = sum(row.caught for row in found.catches)
        told = (
            f"{len(found.catches)} seeded bugs, {caught} caught, by {len(METHODS)} ways to catch them: {', '.join(METHODS)}."
        )
        title = "Which way catches which seeded bug"
        drawn = drawing(caught_by(found.catches), key="f-bugs", title=title, told=told, caption=BUGS_FIGURE)
        pieces.append(drawn)
    if report.mutants:
        rows = [(row.name, [TableCell(row.by or "NOTHING", good=row.caught)]) for row in report.mutants]
        pieces.append(table("Seeded bugs, and what caught them in the audit itself", ("bug", "caught by"), rows))
    return "\n".join(pieces)


def _bits_and_laws(report: Report) -> str:
    pieces: list[str] = []
    if report.bits:
        silent = "no event tells the worlds apart"
        bits = [
            (row.mechanism, [number(f"{row.value:,}"), TableCell("; ".join(row.found) or silent, good=row.holds)])
            for row in report.bits
        ]
        pieces.append(table("Bits of released floats near a true value", ("mechanism", "near", "found"), bits))
    if report.fits:
        fits = [(row.mechanism, [number(row.asked), number(f"{row.p:.2g}"), _mark(holds=row.holds)]) for row in report.fits]
        least = min(row.least for row in report.fits)
        caption = f"Laws: χ² fits; alarm where p is below {least:.1e}"
        pieces.append(table(caption, ("mechanism", "ε asked", "p", "verdict"), fits))
    return "\n".join([paragraph(REST), *pieces]) if pieces else ""
