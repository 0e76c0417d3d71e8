"""What an asker may say besides the question: each option once, for Python and for the command line.

A new option is a field of `QuestionOptions` and a keyword of the verbs below it; a test holds the lists to one another. The
command line is made of the fields. What an option does stands where it acts, mostly in `curator/price.py`.

Nothing is imported here that takes time, since `curador --help` reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, overload
from typing import Literal as OneOf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ibis.expr.types import Expr, Table

    from curador.curator.answer import Answer
    from curador.curator.expressions import ShownSchema
    from curador.curator.preview import Preview, Previews
    from curador.numerics.exact import Number
    from curador.study.model import Caps


Question: TypeAlias = "str | Expr"
"""A text of SQL, or an Ibis expression over `table(…)`."""

Reads: TypeAlias = OneOf["text", "pairs", "caps", "ranges", "flag"]
"""How an option of the command line is written."""

# ---- the options -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option on the command line.

    help    its line
    reads   one text; pairs: a column and a number, such as n=50, repeated; caps: rows=5, repeated, or one word; ranges: a
            column and two ends, such as mean=0..100, repeated; flag: it is said or not
    called  where it is called otherwise than the keyword, such as --weight
    """

    help: str
    reads: Reads = "text"
    called: str | None = None


_COMMAND = "command"


