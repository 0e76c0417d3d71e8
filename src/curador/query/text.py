"""The text of a question: places in it, its limits, wording that a parser would pass over, BigQuery's privacy clause.

Places. Where a node of the parser stands in the text, and what it is called there: for refusals.

Limits. What is checked of the text: its size, its brackets, that it is one SELECT. The tokens that are counted are those the
parser then reads, so that no text is short for one and long for the other.

Wording. Texts that the parser would pass over in silence: a comma with nothing before it, an operator with nothing behind it.
What such a text asks is a guess, and a guess is refused. All of it is about tokens that stand beside each other.

Privacy clause. BigQuery's WITH DIFFERENTIAL_PRIVACY OPTIONS(…), which is taken out of the tokens before they are parsed.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, max_groups_contributed = 2, privacy_unit_column = user_id)
        city, AVG(spent, contribution_bounds_per_group => (0, 100)) AS mean FROM visits GROUP BY city

It may also stand in front of SELECT. Options narrow what the study allows; whatever is not known is refused by its name.
What bounds per group mean is in `privacy_clause.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from curador.query import typed_terms
from curador.query.messages import invalid, not_private, quote_name, suggest_names
from curador.query.tree import NOTHING_ASKED, Aggregate, Call, Options, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokenizer_core import Token

    from curador.query.tree import Block, Node
    from curador.study.model import Schema


# ---- places ----------------------------------------------------------------------------------------------------------------


_MOST_VISITED = 64
"""Nodes looked at for one that knows its place: enough for any expression, little for a whole statement."""


def place_at(text: str, offset: int) -> Place:
    """Return the line and column of the letter at this offset."""
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def place_of(node: exp.Expr, text: str) -> Place | None:
    """Return where a node begins: its own token, else the first inside it, else the nearest around it."""
    current: exp.Expr | None = node
    while current is not None:
        start = _first_start(current)
        if start is not None:
            return place_at(text, start)
        current = current.parent
    return None


def _first_start(node: exp.Expr) -> int | None:
    stack: list[exp.Expr] = [node]
    for _ in range(_MOST_VISITED):
        if not stack:
            return None
        current = stack.pop()
        start = current.meta.get("start")
        if isinstance(start, int):
            return start
        for value in reversed(current.args.values()):
            if isinstance(value, exp.Expr):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend(one for one in reversed(value) if isinstance(one, exp.Expr))
    return None


def function_name(node: exp.Expr, text: str) -> str:
    """Return a function's name as it was written, where that is known."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if isinstance(start, int) and isinstance(end, int):
        written = text[start : end + 1].lower()
        if written.isidentifier():
            return written
    if not isinstance(node, exp.Func):
        return node.key
    names = [*_OTHER_NAMES.get(type(node), ()), node.sql_name().lower()]
    return next((one for one in names if f"{one}(" in text.lower()), names[-1])


_OTHER_NAMES: dict[type[exp.Expr], tuple[str, ...]] = {exp.GroupConcat: ("string_agg", "listagg")}
"""Names that a parser writes otherwise, and does not say where they stood."""


def name_node(node: exp.Expr, text: str) -> str:
    """Return what a node is called in SQL."""
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return f"{function_name(node, text)}()"
    return _CALLED.get(type(node), node.key.upper())


_CALLED: dict[type[exp.Expr], str] = {
    exp.Bracket: "x[…]",
    exp.Table: "a table",
    exp.Join: "JOIN",
    exp.Command: "a command",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.Dot: "a path of fields",
    exp.Escape: "LIKE … ESCAPE",
    exp.SimilarTo: "SIMILAR TO",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Tuple: "a row of values",
    exp.Subquery: "a subquery",
    exp.Column: "a column",
}


# ---- wording ---------------------------------------------------------------------------------------------------------------


_OPERATORS = {
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.SLASH,
    TokenType.DPIPE,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.AND,
    TokenType.OR,
    TokenType.NOT,
}
_BEGINNING = {
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
    TokenType.PARTITION_BY,
    TokenType.HAVING,
    TokenType.ON,
    TokenType.ALIAS,
}
"""Words that something must follow."""

