"""What must become of a statement, and whether it did: the true value at a budget that hardly leaves noise, or a refusal.

An entry is a line of JSON:

id        its name
sql       the statement, in its `dialect` (duckdb unless told)
truth     the same question to a plain DuckDB over the rows, with every group that is wanted; `sql` itself unless told
by        how many columns, from the left, are keys: rows are compared by them; 0 unless told
within    the most that a number may be off; unless told, half a percent of the largest of its column
days      the same for dates; 0 unless told
loose     its interval may be wide: quantiles at such a level
rows      how many rows are wanted, where a reader should see it
whole     the ends of its intervals are whole numbers
says      words of the printed answer
narrow    a statement of the same, perhaps under caps: the bars before data must not be wider than its
options   more of what is asked; ρ is RHO unless another cost is told
refuse    instead of all these: words of the refusal or its hint, small letters or capital ones
avoid     words that it must not have
needs     which part of the product it stands on, for who reads a failure
why       what it shows

A number passes if it is within `within` of the truth, and if the interval at LEVEL, where there is one, holds the truth and
reaches no further than `within` on either side. So luck fails a cell with probability 1 - LEVEL = 1e-11 at most, and the
2,000 cells of the whole corpus with 2e-8. Quantiles, whose intervals are not made for such levels, are drawn by the
exponential mechanism: with ρ/6 = 3,300 at least for the point, ε = √(8 · 3,300) = 160, and at most 16 rows a person in one of
2¹⁶ cells, one is off by more than t ranks with probability 2¹⁶ exp(-160 t / 32) < 1e-12 for t = 8, which is three cells of
2,001. Columns that are computed from released ones without an interval are made of such numbers.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import curador as cu
from registers import another_register, quick_folder

if TYPE_CHECKING:
    from collections.abc import Callable

RHO = 20_000
LITTLE = 100
LEVEL = "0.99999999999"
SHARE = Fraction(1, 200)
EACH = 40
"""Questions of one ledger, whose limit is a million."""

MARKET = Path(__file__).parent / "market.jsonl"


def entries(path: Path = MARKET) -> list[dict[str, Any]]:
    """Return the statements of a file, with what is not told in them."""
    usual = {"dialect": "duckdb", "by": 0, "within": None, "days": 0, "loose": False, "rows": None}
    usual |= {"whole": False, "says": None, "narrow": None, "refuse": None, "avoid": None, "needs": None, "options": {}}
    found = [{**usual, **json.loads(line)} for line in path.read_text(encoding="utf-8").splitlines()]
    return [{"truth": one["sql"], **one} for one in found]


@dataclass
class Asked:
    """What became of an entry: nothing, or what is wrong with it; the seconds are those of a processor for a refusal."""

    entry: dict[str, Any]
    problem: str | None
    got: str = ""
    wanted: str = ""
    seconds: float | None = None

    def __str__(self) -> str:
        """Everything that is needed to look into a failure."""
        one = self.entry
        lines = [f"{one['id']} ({one['dialect']}, needs {one['needs']}): {self.problem}", f"  text    {one['sql']}"]
        return "\n".join([*lines, f"  wanted  {self.wanted}", f"  got     {self.got}"])


@dataclass
class Asking:
    """Asks entries of studies that are opened anew when their ledgers are nearly spent.

    opening   opens a study in a folder: a curator, and a plain DuckDB with the same rows
    """

    opening: Callable[[Path], contextlib.AbstractContextManager[tuple[Any, Any]]]
    asked: int = 0
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    held: tuple[Any, Any] | None = None

    def pair(self) -> tuple[Any, Any]:
        """Return the curator and the plain DuckDB for the next entry."""
        if self.held is None or self.asked == EACH:
            self.close()
            another_register()  # these are the same rows again, and get another budget
            folder = Path(self.stack.enter_context(quick_folder()))
            self.held, self.asked = self.stack.enter_context(self.opening(folder)), 0
        self.asked += 1
        return self.held

    def close(self) -> None:
        """Close what is open."""
        self.stack.close()
        self.held = None

    def judge(self, entry: dict[str, Any]) -> Asked:
        """Ask one entry and compare it with what is wanted."""
        curator, plain = self.pair()
        options = dict(entry["options"])
        if not {"rho", "epsilon", "accuracy"} & set(options) and "epsilon" not in entry["sql"].lower():
            options["rho"] = RHO
        begun = time.process_time()
        try:
            answer = curator.ask(entry["sql"], dialect=entry["dialect"], confidence=LEVEL, **options)
        except cu.Refused as refusal:
            return _judged_refusal(entry, str(refusal), time.process_time() - begun)
        if entry["refuse"] is not None:
            return Asked(entry, "answered", f"{len(answer)} rows", f"a refusal with {entry['refuse']!r}")
        try:
            truth = plain.execute(entry["truth"]).fetchall()
        except duckdb.Error as error:
            return Asked(entry, "the truth is no statement", str(error), entry["truth"])
        found = judge_rows(entry, answer, truth)
        if found.problem is None and entry["says"] and entry["says"] not in str(answer):
            found = Asked(entry, "words are missing", str(answer), entry["says"])
        return _judged_bars(curator, entry) if found.problem is None and entry["narrow"] else found


def _judged_bars(curator: Any, entry: dict[str, Any]) -> Asked:
    """Compare the bars that are expected of two statements for the same cost."""
    other = dict(entry["narrow"])
    wide, narrow = curator.preview(entry["sql"], rho=LITTLE), curator.preview(other.pop("sql"), rho=LITTLE, **other)
    reaches = [[_expected(one) for one in made.errors] for made in (wide, narrow)]
    wrong = any(mine > 1.001 * its for mine, its in zip(*reaches, strict=True))
    return Asked(entry, "its bar is wider than need be" if wrong else None, str(reaches[0]), str(reaches[1]))


def _expected(error: Any) -> float:
    """Return the ± of a column, of a mean that of the largest group that is told."""
    return error.at[-1][1] if error.reach is None else error.reach


def _judged_refusal(entry: dict[str, Any], said: str, seconds: float) -> Asked:
    if entry["refuse"] is None:
        return Asked(entry, "refused", said, "an answer", seconds)
    wrong = None if entry["refuse"].lower() in said.lower() else "refused in other words"
    if entry["avoid"] and entry["avoid"].lower() in said.lower():
        wrong = f"the refusal says {entry['avoid']!r}"
    return Asked(entry, wrong, said, f"a refusal with {entry['refuse']!r}", seconds)


# ---- cells -----------------------------------------------------------------------------------------------------------------


def judge_rows(entry: dict[str, Any], answer: Any, truth: list[tuple[Any, ...]]) -> Asked:
    """Compare the rows of an answer with the true ones: the same groups, in order where it matters, and every number."""
    parts, by = answer.parts, entry["by"]
    rows = [tuple(plain_value(part.values[row]) for part in parts) for row in range(len(answer))]
    true = [tuple(plain_value(value) for value in row) for row in truth]
    shown = {"got": _shown(rows), "wanted": _shown(true)}
    if entry["rows"] is not None and len(true) != entry["rows"]:
        return Asked(entry, f"the entry wants {entry['rows']} rows and its truth has {len(true)}", **shown)
    if rows and true and len(rows[0]) != len(true[0]):
        return Asked(entry, "other columns", **shown)
    keys, wanted = [row[:by] for row in rows], [row[:by] for row in true]
    if sorted(map(repr, keys)) != sorted(map(repr, wanted)):
        return Asked(entry, f"other groups: {len(keys)} for {len(wanted)}", **shown)
    if by and "ORDER BY" in entry["truth"].rpartition(" FROM ")[2] and keys != wanted:
        return Asked(entry, "another order", **shown)
    found = {repr(key): place for place, key in enumerate(keys)}
    order = [found[repr(key)] if by else place for place, key in enumerate(wanted)]
    for column, part in enumerate(parts[by:], by):
        reach = _reach(entry, part.name, [row[column] for row in true])
        for place, row in zip(order, true, strict=True):
            ends = None if part.low is None else (part.low[place], part.high[place])
            problem = _judged_cell(rows[place][column], row[column], ends, reach, entry)
            if problem:
                return Asked(entry, f"{part.name} of {row[:by] or 'all'}: {problem}", **shown)
    return Asked(entry, None)


def _reach(entry: dict[str, Any], name: str, true: list[Any]) -> float:
    told = entry["within"]
    told = told.get(name) if isinstance(told, dict) else told
    if told is not None:
        return float(told)
    numbers = [abs(value) for value in true if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return max(float(SHARE) * max(numbers, default=0), 1e-9)


def _judged_cell(got: Any, true: Any, ends: tuple[Any, Any] | None, reach: float, entry: dict[str, Any]) -> str | None:
    if type(got) is type(true) is dt.date:
        return None if abs(got - true).days <= entry["days"] else f"{got} for {true}"
    if not isinstance(true, (int, float)) or isinstance(true, bool):
        return None if got == true else f"{got!r} for {true!r}"
    if not isinstance(got, (int, float)) or not abs(got - true) <= reach:
        return f"{got!r} for {true!r} ± {reach:g}"
    if ends is None or None in ends:
        return None
    if entry["whole"] and not all(float(end).is_integer() for end in ends):
        return f"the interval {ends[0]} … {ends[1]} has ends that are not whole"
    slack = 1e-9 * max(1.0, abs(true))
    if not ends[0] - slack <= true <= ends[1] + slack:
        return f"the interval {ends[0]} … {ends[1]} does not hold {true!r}"
    if not entry["loose"] and max(got - ends[0], ends[1] - got) > reach + slack:
        return f"the interval {ends[0]} … {ends[1]} is wider than {reach:g} around {got!r}"
    return None


def plain_value(value: Any) -> Any:
    """Return a value as two engines have it in common: midnight is its day, a decimal is a number."""
    if isinstance(value, dt.datetime):
        return value.date() if value.time() == dt.time() else value.replace(tzinfo=None)
    if isinstance(value, (Decimal, Fraction)):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(rows: list[tuple[Any, ...]]) -> str:
    return f"{len(rows)} rows: {'; '.join(map(str, rows[:6]))}{' …' if len(rows) > 6 else ''}"
