"""Aggregates of two columns: CORR, COVAR_POP, COVAR_SAMP and REGR_…, over the rows that have both.

Each is computed from means and variances, so that nothing more is to be proved of it: what is measured are AVG(x·y), AVG(x),
AVG(y), VAR_POP(x), VAR_POP(y) and a count, as far as they are needed, each once.

COVAR_POP        mean of x·y − mean of x · mean of y
COVAR_SAMP       that, times n/(n − 1)
CORR             COVAR_POP/√(VAR_POP(x) · VAR_POP(y)), cut to [−1, 1]
REGR_SLOPE(y, x)      COVAR_POP/VAR_POP(x);   REGR_INTERCEPT   mean of y − slope · mean of x;   REGR_R2   CORR²
REGR_COUNT, REGR_AVGX, REGR_AVGY;   REGR_SXX, REGR_SYY, REGR_SXY   n times VAR_POP or COVAR_POP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from curador.query.typed_terms import TypedTerm, call_term, literal_term, not_null
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.query.tree import Place


class MeasureOfPair(Protocol):
    """Makes an aggregate over the rows that have both columns; of None a count of them."""

    def __call__(self, function: str, argument: TypedTerm | None, /) -> TypedTerm: ...


PAIRED = {
    "Corr": "corr",
    "CovarPop": "covar_pop",
    "CovarSamp": "covar_samp",
    "RegrSlope": "regr_slope",
    "RegrIntercept": "regr_intercept",
    "RegrR2": "regr_r2",
    "RegrCount": "regr_count",
    "RegrAvgx": "regr_avgx",
    "RegrAvgy": "regr_avgy",
    "RegrSxx": "regr_sxx",
    "RegrSyy": "regr_syy",
    "RegrSxy": "regr_sxy",
}
"""By the parser's class."""


def both_there(y: TypedTerm, x: TypedTerm) -> list[TypedTerm]:
    """Return the conditions under which a row has both."""
    return [not_null(one) for one in (y, x) if one.nullable]


def relate_columns(name: str, y: TypedTerm, x: TypedTerm, measure: MeasureOfPair, place: Place | None) -> TypedTerm:
    """Return the aggregate of two columns as an expression of those of one."""
    match name:
        case "regr_count":
            return measure("count", None)
        case "regr_avgx" | "regr_avgy":
            return measure("avg", x if name == "regr_avgx" else y)
        case "regr_sxx" | "regr_syy":
            return _times(measure("var_pop", x if name == "regr_sxx" else y), measure("count", None))
        case "regr_sxy":
            return _times(_covariance(y, x, measure), measure("count", None))
        case "covar_pop":
            return _covariance(y, x, measure)
        case "covar_samp":
            count = measure("count", None)
            fewer = call_term("-", Type.INTEGER, (count, literal_term(1, Type.INTEGER)))
            return _over(_times(_covariance(y, x, measure), count), fewer, place)
        case "regr_slope":
            return _slope(y, x, measure, place)
        case "regr_intercept":
            moved = _times(_slope(y, x, measure, place), measure("avg", x))
            return call_term("-", Type.FLOAT, (measure("avg", y), moved), place=place)
        case _:
            correlation = _correlation(y, x, measure, place)
            return correlation if name == "corr" else _times(correlation, correlation)


def _covariance(y: TypedTerm, x: TypedTerm, measure: MeasureOfPair) -> TypedTerm:
    whole = x.type is y.type is Type.INTEGER
    product = call_term("*", Type.INTEGER if whole else Type.FLOAT, (y, x))
    apart = _times(measure("avg", y), measure("avg", x))
    return call_term("-", Type.FLOAT, (measure("avg", product), apart))


def _slope(y: TypedTerm, x: TypedTerm, measure: MeasureOfPair, place: Place | None) -> TypedTerm:
    return _over(_covariance(y, x, measure), measure("var_pop", x), place)


def _correlation(y: TypedTerm, x: TypedTerm, measure: MeasureOfPair, place: Place | None) -> TypedTerm:
    spreads = [call_term("sqrt", Type.FLOAT, (measure("var_pop", one),), nullable=True) for one in (y, x)]
    ratio = _over(_covariance(y, x, measure), _times(*spreads), place)
    low, high = (literal_term(end, Type.INTEGER) for end in (-1, 1))
    inside = call_term("least", Type.FLOAT, (call_term("greatest", Type.FLOAT, (ratio, low)), high))
    missing = call_term("is_null", Type.BOOLEAN, (ratio,), nullable=False)
    return call_term("case", Type.FLOAT, (missing, literal_term(None, Type.FLOAT), inside), nullable=True, place=place)


def _times(one: TypedTerm, other: TypedTerm) -> TypedTerm:
    return call_term("*", Type.FLOAT, (one, other))


def _over(above: TypedTerm, below: TypedTerm, place: Place | None) -> TypedTerm:
    return call_term("/", Type.FLOAT, (above, below), nullable=True, place=place)
