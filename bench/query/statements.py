"""The question written by hand: without privacy, and with five rows a user but no noise, in several ways.

`rows` is what stands after FROM and has user, grp and value; the fastest of the bounded ones is what ours is held against.
Clamping is by CASE, as LEAST and GREATEST would turn NULL into a bound.
"""

from __future__ import annotations

from query import tasks

CLAMPED = f"CASE WHEN value < {tasks.LOWER} THEN {tasks.LOWER} WHEN value > {tasks.UPPER} THEN {tasks.UPPER} ELSE value END"
MEASURED = f"grp, COUNT(value), SUM({CLAMPED}), AVG({CLAMPED})"


def plain(rows: str, where: str = "") -> str:
    """Return the question without privacy."""
    return f"SELECT grp, COUNT(value), SUM(value), AVG(value) FROM {rows} {where} GROUP BY grp"


def bounded(rows: str, where: str = "", rank: str | None = None) -> dict[str, str]:
    """Return the bounded question, by the name of the way. `rank`: a random order that the table already has."""
    order = "random()" if rank is None else rank
    drawn = f"(SELECT *, {order} AS place FROM {rows} {where})"
    number = "ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY place)"
    first = f"(SELECT * FROM {drawn} QUALIFY {number} <= {tasks.CAP})"
    listed = f"SELECT unnest(min_by(struct_pack(grp := grp, value := value), {order}, {tasks.CAP}), recursive := true)"
    least = f"({listed} FROM {rows} {where} GROUP BY user_id)"
    crowded = f"SELECT user_id FROM {rows} {where} GROUP BY user_id HAVING COUNT(*) > {tasks.CAP}"
    few = f"SELECT grp, value FROM {drawn} WHERE user_id NOT IN ({crowded})"
    many = f"SELECT grp, value FROM {drawn} WHERE user_id IN ({crowded}) QUALIFY {number} <= {tasks.CAP}"
    ways = {
        "ROW_NUMBER and QUALIFY": first,
        "min_by of five": least,
        "ROW_NUMBER for crowded users": f"({few} UNION ALL {many})",
    }
    return {name: f"SELECT {MEASURED} FROM {kept} GROUP BY grp" for name, kept in ways.items()}
