"""What comes in and goes out over HTTP, as OpenAPI says it.

What comes in is read strictly: an unknown name, a text where a number is meant and a number with too many digits are refused.
Numbers with a point are read as they are written, never as doubles.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from curador.curator.options import QuestionOptions


def _number(value: Any) -> Any:
    """Return a number as a text that means it exactly, or as it is."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("must be a number or a text")  # noqa: TRY004 -- what a validator may raise
    return value


Amount = Annotated[
    int | str,
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 400}]}),
]
Name = Annotated[str, Field(max_length=200)]


class Body(BaseModel):
    """What comes in."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Said(BaseModel):
    """What goes out."""

    model_config = ConfigDict(extra="forbid")


class OptionsBody(Body):
    """What is said besides the question; exactly one of the first four. Numbers may be texts, such as "1/3"."""

    spend: Annotated[str, Field(max_length=50, examples=["2%"])] | None = None
    rho: Amount | None = None
    epsilon: Amount | None = None
    accuracy: dict[Name, Amount] | None = None
    at: Amount | None = None
    weights: dict[Name, Amount] | None = None
    caps: dict[Literal["rows", "groups", "rows_per_group"], int] | str | None = None
    bounds: dict[Name, Annotated[list[Amount], Field(min_length=2, max_length=2)]] | None = None
    dialect: Literal["duckdb", "postgres", "bigquery", "spark", "snowflake"] = "duckdb"
    confidence: Amount = "0.95"
    bias: bool = False

    def read(self) -> QuestionOptions:
        """Return them as the curator reads them."""
        said = self.model_dump(exclude_unset=True)
        bounds = said.get("bounds")
        if bounds is not None:
            said["bounds"] = {name: tuple(ends) for name, ends in bounds.items()}
        return QuestionOptions(**said)


Question = Annotated[str, Field(min_length=1, max_length=60_000, examples=["SELECT COUNT(*) AS n FROM visits"])]


class AskBody(Body):
    """A question to be answered."""

    question: Question
    options: OptionsBody = OptionsBody()
    fresh: bool = Field(default=False, description="Draw and pay again although it was answered before.")
    wait: int = Field(default=30, ge=0, le=60, description="Seconds for which the answer is waited for before 202 is said.")


class SandboxBody(Body):
    """A question about made-up rows."""

    question: Question
    options: OptionsBody = OptionsBody()
    fresh: bool = False


class PreviewBody(Body):
    """A question, or several, to be priced."""

    question: Question | None = None
    questions: Annotated[list[Question], Field(min_length=1, max_length=20)] | None = None
    options: OptionsBody = OptionsBody()


class SessionBody(Body):
    """A token that opens a session of the console."""

    token: Annotated[str, Field(max_length=200)]


class TokenBody(Body):
    """A token to be made."""

    role: Literal["owner", "analyst", "auditor"]
    name: Name | None = None
    expires: Annotated[str, Field(max_length=20, examples=["90d"])] = "90d"
    most_per_question: Annotated[str, Field(max_length=20, examples=["5%"])] | None = None
    most_per_day: Annotated[str, Field(max_length=20)] | None = None
    agent: bool = False
    note: Annotated[str, Field(max_length=200)] = ""


class SurveyBody(Body):
    """Which survey to buy."""

    columns: bool = False


class ReopenBody(Body):
    """Why the study is opened again."""

    note: Annotated[str, Field(min_length=1, max_length=1000)]


# ---- what goes out -------------------------------------------------------------------------------------------------------


class Problem(Said):
    """Why something was refused, or that it failed (RFC 9457). Which fields are there depends on the error."""

    type: str
    title: str
    status: int
    detail: str
    error: str = Field(description="The kind: a name of the tree of curador.errors.")
    sentence: str
    subject: str | None = None
    rule: str | None = None
    got: str | None = None
    hint: str | None = None
    place: str | None = Field(default=None, description="Line and column of a question.")
    incident: str | None = Field(default=None, description="Under this id the owner finds what really happened.")


class Health(Said):
    """Whether the service answers."""

    status: Literal["ok"]


class StudyName(Said):
    """Which study it is."""

    name: str
    unit: str


class TokenLimits(Said):
    """Limits of the token, beside the share."""

    most_per_question: str | None
    most_per_day: str | None
    left_today: str | None
    agent: bool


class Me(Said):
    """Who asks.

    tick and deadline are seconds: answers leave at multiples of the tick, 0 if they leave when they are ready.
    """

    role: Literal["owner", "analyst", "auditor"]
    name: str | None
    token: str
    expires: int
    study: StudyName
    limits: TokenLimits
    tick: float
    deadline: float


class SessionSaid(Me):
    """A session of the console; `csrf` goes with every request but GET, in X-Curador-CSRF."""

    csrf: str


class CapsSaid(Said):
    """What one unit may add to one question."""

    rows: int
    groups: int | None
    rows_per_group: int | None


class ColumnSaid(Said):
    """A column of a table; ends of bounds are exact texts."""

    name: str
    type: str
    description: str | None
    bounds: list[str | int | float | bool | None] | None
    values: list[str | int | float | bool | None] | None
    nullable: bool
    declared: bool


class TableSaid(Said):
    """A table that may be asked about."""

    name: str
    description: str | None
    public: bool
    unit: str | None
    unit_name: str | None
    caps: CapsSaid | None
    columns: list[ColumnSaid]


class TablesSaid(Said):
    """All that is publicly known of the study."""

    study: str
    unit: str
    tables: list[TableSaid]
    data_version: int


class AmountsSaid(Said):
    """Exact amounts, as texts."""

    epsilon: str | None = None
    rho: str | None = None
    delta: str | None = None


class CostSaid(AmountsSaid):
    """What an answer cost; `share` of the asker's whole limit."""

    share: float


