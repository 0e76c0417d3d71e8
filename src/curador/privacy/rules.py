"""What every kind of loss record states beside its class, in `kinds`: its rules, and how it is stored.

A reading never asks what kind a record is: it asks a rule, and the kind answers. Nothing is answered by default. A kind
that a rule does not know is refused by name where it is asked, and named by a test before that (`missing`).

The exact scalars of a loss follow from two of the rules: ε of pure privacy, (ρ, δ) of approximate zero-concentrated privacy.
These are what the interactive ledger adds up, so they are rationals, rounded up where the truth is irrational.

Each kind says as well how it is stored, under names that are texts there (`store_as`). A contract: the meaning of a kind
never changes, fields are only ever added with defaults, an unknown kind is refused rather than guessed. Numbers are exact,
written as strings. Names of kinds and fields are for ever; classes, their attributes and their arguments may be renamed. Who
reads records takes `privacy.losses`, which loads all kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from curador.errors import InvalidParameter, NotPrivate, require
from curador.numerics.exact import exact_sum, whole
from curador.numerics.rounding import FloatArray, Interval
from curador.privacy.adjacency import Adjacency
from curador.privacy.laws.cells import CellPair
from curador.privacy.loss import CONCENTRATED, PURE_EPSILON, RHO, TO_RECORD, Composed, Loss, parts_of

Result = TypeVar("Result")
Answer = TypeVar("Answer", bound=Callable[..., Any])

AmountPair = tuple[Fraction, Fraction]
Rows = list[tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is so for every record of a kind, whatever its parameters.

    directional        a person who leaves and one who comes are not the same to it
    gaussian           it is Gaussian noise and nothing else: sums of such have closed forms, and samples of such proofs
    attains_pure       where it is pure, some mechanism that it describes has a loss of just its ε
    attains_infinity   where it is not pure, some mechanism that it describes loses more than any ε with a chance above 0
    follows_a_line     its Rényi curve is a line in α to the end, so that its ρ may tell more than the orders that are tried
    long_rho           its ρ takes so long to compute that readings other than ρ itself do without
    reads_itself       a single one may have a reading of its own (`own_reading`)
    """

    directional: bool
    gaussian: bool
    attains_pure: bool
    attains_infinity: bool
    follows_a_line: bool
    long_rho: bool
    reads_itself: bool


KINDS: dict[type[Loss], Traits] = {}
"""Every kind of loss record; sums of them are no kind."""


def describe(kind: type[Loss], traits: Traits) -> None:
    """Enter a kind into the closed set of loss records."""
    KINDS[kind] = traits


def traits_of(record: Loss) -> Traits:
    """Return what is so for records of this kind."""
    found = KINDS.get(type(record))
    if found is None:
        raise _refusal("", record)
    return found


def _refusal(name: str, record: Loss) -> NotPrivate:
    return NotPrivate(f"no {name}rule for {type(record).__name__}: it is not one of curador's loss records")