def _said(help_: str, reads: Reads = "text", called: str | None = None) -> dict[str, CommandOption]:
    """What the command line needs of a field; one without it can be said in Python only."""
    return {_COMMAND: CommandOption(help_, reads, called)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What an asker says besides the question; exactly one of the first four is given. `ask` says what each means."""

    spend: str | None = field(default=None, metadata=_said('Cost, as a share of your whole limit: "5%".'))
    rho: Number | None = field(default=None, metadata=_said("Or the ρ of zCDP."))
    epsilon: Number | None = field(default=None, metadata=_said("Or the ε of the question by itself (Laplace noise)."))
    accuracy: Mapping[str, Number] | None = field(
        default=None, metadata=_said("Or the error you want, e.g. n=50: 95 % within ± 50. Repeat it.", "pairs")
    )
    at: Number | None = field(default=None, metadata=_said("Rows of a group for which the accuracy of a mean is meant."))
    weights: Mapping[str, Number] | None = field(
        default=None, metadata=_said("Share of a column against the others, e.g. n=2. Repeat it.", "pairs", "--weight")
    )
    caps: Caps | Mapping[str, int] | str | None = field(
        default=None,
        metadata=_said(
            "Other caps, e.g. rows=5 or groups=2, repeated; find: count units of these rows first; prepared.", "caps"
        ),
    )
    bounds: Mapping[str, tuple[Number, Number]] | None = field(
        default=None, metadata=_said("Narrower bounds of a column's aggregate, e.g. mean=0..100. Repeat it.", "ranges")
    )
    dialect: str = field(default="duckdb", metadata=_said("duckdb, postgres, bigquery, spark or snowflake."))
    confidence: Number = field(default="0.95", metadata=_said("Of the intervals."))
    bias: bool = field(default=False, metadata=_said("Spend 5 % of it on what caps and bounds took away.", "flag"))

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the costs that were given."""
        return tuple(name for name in ("spend", "rho", "epsilon", "accuracy") if getattr(self, name) is not None)

    @property
    def plain(self) -> tuple[tuple[type, object], ...] | None:
        """All options, by their types as well: what is refused as one is not let in as another that equals it.

        None where one is more than a word or a number.
        """
        values = [getattr(self, one.name) for one in fields(self)]
        kinds = {str, int, float, bool, Fraction, type(None)}
        return tuple((type(value), value) for value in values) if all(type(value) in kinds for value in values) else None


class QuestionKeywords(TypedDict, total=False):
    """The same as keywords."""

    spend: str | None
    rho: Number | None
    epsilon: Number | None
    accuracy: Mapping[str, Number] | None
    at: Number | None
    weights: Mapping[str, Number] | None
    caps: Caps | Mapping[str, int] | str | None
    bounds: Mapping[str, tuple[Number, Number]] | None
    dialect: str
    confidence: Number
    bias: bool


def command_options() -> Iterator[tuple[str, object, CommandOption]]:
    """Yield the keyword, the default and the line of every option that the command line has."""
    for option in fields(QuestionOptions):
        if _COMMAND in option.metadata:
            yield option.name, option.default, option.metadata[_COMMAND]


# ---- the verbs -------------------------------------------------------------------------------------------------------------


class QuestionVerbs(ABC):
    """`preview` and `ask` with all their keywords, which an editor shows; `Asker` says what becomes of them."""

    _unbound: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def _preview(self, question: str | list[str] | tuple[str, ...], options: QuestionOptions) -> Preview | Previews: ...

    @abstractmethod
    def _ask(self, question: str, options: QuestionOptions, *, fresh: bool) -> Answer: ...

    @property
    @abstractmethod
    def schema(self) -> ShownSchema:
        """Every table and column that can be asked about."""

    def table(self, name: str) -> Table:
        """Return an Ibis table without rows, to build an expression on; `ask` and `preview` take it like a text."""
        from curador.curator.expressions import unbound_table

        made = unbound_table(self.schema, name)
        self._unbound = {**self._unbound, made.get_name(): made}
        return made

    def _text(self, question: object, dialect: str) -> str:
        """Return a question as a text: that of an expression, where it is one."""
        if isinstance(question, str):
            return question
        from curador.curator.expressions import text_of

        return text_of(question, lambda: self.schema, self._unbound, dialect)

    @overload
    def preview(self, question: Question, **options: Unpack[QuestionKeywords]) -> Preview: ...
    @overload
    def preview(self, question: list[Question] | tuple[Question, ...], **options: Unpack[QuestionKeywords]) -> Previews: ...
    def preview(
        self,
        question: Question | list[Question] | tuple[Question, ...],
        *,
        spend: str | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        at: Number | None = None,
        weights: Mapping[str, Number] | None = None,
        caps: Caps | Mapping[str, int] | str | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        dialect: str = "duckdb",
        confidence: Number = "0.95",
        bias: bool = False,
    ) -> Preview | Previews:
        """Return what a question, or each of several, would cost and how good its answer would be.

        Spends nothing, reads nothing. The options are those of `ask`.
        """
        options = QuestionOptions(
            spend=spend,
            rho=rho,
            epsilon=epsilon,
            accuracy=accuracy,
            at=at,
            weights=weights,
            caps=caps,
            bounds=bounds,
            dialect=dialect,
            confidence=confidence,
            bias=bias,
        )
        if isinstance(question, (list, tuple)):
            return self._preview([self._text(one, dialect) for one in question], options)
        return self._preview(self._text(question, dialect), options)

    def ask(
        self,
        question: Question,
        *,
        spend: str | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        at: Number | None = None,
        weights: Mapping[str, Number] | None = None,
        caps: Caps | Mapping[str, int] | str | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        dialect: str = "duckdb",
        confidence: Number = "0.95",
        bias: bool = False,
        fresh: bool = False,
    ) -> Answer:
        """Return the answer; the identical question on the same data version is answered again for nothing.

        question    a text of SQL, or an Ibis expression over `table("visits")`
        spend       "5%" of the asker's whole limit; or rho=, or epsilon= (Laplace noise), or
        accuracy    {"n": 50}: the smallest cost with which every 95 % interval of n is at most ± 50; of a mean, in groups
                    of `at` rows
        weights     {"n": 2}: column n gets twice the share of the others
        caps        lower ones, such as {"rows": 5}; or "prepared": the rank of the whole table, cut before the filter; or
                    "find": with an accuracy, count units of these very rows first, for the least spend
        bounds      {"mean": (0, 100)}: narrower bounds for a column's aggregate
        dialect     of the text: duckdb, postgres, bigquery, spark or snowflake
        confidence  of the intervals
        bias        spend 5 % of it on estimates of what caps and bounds took away
        fresh       draw and pay again although the question was answered before
        """
        options = QuestionOptions(
            spend=spend,
            rho=rho,
            epsilon=epsilon,
            accuracy=accuracy,
            at=at,
            weights=weights,
            caps=caps,
            bounds=bounds,
            dialect=dialect,
            confidence=confidence,
            bias=bias,
        )
        return self._ask(self._text(question, dialect), options, fresh=fresh)
