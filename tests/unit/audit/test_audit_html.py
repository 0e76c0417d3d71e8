"""The page of an audit: one file, every word escaped, readable without figures, and telling the truth about the findings."""

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import curador as cu
from curador.audit import exhibits as shown
from curador.audit import run
from curador.audit.exhibits import METHODS, Catch, Exhibits
from curador.audit.game import game
from curador.audit.mutants import Misfit, Overclaim, Porous, mutants
from curador.audit.run import BitsRow, MutantRow, Report
from curador.audit.testers import compare_divergences, divergences
from curador.audit.trial import AuditedMechanism, FitRow, TrialRow
from curador.audit.worlds import fixed_worlds, itself
from curador.cli import auditing
from curador.errors import InvalidParameter
from curador.markup import TableCell, paragraph, table, text
from curador.plots.audit_report import bounds_against_claims, caught_by, curves_against_samples, document, write_html

WHEN = datetime(2030, 5, 17, 9, 30, tzinfo=UTC)
SURE = "0.999999999"
HOSTILE = "<script>alert(\"x\")</script> & 'y'"


def row(name="Laplace", asked="1", bound=0.9, **changes):
    return replace(TrialRow(name, asked, 1.0, 0.0, 1.0, bound, 1.1, "score ≥ 0.5"), **changes)


def report(**changes):
    right = Report(
        samples=5000,
        family=1e-4,
        alpha=1e-6,
        rows=(row(), row(asked="4", bound=0.7), row("Gaussian", delta=1e-5, bound=0.0, detectable=float("inf"))),
        bits=(BitsRow("Laplace", 1000, ()),),
        fits=(FitRow("Laplace", "1", 0.4, 1e-7),),
        mutants=(MutantRow("half the noise", "ε ≥ 1.9 > 1"),),
    )
    with_power = replace(right, rows=(*right.rows, row("Gaussian")))
    return replace(with_power, **changes)


@pytest.fixture(scope="module")
def parts():
    """A game, a profile and catches: small, and true. False alarms: 2e-9."""
    mechanism = cu.RandomizedResponse(epsilon=1)
    return {
        "games": [game(mechanism, 0, 1, samples=4000, confidence=SURE)],
        "profiles": [divergences(mechanism, 0, 1, 4000, orders=(1, 2), confidence=SURE)],
        "catches": [Catch("half the noise", (True, True, None, None, False, None)), Catch("another", (False,) + (None,) * 5)],
    }


@pytest.fixture(scope="module")
def full(parts):
    """The page of a right audit with everything on it."""
    return document(report(), when=WHEN, **parts)


class Outline(HTMLParser):
    """What a browser makes of a page: elements closed in order, attributes, words."""

    VOID = frozenset({"meta", "link", "br", "hr", "img"})

    def __init__(self, page):
        super().__init__()
        self.open, self.found, self.words, self.alone = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def said(self):
        return " ".join(" ".join(self.words).split())


