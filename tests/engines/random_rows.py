"""Random questions over the rows of the market: what stands in a dashboard's SELECT, put together by dice.

Every text means the same to a plain DuckDB: expressions of bounded columns, conditions that may be NULL, keys over finite
domains, joins of the kinds that are allowed, subqueries and windows inside a unit, UNION ALL, public joins.
"""

import random

ANSWERED_TABLES = ("customers", "visits", "orders", "lines")
NUMBERS = {
    "customers": ["age", "income", "LENGTH(name)", "EXTRACT(month FROM joined)", "CAST(active AS INTEGER)"],
    "visits": ["spent", "items", "EXTRACT(hour FROM moment)", "DATE_DIFF('day', DATE '2022-12-31', day)", "LENGTH(note)"],
    "orders": ["total", "EXTRACT(month FROM placed)", "DATE_DIFF('month', placed, DATE '2024-01-10')"],
    "lines": ["quantity", "price", "discount"],
}
TRUTHS = {
    "customers": [
        "active",
        "sex = 'f'",
        "tier = 'gold'",
        "tier IN ('gold', 'silver')",
        "tier NOT IN ('gold', 'bronze')",
        "joined >= DATE '2022-02-28'",
        "name LIKE 'Ana%'",
        "tier IS NULL",
        "customer_id % 3 = 1",
        "income IS NOT NULL",
        "UPPER(city) = 'LIMA'",
        "tier IS DISTINCT FROM 'silver'",
        "country IN (SELECT country FROM countries WHERE population > 10)",
        "STARTS_WITH(city, 'L')",
        "CONCAT(sex, '-', tier) = 'f-gold'",
        "joined + INTERVAL 1 MONTH < DATE '2021-03-31'",
    ],
    "visits": [
        "returned",
        "channel = 'web'",
        "channel <> 'shop'",
        "note LIKE '%ok'",
        "note ILIKE '%late%'",
        "note IS NULL",
        "moment < TIMESTAMP '2023-06-15 12:00:00'",
        "EXTRACT(isodow FROM day) IN (6, 7)",
        "DATE_TRUNC('month', day) = DATE '2023-04-01'",
        "note = ''",
        "LOWER(note) LIKE 'b-%'",
        "customer_id <= 600",
        "SUBSTR(note, 1, 1) = 'A'",
        "REPLACE(note, '-', '') LIKE 'A17%'",
        "product IN (SELECT product FROM products WHERE list_price < 14)",
    ],
    "orders": [
        "status = 'done'",
        "status <> 'lost'",
        "placed < DATE '2023-01-01'",
        "EXTRACT(quarter FROM placed) = 2",
        "o_id % 4 = 2",
    ],
    "lines": ["discount > 0", "l_product IN (1, 2, 3)", "quantity BETWEEN 3 AND 8", "l_supplier % 2 = 0"],
}
KEYS = {
    "customers": [
        "sex",
        "tier",
        "code",
        "active",
        "age // 25",
        "age % 4",
        "FLOOR(age / 20) * 20",
        "COALESCE(tier, 'none')",
        "UPPER(tier)",
        "EXTRACT(year FROM joined)",
        "DATE_TRUNC('year', joined)",
        "CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'grown' END",
        "LEAST(age // 10, 6)",
        "income > 60000",
        "city",
    ],
    "visits": [
        "channel",
        "returned",
        "items // 6",
        "EXTRACT(month FROM day)",
        "DATE_TRUNC('quarter', moment)",
        "spent > 250",
        "items % 3",
        "CASE WHEN spent IS NULL THEN 'none' WHEN spent < 200 THEN 'low' ELSE 'high' END",
        "EXTRACT(dow FROM day)",
        "note",
    ],
    "orders": [
        "status",
        "EXTRACT(year FROM placed)",
        "DATE_TRUNC('quarter', placed)",
        "CASE status WHEN 'done' THEN 1 WHEN 'lost' THEN 0 END",
    ],
    "lines": ["quantity", "quantity // 3", "discount > 0.2", "CASE WHEN price < 50 THEN 'cheap' ELSE 'dear' END"],
}
UNITS = {"customers": "customer_id", "visits": "customer_id", "orders": "o_customer"}
NAMES = (
    "customer_id",
    "age",
    "sex",
    "tier",
    "code",
    "country",
    "city",
    "income",
    "joined",
    "active",
    "name",
    "visit_id",
    "moment",
)
NAMES += (
    "day",
    "channel",
    "spent",
    "items",
    "returned",
    "product",
    "note",
    "o_id",
    "o_customer",
    "status",
    "total",
    "placed",
)
NAMES += ("l_order", "l_product", "l_supplier", "quantity", "price", "discount")


