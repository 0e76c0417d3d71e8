"""The main job, from a folder of files to private answers: data, study, preview, questions, budget, refusals.

The truth beside the answers is computed by this demonstration itself, with its own connection to the files. Nobody who asks
a curator ever sees it.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.table import Table

import curador as cu
from curador.cli.demo_data import PEOPLE, STUDY, VISITS, write_demo
from curador.cli.demo_mathematics import mathematics as show_mathematics
from curador.errors import InvalidParameter, Refused
from curador.text import key_text, reach_text, released_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    import duckdb

    from curador.curator.answer import Answer
    from curador.curator.curator import Asker, Curator

FOLDER = Path("demo")
AGAIN_MADE_UP = "a new demonstration, on rows that were made up again"
"""Why there is another ledger over the rows of an earlier demonstration."""
CAP = 40  # rows a person, as the study says

ALL, BOUNDED = "all_rows", "within_bounds"
"""Two schemas of the demonstration's own connection, with the same tables."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """One question of the demonstration.

    capped  caps and bounds change the number that the answer is about: show the truth within them as well
    """

    about: str
    text: str
    cost: Mapping[str, Any]
    capped: bool = False
    analyst: str | None = None
    told: str = ""


FIRST = DemoQuestion(
    "Which kinds of places do people visit, and what do they spend?",
    "SELECT kind, COUNT(*) AS visits, AVG(spent) AS mean_spent\nFROM visits\nGROUP BY kind",
    {"spend": "10%"},
    capped=True,
    told="The error bar is about the bounded truth: what is left of the exact one when nobody adds more than "
    f"{CAP} rows and no price counts beyond its bounds, which the owner chose. One bar in twenty misses it.",
)
OTHERS = (
    DemoQuestion(
        "Income by region: a join with a public table, whose keys are known.",
        "SELECT c.region, COUNT(*) AS people, AVG(p.income) AS mean_income\n"
        "FROM people AS p JOIN cities AS c ON p.city = c.city\nGROUP BY c.region",
        {"spend": "5%"},
    ),
    DemoQuestion(
        "The most visited venues: nobody declared their names, so only those with enough visitors appear.",
        "SELECT venue, COUNT(*) AS visits\nFROM visits\nGROUP BY venue\nORDER BY visits DESC\nLIMIT 6",
        {"spend": "5%"},
        capped=True,
    ),
    DemoQuestion(
        "A median, by the exponential mechanism.",
        "SELECT MEDIAN(income) AS median_income FROM people",
        {"spend": "5%"},
    ),
    DemoQuestion(
        "A filter comes first, then the cap: one person's museum visits, not one person's visits.",
        "SELECT COUNT(DISTINCT person) AS people, COUNT(*) AS visits\nFROM visits\nWHERE kind = 'museum' AND rating = 5",
        {"spend": "5%"},
    ),
    DemoQuestion(
        "Ana, an analyst with 40 % of the budget, says how exact it must be, and the cost follows from that.",
        "SELECT p.city, COUNT(*) AS people\nFROM people AS p\nWHERE p.birth_year >= 2000\nGROUP BY p.city",
        {"accuracy": {"people": 60}},
        analyst="ana",
    ),
)
AGAIN = (
    "select avg(spent) as mean_spent, kind, count(*) as visits from visits /* the first, spelled differently */ group by 2"
)
TOO_MUCH = "90%"
HOSTILE = (
    "SELECT id, income FROM people WHERE id = 4711",
    "SELECT AVG(income) FROM people; DROP TABLE people",
    "SELECT SUM(CASE WHEN person = 4711 THEN spent * 1000000 END) FROM visits",
)


def run(out: TextIO, *, mathematics: bool = False, folder: Path | None = None) -> None:
    """Print the demonstration; its files stay in `folder` (default: ./demo) for further questions."""
    if mathematics:
        show_mathematics(out)
        return
    place = FOLDER if folder is None else folder
    terminal = out.isatty()
    console = Console(file=out, width=None if terminal else 112, highlight=False)
    _fresh(place)
    study = _data(console, place)
    with contextlib.ExitStack() as stack:
        with _step(console, "preparing the tables: once for a data version") as tell:
            curator = stack.enter_context(cu.open(study, progress=tell, new_ledger=AGAIN_MADE_UP))
        with _step(console, "computing the truth, which only this demonstration may see"):
            truth = stack.enter_context(contextlib.closing(_truth(place)))
        _questions(console, curator, truth)
        _free_and_refused(console, curator)
        _end(console, curator, study)


def _fresh(folder: Path) -> None:
    """Empty the folder of an earlier demonstration; never touch another one."""
    if not folder.exists():
        return
    own = folder / "study.toml"
    if not own.is_file() or own.read_text(encoding="utf-8") != STUDY:
        rule, hint = "a new folder, or that of an earlier demonstration", "run it from another place"
        raise InvalidParameter.must_be("the folder", rule, str(folder), hint)
    shutil.rmtree(folder)


# ---- 1. data and study ---------------------------------------------------------------------------------------------


def _data(console: Console, folder: Path) -> Path:
    _heading(console, "1. The owner's data, and what the owner declares about them")
    with _step(console, f"making up {PEOPLE:,} people and {VISITS:,} visits"):
        study = write_demo(folder)
    for name, rows in (("people", PEOPLE), ("visits", VISITS), ("cities", 10)):
        file = folder / f"{name}.parquet"
        console.print(f"  {file!s:24} {rows:>9,} rows  {file.stat().st_size / 1e6:5.1f} MB")
    console.print(f"  {study!s:24} the study: who is protected, bounds, caps, one budget for ever\n")
    console.print(Syntax(STUDY.rstrip(), "toml", theme="ansi_dark", background_color="default", word_wrap=True))
    return study


# ---- 2. questions --------------------------------------------------------------------------------------------------


def _questions(console: Console, curator: Curator, truth: duckdb.DuckDBPyConnection) -> None:
    _heading(console, "2. Before asking: what would it cost, how good would it be? A preview reads nothing")
    _sql(console, FIRST.text)
    console.print(curator.preview(FIRST.text, **FIRST.cost))
    _heading(console, "3. Asking. Every number has an error bar; grey is the truth, in this demonstration only")
    for place, shown in enumerate((FIRST, *OTHERS)):
        asker: Asker = curator if shown.analyst is None else curator.analyst(shown.analyst)
        console.print(f"\n[bold]{escape(shown.about)}[/]")
        if place:
            _sql(console, shown.text)
        answer = asker.ask(shown.text, **shown.cost)
        console.print(_table(answer, truth, shown))
        for line in (*answer.notes, shown.told):
            if line:
                console.print(f"[dim]{escape(line)}[/]")
        _budget(console, curator)


def _truth(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection with the tables twice: all rows as they are, and within the study's caps and bounds.

    Which rows a cap keeps is random and secret; the draw here is another one, so the second truth is the bounded one but
    for that chance, which is small beside the noise.
    """
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET enable_progress_bar = false").fetchall()
    names = ("people", "visits", "cities")
    for schema in (ALL, BOUNDED):
        connection.execute(f"CREATE SCHEMA {schema}").fetchall()
        for name in names:
            file = str(folder / f"{name}.parquet").replace("'", "''")
            rows = f"SELECT * FROM read_parquet('{file}')"  # noqa: S608 -- our own file
            if schema == BOUNDED and name == "visits":
                number = "ROW_NUMBER() OVER (PARTITION BY person ORDER BY hash(visited, venue))"
                clamped = "* REPLACE (CASE WHEN spent > 200 THEN 200 ELSE spent END AS spent)"
                rows = f"SELECT {clamped} FROM ({rows}) QUALIFY {number} <= {CAP}"  # noqa: S608 -- idem
            connection.execute(f"CREATE TABLE {schema}.{name} AS {rows}").fetchall()
    return connection