class Rule(Generic[Result]):
    """A question that every kind of record answers for itself."""

    __slots__ = ("answers", "constants", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers: dict[type[Loss], Callable[..., Result]] = {}
        self.constants: dict[type[Loss], Result] = {}
        RULES.append(self)

    def of(self, *kinds: type[Loss]) -> Callable[[Answer], Answer]:
        """Register the function below as the answer of these kinds."""

        def register(answer: Answer) -> Answer:
            self.answers.update(dict.fromkeys(kinds, answer))
            for kind in kinds:
                self.constants.pop(kind, None)
            return answer

        return register

    def is_always(self, value: Result, *kinds: type[Loss]) -> None:
        """Say that the answer of these kinds is one value, whatever their parameters."""

        def always(*_: object) -> Result:
            return value

        self.of(*kinds)(always)
        self.constants.update(dict.fromkeys(kinds, value))

    def answer_of(self, record: Loss) -> Callable[..., Result]:
        """Return how all records of this one's kind answer; a kind that does not is refused."""
        answer = self.answers.get(type(record))
        if answer is None:
            raise _refusal(f"{self.name} ", record)
        return answer

    def __call__(self, record: Loss, *arguments: object) -> Result:
        """Return the answer of the record's kind; a kind without one is refused."""
        return self.answer_of(record)(record, *arguments)

    def some(self, parts: list[tuple[Loss, int]]) -> bool:
        """Whether some of these records of one kind, with their counts, say yes."""
        answer = self.answer_of(parts[0][0])
        if type(parts[0][0]) in self.constants:
            return bool(self.constants[type(parts[0][0])])
        return any(answer(record, count) for record, count in parts)


RULES: list[Rule[Any]] = []
"""All of the rules below."""


def say_nothing(kind: type[Loss], *rules: Rule[Any]) -> None:
    """Say that a kind has no answer to these rules, on purpose."""
    for rule in rules:
        rule.is_always(None, kind)


def missing() -> list[tuple[str, str]]:
    """Return (kind, rule) wherever a kind of loss record does not answer a rule."""
    return [(kind.__name__, rule.name) for kind in KINDS for rule in RULES if kind not in rule.answers]


# ---- scalars ----------------------------------------------------------------------------------------------------------

single_pure: Rule[Fraction | None] = Rule("pure")
"""(record) → the ε of pure privacy, None where it has none. Rounds: up."""

single_concentrated: Rule[AmountPair | None] = Rule("concentrated")
"""(record) → (ρ, δ): it is δ-approximately ρ-zCDP. Rounds: up."""

basic_amounts: Rule[AmountPair | None] = Rule("basic")
"""(record) → (ε, δ) that basic composition adds up; None where that reading has nothing to say of the record."""

# ---- the numerical reading --------------------------------------------------------------------------------------------

two_faced: Rule[bool] = Rule("two-sided")
"""(record, count) → whether the laws above and below `count` such records differ."""

law: Rule[None] = Rule("numerical")
"""(record, count, direction, sides) adds the laws of `count` such records to both sides."""


class OwnReading(Protocol):
    """A numerical reading of one record by itself; `suffices`: no other reading needs to be asked."""

    @property
    def suffices(self) -> bool: ...
    def epsilon(self, delta: float) -> Interval: ...
    def delta(self, epsilon: float, last: float | None = None) -> Interval: ...


own_reading: Rule[OwnReading | None] = Rule("own reading")
"""(record) → its own reading, where it `reads_itself` and that is the better way."""

# ---- the Rényi reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Curve:
    """Order → divergence of the finite part, and the probability of an infinite loss (from above)."""

    divergence: Callable[[FloatArray], FloatArray]
    infinite: Fraction


renyi_stand_in: Rule[Loss | None] = Rule("Rényi stand-in")
"""(record) → the record whose Rényi curve is taken instead of its own; None: there is no better one."""

AddsToCurve = Callable[[Curve, list[tuple[Any, int]]], Curve]

own_curve: Rule[AddsToCurve | None] = Rule("Rényi curve")
"""(record) → what adds all records of its kind to the curve of the others; None: the curve is that of its law above."""

cut_bound: Rule[Callable[[float], float] | None] = Rule("Rényi bound")
"""(record) → order → D_α, where its law above cuts a tail off that a curve would count as infinite. Rounds: up."""

mean_loss: Rule[float | None] = Rule("mean loss")
"""(record) → E_P[L], the larger direction, where a closed form exists. Rounds: up."""

# ---- trade-offs, groups, samples --------------------------------------------------------------------------------------

closed_tradeoff: Rule[FloatArray | None] = Rule("trade-off")
"""(record, rates) → false negative rates of one such record, where a closed form exists. Rounds: down."""

grouped: Rule[Loss] = Rule("group")
"""(record, size) → the loss towards a group of `size`; refused where no rule is proved."""

unsampled: Rule[NotPrivate | None] = Rule("subsampling")
"""(record, scheme) → the refusal where no rule is proved for a subsample of it; None where one is."""

gaussian_squares: Rule[tuple[Fraction, Fraction, float] | None] = Rule("Gaussian")
"""(record, count, rate) → μ² that is enough, μ² that occurs, and their relative doubt, if it is Gaussian noise."""

exact_rows: Rule[Rows | None] = Rule("finite")
"""(record) → (p, q) of every output, if there are finitely many."""

noise_cells: Rule[tuple[CellPair, CellPair | Rows] | None] = Rule("cells")
"""(record) → its cells above, and cells or exact rows below, if samples of it are accounted so."""

# ---- exact scalars of any loss ---------------------------------------------------------------------------------------------


@PURE_EPSILON.answered_by
def pure_epsilon(loss: Loss) -> Fraction | None:
    """Return Σ ε, None if a part is not pure. Rounds: up where irrational."""
    singles = [(single_pure(record), count) for record, count in parts_of(loss)]
    if any(single is None for single, _ in singles):
        return None
    return exact_sum(count * single for single, count in singles if single is not None)


@CONCENTRATED.answered_by
def concentrated(loss: Loss) -> AmountPair | None:
    """Return (Σ ρ, Σ δ): the whole is Σδ-approximately Σρ-zCDP. Source: [BS16]. Rounds: up."""
    amounts: list[AmountPair] = []
    for record, count in parts_of(loss):
        single = single_concentrated(record)
        if single is None:
            return None
        amounts.append((count * single[0], count * single[1]))
    return exact_sum(rho for rho, _ in amounts), exact_sum(delta for _, delta in amounts)


@RHO.answered_by
def rho(loss: Loss) -> Fraction | float:
    """Return ρ where the loss is ρ-zCDP with δ = 0, else +∞."""
    amounts = concentrated(loss)
    return math.inf if amounts is None or amounts[1] > 0 else amounts[0]


# ---- how losses are stored ---------------------------------------------------------------------------------------------

VERSION = 1
"""Of a stored loss."""

Fields = dict[str, object]
Kept = TypeVar("Kept", bound=Loss)


class RecordKind(NamedTuple):
    """How one kind of loss is written and read.

    write   all its fields, in the order in which they are stored
    read    the loss of given fields, of which it takes out those that it knows; KeyError where one is missing that has no
            default
    """

    of: type[Loss]
    write: Callable[[Any], Fields]
    read: Callable[[dict[str, Any]], Loss]


STORED: dict[str, RecordKind] = {}
"""Every kind of loss, and their sums, by the name that is stored."""

_NAMES: dict[type[Loss], str] = {}


def store_as(name: str, of: type[Kept], *, write: Callable[[Kept], Fields], read: Callable[[dict[str, Any]], Loss]) -> None:
    """Say under which names a kind is stored: for ever."""
    require(name not in STORED, "the name of a stored kind", "of one kind only", name)
    STORED[name] = RecordKind(of, write, read)
    _NAMES[of] = name


def adjacency_word(adjacency: Adjacency | None) -> str | None:
    """Return how an adjacency is stored."""
    return None if adjacency is None else str(adjacency)


@TO_RECORD.answered_by
def to_record(loss: Loss) -> dict[str, object]:
    """Return the loss as a dictionary of strings, integers, lists and dictionaries."""
    return {"version": VERSION, **write_body(loss)}


def write_body(loss: Loss) -> Fields:
    """Return the loss as it is stored inside another record."""
    name = _NAMES.get(type(loss))
    if name is None:
        raise InvalidParameter.must_be("loss", "one of curador's loss records", type(loss).__name__)
    return {"kind": name, **STORED[name].write(loss)}


def mapping_of(record: object) -> Mapping[str, Any]:
    """Return the record, refused unless it is a mapping."""
    if not isinstance(record, Mapping):
        raise InvalidParameter.must_be("record", "a mapping", record)
    return cast("Mapping[str, Any]", record)


def loss_from_record(record: object) -> Loss:
    """Return the loss that a record describes; anything unknown is refused."""
    body = mapping_of(record)
    require(body.get("version") == VERSION, "version", str(VERSION), body.get("version"))
    return read_body({key: value for key, value in body.items() if key != "version"})


def read_body(record: object) -> Loss:
    """Return the loss that is stored inside another record."""
    body = mapping_of(record)
    require(isinstance(body.get("kind"), str), "record", "a mapping with a kind", body)
    name = body["kind"]
    if name not in STORED:
        raise InvalidParameter.must_be("kind", "a known loss record", name)
    given = {str(key): value for key, value in body.items() if key != "kind"}
    left = dict(given)
    try:
        made = STORED[name].read(left)
    except (KeyError, TypeError):
        made = None
    if made is None or left:
        raise InvalidParameter.must_be(f"fields of {name}", "those of version 1", ", ".join(given))
    return made


def _parts(given: object) -> list[tuple[Loss, int]]:
    if not isinstance(given, (list, tuple)):
        raise InvalidParameter.must_be("parts", "a list", given)
    return [_part(row) for row in cast("list[object]", given)]


def _part(row: object) -> tuple[Loss, int]:
    body = mapping_of(row)
    require(set(body) == {"count", "loss"}, "part", "a count and a loss", sorted(map(str, body)))
    return read_body(body["loss"]), whole(body["count"], "count")


store_as(
    "Composed",
    Composed,
    write=lambda loss: {
        "parts": sorted(({"count": count, "loss": write_body(record)} for record, count in loss.parts), key=str)
    },
    read=lambda has: Composed(_parts(has.pop("parts"))),
)
