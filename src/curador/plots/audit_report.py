"""An audit as one file for people: what was tried, what was found, what it means, with figures; to be read, printed, kept.

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
from curador.errors import InvalidParameter, require, sentence
from curador.plots import audit_words as words
from curador.plots.page import Cell, drawing, items, number, page, paragraph, table, text

if TYPE_CHECKING:
    from curador.audit.exhibits import Catch
    from curador.audit.game import Game
    from curador.audit.testers import Divergences, Point


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
    found = _Findings(_checked(report), tuple(games), tuple(profiles), tuple(catches), when or datetime.now(UTC))
    told = words.meaning(
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
        ("limits", "What an audit cannot say", words.limits()),
        ("words", "Words", words.glossary()),
    )
    kept = [(key, text(name), inside) for key, name, inside in sections if inside]
    contents = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, _ in kept)
    body = [
        f'<section aria-labelledby="{key}"><h2 id="{key}">{name}</h2>\n{inside}\n</section>' for key, name, inside in kept
    ]
    main = "\n".join([f'<nav aria-label="Contents"><ol>{contents}</ol></nav>', *body])
    return page(words.TITLE, header=_header(found), main=main, footer=_footer(found))


def _checked(report: object) -> Report:
    if not isinstance(report, Report):
        raise InvalidParameter(sentence("report", "a report of curador.audit.audit", type(report).__name__))
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
            f"<h1>{text(words.TITLE)}</h1>",
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


def _mark(*, holds: bool) -> Cell:
    return Cell("stands" if holds else "REFUTED", good=holds)


def _share(value: float) -> Cell:
    return number("" if math.isnan(value) else f"{value:.3f}")


def _bounds(found: _Findings) -> str:
    from curador.plots.audit_figures import bounds_against_claims

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
                Cell(row.event),
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
        caption=words.BOUNDS_FIGURE,
    )
    sure = f" Each bound is wrong with probability at most {found.report.alpha:.1e}."
    return "\n".join(
        [paragraph(words.BOUNDS + sure), drawn, table("Lower bounds of ε by samples, against the claims", heads, lines)]
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
    pieces = [paragraph(words.GAMES), table("What the adversary reached, against what is proved", heads, lines)]
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
    from curador.plots.audit_figures import curves_against_samples

    pieces = [paragraph(words.CURVES)]
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


def _points(caption: str, heads: tuple[str, str, str], points: Sequence[Point]) -> str:
    lines = [
        (
            f"{point.at:.4g}",
            [
                _mark(holds=point.holds),
                number(f"{point.claimed:.4g}"),
                number(f"{point.bound:.4g}"),
                _share(point.ratio),
                Cell(point.by),
            ],
        )
        for point in points
    ]
    return table(caption, (heads[0], "verdict", *heads[1:], "share", "by"), lines) if lines else ""


def _bugs(found: _Findings) -> str:
    report = found.report
    if not found.catches and not report.mutants:
        return ""
    from curador.plots.audit_figures import caught_by

    pieces = [paragraph(words.BUGS)]
    if found.catches:
        caught = sum(row.caught for row in found.catches)
        told = (
            f"{len(found.catches)} seeded bugs, {caught} caught, by {len(METHODS)} ways to catch them: {', '.join(METHODS)}."
        )
        title = "Which way catches which seeded bug"
        drawn = drawing(caught_by(found.catches), key="f-bugs", title=title, told=told, caption=words.BUGS_FIGURE)
        pieces.append(drawn)
    if report.mutants:
        rows = [(row.name, [Cell(row.by or "NOTHING", good=row.caught)]) for row in report.mutants]
        pieces.append(table("Seeded bugs, and what caught them in the audit itself", ("bug", "caught by"), rows))
    return "\n".join(pieces)


def _bits_and_laws(report: Report) -> str:
    pieces: list[str] = []
    if report.bits:
        silent = "no event tells the worlds apart"
        bits = [
            (row.mechanism, [number(f"{row.value:,}"), Cell("; ".join(row.found) or silent, good=row.holds)])
            for row in report.bits
        ]
        pieces.append(table("Bits of released floats near a true value", ("mechanism", "near", "found"), bits))
    if report.fits:
        fits = [(row.mechanism, [number(row.asked), number(f"{row.p:.2g}"), _mark(holds=row.holds)]) for row in report.fits]
        least = min(row.least for row in report.fits)
        caption = f"Laws: χ² fits; alarm where p is below {least:.1e}"
        pieces.append(table(caption, ("mechanism", "ε asked", "p", "verdict"), fits))
    return "\n".join([paragraph(words.REST), *pieces]) if pieces else ""