# ---- one file -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_is_well_formed_and_stands_alone(full):
    """Every element is closed in order; no script, no picture, font, style or link from anywhere else."""
    outline = Outline(full)

    assert outline.open == []
    tags = {tag for tag, _ in outline.found}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "foreignobject"}
    for _, attributes in outline.found:
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "srcset", "action", "formaction"}]
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert "@import" not in full
    assert not re.search(r"url\((?!#)", full)
    spaces = {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}  # names, which nobody fetches
    assert set(re.findall(r"https?://[^\s\"'<>]+", full)) <= spaces
    policies = [meta["content"] for meta in outline.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


@pytest.mark.slow
def test_ids_are_unique_and_references_have_one(full):
    """Several drawings on one page keep their clips and glyphs apart; every contents entry leads somewhere."""
    outline = Outline(full)
    ids = Counter(attributes["id"] for _, attributes in outline.found if "id" in attributes)
    asked = re.findall(r'href="#([^"]+)"', full) + re.findall(r"url\(#([^)]+)\)", full)
    asked += [one for _, attributes in outline.found for one in attributes.get("aria-labelledby", "").split()]

    assert max(ids.values()) == 1
    assert len(asked) > 100
    assert set(asked) <= set(ids)


@pytest.mark.slow
def test_the_page_can_be_read_without_seeing_figures(full):
    """A language, names and descriptions of drawings, heads of rows and columns, captions, the width of a phone, print."""
    outline = Outline(full)

    assert outline.of("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in outline.of("meta")
    drawings = outline.of("svg")
    assert len(drawings) == 4
    assert all(drawing["role"] == "img" and len(drawing["aria-labelledby"].split()) == 2 for drawing in drawings)
    assert len(outline.of("figcaption")) == len(drawings)
    tables = outline.of("table")
    assert len(outline.of("caption")) == len(tables) >= 6
    assert {cell["scope"] for cell in outline.of("th")} == {"row", "col"}
    assert len([1 for cell in outline.of("th") if cell["scope"] == "row"]) == len(outline.of("tr")) - len(tables)
    assert [int(tag[1]) for tag, _ in outline.found if tag in {"h1", "h2", "h3"}][:2] == [1, 2]
    assert "@media print" in full


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


@pytest.mark.slow
def test_words_stand_out_from_their_ground(full):
    """Every colour of words has a contrast of at least 7 to white and to the pale box."""
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", full))

    for word in ("ink", "soft", "good", "bad", "link"):
        for ground in ("#ffffff", colours["pale"]):
            assert (luminance(ground) + 0.05) / (luminance(colours[word]) + 0.05) >= 7


@pytest.mark.slow
def test_the_same_findings_give_the_same_file(parts, tmp_path):
    """Byte for byte, so that two pages can be compared."""
    target = write_html(report(), tmp_path / "page.html", when=WHEN, profiles=parts["profiles"])

    assert target.read_bytes().decode() == document(report(), when=WHEN, profiles=parts["profiles"])


# ---- what it says ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_page_of_some_mechanisms_says_of_how_many(monkeypatch):
    """What was not looked at is not among what passed; of all of them it says so."""
    made = report()
    every = len(made.tried) + len(made.untried)
    said = Outline(document(made, when=WHEN)).said
    assert made.untried
    assert f"Passed for {len(made.tried)} of {every} mechanisms" in said
    assert f"Only {len(made.tried)} of {every} mechanisms were looked at, and of the others this page says nothing." in said
    monkeypatch.setattr("curador.audit.run.ROSTER", ())
    said = Outline(document(made, when=WHEN)).said
    assert "Every mechanism was looked at with power." in said
    assert "Passed for" not in said


@pytest.mark.slow
def test_a_right_audit_says_so_and_how_surely(full, parts):
    """The verdict, the probability of a false alarm of everything together, samples, versions and the time."""
    said = Outline(full).said
    beside = [1 - one.confidence for one in parts["profiles"]] + [one.false_alarm for one in parts["games"]]

    assert "Passed" in said
    assert "Not passed" not in said
    assert "No claim was refuted. 1 of 1 seeded bugs were caught. Only " in said
    assert f"a probability of at most {1e-4 + sum(beside):.2g}." in said
    assert "Each bound is wrong with probability at most 1.0e-06." in said
    assert "17 May 2030, 09:30 UTC. 5,000 releases" in said
    assert f"by curador {cu.__version__} with Python {sys.version.split()[0]}, numpy {np.__version__}" in said
    assert "RandomizedResponse(epsilon=1, categories=2): 0 or 1, 4,000 releases each, attack: likelihood." in said
    for number in ("0.9", "1.10×", "> 64×", "score ≥ 0.5", "ε ≥ 1.9 > 1", "no event tells the worlds apart"):
        assert number in said
    played = parts["games"][0]
    assert f"{played.advantage:.4f} {played.advantage_low:.4f} to {played.advantage_high:.4f}" in said
    assert played.advantage_low < played.proved_advantage
    profile = parts["profiles"][0]
    assert all(f"{point.claimed:.4g}" in said and f"{point.bound:.4g}" in said for point in (*profile.deltas, *profile.renyi))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": (row(bound=1.5),)}, "Refuted: Laplace at ε = 1: ε ≥ 1.5, claimed 1 at δ = 0, by score ≥ 0.5."),
        (
            {"bits": (BitsRow("Laplace", 0, ("digit 3 of the mantissa",)),)},
            "Refuted: Laplace near 0: digit 3 of the mantissa.",
        ),
        ({"fits": (FitRow("Laplace", "1", 1e-12, 1e-7),)}, "not the claimed law, p = 1.0e-12."),
        (
            {"mutants": (MutantRow("half", None),)},
            "Survived: the seeded bug “half” was not caught, so this audit is too weak.",
        ),
        ({"rows": (row(detectable=9.0),)}, "No power: no row of Laplace would flag even 3 times too much."),
    ],
)
def test_whatever_is_wrong_is_told_at_the_top(changes, words):
    """Each way of failing makes the verdict, and is named."""
    said = Outline(document(report(**changes), when=WHEN)).said

    assert "Not passed" in said
    assert words in said
    assert "should not be relied on" in said


@pytest.mark.slow
def test_refuted_curves_and_games_count():
    """A right report beside a wrong curve, or beside a game that is won, has not passed."""
    halved = cu.RandomizedResponse(epsilon=3)
    wrong = cu.Pure(epsilon="0.5")
    one, other = (halved.release_many(world, size=4000) for world in (0, 1))
    curve = document(report(), profiles=[compare_divergences("it", wrong, one, other)], when=WHEN)
    won = document(report(), games=[game(halved, 0, 1, samples=4000, confidence=SURE, loss=wrong)], when=WHEN)

    for page in (curve, won):
        assert "Not passed" in page
        assert "REFUTED" in page
    assert "more points of its curves" in curve
    assert "the adversary wins more than is proved that anybody can" in won


