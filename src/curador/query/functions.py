"""The closed catalogue of row functions: what an expression may be made of. A name that is not here does not exist.

Every function is total: where SQL would raise or give NaN or an infinity, ours gives NULL. Numbers are computed in doubles,
which hold every integer below 2⁵³, so that no input can overflow. `Literal`s are required where the catalogue says so: a
length, a pattern or a unit of time that came from a column could fail or take long.

name                    arguments                                      result
and or                  2 or more booleans                             boolean, three-valued
not                     boolean                                        boolean
is_null                 anything                                       boolean, never NULL
= <> < <= > >=          two of one kind                                boolean
in                      x, then literals of its kind                   boolean
like ilike              string, literal pattern (% and _, no escape)   boolean
case                    condition, value, condition, value …, else     type of the values
coalesce                two or more of one kind                        that type
nullif                  two of one kind                                type of the first
cast                    anything to the call's type                    NULL where it does not fit
+ - *                   numbers                                        integer if both are, else float
/                       numbers                                        float; NULL where the divisor is 0
// %                    numbers                                        quotient rounded towards 0, remainder; NULL at 0
neg abs sign            number                                         as the argument
round                   number, literal digits (−15 … 15)              as the argument
floor ceil              number                                         integer
sqrt ln log10 exp       number                                         float; NULL outside the domain
power                   number, literal exponent                       float; NULL where it is not finite
least greatest          two or more of one kind; NULLs are skipped     that type
lower upper trim        string                                         string
length                  string                                         integer
concat                  strings; NULL if one is                        string
substring               string, literal start ≥ 1, literal length      string
replace                 string, literal, literal                       string
starts_with             string, literal                                boolean
date_trunc              literal unit, date or timestamp                as the argument
extract                 literal part, date or timestamp                integer
date_diff               literal unit, from, to                         integer
date_add                date or timestamp, literal integer, literal unit  as the argument; clamped to years 1 … 9999

Units: year quarter month week day hour minute second. Parts: the units and dayofweek (0 = Sunday), isodow, dayofyear.
"""

from __future__ import annotations

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
PARTS = (*UNITS, "dayofweek", "isodow", "dayofyear")

BOOLEAN = frozenset({"and", "or", "not", "is_null", "=", "<>", "<", "<=", ">", ">=", "in", "like", "ilike", "starts_with"})
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "neg", "abs", "sign", "round", "floor", "ceil"})
REAL = frozenset({"sqrt", "ln", "log10", "exp", "power"})
CHOOSING = frozenset({"case", "coalesce", "nullif", "least", "greatest", "cast"})
STRINGS = frozenset({"lower", "upper", "trim", "length", "concat", "substring", "replace"})
TIMES = frozenset({"date_trunc", "extract", "date_diff", "date_add"})

FUNCTIONS = BOOLEAN | ARITHMETIC | REAL | CHOOSING | STRINGS | TIMES
"""Allowed over rows, and over what was released: there by the same SQL, so with the same meaning."""
