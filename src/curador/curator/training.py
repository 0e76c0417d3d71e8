"""Learning from a study: an opaque handle on rows, and a fit at the door of `spending.py`.

The handle shows names, types, bounds and whom a row belongs to; rows come out of it only inside `FitPurchase.compute`, which
hands them to the estimator's own function and lets nothing out but the model's bytes, which are stored like an answer.
"""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from curador.curator.options import QuestionOptions
from curador.curator.price import amount_of, refuse_too_little
from curador.curator.receipt import fit_receipt
from curador.curator.spending import spend
from curador.errors import InvalidParameter, NotAllowed, NotPrivate
from curador.ledger.amounts import Amounts, amounts_text
from curador.ledger.entry import Request
from curador.ledger.limits import least_cost
from curador.plan.cost_class import most_ticks
from curador.privacy.losses import Concentrated
from curador.privacy.rules import to_record
from curador.study.rules import did_you_mean
from curador.study.values import Plain, Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.curator.receipt import Receipt
    from curador.curator.session import Session
    from curador.ledger.entry import Spent
    from curador.numerics.exact import Number
    from curador.privacy.adjacency import Adjacency
    from curador.privacy.loss import Loss
    from curador.study.model import Field, TableSchema

ColumnBounds = tuple[float, float] | None
_FIT = "FIT "


class PricedFit(Protocol):
    """What a fit is going to release, decided without data."""

    @property
    def loss(self) -> Loss:
        """Its loss."""
        ...


class Fitting(Protocol):
    """What an estimator does with rows."""

    def __call__(self, columns: Mapping[str, NDArray[Any]], units: NDArray[np.int64], *, rehearsal: bool) -> bytes:
        """Return the bytes of the fitted model."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Columns of a private table, for `fit` of our estimators. It shows what is declared and holds no row.

    bounds     of the columns, as declared; None where none are
    unit       whose rows they are: all rows of one are one record
    granted    what the fit may cost, where that was said here and not by the estimator
    """

    table: str
    columns: tuple[str, ...]
    bounds: Mapping[str, ColumnBounds]
    types: Mapping[str, Type]
    adjacency: Adjacency
    unit: str
    granted: Amounts | None
    inexact: bool
    _session: Session = field(repr=False)

    @property
    def delta(self) -> Fraction:
        """The δ at which the study's budget is read; 0 under a pure one."""
        limits = self._session.limits
        return Fraction(0) if limits.kind == "pure" else limits.delta

    def epsilon(self, rho: Fraction) -> Fraction:
        """Return the ε of a cost in ρ, at the study's δ. Rounds: up."""
        return Fraction(Concentrated(rho=rho).epsilon(delta=self.delta))

    def __reduce__(self) -> Any:
        raise InvalidParameter("a handle on rows must stay in its process; it cannot be copied or pickled.")


def rows_of(
    session: Session, table: str, columns: Sequence[str], *, spend: str | None, rho: Number | None, inexact: bool
) -> TrainingRows:
    """Return the handle, or refuse: nothing is read."""
    found = _require_permitted(session, table, inexact=inexact)
    if isinstance(columns, str) or not columns or len(set(columns)) != len(tuple(columns)):
        raise InvalidParameter.must_be("columns", "a list of names, each once", columns)
    fields = {name: _field(found, name) for name in columns}
    study = session.study
    return TrainingRows(
        table=table,
        columns=tuple(columns),
        bounds={name: _bounds(one) for name, one in fields.items()},
        types={name: one.type for name, one in fields.items()},
        adjacency=study.adjacency,
        unit=study.unit_name,
        granted=_grant_for_fit(session, spend, rho),
        inexact=inexact,
        _session=session,
    )


def train(
    rows: TrainingRows, description: Mapping[str, Any], plan: PricedFit, run: Fitting, *, exact: bool
) -> tuple[bytes, Receipt]:
    """Charge a fit, run it on the rows and store its model; return the model's bytes and the receipt.

    run   from columns and units to the model's bytes; `rehearsal` says that there are no rows, and nobody to watch progress

    Needs   `run` releases what `plan.loss` accounts for and nothing else of the rows; see `spending.spend`.
    """
    session = rows._session  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- this module makes the handle
    _require_permitted(session, rows.table, inexact=rows.inexact)  # a handle can be forged
    if not exact and not rows.inexact:
        hint = "choose a method of exact noise, or let the owner ask for rows(…, inexact=True)"
        raise NotPrivate(
            "a fit through a curator must draw exact noise; this method draws in floating point.", hint=f"{hint}."
        )
    request = _request(session, rows, description, plan)
    enough = False
    with session.told(lambda: enough):
        if session.stored(request.question_key, request.data_version) is None:  # what was fitted before is free
            request = _enough(session, rows, request)
        enough = True
    return spend(session, FitPurchase(session, rows, request, run, exact))


