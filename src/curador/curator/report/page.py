"""The page to sign, made of a report's record and of nothing else: no scripts, no network, every text escaped and visible.

What is signed stands first and prints on a page of its own; tables, places and questions follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, cast

from curador.curator.promise import one_in, per_cent
from curador.curator.report.words import (
    ORIGINS,
    alarms,
    amounts_words,
    audit_words,
    budget_words,
    caps_words,
    concerns,
    origin_words,
    spent_words,
    values_words,
    verified_words,
    who_words,
)
from curador.markup import TableCell, items, number, page, paragraph, text, visible
from curador.markup import table as plain_table

STYLE = """
:root { --page: #fff; color-scheme: light dark; }
body { background: var(--page); overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --ink: #e6e8ea; --soft: #b0b7bf; --line: #434a52; --pale: #1e2226; }
  :root { --good: #63c996; --bad: #ff8f87; --link: #8db9ff; }
}
h1 { overflow-wrap: anywhere; }
.verdict { background: var(--pale); } .verdict p { max-width: none; }
dl.facts { display: grid; grid-template-columns: minmax(9rem, 14rem) 1fr; gap: .5rem 1.2rem; margin: 1rem 0; }
dl.facts dt { margin: 0; color: var(--soft); font-weight: 600; }
dl.facts dd { margin: 0; max-width: none; }
dl.facts p { margin: 0 0 .25rem; }
.sign { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 1.5rem; margin: 2.6rem 0 1rem; }
.sign div { border-top: 1px solid var(--ink); padding-top: .3rem; color: var(--soft); font-size: .9rem; }
.sign + p { font-size: .9rem; color: var(--soft); }
td { overflow-wrap: anywhere; min-width: 5.5rem; }
nav ol { columns: 16rem; }
@media (max-width: 640px) {
  dl.facts { grid-template-columns: 1fr; gap: .1rem; }
  dl.facts dd { margin-bottom: .7rem; }
  .sign { grid-template-columns: 1fr; gap: 2.6rem; margin-top: 3.2rem; }
}
@media screen and (max-width: 640px) {
  .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cards, .cards caption, .cards tbody, .cards tr, .cards th, .cards td { display: block; min-width: 0; }
  .cards tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .cards th, .cards td, .cards td:last-child:not(.number), .cards td.number { border: 0; padding: .1rem 0; min-width: 0; }
  .cards td.number { text-align: left; white-space: normal; }
  .cards td:not([data-label="value"])::before { content: attr(data-label) ": "; color: var(--soft); }
}
@media print {
  :root { --page: #fff; --ink: #000; --soft: #333; --line: #999; --pale: #f2f2f2; --good: #0a5c36; --bad: #9b1c1c; }
  :root { color-scheme: light; }
  dl.facts { grid-template-columns: 11rem 1fr; gap: .3rem 1rem; }
  .sign { grid-template-columns: 2fr 1fr 2fr; }
  #statement { break-after: page; } #statement h2 { border-top: 0; margin-top: .6rem; }
}
"""


def document(record: Mapping[str, Any]) -> str:
    """Return the page as text."""
    said = cast("dict[str, Any]", visible(record))
    title = f"Privacy report of study {said['study']['name']}"
    sections = (
        ("tables", "Tables, columns, caps and bounds", _tables(said)),
        ("people", "Who may ask, and what was spent", _people(said)),
        ("strength", "How strongly, in other words", _strength(said)),
        ("ledgers", "Ledgers of the data set", _ledgers(said)),
        ("audit", "The last audit", _audit(said)),
        ("kept", "Retention and erasure", _kept(said)),
        ("limits", "What is not promised", _limits(said)),
        ("guideline", "Questions of NIST SP 800-226", _guideline(said)),
        ("versions", "Versions", _versions(said)),
    )
    contents = "".join(f'<li><a href="#{key}">{text(name)}</a></li>' for key, name, _ in sections)
    body = [
        f'<section aria-labelledby="{key}"><h2 id="{key}">{text(name)}</h2>\n{inside}\n</section>'
        for key, name, inside in sections
    ]
    main = "\n".join([_statement(said), f'<nav aria-label="Contents"><ol>{contents}</ol></nav>', *body])
    made = page(title, header=_header(said, title), main=main, footer=_footer(said), style=STYLE)
    return made.replace(" %", "\u00a0%")  # a number and its sign stay on one line


# ---- what is signed --------------------------------------------------------------------------------------------------------


def _header(said: Mapping[str, Any], title: str) -> str:
    wrong = alarms(said)
    when = datetime.fromisoformat(said["made"]).strftime("%d %B %Y, %H:%M UTC")
    lines = [f"<h1>{text(title)}</h1>", f'<p class="soft">{text(when)}</p>']
    if wrong:
        inside = "".join(paragraph(one) for one in wrong)
        return "\n".join([*lines, f'<div class="verdict bad" role="alert"><p class="word">Do not sign yet</p>{inside}</div>'])
    held = "".join(paragraph(one) for one in said["promise"]["belief_words"])
    return "\n".join([*lines, f'<div class="verdict good">{held}</div>'])


def _statement(said: Mapping[str, Any]) -> str:
    study, protected, promise = said["study"], said["protected"], said["promise"]
    ledger, found = said["ledger"], concerns(said)
    names = [str(one["name"]) for one in said["analysts"]]
    who = [
        f"The owner, and {len(names)} analyst{'' if len(names) == 1 else 's'}: {', '.join(names)}."
        if names
        else "The owner alone."
    ]
    tables = ", ".join(f"{one['name']}{' (public)' if one['public'] else ''}" for one in said["tables"])
    facts = [
        ("Who is protected", [protected["words"][0], protected["words"][1]]),
        (
            "How strongly",
            [
                *promise["belief_words"],
                promise["odds_words"][1],
                f"In its own letters: {budget_words(said)}, for ever, over all analysts and data versions together.",
            ],
        ),
        ("Tables", [tables]),
        ("Who may ask", who),
        ("Spent", [spent_words(said)]),
        ("Ledger", [verified_words(said), *([] if ledger is None else [f"Last entry: {ledger['head']['hash']}"])]),
        ("Other ledgers", [_others_words(said)]),
        ("Last audit", [audit_words(said)]),
        ("Digest of the study", [str(study["digest"])]),
    ]
    if found:
        facts.append(("To think about", found))
    body = "\n".join(f"<dt>{text(name)}</dt><dd>{''.join(paragraph(one) for one in lines)}</dd>" for name, lines in facts)
    return "\n".join(
        [
            '<section id="statement" aria-labelledby="statement-name">',
            '<h2 id="statement-name">To be signed</h2>',
            f'<dl class="facts">{body}</dl>',
            '<div class="sign"><div>Name and role</div><div>Date</div><div>Signature</div></div>',
            paragraph("Who signs has read this page. The pages after it say where each statement comes from."),
            "</section>",
        ]
    )


def _others_words(said: Mapping[str, Any]) -> str:
    found = said["other_ledgers"]
    if found is None:
        return "They could not be looked for: the sources are not there."
    if not found["ledgers"]:
        return "None is known for these rows."
    together = found["together"]
    total = (
        "What they promise together cannot be added up here."
        if together is None
        else f"Together at most ε = {together['epsilon']['decimal']}, δ = {together['delta']['decimal']}."
    )
    return f"{len(found['ledgers'])} more: see below. {total}"


# ---- where it comes from ---------------------------------------------------------------------------------------------------


def table(caption: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[TableCell]]]) -> str:
    """Return a table whose rows are cards on a phone."""
    return plain_table(caption, heads, rows, cards=True)


def _words(*parts: object) -> list[TableCell]:
    return [TableCell(str(part)) for part in parts]


def _tables(said: Mapping[str, Any]) -> str:
    unit = said["protected"]["unit"]
    rows = [
        (
            str(known["name"]),
            _words(known["rows_belong_to"], caps_words(known["caps"], unit), origin_words(known["caps"]), known["source"]),
        )
        for known in said["tables"]
    ]
    heads = ("table", "rows belong to", "caps", "where caps came from", "source")
    parts = [
        paragraph(f"A cap says how much of one {unit} enters one question; what is beyond it is left out, by chance."),
        paragraph(
            """A question about several tables has the largest of their caps. A question may be asked with other caps: its
            receipt says which, and its noise fits them."""
        ),
        table("Tables", heads, rows),
    ]
    for known in said["tables"]:
        parts += [f"<h3>{text(known['name'])}</h3>", _columns(known)]
    most = said["protected"]
    parts.append(paragraph(f"There are at most {most['most_units']:,} units: {ORIGINS[most['most_units_origin']]}."))
    return "\n".join(parts)


def _columns(one: Mapping[str, Any]) -> str:
    rows = [
        (
            str(column["name"]),
            _words(
                column["type"],
                values_words(column, public=one["public"]),
                "declared" if column["declared"] else "not declared: found in the source",
            ),
        )
        for column in one["columns"]
    ]
    if not rows:
        return paragraph("No column is declared, and the source could not be looked at.")
    caption = f"Columns of {one['name']}, with all values that they may have"
    return table(caption, ("column", "type", "bounds or values", "where it came from"), rows)


def _people(said: Mapping[str, Any]) -> str:
    shares = {one["name"]: one for one in said["analysts"]}
    rows: list[tuple[str, Sequence[TableCell]]] = []
    for analyst in said["analysts"]:
        tables = "all tables" if analyst["tables"] is None else ", ".join(analyst["tables"]) or "none"
        rows.append(
            (str(analyst["name"]), [number(analyst["share"]), *_words(tables, "yes" if analyst["may_fit_models"] else "no")])
        )
    parts = [
        paragraph("A share is a quota inside the one budget, and no promise of its own. The owner may use all of it."),
        table("Analysts", ("name", "share", "tables", "may fit models"), rows)
        if shares
        else paragraph("No analyst is declared: the owner alone asks."),
    ]
    spent = said["spent"]
    if spent is None:
        return "\n".join([*parts, paragraph(spent_words(said))])
    lines = [
        (
            who_words(row),
            [number(row["percent"]), number(row["percent_of_share"] or "–"), *_words(amounts_words(row["amounts"]))],
        )
        for row in spent["by"]
    ]
    heads = ("who", "of the budget", "of the own share", "amounts")
    part = spent["percent_for_unlisted_groups"]
    unlisted = "" if part is None else f" Of the part for groups that nobody listed, {part} is spent."
    return "\n".join(
        [
            *parts,
            table("What was spent, by whom", heads, lines),
            paragraph(f"{spent_words(said)}{unlisted}"),
            paragraph(
                f"""For information: what was spent so far amounts to ε = {spent["epsilon_so_far"]}.
                What is proved is the whole budget."""
            ),
            paragraph("ρ is the unit in which the ledger counts; all ρ together become ε and δ.")
            if "rho" in spent["amounts"]
            else "",
            paragraph("Names of analysts are personal data: give this page to those who may know them."),
        ]
    )


def _strength(said: Mapping[str, Any]) -> str:
    promise = said["promise"]
    rows = [
        (_per_cent(belief["sure_before"]), [number(_per_cent(belief["sure_after_at_most"]))])
        for belief in promise["odds"]["beliefs"]
    ]
    fails = promise["odds"]["beliefs"][0]["except_with_chance"]
    told = f" Each line fails with a chance of at most one in {one_in(float(fails))}." if fails != "0" else ""
    return "\n".join(
        [
            items(promise["odds_words"]),
            table("How sure somebody can become", ("sure before", "at most so sure afterwards"), rows),
            paragraph(f"These numbers speak of everything that will ever be released, and are rounded up.{told}"),
        ]
    )


def _per_cent(decimal: str) -> str:
    return per_cent(Fraction(decimal))


def _ledgers(said: Mapping[str, Any]) -> str:
    own, found = said["ledger"], said["other_ledgers"]
    parts = [paragraph(verified_words(said))]
    if own is not None:
        rows = [
            ("id", _words(own["id"])),
            ("place", _words(own["place"] if own["server"] is None else f"{own['place']}, kept on {own['server']}")),
            ("made", _words(own["made"])),
            ("entries", _words(f"{own['entries']:,}")),
            ("hash of the last entry", _words(own["head"]["hash"])),
            ("data version", _words(own["data_version"])),
            ("studies that spend from it", _words(", ".join(own["studies"]))),
        ]
        parts.append(table("This study's ledger", ("", "value"), rows))
        parts.append(paragraph("Note the hash of the last entry. The next report must have it in its chain."))
        changes = [(str(one["time"]), _words(one["note"])) for one in own["changes"]]
        if changes:
            parts.append(table("Declarations that changed", ("time", "what"), changes))
    if found is None or not found["ledgers"]:
        return "\n".join([*parts, paragraph(f"Other ledgers of the same rows: {_others_words(said)}")])
    others = [
        (
            str(ledger["study"]),
            [
                number("–" if ledger["epsilon"] is None else ledger["epsilon"]["decimal"]),
                number("–" if ledger["delta"] is None else ledger["delta"]["decimal"]),
                number(ledger["percent"] or "–"),
                *_words("yes" if ledger["reason_was_given"] else "no", ledger["place"]),
            ],
        )
        for ledger in found["ledgers"]
    ]
    heads = ("study", "ε", "δ", "spent", "a reason is on record", "place")
    return "\n".join([*parts, table("Other ledgers of the same rows", heads, others), paragraph(_others_words(said))])


def _audit(said: Mapping[str, Any]) -> str:
    found = said["audit"]
    if found is None:
        return paragraph(
            """No audit on record. curador keeps none by itself: run curador audit study.toml --copy --json, keep what it
            prints, and name the file with --audit."""
        )
    rows = [
        ("verdict", [TableCell("passed" if found["passed"] else "NOT PASSED", good=found["passed"])]),
        ("time", _words(found["time"])),
        ("of these declarations", [_yes(holds=found["of_this_study"])]),
        ("of this data version", [_yes(holds=found["of_this_data_version"])]),
        ("questions of the ledger replayed", _words(f"{found['questions_replayed']:,}")),
        ("purchases that were not (fits, surveys)", _words(f"{found['purchases_not_replayed']:,}")),
        ("neighbours by chance", _words(f"{found['neighbours']:,}")),
        ("made-up units counted", _words(f"{found['canaries']:,}")),
        ("versions", _words(found["versions"])),
    ]
    return table("Last audit of the study on a copy", ("", "value"), rows) + paragraph(
        "It was read from a file that the owner named. Nothing protects that file."
    )


def _yes(*, holds: bool) -> TableCell:
    return TableCell("yes" if holds else "NO", good=holds)


def _kept(said: Mapping[str, Any]) -> str:
    there = {True: "yes", False: "no", None: "–"}
    rows = [
        (
            str(place["what"]),
            _words(
                place["place"], place["holds"], place["personal_data"] or "–", there[place["is_there"]], place["how_removed"]
            ),
        )
        for place in said["kept"]
    ]
    heads = ("what", "where", "what it holds", "personal data", "is there", "how it is removed")
    return "\n".join(
        [
            table("What lies where", heads, rows),
            "<h3>Retention</h3>",
            items(said["retention"]),
            "<h3>When a person asks to be erased</h3>",
            items(said["erasure"]),
        ]
    )


def _limits(said: Mapping[str, Any]) -> str:
    unit = said["protected"]["unit"]
    return items(
        [
            said["protected"]["words"][2],
            f"What is true of people in general may be learned of a {unit}, whether or not that {unit} is in the data.",
            f"On time: {said['promise']['answers_leave']}.",
            "That a question failed can tell one bit each time; three failures close the study to analysts.",
            "The owner and the machine are trusted. Copies of the rows elsewhere are not looked at.",
            "Whether bounds, caps and the unit were declared rightly is for the owner to answer.",
            "Whether answers are anonymous in the sense of a law is a legal question, and not answered here.",
        ]
    )


def _guideline(said: Mapping[str, Any]) -> str:
    found = said["guideline"]
    rows = [
        (
            str(asked["section"]),
            _words(asked["question"], asked["answer"] or "For the owner to answer: the study does not know."),
        )
        for asked in found["questions"]
    ]
    return table("Questions in our own words", ("section", "question", "answer"), rows) + paragraph(
        f"Section numbers are those of {found['source']}; a later edition may number otherwise."
    )


def _versions(said: Mapping[str, Any]) -> str:
    software = [(name, _words(version)) for name, version in sorted(said["software"].items())]
    formats = [(name.replace("_", " "), _words(version)) for name, version in sorted(said["formats"].items())]
    return table("Software", ("name", "version"), software) + table("Stored formats", ("format", "version"), formats)


def _footer(said: Mapping[str, Any]) -> str:
    return paragraph(
        f"""Made {said["made"]} by curador {said["software"]["curador"]} from the study, its ledger and the register.
        Nothing was spent and nothing was prepared. No number here was read from rows without noise. This file needs no
        network."""
    )
