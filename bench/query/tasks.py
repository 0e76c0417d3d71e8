"""The question of task C, its variants, and the names under which things are measured. Standard library only."""

from __future__ import annotations

SIZES = (1_000_000, 10_000_000)
SMALL = 1_000  # rows of the table on which only fixed costs are left
ROUNDS = 7  # of everything that is timed by turns; the best counts
SMALL_ROUNDS = 40
REDRAWS = 200

CAP = 5  # rows of one user that an answer may use
LOWER, UPPER = 0, 1000  # of value
TENTH = 314  # value is at least this in a tenth of the rows
GROUPS = 50

EPSILON = 1.0
DELTA = 1e-6

WHOLE, FILTERED = "whole", "filtered"
COLUMNS = ("n", "total", "mean")

QUESTION = "SELECT grp, COUNT(value) AS n, SUM(value) AS total, AVG(value) AS mean FROM visits GROUP BY grp"
QUESTIONS = {WHOLE: QUESTION, FILTERED: QUESTION.replace("GROUP BY", f"WHERE value >= {TENTH} GROUP BY")}


def filtered(question: str) -> str:
    """Return the question about a tenth of the rows."""
    return question.replace("GROUP BY", f"WHERE value >= {TENTH} GROUP BY")


UNITS = "SELECT grp, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY grp"  # what group caps are executed for
KEYS = "SELECT grp FROM visits GROUP BY grp"  # which groups there are: selected privately
FEW_GROUPS = {"rows": CAP, "groups": CAP - 1}
DEFAULTS = {"rows": 10, "groups": 4}

PURE, CONCENTRATED = "pure", "concentrated"
BUDGETS = {PURE: f"epsilon = {EPSILON:g}", CONCENTRATED: f"(epsilon, delta) = ({EPSILON:g}, {DELTA:g})"}

OPENDP_FLOATS = "opendp Polars, floats"
OPENDP_INTEGERS = "opendp Polars, integer thousandths"
OPENDP_CENTRED = "opendp Polars, integer thousandths, centred by hand"
SMARTNOISE = "smartnoise-sql, pandas"
TMLT = "tmlt.analytics, Spark"
PIPELINEDP = "pipeline-dp, local"