class _Silence:
    """No warnings while any thread fits, since one could tell of a row: the first turns them off, the last on again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                warnings.simplefilter("ignore")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._before.__exit__(None, None, None)


_SILENCE = _Silence()


class BoughtModel(NamedTuple):
    """The bytes of a model, with its receipt."""

    content: bytes
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class FitPurchase:
    """A fit with its price, as something to spend on."""

    session: Session
    rows: TrainingRows
    request: Request
    run: Fitting
    exact: bool
    what: str = "fit"
    once: bool = False
    shape: None = None  # what a fit does depends on all of it

    @property
    def ticks(self) -> int:
        """All there are: how long a fit takes follows from nothing that is public."""
        return most_ticks(self.session.study.engine)

    def compute(self, *, rehearsal: bool) -> bytes:
        """Read the rows and fit; in a rehearsal its noise is drawn and thrown away with the model."""
        engine, rows = self.session.engine, self.rows
        with _SILENCE, np.errstate(all="ignore"):
            read = engine.rehearse_read if rehearsal else engine.read
            return bytes(self.run(*_arrays(rows, read(rows.table, rows.columns)), rehearsal=rehearsal))

    def try_engine(self) -> None:
        """Read columns of tables without rows."""
        self.session.engine.rehearse_read(self.rows.table, self.rows.columns)

    def restore(self, content: bytes) -> bytes:
        """Return the model's bytes, which are what the ledger keeps."""
        return content

    def digest(self, restored: bytes) -> str:
        """Return the digest of the model's bytes."""
        return hashlib.sha256(restored).hexdigest()

    def show(self, restored: bytes, digest: str, spent: Spent) -> BoughtModel:
        """Return the model's bytes with the receipt."""
        receipt = fit_receipt(
            self.session.study,
            self.session.limits,
            spent,
            description=json.loads(self.request.question.removeprefix(_FIT)),
            losses=self.request.losses,
            model_digest=digest,
            exact=self.exact,
        )
        return BoughtModel(restored, receipt)


def _request(session: Session, rows: TrainingRows, description: Mapping[str, Any], plan: PricedFit) -> Request:
    study, version = session.study, session.version
    losses = (to_record(plan.loss),)
    asked = {**description, "table": rows.table, "columns": list(rows.columns), "inexact": rows.inexact}
    # JSON with spaces: that of version 1 of a fit's key, and so for ever
    text = json.dumps(asked, sort_keys=True)
    identity = json.dumps([text, losses, study.digest, version], sort_keys=True)
    return Request(
        amounts=least_cost(losses, session.limits),
        losses=losses,
        study_digest=study.digest,
        data_version=version,
        question_key=hashlib.sha256(b"fit\0" + identity.encode()).hexdigest(),
        question=f"{_FIT}{text}",
        plan_digest=hashlib.sha256(json.dumps(losses, sort_keys=True).encode()).hexdigest(),
        adjacency=study.adjacency,
        tables=(rows.table,),
        analyst=session.name,
        share=session.share,
    )


def _enough(session: Session, rows: TrainingRows, request: Request) -> Request:
    """Return the request with a charge that is not below the owner's least spend; refused where less was meant."""
    least, meant = session.least, request.amounts if rows.granted is None else rows.granted
    if not least.within(meant):
        told = Plain(amounts_text(meant, pure=bool(least.epsilon), up=False))
        refuse_too_little("the cost of a fit", told, least, session.study.least_spend)
    return replace(request, amounts=request.amounts.most(least))


def _arrays(rows: TrainingRows, table: Any) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """The columns as arrays, NULL as NaN (None in texts), and the units numbered from 0 in any order."""
    columns = {name: _array(table.column(f"v{place}"), rows.types[name]) for place, name in enumerate(rows.columns)}
    coded = table.column("u").combine_chunks().dictionary_encode()
    return columns, np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _array(column: Any, kind: Type) -> NDArray[Any]:
    import pyarrow as pa

    if kind in {Type.INTEGER, Type.DECIMAL, Type.FLOAT, Type.BOOLEAN}:
        # a whole number beyond 2⁵³ is rounded: by value, so the same for every neighbour
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return np.asarray(column.to_pylist(), dtype=object)


def _require_permitted(session: Session, table: str, *, inexact: bool) -> TableSchema:
    """Return the table's schema, or refuse an asker who may not train on it."""
    found = _table(session, table)
    analyst = session.analyst
    if analyst is not None and not analyst.train:
        hint = "the owner allows it in the study: analysts.<name> = { train = true, … }"
        raise NotAllowed.must_be("the analyst", "one who may train", analyst.name, hint)
    if inexact and analyst is not None:
        raise NotAllowed("inexact must be allowed by the owner; an analyst cannot.", hint="choose a method of exact noise.")
    return found


def _table(session: Session, name: str) -> TableSchema:
    schema = session.visible_schema
    names = [table.table.name for table in schema.tables if not table.table.public]
    if name not in names:
        rule = "a private table that may be asked about"
        raise InvalidParameter.must_be("table", rule, name, did_you_mean(name, names) or ", ".join(names))
    return next(table for table in schema.tables if table.table.name == name)


def _field(table: TableSchema, name: str) -> Field:
    place = table.index(name)
    if place is None:
        names = [one.name for one in table.fields]
        raise InvalidParameter.must_be("columns", f"columns of {table.table.name}", name, did_you_mean(name, names))
    one = table.fields[place]
    if one.type in {Type.DATE, Type.TIMESTAMP}:
        raise InvalidParameter.must_be("columns", "numbers, booleans or texts", f"{name}, a {one.type}")
    return one


def _bounds(one: Field) -> ColumnBounds:
    if one.declared is None or one.declared.bounds is None:
        return (0.0, 1.0) if one.type is Type.BOOLEAN else None
    lower, upper = one.declared.bounds
    return (float(lower), float(upper)) if isinstance(lower, (int, Fraction)) and isinstance(upper, (int, Fraction)) else None


def _grant_for_fit(session: Session, spend: str | None, rho: Number | None) -> Amounts | None:
    """Return what a spend or a rho buys; None where the estimator says what its fit costs."""
    options = QuestionOptions(spend=spend, rho=rho)
    if not options.given:
        return None
    if len(options.given) > 1:
        raise InvalidParameter.must_be("the cost", "given once", "spend and rho")
    kind, amount, _ = amount_of(options, session.limits, session.share)
    return Amounts(epsilon=amount) if kind == "pure" else Amounts(rho=amount)