@pytest.mark.slow
def test_sections_without_findings_are_left_out():
    """A report alone has no games and no curves."""
    said = Outline(document(report(mutants=(), bits=(), fits=()), when=WHEN)).said

    assert "No seeded bugs were tried" in said
    for heading in ("adversary's game", "Whole curves", "Can this audit fail", "Bits and laws"):
        assert heading not in said


# ---- strict words ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_cannot_become_markup(parts):
    """A name made to break out of elements, attributes and drawings is words everywhere."""
    rows = (row(HOSTILE, event=HOSTILE, detectable=9.0),)
    page = document(
        report(rows=rows, bits=(BitsRow(HOSTILE, 1, (HOSTILE,)),), fits=(), mutants=(MutantRow(HOSTILE, None),)),
        when=WHEN,
        games=[replace(parts["games"][0], name=HOSTILE, worlds=(HOSTILE, HOSTILE), attack=HOSTILE)],
        profiles=[replace(parts["profiles"][0], name=HOSTILE)],
        catches=[Catch(HOSTILE, (None,) * len(METHODS))],
    )
    outline = Outline(page)

    assert "script" not in {tag for tag, _ in outline.found}
    assert "<script" not in page.lower()
    assert outline.said.count("alert(") > 8
    assert outline.open == []


def test_pieces_are_escaped_where_they_are_made():
    """Text, paragraphs, tables: quotes too, for attributes."""
    assert text("<a href='b' c=\"d\">&") == "&lt;a href=&#x27;b&#x27; c=&quot;d&quot;&gt;&amp;"
    assert paragraph("a <b>\n   c") == "<p>a &lt;b&gt; c</p>"
    made = table("<i>", ("<j>", "k"), [("<l>", [TableCell("<m>", good=False)])])
    assert not re.search(r"<[ijlm]>", made)
    assert '<td class="bad">&lt;m&gt;</td>' in made


# ---- figures --------------------------------------------------------------------------------------------------------


