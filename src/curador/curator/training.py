"""Learning from a study: an opaque handle on rows, and the way of one fit from its charge to its model.

    rows(…) ──► an estimator's plan (no data) ──► reserve ──► rows read ──► fitted, noise and all ──► commit ──► the model

The handle shows names, types, bounds and whom a row belongs to; rows come out of it only inside `train`, which hands them to
the estimator's own function and lets nothing out but the model's bytes, which are stored like an answer. After the charge
whatever goes wrong is told by an id.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from curador.curator.flow import CHARGING, INTERRUPTED, STORING, paid, require_current, require_open
from curador.curator.grant import refuse_too_little
from curador.curator.receipt import fit_receipt
from curador.curator.show import amounts_text
from curador.errors import Failed, InvalidParameter, InvalidStudy, NotAllowed, NotPrivate, sentence
from curador.ledger.amounts import Amounts, down_to_tick
from curador.ledger.request import Request, least_cost
from curador.mechanisms.seam import is_private
from curador.numerics.exact import Number, positive
from curador.privacy.losses import Concentrated
from curador.privacy.records import to_record
from curador.study.amounts import read_share
from curador.study.rules import did_you_mean
from curador.study.spelling import Plain
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.curator.flow import Flow
    from curador.curator.receipt import Charged, Receipt
    from curador.ledger.request import Stored
    from curador.privacy.adjacency import Adjacency
    from curador.privacy.loss import Loss
    from curador.study.schema import Field, TableSchema

Bounds = tuple[float, float] | None
_FIT = "FIT "


class Priced(Protocol):
    """What a fit is going to release, decided without data."""

    @property
    def loss(self) -> Loss:
        """Its loss."""
        ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of a private table, for `fit` of our estimators. It shows what is declared and holds no row.

    bounds     of the columns, as declared; None where none are
    unit       whose rows they are: all rows of one are one record
    granted    what the fit may cost, where that was said here and not by the estimator
    """

    table: str
    columns: tuple[str, ...]
    bounds: Mapping[str, Bounds]
    types: Mapping[str, Type]
    adjacency: Adjacency
    unit: str
    granted: Amounts | None
    inexact: bool
    _flow: Flow = field(repr=False)

    @property
    def delta(self) -> Fraction:
        """The δ at which the study's budget is read; 0 under a pure one."""
        limits = self._flow.ledger.limits
        return Fraction(0) if limits.kind == "pure" else limits.delta

    def epsilon(self, rho: Fraction) -> Fraction:
        """Return the ε of a cost in ρ, at the study's δ. Rounds: up."""
        return Fraction(Concentrated(rho=rho).epsilon(delta=self.delta))

    def __reduce__(self) -> Any:
        raise InvalidParameter("a handle on rows must stay in its process; it cannot be copied or pickled.")


def rows_of(flow: Flow, table: str, columns: Sequence[str], *, spend: str | None, rho: Number | None, inexact: bool) -> Rows:
    """Return the handle, or refuse: nothing is read."""
    found = _permitted(flow, table, inexact=inexact)
    if isinstance(columns, str) or not columns or len(set(columns)) != len(tuple(columns)):
        raise InvalidParameter(sentence("columns", "a list of names, each once", columns))
    fields = {name: _field(found, name) for name in columns}
    study = flow.asking.schema.study
    return Rows(
        table=table,
        columns=tuple(columns),
        bounds={name: _bounds(one) for name, one in fields.items()},
        types={name: one.type for name, one in fields.items()},
        adjacency=study.adjacency,
        unit=study.unit_name,
        granted=_granted(flow, spend, rho),
        inexact=inexact,
        _flow=flow,
    )


def train(rows: Rows, description: Mapping[str, Any], plan: Priced, run: Any, *, exact: bool) -> tuple[bytes, Receipt]:
    """Charge a fit, read the rows, run it and store its model; return the model's bytes and the receipt.

    Claim   The charge is on disk before any row is read, and nothing leaves but what `run` returns after it was stored.
    Needs   `run` releases what `plan.loss` accounts for and nothing else of the rows.
    """
    flow = rows._flow  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- this module makes the handle
    _permitted(flow, rows.table, inexact=rows.inexact)  # a handle can be forged
    if not exact and not rows.inexact:
        hint = "choose a method of exact noise, or let the owner ask for rows(…, inexact=True)"
        raise NotPrivate(
            f"a fit through a curator must draw exact noise; this method draws in floating point.\nHint: {hint}."
        )
    if not is_private():
        raise Failed("noise must come from the operating system's entropy")
    if not flow.engine.ready:
        raise InvalidStudy("the current data version must be prepared.\nHint: the owner runs `curador prepare`.")
    name = None if flow.asking.analyst is None else flow.asking.analyst.name
    request = _request(rows, description, plan, name)
    said: str | None = None
    try:
        with flow.turn, flow.pace.released() as mark:
            require_open(flow.ledger, name)
            require_current(flow.ledger, flow.asking.data_version)
            stored = flow.ledger.stored(request.question_key, request.data_version)
            if stored is not None:  # the identical fit again is the same model, for nothing
                return _served(flow, request, stored, exact=exact)
            request = _enough(rows, request)
            said = CHARGING
            reservation = flow.ledger.reserve(request)
            mark.charged, said = True, INTERRUPTED
            with flow.kept(reservation), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # a warning could tell of a row
                content = bytes(run(*_arrays(rows, flow.engine.read(rows.table, rows.columns))))
                receipt = _receipt(flow, request, paid(reservation), content, exact=exact)
            said = STORING
            flow.ledger.commit(reservation, answer=content, answer_digest=_digest(content))
    except KeyboardInterrupt:
        if said is None:
            raise
        raise KeyboardInterrupt(said) from None
    return content, receipt


