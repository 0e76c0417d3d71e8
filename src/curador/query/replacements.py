"""What to write instead of a function that does not exist here, by its name; nothing where nothing means nearly the same.

A name that merely looks like another one means something else, and proposing it misleads. Only a slip of one letter is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.query.messages import quote_name

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECES = "SUBSTRING(x, 1, 3) is a part by its place; CASE WHEN x LIKE 'a-%' THEN 'a' END one by its beginning."
_MATCHES = "whether a text matches: REGEXP_MATCHES(x, 'a[0-9]+')."
_SINGLE = "COUNT(*), AVG(x) and GROUP BY tell of many rows at once; no list of single rows' values is released."
_ROOM = "COALESCE(x, 'none') replaces a NULL, CAST(x AS VARCHAR) writes a value as a text."
_MONTHS = "DATE_DIFF('month', x, y) counts the months that begin between two dates."
_TURN = "only + − * /, POWER, SQRT, EXP, LN and LOG10 are computed; multiply by the number that you need."
_FREQUENT = "GROUP BY x with COUNT(*), ORDER BY 2 DESC LIMIT 1 shows the value that most have."

_LISTS = (
    "group_concat",
    "list_agg",
    "listagg",
    "string_agg",
    "array_agg",
    "array_concat_agg",
    "json_agg",
    "object_agg",
    "list",
)

REPLACEMENTS: dict[str, str] = {
    **dict.fromkeys(("split_part", "split", "string_split", "str_split", "strtok", "regexp_substr", "right"), _PIECES),
    **dict.fromkeys(("regexp_extract", "regexp_replace", "regexp_count", "regexp_instr", "regexp_extract_all"), _MATCHES),
    **dict.fromkeys(
        ("position", "strpos", "instr", "locate", "charindex", "glob"), "x LIKE '%part%', or CONTAINS(x, 'part')."
    ),
    **dict.fromkeys(("endswith",), "x LIKE '%end', or ENDS_WITH(x, 'end')."),
    **dict.fromkeys(
        ("lpad", "rpad", "ltrim", "rtrim", "reverse", "repeat", "initcap", "concat_ws", "format", "printf"), _ROOM
    ),
    **dict.fromkeys(("decode", "decode_case"), "CASE x WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END."),
    **dict.fromkeys(("months_between", "age", "timestampdiff", "datediff_big"), _MONTHS),
    **dict.fromkeys(("last_day",), "DATE_TRUNC('month', x) is the first day of a month."),
    **dict.fromkeys(("str_to_date", "parse_date", "parse_timestamp", "strptime", "to_date"), "CAST(x AS DATE)."),
    **dict.fromkeys(("to_timestamp", "to_number", "to_double"), "CAST(x AS TIMESTAMP), CAST(x AS DOUBLE)."),
    **dict.fromkeys(("time_bucket", "date_bucket", "date_bin"), "DATE_TRUNC('week', x), or 'month', 'quarter', 'hour'."),
    **dict.fromkeys(("epoch", "unix_timestamp", "unix_seconds"), "DATE_DIFF('second', TIMESTAMP '2024-01-01 00:00:00', x)."),
    **dict.fromkeys(("log2", "cbrt"), "LN(x) / 0.6931471805599453 has the base 2, POWER(x, 0.333) is a cube root."),
    **dict.fromkeys(("sin", "cos", "tan", "atan", "atan2", "radians", "degrees", "pi"), _TURN),
    **dict.fromkeys(("mode", "approx_top_k", "approx_top_count"), _FREQUENT),
    **dict.fromkeys(("skewness", "kurtosis", "entropy", "mad"), "VARIANCE(x), STDDEV(x), QUANTILE(x, 0.9)."),
    **dict.fromkeys(("product", "geomean", "geometric_mean"), "EXP(AVG(LN(x + 1))) for numbers from 0 on."),
    **dict.fromkeys(_LISTS, _SINGLE),
    **dict.fromkeys(
        ("nth_value", "first_value", "last_value", "first", "last", "any_value", "arg_max", "arg_min"),
        "MIN(x), MAX(x) and MEDIAN(x) tell of many rows at once.",
    ),
    **dict.fromkeys(("isnan", "is_nan", "isinf"), "x IS NULL: what is no number is NULL here."),
    **dict.fromkeys(("nullifzero",), "NULLIF(x, 0)."),
    **dict.fromkeys(("average",), "AVG(x)."),
    **dict.fromkeys(("stdev", "std"), "STDDEV(x)."),
    **dict.fromkeys(("var",), "VARIANCE(x)."),
    **dict.fromkeys(("mid", "substr_index", "substring_index"), "SUBSTRING(x, 1, 3)."),
    **dict.fromkeys(("total",), "SUM(x)."),
    **dict.fromkeys(("ucase",), "UPPER(x)."),
    **dict.fromkeys(("lcase",), "LOWER(x)."),
}

_OVER = {
    "ratio_to_report": "n / SUM(n) OVER ().",
    "percent_rank": "(RANK() OVER (ORDER BY n) - 1.0) / (COUNT(*) OVER () - 1).",
    "cume_dist": "1.0 * COUNT(*) OVER (ORDER BY n) / COUNT(*) OVER ().",
    "ntile": "FLOOR(4.0 * (ROW_NUMBER() OVER (ORDER BY n) - 1) / COUNT(*) OVER ()) + 1.",
}
"""Window functions over released rows, in those that there are."""

_LONG_ENOUGH = 4
"""Letters of a name of which one may be a slip; in shorter ones it may as well be meant."""


def replace_function(name: str, known: Iterable[str]) -> str | None:
    """Return what to write instead of a function; None where nothing is near."""
    said = REPLACEMENTS.get(name)
    if said is not None or len(name) < _LONG_ENOUGH:
        return said
    close = [one for one in known if _one_slip(name, one)]
    return f"did you mean {' or '.join(quote_name(one) for one in close[:3])}?" if close else None


def replace_window(name: str) -> str | None:
    """Return what to write instead of a window function over released rows; None where nothing does the same."""
    return _OVER.get(name.removesuffix("()"))


def _one_slip(name: str, known: str) -> bool:
    """Whether one letter is missing, too many, wrong or in its neighbour's place."""
    if abs(len(name) - len(known)) > 1 or name == known:
        return False
    place = next(
        (at for at, (one, other) in enumerate(zip(name, known, strict=False)) if one != other), min(len(name), len(known))
    )
    rest, wanted = name[place:], known[place:]
    swapped = len(rest) > 1 and rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:]
    return swapped or rest[1:] in (wanted[1:], wanted) or rest == wanted[1:]