def _exact(truth: duckdb.DuckDBPyConnection, text: str, schema: str, keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the question's exact answer by key, without ORDER BY and LIMIT."""
    truth.execute(f"SET schema = '{schema}'").fetchall()
    found = truth.execute(text.split("ORDER BY", maxsplit=1)[0]).fetchall()
    return {row[:keys]: row[keys:] for row in found}


def _table(answer: Answer, truth: duckdb.DuckDBPyConnection, shown: DemoQuestion) -> Table:
    """The answer with its error bars, and the truth beside it."""
    keys = [part for part in answer.parts if part.low is None]
    schemas = {"exact": ALL, "bounded": BOUNDED} if shown.capped else {"exact": ALL}
    exact = [_exact(truth, shown.text, schema, len(keys)) for schema in schemas.values()]
    table = Table(title_justify="left")
    for key in keys:
        table.add_column(key.name)
    released = [part for part in answer.parts if part.low is not None]
    for part in released:
        table.add_column(part.name, justify="right")
        table.add_column("95 %", justify="right")
        for name in schemas:
            table.add_column(name, justify="right", style="dim")
    for row in answer.rows:
        key = tuple(row[one.name] for one in keys)
        cells = [escape(key_text(value)) for value in key]
        for place, part in enumerate(released):
            value, low, high = (row[part.name + end] for end in ("", "_low", "_high"))
            width = None if low is None or high is None else float(high - low) / 2
            cells += [f"[bold]{released_text(value, width)}[/]", _bar(value, low, high, width)]
            cells += [_like(one[key][place] if key in one else None, value, width) for one in exact]
        table.add_row(*cells)
    return table


def _bar(value: Any, low: Any, high: Any, width: float | None) -> str:
    """± where the interval is symmetric about the value, its ends where it is not."""
    if width is None or value is None or abs((high - value) - (value - low)) > 1e-6 * width:
        return f"{released_text(low, width)} … {released_text(high, width)}"
    return reach_text(width)


def _like(value: Any, released: Any, width: float | None) -> str:
    """The truth with the digits of the released number; a group that has no row is a zero."""
    value = 0 if value is None else value
    return released_text(int(value)) if isinstance(released, int) else released_text(float(value), width)


# ---- 3. free and refused -------------------------------------------------------------------------------------------


def _free_and_refused(console: Console, curator: Curator) -> None:
    _heading(console, "4. The first question again, spelled differently: the stored answer, free, for everybody")
    _sql(console, AGAIN)
    again = curator.ask(AGAIN, **FIRST.cost)
    console.print(f"answered before: {'yes' if again.stored else 'no'}; cost: {'nothing' if again.stored else again.cost}")
    _budget(console, curator)
    _heading(console, f"5. A question that wants {TOO_MUCH} of the budget: refused, before anything is read")
    with _refusal(console):
        curator.ask(FIRST.text, spend=TOO_MUCH)
    _heading(console, "6. Questions about one person, and worse: refused, free of charge")
    for text in HOSTILE:
        _sql(console, text)
        with _refusal(console):
            curator.ask(text, spend="1%")
    _budget(console, curator)


@contextlib.contextmanager
def _refusal(console: Console) -> Generator[None]:
    try:
        yield
    except Refused as refused:
        console.print(f"[yellow]{type(refused).__name__}[/]: {escape(str(refused))}")
    else:
        raise AssertionError("this must not be answered")


# ---- 4. the end ----------------------------------------------------------------------------------------------------


def _end(console: Console, curator: Curator, study: Path) -> None:
    _heading(console, "7. What was spent, by whom")
    console.print(curator.budget.by_analyst())
    view = curator.budget
    console.print(
        f"{len(curator.log())} entries in {curator.study.ledger_path}, each chained to the one before; together "
        f"ε = {view.epsilon_spent:.3g} of {float(view.epsilon_limit):g} at δ = {float(view.delta_limit):g}."
    )
    _heading(console, "Where to go next")
    question = '"SELECT kind, AVG(rating) AS stars FROM visits GROUP BY kind"'
    for command, about in (
        (f"curador ask {study} {question} --spend 5%", ""),
        (f"curador budget {study} --by analyst", "what is left"),
        (f"curador log {study} --verify", "every entry, and whether the chain holds"),
        ("curador init your.parquet -o study.toml", "a draft for your own table"),
        ("curador demo --mathematics", "the mechanisms and the accounting underneath"),
    ):
        console.print(f"  [bold]{escape(command)}[/]" + (f"\n      {about}" if about else ""))


# ---- how it looks --------------------------------------------------------------------------------------------------


def _heading(console: Console, text: str) -> None:
    console.print()
    console.rule(f"[bold]{escape(text)}[/]", align="left")


def _sql(console: Console, text: str) -> None:
    console.print(Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True))


def _budget(console: Console, curator: Curator) -> None:
    view = curator.budget
    spent = float(view.spent.rho / view.limit.rho)
    line = Table.grid(padding=(0, 1))
    line.add_row("budget", ProgressBar(total=1.0, completed=1 - spent, width=40), f"{100 * (1 - spent):.4g} % left")
    console.print(line)


@contextlib.contextmanager
def _step(console: Console, text: str) -> Generator[Callable[[str], None] | None]:
    """Show that something takes a while: a spinner on a terminal, a line elsewhere."""
    if not console.is_terminal:
        console.print(f"{text} …")
        yield None
        return
    with console.status(text) as status:

        def tell(more: str) -> None:
            status.update(f"{text}: {more}")

        yield tell
