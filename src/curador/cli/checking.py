"""`curador check`: what is declared, what is visible of the files, how the ledger stands; for the owner only, row facts.

Nothing is made or mended: no ledger, no data version, no prepared copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.curator.pace import pace_text
from curador.study.values import share_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.ledger.ledger import Ledger
    from curador.study.model import Column, Study, TableSchema


def check_study_file(study: Study, *, facts: bool, called: str) -> None:
    """Print what was found; raises for what must be mended.

    facts   also what rows show, for the owner's eyes
    called  how the study file was called in the command
    """
    from curador.curator.dataset import ledgers_of_data
    from curador.engines.base import engine_kind
    from curador.study.check import check_study, owner_warnings

    check_study(study)
    schema = engine_kind(study.engine.kind).describe(study)
    print("\n".join(_declared_lines(study)))
    for table in schema.tables:
        print("\n".join(_table(table)))
    for warning in owner_warnings(study):
        print(f"warning: {warning}")
    print(_prepared_lines(study))
    for line in engine_kind(study.engine.kind).exposures(study):
        print(f"server: {line}")
    known = ledgers_of_data(study)
    for found in known:
        print(f"ledger of these data: {found.path}, made for study {found.study}")
    if study.ledger_path.exists():
        _with_ledger(study)
    elif not known:
        print(f"ledger: {study.ledger_path}, made when the study is first opened")
    if facts:
        for line in _fact_lines(study, called):
            print(line)


def _with_ledger(study: Study) -> None:
    from curador.curator.accounts import budget_view
    from curador.curator.opening import ledger_of

    with ledger_of(study, new_ledger=None, verify=True) as ledger:
        print("\n".join(_ledger(ledger)))
        print(budget_view(ledger, study, None))


def _declared_lines(study: Study) -> Iterator[str]:
    budget = study.budget
    delta = (
        "" if budget.delta is None else f", δ = {float(budget.delta):g} ({float(budget.delta_keys or 0):g} of it for keys)"
    )
    yield f"study {study.name}: one {study.unit_name} is protected, {str(study.adjacency).replace('_', ' ')}"
    yield f"budget: ε = {float(budget.epsilon):g}{delta}, for ever"
    yield f"least spend of a question: {share_text(study.least_spend)} of its asker's limit"
    yield pace_text(study.engine)
    for analyst in study.analysts:
        tables = "all tables" if analyst.tables is None else ", ".join(analyst.tables)
        yield f"analyst {analyst.name}: {float(100 * analyst.share):g} % of it, {tables}"


def _table(schema: TableSchema) -> Iterator[str]:
    table = schema.table
    whose = (
        "public"
        if table.public
        else (
            "caps found by the survey"
            if table.caps is None
            else f"{table.caps.rows} rows and {table.caps.most_groups} groups of one unit"
        )
    )
    yield f"table {table.name} from {table.source}: {whose}"
    for field in schema.fields:
        declared = field.declared
        said = "" if declared is None else _column_words(declared)
        yield f"  {field.name} {field.type}{said}"


def _column_words(column: Column) -> str:
    if column.bounds is not None:
        return f", between {column.bounds[0]} and {column.bounds[1]}"
    if column.values is not None:
        return f", one of {len(column.values):,} values"
    return ", declared"


def _prepared_lines(study: Study) -> str:
    from curador.engines.duckdb.versions import Folder, prepared_folder

    folder = Folder(prepared_folder(study))
    if not folder.path.is_dir():
        return "prepared copy: none"
    return f"prepared copy: {folder.path}, {folder.size():,} bytes of sensitive data (curador prepare --drop removes it)"


def _ledger(ledger: Ledger) -> Iterator[str]:
    yield f"ledger: {ledger.path}, {ledger.head.sequence + 1:,} entries, chain and witness agree"
    yield f"data version {ledger.data_version}"
    if ledger.closed:
        yield f"closed to analysts after {ledger.failures} engine failures: curador reopen"


# ---- for the owner only --------------------------------------------------------------------------------------------


FIRST_LINE = (
    "Facts about rows, for the owner's eyes only: nothing protects them. Show them to nobody, and copy no number from them."
)


def _fact_lines(study: Study, called: str) -> Iterator[str]:
    """What rows show, each with a conclusion. Rows are read where they lie; nothing is made."""
    from curador.cli.study import tell
    from curador.engines.base import engine_kind
    from curador.engines.duckdb.prepare import Progress

    yield ""
    yield FIRST_LINE
    with Progress(tell) as progress:
        progress.step("reading rows")
        found = engine_kind(study.engine.kind).owner_facts(study, called)
    yield from (str(fact) for fact in found)
    if not found:
        yield "nothing stands out"