class ErrorSaid(Said):
    """The ± that a column will have."""

    column: str
    plus_minus: float | None
    at_rows: dict[str, float]


class KeySaid(Said):
    """How many units a group needs to be shown."""

    threshold: float
    units_half: int
    units_95: int
    delta: str


class OutputSaid(Said):
    """A column of an answer to come."""

    name: str
    type: str
    interval: bool


class PreviewSaid(Said):
    """What a question would cost, and the errors to expect. Nothing was spent."""

    question: str
    kind: Literal["pure", "concentrated"]
    unit: str
    key: str
    cost: AmountsSaid
    limit: AmountsSaid
    left: AmountsSaid
    confidence: str
    errors: list[ErrorSaid]
    keys: list[KeySaid]
    notes: list[str]
    fits: int
    stored: bool
    explain: str
    by_cap: dict[str, list[ErrorSaid]] | None = None
    sentences: list[str]
    share: float
    columns: list[OutputSaid]


class PreviewsSaid(Said):
    """Several questions, and whether all of them fit together."""

    questions: list[PreviewSaid]
    cost: AmountsSaid
    fits: bool


class AnswerColumnSaid(Said):
    """A column of an answer; where `exact`, its numbers are texts."""

    name: str
    type: str
    kind: Literal["key", "value"]
    interval: bool
    exact: bool | None = None


class BiasSaid(Said):
    """What caps and bounds took away, as it was measured."""

    name: str
    share: float | None
    low: float | None
    high: float | None


class AnswerSaid(Said):
    """An answer: x is followed by x_low and x_high where it was released with noise."""

    id: str | None
    state: Literal["done"]
    question: str
    options: dict[str, Any]
    columns: list[AnswerColumnSaid]
    rows: list[dict[str, str | int | float | bool | None]]
    confidence: float | str
    notes: list[str]
    left_out: list[str]
    bias: list[BiasSaid]
    cost: CostSaid
    stored: bool
    made_up: bool
    receipt: str | None
    data_version: int


class JobSaid(Said):
    """A question that is not answered yet; ticks are seconds where the study has none."""

    id: str
    state: Literal["queued", "running"]
    ticks_passed: int
    ticks_most: int
    events: str


class LineSaid(Said):
    """A line of the ledger."""

    time: str
    kind: str
    id: str
    analyst: str | None
    question: str | None
    cost: AmountsSaid
    data_version: int
    refers: str | None
    note: str | None
    times: int | None = None
    sequence: int | None = None
    hash: str | None = None
    answer: str | None


class HistorySaid(Said):
    """Lines of the ledger, the newest first; `next` goes into `before`."""

    entries: list[LineSaid]
    next: int | None


class GuaranteeSaid(Said):
    """What is promised."""

    epsilon: str
    delta: str | None


class AccountSaid(Said):
    """One who asks."""

    name: str
    share: str
    limit: AmountsSaid
    spent: AmountsSaid
    left: AmountsSaid
    spent_share: float


class BudgetSaid(Said):
    """What may be spent, what was, and what is left."""

    kind: Literal["pure", "concentrated"]
    analyst: str | None
    guarantee: GuaranteeSaid
    epsilon_spent: float
    limit: AmountsSaid
    spent: AmountsSaid
    left: AmountsSaid
    data_version: int
    closed: bool
    by_analyst: list[AccountSaid] | None = None
    spent_share: float
    left_share: float
    token: TokenLimits


class DaySaid(Said):
    """What one asker spent on one day, and all askers until then."""

    time: str
    analyst: str | None
    spent: str
    total: str
    spent_share: float
    total_share: float


class DaysSaid(Said):
    """The budget over time."""

    days: list[DaySaid]


class TokenSaid(Said):
    """A token, without what it is compared with."""

    id: str
    role: str
    name: str | None
    made: int
    expires: int
    most_per_question: str | None
    most_per_day: str | None
    agent: bool
    note: str
    revoked: int | None
    in_force: bool


class TokensSaid(Said):
    """All tokens."""

    tokens: list[TokenSaid]


class NewTokenSaid(Said):
    """A token that was just made: its text is shown this once."""

    token: str
    id: str
    role: str
    name: str | None
    expires: int


class RevokedSaid(Said):
    """Whether a token that was in force ended now."""

    id: str
    revoked: bool


class SurveySaid(Said):
    """What a survey found, in words."""

    text: str
    cost: AmountsSaid


class ReopenedSaid(Said):
    """Whether the study is closed to analysts."""

    closed: bool


class VerificationSaid(Said):
    """Whether the chain of entries agrees with itself, its sums and its witness."""

    chain: str
    entries: int
    head: str
    witness: str
    checked_at: str


class OddsSaid(Said):
    """What an adversary gains at most, who knows everything but one unit."""

    promise: GuaranteeSaid
    unit: str
    adjacency: str
    right_at_most: float
    false_alarms: float
    found_at_most: float
    factor: float
    words: list[str]


class SpentSaid(Said):
    """What was spent so far, for information."""

    epsilon: float
    share: float


class AnalystSaid(Said):
    """Who may ask, as the study declares."""

    name: str
    share: str
    tables: list[str] | None
    train: bool


class LedgerSaid(Said):
    """Which ledger keeps it."""

    id: str
    entries: int
    head: str
    data_version: int
    closed: bool


class ReportSaid(Said):
    """What the study promises, and by what."""

    study: str
    unit: str
    adjacency: str
    max_units: int
    digest: str
    promise: GuaranteeSaid
    spent: SpentSaid
    least_spend: str
    answers_leave: str
    tables: list[TableSaid]
    analysts: list[AnalystSaid]
    ledger: LedgerSaid
    words: list[str]
