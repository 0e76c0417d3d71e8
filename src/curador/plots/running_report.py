"""The regulator's page of a running study's audit: verdicts, settings, numbers of trials, and made-up tables.

Claim   The page is a function of the study file, the ledger's questions, made-up rows, and two verdicts on real rows.
Source  `tests/engines/test_audit_copy.py` puts marked values into the rows and searches every byte of the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter
from curador.markup import TableCell, items, number, page, paragraph, table, text

if TYPE_CHECKING:
    from curador.testing.running import RowsAudit, StudyAudit

TITLE = "Audit of a running study"


def writable_page(path: str | Path) -> Path:
    """Return the path, refused where no file can be written: to be asked before minutes of work."""
    target = Path(path)
    new = not target.exists()
    try:
        with target.open("ab"):
            pass
    except OSError:
        rule = "a file that can be written, in a folder that exists"
        raise InvalidParameter.must_be("html", rule, str(path)) from None
    if new:
        target.unlink()
    return target


def write_page(found: StudyAudit, path: str | Path) -> Path:
    """Write the page, and return its path."""
    target = writable_page(path)
    target.write_text(document(found), encoding="utf-8")
    return target


def document(found: StudyAudit) -> str:
    """Return the page as text."""
    sections = [
        ("Verdicts", _verdicts(found)),
        (
            "What was audited",
            table("Settings", ("setting", "value"), [(name, [TableCell(said)]) for name, said in found.settings]),
        ),
        ("Made-up rows", _made_up(found.made_up)),
        ("What this means, and what it cannot say", _meaning(found)),
    ]
    main = "\n".join(f"<section><h2>{text(name)}</h2>\n{inside}\n</section>" for name, inside in sections)
    return page(TITLE, header=_header(found), main=main, footer=_footer(found))


def _header(found: StudyAudit) -> str:
    word = "Passed" if found.passed else "Not passed"
    return "\n".join(
        [
            f"<h1>{text(TITLE)}</h1>",
            f'<p class="soft">{text(found.when.strftime("%d %B %Y, %H:%M %Z"))}</p>',
            f'<div class="verdict {"good" if found.passed else "bad"}"><p class="word">{word}</p>',
            paragraph(
                "This page holds verdicts, settings and results on made-up rows. No number in it was computed from real rows."
            ),
            "</div>",
        ]
    )


def _mark(*, holds: bool) -> TableCell:
    return TableCell("holds" if holds else "DOES NOT HOLD", good=holds)


def _verdicts(found: StudyAudit) -> str:
    trials = f"{found.neighbours} units chosen at random, the one with most rows, and a made-up one"
    rows = [
        ("neighbours, real rows", [_mark(holds=found.real.replayed), TableCell(trials)]),
        ("canaries, real rows", [_mark(holds=found.real.counted), TableCell(f"{found.canaries:,} made-up units")]),
        ("neighbours, made-up rows", [_mark(holds=found.made_up.replayed), TableCell(trials)]),
        ("canaries, made-up rows", [_mark(holds=found.made_up.counted), TableCell(f"{found.canaries:,} made-up units")]),
    ]
    asked = f"""{found.asked:,} different questions of the ledger were replayed, with the amounts that were charged for them,
    besides questions made from the study's own tables. {found.left:,} purchases that are no question of SQL (surveys, fits)
    were not."""
    return table("Verdicts", ("what", "verdict", "trials"), rows) + paragraph(asked)


def _made_up(rows: RowsAudit) -> str:
    lines = [
        (
            replayed.who,
            [
                _mark(holds=replayed.holds),
                number(str(replayed.compared)),
                number(str(replayed.refused)),
                number(str(replayed.releases)),
                number(str(len(replayed.found))),
            ],
        )
        for replayed in rows.replays
    ]
    heads = ("who leaves or comes", "verdict", "questions", "refused", "releases compared", "violations")
    counted = (
        "No table could be asked." if rows.canary is None else f"One question with {rows.spend} of the budget: {rows.canary}."
    )
    return table("Neighbours of made-up rows, replayed", heads, lines) + paragraph(counted)


def _meaning(found: StudyAudit) -> str:
    from curador.testing.running import CONFIDENCE

    return paragraph(
        f"""A neighbour differs from the rows in one {dict(found.settings)["one unit"]}. Every question is priced and computed
        on both, the second time with the noise of the first: plans, prices, refusals, the order of draws and the shown result
        must be the same, and the exact numbers before noise no further apart than is declared. This needs no statistics and
        has no false alarms. Canaries are made-up units, each put in or left out by a fair coin; one question counts them with
        all of the budget, and who guesses the coins from the noisy answer can be right only so often if the receipt is true.
        A right study is refuted with probability at most {float(1 - CONFIDENCE):.0e} for each set of rows."""
    ) + items(
        [
            "A replay speaks of these neighbours and these questions, not of all.",
            "How lines of a text file become fields is not in it: a copy has the columns that were read.",
            "Durations are not in it.",
            "Fits of models and surveys are audited by the tests that ship with the library, not here.",
        ]
    )


def _footer(found: StudyAudit) -> str:
    return paragraph(
        f"""Made {found.when.isoformat(timespec="seconds")} by curador. The copy that was audited lay in a folder of its owner
        alone and is removed; nothing was charged to the ledger. This file needs no network."""
    )