_OPEN = {TokenType.L_PAREN, TokenType.COMMA, TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM, TokenType.JOIN}
_CLAUSES = {
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.JOIN,
    TokenType.INNER,
    TokenType.CROSS,
    TokenType.UNION,
}
_AFTER_FROM = _CLAUSES - {TokenType.JOIN, TokenType.INNER, TokenType.CROSS}
_UNFINISHED = _OPERATORS | _BEGINNING | {TokenType.COMMA}

REFUSED: frozenset[tuple[TokenType, TokenType]] = frozenset(
    {(one, TokenType.COMMA) for one in (_OPERATORS | _BEGINNING | _OPEN)}
    | {(one, TokenType.R_PAREN) for one in _UNFINISHED}
    | {(one, other) for one in _OPERATORS for other in (TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.END)}
    | {(one, other) for one in _UNFINISHED for other in _CLAUSES}
    | {(one, TokenType.FROM) for one in (_OPERATORS | _BEGINNING)}
    | {(one, TokenType.DOT) for one in (_OPERATORS | _BEGINNING | _OPEN)}
    | {(TokenType.STRING, TokenType.STRING), (TokenType.SELECT, TokenType.ALIAS)}
)
"""Pairs of tokens that no statement of the language has. A number such as .5 begins with a dot and is let through."""


def check_wording(tokens: list[Token], text: str) -> None:
    """Refuse a text of which the parser would leave out a part."""
    before = tokens[0]
    for number, token in enumerate(tokens[1:], 1):
        pair = (before.token_type, token.token_type)
        if pair in REFUSED and not _is_number(tokens, number):
            raise invalid(place_at(text, token.start), f"nothing stands between {_word(before)} and {_word(token)}")
        if pair == (TokenType.L_PAREN, TokenType.R_PAREN) and tokens[number - 2].token_type == TokenType.USING:
            raise invalid(place_at(text, token.start), "USING must name a column")
        before = token
    if before.token_type in _UNFINISHED:
        raise invalid(place_at(text, before.start), f"nothing stands behind {_word(before)}")
    _check_joins(tokens, text)
    branches = [token for token in tokens if token.token_type in {TokenType.WHEN, TokenType.THEN}]
    if len(branches) != 2 * sum(token.token_type == TokenType.WHEN for token in branches):
        raise invalid(place_at(text, branches[0].start), "each WHEN must have its THEN")


def ends_before_stars(tokens: Sequence[Token]) -> frozenset[int]:
    """Return where words end that a star follows."""
    return frozenset(before.end for before, token in pairwise(tokens) if token.token_type == TokenType.STAR)


def _is_number(tokens: list[Token], number: int) -> bool:
    following = tokens[number + 1] if number + 1 < len(tokens) else None
    return tokens[number].token_type == TokenType.DOT and following is not None and following.token_type == TokenType.NUMBER


def _word(token: Token) -> str:
    return quote_name(token.text) if token.token_type != TokenType.STRING else "a string"


def _check_joins(tokens: list[Token], text: str) -> None:
    """Refuse a JOIN without ON or USING, which the parser would read as a comma."""
    levels: list[list[Token]] = [[]]
    before: Token | None = None
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            levels.append([])
        elif kind == TokenType.R_PAREN or kind in _AFTER_FROM:
            _check_level(levels[-1], text)
            levels[-1].clear()
            if kind == TokenType.R_PAREN and len(levels) > 1:
                levels.pop()
        elif kind == TokenType.JOIN and (before is None or before.token_type not in _WITHOUT_CONDITION):
            levels[-1].append(token)
        elif kind in {TokenType.ON, TokenType.USING} and levels[-1]:
            levels[-1].pop()
        before = token
    _check_level(levels[-1], text)


_WITHOUT_CONDITION = {TokenType.CROSS, TokenType.NATURAL}


def _check_level(joins: list[Token], text: str) -> None:
    if joins:
        raise invalid(place_at(text, joins[0].start), "JOIN must have a condition: ON or USING", "CROSS JOIN has none.")