def number(dice, table, depth=2):
    """Return a number with known ends; NULL and 0 happen."""
    if depth == 0 or dice.random() < 0.25:
        return dice.choice(NUMBERS[table])
    one, other = number(dice, table, depth - 1), number(dice, table, depth - 1)
    return dice.choice(
        [
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one} * {dice.choice([2, 0.5, -1])})",
            f"({one} / {dice.choice([2, 4, 8])})",
            f"({one} / (ABS({other}) + 1))",
            f"ABS({one} - {dice.choice([10, 100])})",
            f"LEAST({one}, {other})",
            f"GREATEST({one}, {dice.choice([5, 50])})",
            f"COALESCE({one}, {other}, 7)",
            f"COALESCE({one}, 0)",
            f"NULLIF({one}, {dice.choice([0, 5])})",
            f"ROUND({one})",
            f"FLOOR({one} / 3)",
            f"CEIL({one} / 3)",
            f"SQRT(ABS({one}))",
            f"LN(ABS({one}) + 1)",
            f"SIGN({one} - {other})",
            f"CASE WHEN {truth(dice, table, depth - 1)} THEN {one} ELSE {other} END",
            f"CASE WHEN {truth(dice, table, depth - 1)} THEN {one} END",
            f"CAST({truth(dice, table, depth - 1)} AS INTEGER)",
        ]
    )


def truth(dice, table, depth=2):
    """Return a condition: true, false or NULL."""
    if depth == 0 or dice.random() < 0.35:
        return dice.choice(TRUTHS[table])
    one, other = truth(dice, table, depth - 1), truth(dice, table, depth - 1)
    left, right = number(dice, table, depth - 1), number(dice, table, depth - 1)
    return dice.choice(
        [
            f"({one} AND {other})",
            f"({one} OR {other})",
            f"NOT ({one})",
            f"({one}) IS NULL",
            f"({one}) IS NOT TRUE",
            f"COALESCE({one}, FALSE)",
            f"({left} > {right})",
            f"({left} <= {dice.choice([3, 30, 300])})",
            f"({left} BETWEEN {dice.choice([0, 2])} AND {dice.choice([20, 200])})",
            f"({left} = {right})",
            f"({left} <> {dice.choice([1, 4])})",
            f"({left} IN (1, 2, 3, 5, 8, 13))",
            f"CASE WHEN {one} THEN {other} ELSE {left} > {right} END",
        ]
    )


def aggregate(dice, table, qualify=str, unit=None):
    """Return an aggregate, or arithmetic of two."""
    x, y = qualify(number(dice, table)), qualify(number(dice, table, 1))
    plain = [f"SUM({x})", f"AVG({x})", f"COUNT({x})", "COUNT(*)", f"COUNT_IF({qualify(truth(dice, table))})"]
    rare = [f"VAR_POP({y})", f"STDDEV({y})", *([f"COUNT(DISTINCT {qualify(unit)})"] * 2 if unit else [])]
    found = dice.choice(plain * 2 + rare)
    if dice.random() < 0.3:
        found += f" FILTER (WHERE {qualify(truth(dice, table))})"
    if dice.random() < 0.15:
        found = dice.choice(
            [
                f"{found} - {y_of(dice, y)}",
                f"100.0 * COUNT_IF({qualify(truth(dice, table))}) / COUNT(*)",
                f"SUM({x}) / COUNT(*)",
            ]
        )
    return found


def y_of(dice, y):
    return dice.choice([f"AVG({y})", f"SUM({y})"])


def qualified(prefix):
    """Return a function that puts an alias before the names of columns."""

    def put(text):
        out, word, quoted = [], "", False
        for letter in f"{text} ":
            if not quoted and (letter.isalnum() or letter == "_"):
                word += letter
                continue
            out.append(f"{prefix}.{word}" if word in NAMES else word)
            word = ""
            quoted ^= letter == "'"
            out.append(letter)
        return "".join(out).strip()

    return put