def _served(flow: Flow, request: Request, stored: Stored, *, exact: bool) -> tuple[bytes, Receipt]:
    digest = _digest(stored.answer)
    entry = flow.ledger.served(stored, request.analyst, question=request.question, answer_digest=digest, asked=request.asked)
    return stored.answer, _receipt(flow, request, flow.given_again(entry), stored.answer, exact=exact)


def _receipt(flow: Flow, request: Request, charged: Charged, content: bytes, *, exact: bool) -> Receipt:
    return fit_receipt(
        flow.asking.schema.study,
        flow.ledger.limits,
        charged,
        description=json.loads(request.question.removeprefix(_FIT)),
        losses=request.losses,
        model_digest=_digest(content),
        exact=exact,
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _request(rows: Rows, description: Mapping[str, Any], plan: Priced, analyst: str | None) -> Request:
    flow = rows._flow  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- idem
    study, limits = flow.asking.schema.study, flow.ledger.limits
    losses = (to_record(plan.loss),)
    amounts = least_cost(losses, limits)
    asked = {**description, "table": rows.table, "columns": list(rows.columns), "inexact": rows.inexact}
    text = json.dumps(asked, sort_keys=True)
    identity = json.dumps([text, losses, study.digest, flow.asking.data_version], sort_keys=True)
    return Request(
        amounts=amounts,
        losses=losses,
        study_digest=study.digest,
        data_version=flow.asking.data_version,
        question_key=hashlib.sha256(b"fit\0" + identity.encode()).hexdigest(),
        question=f"{_FIT}{text}",
        plan_digest=hashlib.sha256(json.dumps(losses, sort_keys=True).encode()).hexdigest(),
        adjacency=study.adjacency,
        tables=(rows.table,),
        analyst=analyst,
        share=flow.asking.share,
    )


def _enough(rows: Rows, request: Request) -> Request:
    """Return the request with a charge that is not below the owner's least spend; refused where less was meant."""
    flow = rows._flow  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- idem
    least, meant = flow.asking.least, request.amounts if rows.granted is None else rows.granted
    if not least.within(meant):
        told = Plain(amounts_text(meant, pure=bool(least.epsilon), up=False))
        refuse_too_little("the cost of a fit", told, least, flow.asking.schema.study.least_spend)
    return replace(request, amounts=request.amounts.most(least))


def _arrays(rows: Rows, table: Any) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
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


def _permitted(flow: Flow, table: str, *, inexact: bool) -> TableSchema:
    """Return the table's schema, or refuse an asker who may not train on it."""
    found = _table(flow, table)
    analyst = flow.asking.analyst
    if analyst is not None and not analyst.train:
        hint = "the owner allows it in the study: analysts.<name> = { train = true, … }"
        raise NotAllowed(sentence("the analyst", "one who may train", analyst.name, hint))
    if inexact and analyst is not None:
        raise NotAllowed("inexact must be allowed by the owner; an analyst cannot.\nHint: choose a method of exact noise.")
    return found


def _table(flow: Flow, name: str) -> TableSchema:
    schema = flow.asking.visible_schema
    names = [one.table.name for one in schema.tables if not one.table.public]
    if name not in names:
        rule = "a private table that may be asked about"
        raise InvalidParameter(sentence("table", rule, name, did_you_mean(name, names) or ", ".join(names)))
    return next(one for one in schema.tables if one.table.name == name)


def _field(table: TableSchema, name: str) -> Field:
    place = table.index(name)
    if place is None:
        names = [one.name for one in table.fields]
        raise InvalidParameter(sentence("columns", f"columns of {table.table.name}", name, did_you_mean(name, names)))
    one = table.fields[place]
    if one.type in {Type.DATE, Type.TIMESTAMP}:
        raise InvalidParameter(sentence("columns", "numbers, booleans or texts", f"{name}, a {one.type}"))
    return one


def _bounds(one: Field) -> Bounds:
    if one.declared is None or one.declared.bounds is None:
        return (0.0, 1.0) if one.type is Type.BOOLEAN else None
    lower, upper = one.declared.bounds
    return (float(lower), float(upper)) if isinstance(lower, (int, Fraction)) and isinstance(upper, (int, Fraction)) else None


def _granted(flow: Flow, spend: str | None, rho: Number | None) -> Amounts | None:
    if spend is not None and rho is not None:
        raise InvalidParameter(sentence("the cost", "given once", "spend and rho"))
    limits = flow.ledger.limits
    if spend is not None:
        part = read_share(spend)
        if part is None:
            raise InvalidParameter(sentence("spend", "a percentage above 0 % and at most 100 %", spend, 'write spend="5%"'))
        whole = limits.share(part * flow.asking.share)
        return Amounts(epsilon=whole.epsilon) if limits.kind == "pure" else Amounts(rho=whole.rho)
    if rho is None:
        return None
    if limits.kind == "pure":
        raise NotPrivate(sentence("rho", "absent under a pure budget, which has no rho", rho, "give spend= as a percentage"))
    return Amounts(rho=down_to_tick(positive(rho, "rho")))