# ---- limits ----------------------------------------------------------------------------------------------------------------


MOST_BYTES = 16_384
MOST_TOKENS = 5_000
MOST_BRACKETS = 32

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_BEGINNINGS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}
_WORDS = {TokenType.VAR, TokenType.IDENTIFIER}


def tokens_of(text: str, dialect: Dialect) -> list[Token]:
    """Return the tokens of one statement without its semicolon; refuse a text that breaks a limit."""
    _check_bytes(text)
    try:
        tokens = dialect.tokenize(text)
    except TokenError as problem:
        raise invalid(
            None,
            "the text must be closed: a string, a quoted name or a comment has no end",
            "comments nest: /* a /* b */ c */ is one comment.",
        ) from problem
    if len(tokens) > MOST_TOKENS:
        raise invalid(None, f"a question must have at most {MOST_TOKENS:,} tokens; got {len(tokens):,}")
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise invalid(None, "the text must be a SELECT; it is empty", "SELECT COUNT(*) FROM a_table")
    _check_tokens(tokens, text)
    check_wording(tokens, text)
    return tokens


def _check_bytes(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as problem:
        raise invalid(
            place_at(text, problem.start), "the text must be Unicode; half of a surrogate pair stands here"
        ) from problem
    if size > MOST_BYTES:
        raise invalid(None, f"a question must have at most {MOST_BYTES:,} bytes; got {size:,}")
    if "\0" in text:
        raise invalid(place_at(text, text.index("\0")), "the text must have no NUL character")


def _check_tokens(tokens: list[Token], text: str) -> None:
    first = tokens[0]
    if first.token_type not in _BEGINNINGS:
        raise invalid(
            place_at(text, first.start),
            f"a question must be a SELECT; this begins with {quote_name(first.text)}",
            "only reading is possible: SELECT … FROM …, with WITH in front if need be.",
        )
    depth = 0
    before = first
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            depth += 1
            if depth > MOST_BRACKETS:
                raise invalid(place_at(text, token.start), f"brackets must be at most {MOST_BRACKETS} deep")
        elif kind in _CLOSING:
            depth -= 1
            if depth < 0:
                raise invalid(place_at(text, token.start), f"{quote_name(token.text)} must close a bracket; none is open")
        elif kind == TokenType.SEMICOLON:
            raise invalid(place_at(text, token.start), "a question must be one statement", "ask them one after the other.")
        elif kind in _WORDS and before.token_type == TokenType.NUMBER and before.end + 1 == token.start:
            # 0x1F would be read as the number 0 with the alias x1F
            raise invalid(place_at(text, before.start), "a number must be written in decimal digits")
        before = token
    if depth:
        raise invalid(
            place_at(text, before.start), f"every bracket must be closed; {depth} {'is' if depth == 1 else 'are'} open"
        )


# ---- options ---------------------------------------------------------------------------------------------------------------


_KNOWN = (
    "epsilon", "delta", "privacy_unit_column", "max_groups_contributed", "max_rows_contributed", "group_selection_strategy"
)  # fmt: skip
_BOUNDS = ("contribution_bounds_per_group", "contribution_bounds_per_row")

NarrowedBounds = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class PrivacyClause:
    """What the clause said, still without knowing the question.

    stands      whether it stands in the text
    unit        (table or alias, column) given as privacy_unit_column
    bounds      of what a unit has in a group, for the aggregate that begins at a place; `row_bounds`: of what a row has
    """

    options: Options = NOTHING_ASKED
    unit: tuple[str, Place] | None = None
    bounds: Mapping[Place, NarrowedBounds] = field(default_factory=dict[Place, NarrowedBounds])
    row_bounds: Mapping[Place, NarrowedBounds] = field(default_factory=dict[Place, NarrowedBounds])
    stands: bool = False


_NOTHING_SAID = PrivacyClause()


def take_out_clause(tokens: list[Token], text: str) -> tuple[list[Token], PrivacyClause]:
    """Return the tokens without the clause and without named bounds in aggregates, and what these said."""
    rest, bounds = _without_named_bounds(tokens, text)
    starts = [index for index in range(len(rest) - 1) if _clause_begins(rest, index)]
    if not starts:
        for name, found in bounds.items():
            for place in found:
                raise invalid(place, f"{name} must come with WITH DIFFERENTIAL_PRIVACY OPTIONS(…)")
        return rest, _NOTHING_SAID
    start = starts[0]
    if len(starts) > 1:
        raise invalid(place_at(text, rest[starts[1]].start), "WITH DIFFERENTIAL_PRIVACY must stand once")
    clause = _ClauseReader(rest, start + 2, text)
    options = clause.read()
    return rest[:start] + rest[clause.index :], _clause_of(options, bounds)


def _clause_begins(tokens: Sequence[Token], index: int) -> bool:
    return tokens[index].token_type == TokenType.WITH and tokens[index + 1].text.upper() == "DIFFERENTIAL_PRIVACY"


def _without_named_bounds(tokens: list[Token], text: str) -> tuple[list[Token], dict[str, dict[Place, NarrowedBounds]]]:
    """Take `, contribution_bounds_per_group => (low, high)` out of calls; return the bounds by the name and by the call."""
    bounds: dict[str, dict[Place, NarrowedBounds]] = {name: {} for name in _BOUNDS}
    rest: list[Token] = []
    opened: list[int] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        named = (
            token.token_type == TokenType.COMMA
            and index + 2 < len(tokens)
            and tokens[index + 1].text.lower() in _BOUNDS
            and tokens[index + 2].text == "=>"
        )
        if named:
            place, name = place_at(text, tokens[index + 1].start), tokens[index + 1].text.lower()
            if not opened or opened[-1] == 0:
                raise invalid(place, f"{name} must stand inside an aggregate")
            clause = _ClauseReader(tokens, index + 3, text)
            bounds[name][place_at(text, rest[opened[-1] - 1].start)] = clause.bounds(name, place)
            index = clause.index
            continue
        if token.token_type == TokenType.L_PAREN:
            opened.append(len(rest))
        elif token.token_type == TokenType.R_PAREN and opened:
            opened.pop()
        rest.append(token)
        index += 1
    return rest, bounds


class _ClauseReader:
    """A hand that moves over the tokens of the clause."""

    def __init__(self, tokens: Sequence[Token], index: int, text: str) -> None:
        self.tokens, self.index, self.text = tokens, index, text

    def place(self) -> Place:
        return place_at(self.text, self.tokens[self.index].start if self.index < len(self.tokens) else len(self.text))

    def next(self, *expected: str) -> str:
        if self.index >= len(self.tokens) or (expected and self.tokens[self.index].text.upper() not in expected):
            raise invalid(
                self.place(), f"WITH DIFFERENTIAL_PRIVACY must go on with {' or '.join(expected) or 'a value'} here"
            )
        self.index += 1
        return self.tokens[self.index - 1].text

    def read(self) -> dict[str, tuple[object, Place]]:
        """Read OPTIONS(name = value, …)."""
        self.next("OPTIONS")
        self.next("(")
        found: dict[str, tuple[object, Place]] = {}
        while True:
            place = self.place()
            name = self.next().lower()
            if name not in _KNOWN:
                raise invalid(
                    place, f"the option {quote_name(name)} is not known", suggest_names(name, _KNOWN, "the options are")
                )
            if name in found:
                raise invalid(place, f"the option {quote_name(name)} must stand once")
            self.next("=")
            found[name] = (self.value(name, place), place)
            if self.next(",", ")") == ")":
                return found

    def value(self, name: str, place: Place) -> object:
        if name == "group_selection_strategy":
            word = self.next().upper()
            if word != "LAPLACE_THRESHOLD":
                raise invalid(
                    place,
                    f"group_selection_strategy must be LAPLACE_THRESHOLD; got {quote_name(word)}",
                    "groups of a public table are all shown: join it, and group by its column.",
                )
            return word
        if name == "privacy_unit_column":
            parts = [self.next()]
            while self.index < len(self.tokens) and self.tokens[self.index].text == ".":
                self.next(".")
                parts.append(self.next())
            return parts[-1]
        number = self.number(place)
        if name == "epsilon":
            if number <= 0:
                raise invalid(place, "epsilon must be above 0")
            return number
        if name == "delta":
            if not 0 <= number < 1:
                raise invalid(place, "delta must be from 0 to below 1")
            return number
        if number.denominator != 1 or not 1 <= number <= 1_000_000:
            raise invalid(place, f"{name} must be a whole number from 1 to 1,000,000")
        return int(number)

    def number(self, place: Place) -> Fraction:
        sign = 1
        if self.index < len(self.tokens) and self.tokens[self.index].token_type == TokenType.DASH:
            self.next("-")
            sign = -1
        number = typed_terms.fraction_of(typed_terms.parse_number(self.next(), place))
        return sign * (number or Fraction(0))

    def bounds(self, name: str, place: Place) -> NarrowedBounds:
        self.next("(")
        low = self.number(place)
        self.next(",")
        high = self.number(place)
        self.next(")")
        if low >= high:
            raise invalid(place, f"{name} must be (lower, upper) with lower below upper")
        return low, high


def _clause_of(options: dict[str, tuple[object, Place]], bounds: dict[str, dict[Place, NarrowedBounds]]) -> PrivacyClause:
    values = {name: value for name, (value, _) in options.items()}
    unit = options.get("privacy_unit_column")
    return PrivacyClause(
        Options(
            epsilon=values.get("epsilon"),  # type: ignore[arg-type]
            rows=values.get("max_rows_contributed"),  # type: ignore[arg-type]
            groups=values.get("max_groups_contributed"),  # type: ignore[arg-type]
            delta=values.get("delta"),  # type: ignore[arg-type]
        ),
        None if unit is None else (str(unit[0]), unit[1]),
        bounds[_BOUNDS[0]],
        bounds[_BOUNDS[1]],
        stands=True,
    )


def options_of(marks: PrivacyClause, blocks: Sequence[Block], tables: Sequence[str], schema: Schema) -> Options:
    """Return the options as they are about this question, its unit and its output columns."""
    if marks.unit is not None:
        name, place = marks.unit
        units = {
            table.fields[table.unit_index].name
            for table in schema.tables
            if table.table.name in tables and table.unit_index is not None
        }
        if name.lower() not in {unit.lower() for unit in units}:
            raise not_private(
                place,
                f"privacy_unit_column must be the study's unit; got {quote_name(name)}",
                suggest_names(name, sorted(units), "the unit is in")
                if units
                else "the unit has no column here: leave the option out.",
            )
    if not marks.row_bounds:
        return marks.options
    narrowed = _row_bounds_of(marks, blocks)
    return replace(marks.options, bounds=tuple((name, *ends) for name, ends in narrowed.items()))


def _row_bounds_of(marks: PrivacyClause, blocks: Sequence[Block]) -> dict[str, NarrowedBounds]:
    """Return contribution_bounds_per_row by the output column."""
    found: dict[str, NarrowedBounds] = {}
    unused, name = set(marks.row_bounds), _BOUNDS[1]
    for block in blocks:
        for item in block.items:
            for aggregate in _aggregates(item.expression):
                if aggregate.place is None or aggregate.place not in marks.row_bounds:
                    continue
                unused.discard(aggregate.place)
                if aggregate.q is None:
                    raise invalid(
                        aggregate.place, f"{name} must stand in a quantile", f"SUM, AVG and COUNT have {_BOUNDS[0]}."
                    )
                if found.setdefault(item.name, marks.row_bounds[aggregate.place]) != marks.row_bounds[aggregate.place]:
                    raise invalid(aggregate.place, f"{name} must be the same for all aggregates of one column")
    if unused:
        place = min(unused, key=lambda one: (one.line, one.column))
        raise invalid(place, f"{name} must stand in a quantile of the SELECT list")
    return found


def _aggregates(node: Node) -> Iterator[Aggregate]:
    if isinstance(node, Aggregate):
        yield node
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _aggregates(argument)