def grouped(dice, table, source, qualify=str, keys=None, unit=None):
    """Return SELECT keys, COUNT(*), aggregates FROM source GROUP BY keys; COUNT(*) tells which groups are empty."""
    if keys is None:
        keys = [qualify(one) for one in dice.sample(KEYS[table], dice.choice([0, 1, 1, 1, 2]))]
    found = ["COUNT(*) AS n"] + [
        f"{aggregate(dice, table, qualify, unit)} AS a{place}" for place in range(dice.choice([1, 1, 2]))
    ]
    items = [f"{key} AS k{place}" for place, key in enumerate(keys)] + found
    tail = f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join(items)} FROM {source}{tail}", len(keys)


def over(dice):
    table = dice.choice(ANSWERED_TABLES)
    where = f" WHERE {truth(dice, table)}" if dice.random() < 0.6 else ""
    return grouped(dice, table, f"{table}{where}", unit=UNITS.get(table))


def on_the_unit(dice):
    kind = dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    second, unit = dice.choice([("visits", "customer_id"), ("orders", "o_customer")])
    extra = f" AND {qualified('b')(truth(dice, second, 1))}" if dice.random() < 0.4 else ""
    extra = extra if "SELECT" not in extra else ""  # a subquery is a condition of its own in WHERE
    side, table = dice.choice([("a", "customers"), ("b", second)])
    source = f"customers a {kind} {second} b ON a.customer_id = b.{unit}{extra}"
    if dice.random() < 0.5:
        source += f" WHERE {qualified(side)(truth(dice, table))}"
    return grouped(dice, table, source, qualified(side))


def along_keys(dice):
    source = f"orders b {dice.choice(['JOIN', 'LEFT JOIN'])} lines c ON c.l_order = b.o_id"
    if dice.random() < 0.4:
        source = f"customers a JOIN orders b ON a.customer_id = b.o_customer {source.removeprefix('orders b ')}"
    side, table = dice.choice([("b", "orders"), ("c", "lines")])
    if dice.random() < 0.4:
        source += f" WHERE {qualified(side)(truth(dice, table))}"
    return grouped(dice, table, source, qualified(side))


def with_public(dice):
    kind = dice.choice(["JOIN", "LEFT JOIN"])
    if dice.random() < 0.5:
        table, source = "customers", f"customers a {kind} countries p ON a.country = p.country"
        keys = dice.choice([["p.region"], ["p.country"], ["p.region", "p.country"], ["p.population > 20"], None])
        more = dice.choice(["", "", "p.region <> 'West'", "p.population < 40 AND a.active"])
    else:
        table, source = "visits", f"visits a {kind} products p ON a.product = p.product{dice.choice(['', ' AND a.returned'])}"
        keys = dice.choice([["p.category"], ["p.category", "p.product"], ["p.product"], ["UPPER(p.category)"], None])
        more = dice.choice(["", "", "p.category IN ('toys', 'food')", "p.list_price * 2 > a.items"])
    return grouped(dice, table, source + (f" WHERE {more}" if more else ""), qualified("a"), keys)


def each_unit(dice):
    """Aggregates of each person, and of these."""
    table = dice.choice(["visits", "orders"])
    unit, x = UNITS[table], number(dice, table, 1)
    inner = dice.choice(
        [
            "COUNT(*)",
            f"SUM({x})",
            f"AVG({x})",
            f"MAX({x})",
            f"MIN({x})",
            f"COUNT({x})",
            f"COUNT(*) FILTER (WHERE {truth(dice, table, 1)})",
        ]
    )
    where = f" WHERE {truth(dice, table)}" if dice.random() < 0.4 else ""
    having = dice.choice(["", "", " HAVING COUNT(*) > 1", f" HAVING MAX({x}) > 5", f" HAVING SUM({x}) IS NOT NULL"])
    outer = dice.choice(
        [
            "SUM(m)",
            "AVG(m)",
            "COUNT(m)",
            "AVG(LEAST(m, 50))",
            "COUNT(*) FILTER (WHERE m > 3)",
            "SUM(CASE WHEN m > 2 THEN m END)",
        ]
    )
    if dice.random() < 0.4:
        key = dice.choice([one for one in KEYS[table] if one != "note"])
        sub = f"SELECT {unit}, {key} AS k, {inner} AS m FROM {table}{where} GROUP BY {unit}, k{having}"
        return f"SELECT k, COUNT(*) AS n, {outer} AS a FROM ({sub}) t GROUP BY k", 1
    sub = f"SELECT {unit}, {inner} AS m FROM {table}{where} GROUP BY {unit}{having}"
    return f"SELECT COUNT(*) AS n, {outer} AS a FROM ({sub}) t", 0


