"""Texts that the parser would pass over in silence: a comma with nothing before it, an operator with nothing behind it.

What such a text asks is a guess, and a guess is refused. All of it is about tokens that stand beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from curador.query.messages import Text, invalid, quoted

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

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

REFUSED: frozenset[tuple[TokenType, TokenType]] = frozenset(
    {(one, TokenType.COMMA) for one in (_OPERATORS | _BEGINNING | _OPEN)}
    | {(one, TokenType.R_PAREN) for one in (_OPERATORS | _BEGINNING | {TokenType.COMMA})}
    | {(one, other) for one in _OPERATORS for other in (TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.END)}
    | {(one, other) for one in (_OPERATORS | _BEGINNING | {TokenType.COMMA}) for other in _CLAUSES}
    | {(one, TokenType.FROM) for one in (_OPERATORS | _BEGINNING)}
    | {(one, TokenType.DOT) for one in (_OPERATORS | _BEGINNING | _OPEN)}
    | {(TokenType.STRING, TokenType.STRING), (TokenType.SELECT, TokenType.ALIAS)}
)
"""Pairs of tokens that no statement of the language has. A number such as .5 begins with a dot and is let through."""


def check_wording(tokens: list[Token], place: Text) -> None:
    """Refuse a text of which the parser would leave out a part; note which words a star follows."""
    before = tokens[0]
    for number, token in enumerate(tokens[1:], 1):
        pair = (before.token_type, token.token_type)
        if pair in REFUSED and not _is_number(tokens, number):
            raise invalid(place.place(token.start), f"nothing stands between {_word(before)} and {_word(token)}")
        if token.token_type == TokenType.STAR:
            place.stars.add(before.end)
        if pair == (TokenType.L_PAREN, TokenType.R_PAREN) and tokens[number - 2].token_type == TokenType.USING:
            raise invalid(place.place(token.start), "USING must name a column")
        before = token
    if before.token_type in _OPERATORS | _BEGINNING | {TokenType.COMMA}:
        raise invalid(place.place(before.start), f"nothing stands behind {_word(before)}")
    _check_joins(tokens, place)
    branches = [token for token in tokens if token.token_type in {TokenType.WHEN, TokenType.THEN}]
    if len(branches) != 2 * sum(token.token_type == TokenType.WHEN for token in branches):
        raise invalid(place.place(branches[0].start), "each WHEN must have its THEN")


def _is_number(tokens: list[Token], number: int) -> bool:
    following = tokens[number + 1] if number + 1 < len(tokens) else None
    return tokens[number].token_type == TokenType.DOT and following is not None and following.token_type == TokenType.NUMBER


def _word(token: Token) -> str:
    return quoted(token.text) if token.token_type != TokenType.STRING else "a string"


def _check_joins(tokens: list[Token], place: Text) -> None:
    """Refuse a JOIN without ON or USING, which the parser would read as a comma."""
    levels: list[list[Token]] = [[]]
    before: Token | None = None
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            levels.append([])
        elif kind == TokenType.R_PAREN or kind in _CLAUSES - {TokenType.JOIN, TokenType.INNER, TokenType.CROSS}:
            _check_level(levels[-1], place)
            levels[-1].clear()
            if kind == TokenType.R_PAREN and len(levels) > 1:
                levels.pop()
        elif kind == TokenType.JOIN and (before is None or before.token_type not in _WITHOUT_CONDITION):
            levels[-1].append(token)
        elif kind in {TokenType.ON, TokenType.USING} and levels[-1]:
            levels[-1].pop()
        before = token
    _check_level(levels[-1], place)


_WITHOUT_CONDITION = {TokenType.CROSS, TokenType.NATURAL}


def _check_level(joins: list[Token], place: Text) -> None:
    if joins:
        raise invalid(place.place(joins[0].start), "JOIN must have a condition: ON or USING", "CROSS JOIN has none.")
