"""`curador check`: what is declared, what is visible of the files, how the ledger stands; for the owner only, row facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curador.curator.pace import pace_text
from curador.errors import InvalidStudy
from curador.study.values import share_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.ledger.ledger import Ledger
    from curador.study.model import Column, Schema, Study, TableSchema


def check_study_file(study: Study, *, as_owner: bool, new_ledger: str | None) -> None:
    """Print what was found; raises for what must be mended."""
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
    known = ledgers_of_data(study)
    for found in known:
        print(f"ledger of these data: {found.path}, made for study {found.study}")
    if not study.ledger_path.exists() and new_ledger is None and not as_owner:
        if not known:
            print(f"ledger: {study.ledger_path}, made when the study is first opened")
        return
    _with_ledger(study, schema, as_owner=as_owner, new_ledger=new_ledger)


def _with_ledger(study: Study, schema: Schema, *, as_owner: bool, new_ledger: str | None) -> None:
    from curador.cli.study import tell
    from curador.curator.budget import budget_view
    from curador.curator.opening import engine_of, ledger_of

    with ledger_of(study, new_ledger=new_ledger, verify=True) as ledger:
        print("\n".join(_ledger(ledger)))
        print(budget_view(ledger, study, None))
        if as_owner:
            engine_of(study, ledger, progress=tell).close()
            print("\nFacts about rows. They are not protected by anything: do not show them to analysts.")
            for line in _row_facts(study, schema, ledger.data_version):
                print(line)


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


def _row_facts(study: Study, schema: Schema, version: int) -> Iterator[str]:
    """What rows show: how many there are, whose, and what caps and bounds would cut. Read from the prepared version."""
    from curador.engines.duckdb.versions import Folder, prepared_folder, specification
    from curador.engines.duckdb.worker import open_connection

    connection = open_connection(specification(schema, Folder(prepared_folder(study)), version))
    try:
        for place, table in enumerate(schema.tables):
            yield from _facts(connection, place, table)
    except Exception as error:  # noqa: BLE001 -- the driver's own errors are of no common kind
        raise InvalidStudy(f"the prepared version could not be read: {type(error).__name__}.") from None
    finally:
        connection.close()


def _facts(connection: Any, place: int, schema: TableSchema) -> Iterator[str]:
    table = schema.table
    name = f"t{place}"
    if table.public:
        (rows,) = _row(connection, f"SELECT count(*) FROM {name}")  # noqa: S608 -- names are ours
        yield f"{table.name}: {rows:,} rows, public"
        return
    cap = 1 if table.caps is None else table.caps.rows
    counted = f"SELECT count(*) AS n FROM {name} WHERE __u IS NOT NULL GROUP BY __u"  # noqa: S608 -- idem
    sums = f"SELECT count(*), sum(n), max(n), sum(greatest(n - {cap:d}, 0)) FROM ({counted})"  # noqa: S608 -- idem
    units, rows, most, beyond = (int(one or 0) for one in _row(connection, sums))
    lost = 100 * beyond / rows if rows else 0.0
    beyond_cap = f"{lost:.2g} % lie beyond the cap of {cap:,}"
    yield f"{table.name}: {rows:,} rows of {units:,} units, at most {most:,} of one; {beyond_cap}"
    for number, field in enumerate(schema.fields):
        bounds = None if field.declared is None else field.declared.bounds
        if bounds is not None and field.type.numeric:
            ends = [float(end) for end in bounds]  # type: ignore[arg-type]  # numbers, by the column's type
            parts = f"count(*) - count(c{number}), count(*) FILTER (c{number} < ?), count(*) FILTER (c{number} > ?)"
            nulls, below, above = _row(connection, f"SELECT {parts} FROM {name}", ends)  # noqa: S608 -- idem
            yield f"  {field.name}: {nulls:,} NULL, {below:,} below and {above:,} above the bounds"


def _row(connection: Any, statement: str, values: list[float] | None = None) -> tuple[Any, ...]:
    return connection.execute(statement, values or []).fetchone()