def windowed(dice):
    """Windows inside a unit; the order is whole, or ties share a rank."""
    order = dice.choice(["moment, visit_id", "spent DESC NULLS LAST, visit_id", "items, visit_id DESC"])
    call = dice.choice(
        ["ROW_NUMBER()", "RANK()", "SUM(items)", "COUNT(*)", "LAG(items)", "LEAD(items)", "MAX(items)", "AVG(spent)"]
    )
    shape = dice.choice(["PARTITION BY customer_id ORDER BY", "PARTITION BY customer_id, channel ORDER BY"])
    sub = f"SELECT *, {call} OVER ({shape} {order}) AS w FROM visits"
    condition = dice.choice(["w = 1", "w <= 3", "w > 2", "w IS NULL", "w BETWEEN 1 AND 20", "w > items"])
    text, keys = grouped(dice, "visits", f"({sub}) t WHERE {condition}")
    return (
        (text, keys)
        if dice.random() < 0.7
        else (f"SELECT COUNT(*) AS n, SUM(w) AS a FROM ({sub}) t WHERE w BETWEEN 0 AND 40", 0)
    )


def together(dice):
    """UNION ALL: halves of a table, or events of two."""
    if dice.random() < 0.5:
        one = truth(dice, "visits")
        source = f"(SELECT * FROM visits WHERE {one} UNION ALL SELECT * FROM visits WHERE ({one}) IS NOT TRUE) t"
        return grouped(dice, "visits", source)
    key = dice.choice(["EXTRACT(month FROM {})", "EXTRACT(quarter FROM {})", "DATE_TRUNC('quarter', {})"])
    sub = f"SELECT customer_id AS u, {key.format('day')} AS k, {number(dice, 'visits', 1)} AS x FROM visits"
    sub += f" UNION ALL SELECT o_customer, {key.format('placed')}, {number(dice, 'orders', 1)} FROM orders"
    outer = dice.choice(["SUM(x)", "AVG(x)", "COUNT(DISTINCT u)", "COUNT(x)"])
    return f"SELECT k, COUNT(*) AS n, {outer} AS a FROM ({sub}) t GROUP BY k", 1


def tied(dice):
    """EXISTS and IN over a person's other rows."""
    negated = dice.choice(["", "NOT "])
    if dice.random() < 0.5:
        also = qualified("b")(plain_truth(dice, "visits"))
        condition = f"{negated}EXISTS (SELECT 1 FROM visits b WHERE b.customer_id = a.customer_id AND {also})"
    else:
        having = dice.choice(
            ["", " GROUP BY customer_id HAVING COUNT(*) > 4", " GROUP BY customer_id HAVING SUM(items) > 50"]
        )
        condition = f"a.customer_id {negated}IN (SELECT customer_id FROM visits WHERE {plain_truth(dice, 'visits')}{having})"
    return grouped(dice, "customers", f"customers a WHERE {condition}", qualified("a"), unit="customer_id")


def plain_truth(dice, table):
    """Return a condition without a subquery."""
    while "SELECT" in (found := truth(dice, table)):
        pass
    return found


def once(dice):
    """DISTINCT rows of a unit, through a name."""
    keys = dice.sample([one for one in KEYS["visits"] if one != "note"], dice.choice([1, 2]))
    named = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
    sub = f"SELECT DISTINCT customer_id, {named} FROM visits WHERE {truth(dice, 'visits')}"
    return f"WITH t AS ({sub}) SELECT k0, COUNT(*) AS n, COUNT(DISTINCT customer_id) AS a FROM t GROUP BY k0", 1


SHAPES = [over] * 6 + [on_the_unit] * 3 + [along_keys] * 2 + [with_public] * 3 + [each_unit] * 3 + [windowed] * 2
SHAPES += [together] * 2 + [tied] * 2 + [once]


def random_question(dice: random.Random):
    """Return a statement and how many of its columns, from the left, are keys; most are answered."""
    return dice.choice(SHAPES)(dice)