def test_the_figure_of_bounds_shows_every_row():
    """One mark a row, a cross on what is refuted, the claim at 1."""
    rows = [row(), row(asked="4", bound=0.5), row("other", bound=1.7)]
    (axes,) = bounds_against_claims(rows).axes
    marks = {line.get_label(): line.get_xdata() for line in axes.get_lines()}

    assert sorted(marks["made for ε = 1"]) == [0.9, 1.7]
    assert list(marks["made for ε = 4"]) == [0.5]
    assert list(marks["refuted"]) == [1.7]
    assert list(marks["the claim"]) == [1.0, 1.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Laplace", "other"]


def test_the_figure_of_curves_shows_claims_and_bounds(parts):
    """Both curves, point by point."""
    (profile,) = parts["profiles"]

    for axes, points in zip(curves_against_samples(profile).axes, (profile.deltas, profile.renyi), strict=True):
        claimed, bounds = axes.get_lines()
        assert list(claimed.get_ydata()) == [point.claimed for point in points]
        assert list(bounds.get_ydata()) == [point.bound for point in points]


def test_the_figure_of_bugs_tells_caught_from_missed(parts):
    """Full, hollow or empty; a bug that survived has a cross of its own."""
    (axes,) = caught_by(parts["catches"]).axes
    marks = {line.get_label(): list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in axes.get_lines()}

    assert marks["caught"] == [(0, 0), (1, 0)]
    assert marks["looked at, not caught"] == [(4, 0), (0, 1)]
    assert [y for _, y in marks["survived"]] == [1]


@pytest.mark.parametrize("draw", [bounds_against_claims, caught_by])
def test_figures_of_nothing_are_refused(draw):
    """An empty picture shows nothing."""
    with pytest.raises(InvalidParameter, match="must be at least one"):
        draw([])


# ---- exhibits -------------------------------------------------------------------------------------------------------


def kinds_of_bugs():
    found = mutants()
    return [
        next(bug for bug in found if isinstance(bug, Porous)),
        next(bug for bug in found if isinstance(bug, Overclaim) and bug.name == "half the scale"),
        next(bug for bug in found if bug.name == "threshold on rows instead of units"),
        next(bug for bug in found if isinstance(bug, Misfit)),
        next(bug for bug in found if bug.name == "entry: the ε asked for ignored"),
    ]


@pytest.mark.slow
def test_bugs_are_caught_by_the_testers_that_can_see_them():
    """Bits by bits, half the scale by all bounds, a δ by δ, a law by its fit, a promise by itself. Misses: below 1e-9."""
    by = [shown.catch(bug, 50_000, 1e-6).by for bug in kinds_of_bugs()]

    assert by[0] == (False, False, False, True, None, None)
    assert by[1] == (True, True, True, None, None, None)
    assert by[2] == (True, True, None, None, None, None)
    assert by[3] == (None, None, None, None, True, None)
    assert by[4] == (None, None, None, None, None, True)


@pytest.mark.slow
def test_exhibits_are_of_the_best_known_mechanisms_that_are_audited():
    """Laplace, Gaussian and randomized response where they are there, else the first; progress is told."""
    told = []
    one = shown.exhibits(2000, run.entries_named("RandomizedResponse"), bugs=[], progress=lambda *step: told.append(step))
    other = shown.exhibits(2000, run.entries_named("PermuteAndFlip"), bugs=[])

    assert [exhibit.name for exhibit in one.shown] == ["RandomizedResponse"]
    assert [exhibit.name for exhibit in other.shown] == ["PermuteAndFlip"]
    assert one.shown[0].game is not None
    assert told == [(0, 1, "report: RandomizedResponse"), (1, 1, "report: done")]
    assert 1 - one.shown[0].profile.confidence + one.shown[0].game.false_alarm == pytest.approx(one.family)


class Halved:
    """Randomized response of three times the ε that its loss is for."""

    loss = cu.Pure(epsilon=1)

    def release_many(self, world, size):
        return cu.RandomizedResponse(epsilon=3).release_many(world, size=size)


@pytest.mark.slow
def test_exhibits_of_a_wrong_mechanism_are_violations():
    """By its curves, and by the game. Misses: below 1e-9."""
    found = shown.exhibits(4000, [AuditedMechanism("wrong", lambda _: Halved(), fixed_worlds(0, 1), itself)], bugs=[])

    assert found.violations[0].startswith("wrong: δ ≥ ")
    assert "wrong: the adversary wins more than is proved" in found.violations[-1]


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    """Beside what it printed before; where seeded bugs survive for want of samples, both say so and it ends with 1."""
    target = tmp_path / "report.html"
    code = auditing.run_audit(samples=1000, only="RandomizedResponse, f", as_json=True, html=target)
    out, err = capsys.readouterr()

    assert code == 1
    assert json.loads(out)["survivors"]
    assert f"audit: wrote {target}" in err
    said = Outline(target.read_text(encoding="utf-8")).said
    assert "Not passed" in said
    assert "RandomizedResponse, four answers" in said


@pytest.mark.slow
@pytest.mark.parametrize("refuted", [False, True])
def test_what_the_page_refutes_decides_too(refuted, parts, tmp_path, capsys, monkeypatch):
    """A right audit ends with 0; with a curve that is refuted, with 1, and says so."""
    profile = parts["profiles"][0]
    points = (replace(profile.deltas[0], bound=0.99, claimed=0.1),) if refuted else profile.deltas
    exhibit = shown.Exhibit("it", "it()", replace(profile, name="it", deltas=points), None)
    monkeypatch.setattr(run, "audit", lambda *_, **__: report())
    monkeypatch.setattr(shown, "exhibits", lambda *_, **__: Exhibits((exhibit,), (), 1e-4))
    code = auditing.run_audit(samples=1000, only=None, as_json=False, html=tmp_path / "page.html")
    out, _ = capsys.readouterr()

    assert code == int(refuted)
    assert ("REFUTED  it: δ ≥ 0.99" in out) == refuted
    assert ("1 claims refuted" in out) == refuted
    assert "Curves and games on the page add at most 0.0001 to it." in out
    assert ("Not passed" in (tmp_path / "page.html").read_text(encoding="utf-8")) == refuted


def test_a_page_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    """A folder that is not there, a folder for a file, and no matplotlib: one sentence, no audit."""
    monkeypatch.setattr(run, "audit", lambda *_, **__: pytest.fail("the audit ran"))

    for path in (tmp_path / "none" / "page.html", tmp_path, Path("/proc/page.html")):
        with pytest.raises(InvalidParameter, match="html must be a file that can be written, in a folder that exists"):
            auditing.run_audit(samples=1000, only=None, as_json=False, html=path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else name)
    with pytest.raises(InvalidParameter, match="html must be left out where matplotlib is not installed") as refusal:
        auditing.run_audit(samples=1000, only=None, as_json=False, html=tmp_path / "page.html")
    assert "\nHint: pip install 'curador[plots]' brings it" in str(refusal.value)


def test_anything_else_than_a_report_is_refused(tmp_path):
    """One sentence, no file."""
    with pytest.raises(InvalidParameter, match=r"report must be a report of curador\.audit\.audit; got 'dict'"):
        write_html({}, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
