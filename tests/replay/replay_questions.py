"""Random questions of the kinds analysts write, over the tables of the random worlds."""

import random

NUMBERS = {
    "visits": [
        "spent",
        "rating",
        "spent * rating",
        "spent / (rating + 1)",
        "ABS(spent - 100)",
        "COALESCE(spent, 7)",
        "ROUND(spent)",
        "CASE WHEN spent > 100 THEN spent ELSE rating END",
        "LEAST(spent, 50)",
        "spent % 7",
        "SQRT(spent)",
        "-spent",
        "1",
        "0.5",
        "rating * rating",
        "rating + rating",
        "-rating",
        "rating - 1",
        "rating * rating * rating",
        "EXTRACT(month FROM day)",
        "DATE_DIFF('day', day, DATE '2024-06-01')",
        "NULLIF(spent, 0)",
        "LN(rating)",
        "CASE WHEN spent BETWEEN 10 AND 200 THEN spent END",
        "CASE WHEN rating > 3 THEN spent WHEN spent < 50 THEN -rating ELSE spent END",
        "CASE WHEN spent > 50 THEN 50 ELSE spent END",
    ],
    "people": [
        "income",
        "age",
        "income / 1000",
        "income * age",
        "GREATEST(income, 10)",
        "age - 40",
        "FLOOR(income / 7)",
    ],
    "lines": [
        "price",
        "amount",
        "price * amount",
        "price * (1 - amount / 10)",
        "ABS(price)",
    ],
    "events": [
        "x",
        "y",
        "x * y",
        "x + y",
        "COALESCE(y, 1)",
    ],
}
PREDICATES = {
    "visits": [
        "spent > 100",
        "rating IN (1, 2, 5)",
        "kind = 'a'",
        "city LIKE '%a%'",
        "spent BETWEEN 10 AND 200",
        "kind IS NULL",
        "day >= DATE '2024-01-01'",
        "NOT (city = 'Paris')",
        "id > 10",
        "good",
        "raw < 5 OR spent IS NULL",
        "id % 2 = 0",
        "1 = 0",
        "city IN (SELECT city FROM regions WHERE region = 'north')",
        "spent / rating > 3",
        "raw * raw > 1",
        "LENGTH(city) > 2",
        "id = 7 AND kind = 'a'",
        "spent > 499.9",
        "raw > 1e300",
        "rating > 2 AND rating < 5",
        "kind <> 'b'",
        "spent * rating < 100 AND spent * rating > -7",
        "LENGTH(kind) < 2 AND ABS(spent) <= 50",
    ],
    "people": [
        "age >= 18",
        "income > 5000",
        "sex = 'a'",
        "city IS NOT NULL",
        "income <> 0.1",
        "age / 0 > 1",
    ],
    "lines": [
        "price > 3",
        "flag IN ('a', 'b')",
        "amount < 5",
    ],
    "events": [
        "x > 1",
        "y < 0.25",
        "kind = 'a'",
        "y * 0 = 0",
    ],
}
KEYS = {
    "visits": [
        "kind",
        "city",
        "rating",
        "good",
        "CASE WHEN spent > 100 THEN 'much' ELSE 'little' END",
        "DATE_TRUNC('month', day)",
        "EXTRACT(year FROM day)",
        "spent > 100",
        "raw",
        "LOWER(city)",
        "rating // 2",
        "FLOOR(rating / 2) * 2",
        "rating % 3",
        "CONCAT(kind, rating)",
        "COALESCE(kind, 'none')",
        "day",
        "EXTRACT(year FROM day) * 100 + EXTRACT(month FROM day)",
    ],
    "people": [
        "sex",
        "city",
        "age",
        "CASE WHEN age < 30 THEN 1 ELSE 2 END",
        "FLOOR(age / 10) * 10",
        "age % 7",
        "CONCAT(sex, '-', age // 50)",
    ],
    "lines": [
        "flag",
        "amount",
    ],
    "events": [
        "kind",
        "x",
        "y",
    ],
}


def aggregate(dice: random.Random, table: str, prefix="") -> str:
    """Return one aggregate."""
    number = qualified(dice.choice(NUMBERS[table]), prefix)
    column = dice.choice(
        {"visits": ["city", "kind", "day"], "people": ["city", "sex"], "lines": ["flag"], "events": ["kind"]}[table]
    )
    plain = ["COUNT(*)", f"COUNT({number})", f"SUM({number})", f"AVG({number})", f"SUM({number})", f"AVG({number})"]
    rare = [f"VAR_POP({number})", f"STDDEV({number})", f"MEDIAN({number})", f"QUANTILE({number}, 0.9)", f"MAX({number})"]
    rare += [f"COUNT(DISTINCT {prefix}{column})"] + ([] if table in {"events", "lines"} else [f"COUNT(DISTINCT {prefix}id)"])
    found = dice.choice(plain if dice.random() < 0.6 else rare)
    if dice.random() < 0.2:
        found += f" FILTER (WHERE {qualified(dice.choice(PREDICATES[table][:3]), prefix)})"
    return found


def qualified(text: str, prefix: str) -> str:
    """Put an alias before the column names of a template."""
    if not prefix:
        return text
    names = ["spent", "rating", "kind", "city", "day", "raw", "good", "id", "income", "age", "sex", "price", "amount", "flag"]
    words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    return " ".join(prefix + word if word in names else word for word in words)


def random_question(dice: random.Random, tables) -> str:
    """Return a statement; most can be answered, some are refused, which is fine too."""
    if "events" in tables:
        shapes = [over("events"), over("events"), twice("events"), crossed("events")]
        return dice.choice(shapes)(dice)
    shapes = [over("visits")] * 5 + [over("people")] * 2 + [over("lines")] * 2
    shapes += [people_visits, people_visits, public_join, public_join, per_person, per_person, windowed, windowed]
    shapes += [public_tuples, clamped_in_groups, clamped_in_groups, clamped_in_groups, told_apart, told_apart, narrowed]
    shapes += [twice("visits"), self_join, exists, key_path, distinct_rows, shadow, multiplied, picked, picked]
    return dice.choice(shapes)(dice)


def over(table):
    """Return a shape: one table, perhaps filtered, perhaps grouped."""

    def shape(dice):
        where = f" WHERE {dice.choice(PREDICATES[table])}" if dice.random() < 0.5 else ""
        return grouped(dice, table, f"{table}{where}")

    return shape


def grouped(dice, table, source, prefix=""):
    """Return SELECT keys, aggregates FROM source GROUP BY keys."""
    keys = dice.sample(KEYS[table], dice.choice([0, 1, 1, 2]))
    keys = [qualified(key, prefix) for key in keys]
    found = [f"{aggregate(dice, table, prefix)} AS a{place}" for place in range(dice.choice([1, 1, 2, 3]))]
    items = [f"{key} AS k{place}" for place, key in enumerate(keys)] + found
    tail = f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join(items)} FROM {source}{tail}"


def people_visits(dice):
    kind = dice.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    extra = f" AND {qualified(dice.choice(PREDICATES['visits'][:5]), 'v.')}" if dice.random() < 0.3 else ""
    source = f"people p {kind} visits v ON p.id = v.id{extra}"
    if dice.random() < 0.4:
        source += f" WHERE {qualified(dice.choice(PREDICATES['people'][:3]), 'p.')}"
    return grouped(dice, "visits", source, "v.")


def public_join(dice):
    kind = dice.choice(["JOIN", "LEFT JOIN"])
    on = dice.choice(["v.city = r.city", "v.city = r.city", "v.city = r.city AND v.rating > 2", "v.kind <> r.region"])
    source = f"visits v {kind} regions r ON {on}"
    if dice.random() < 0.5:
        count = aggregate(dice, "visits", "v.")
        return f"SELECT r.region, {count} AS a FROM {source} GROUP BY r.region"
    return grouped(dice, "visits", source, "v.")


def per_person(dice):
    inner = dice.choice(
        ["COUNT(*)", "SUM(spent)", "MAX(spent)", "MIN(rating)", "AVG(spent)", "COUNT(DISTINCT city)", "VAR_POP(spent)"]
    )
    where = f" WHERE {dice.choice(PREDICATES['visits'])}" if dice.random() < 0.3 else ""
    having = dice.choice(["", "", " HAVING SUM(spent) > 0.6", " HAVING COUNT(*) > 1", " HAVING AVG(spent) >= 0.2"])
    sub = f"SELECT id, {inner} AS m FROM visits{where} GROUP BY id{having}"
    outer = dice.choice(["SUM(m)", "AVG(m)", "COUNT(*)", "COUNT(m)", "MEDIAN(m)", "COUNT(*) FILTER (WHERE m > 1)"])
    if dice.random() < 0.3:
        sub = f"SELECT id, kind, {inner} AS m FROM visits{where} GROUP BY id, kind{having}"
        return f"SELECT kind, {outer} AS a FROM ({sub}) t GROUP BY kind"
    return f"SELECT {outer} AS a FROM ({sub}) t"


def windowed(dice):
    order = dice.choice(["day", "spent DESC", "kind, rating", "city"])
    call = dice.choice(
        [f"ROW_NUMBER() OVER (PARTITION BY id ORDER BY {order})", f"RANK() OVER (PARTITION BY id ORDER BY {order})"]
    )
    if dice.random() < 0.3:
        call = f"SUM(spent) OVER (PARTITION BY id ORDER BY {order})"
    sub = f"SELECT id, spent, rating, kind, city, day, raw, good, {call} AS w FROM visits"
    return grouped(dice, "visits", f"({sub}) t WHERE w {dice.choice(['= 1', '<= 2', '> 1'])}")


def twice(table):
    """Return a shape: the union of a table with itself."""

    def shape(dice):
        many = dice.choice([2, 3])
        return grouped(dice, table, "(" + " UNION ALL ".join([f"SELECT * FROM {table}"] * many) + ") t")

    return shape


def crossed(table):
    """Return a shape: every row with every row of a public table."""

    def shape(dice):
        return f"SELECT {aggregate(dice, table)} AS a FROM {table} CROSS JOIN regions r"

    return shape


def self_join(dice):
    return grouped(dice, "visits", "visits v JOIN visits w ON v.id = w.id", "v.")


def multiplied(dice):
    """A row for every row of a public table, once or twice: what one person's rows become is multiplied in the open."""
    table = dice.choice(["people p", "visits p"])
    crosses = " ".join(f"CROSS JOIN regions r{place}" for place in range(dice.choice([1, 2])))
    return f"SELECT COUNT(*) AS n FROM {table} {crosses} WHERE p.id {dice.choice(['> 5', '= 7', '< 30'])}"


def picked(dice):
    """One person is picked on one side of a join: the other side must be read whoever is there."""
    one = dice.choice(["p.income > 199000", "p.id = 7", "p.sex = 'b' AND p.age > 100", "p.id IN (3, 38)"])
    kind = dice.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"])
    first, second = dice.choice([("people p", "visits v"), ("visits v", "people p")])
    return f"SELECT COUNT(*) AS n FROM {first} {kind} {second} ON p.id = v.id WHERE {one}"


def exists(dice):
    negated = dice.choice(["", "NOT "])
    sub = f"SELECT 1 FROM visits v WHERE v.id = p.id AND v.{dice.choice(['spent > 100', 'rating = 1', 'kind IS NULL'])}"
    return f"SELECT sex, {aggregate(dice, 'people', 'p.')} AS a FROM people p WHERE {negated}EXISTS ({sub}) GROUP BY sex"


def key_path(dice):
    source = "orders o JOIN lines l ON l.number = o.number"
    if dice.random() < 0.5:
        source = f"people p JOIN orders o ON p.id = o.id {dice.choice(['JOIN', 'LEFT JOIN'])} lines l ON l.number = o.number"
    return grouped(dice, "lines", source, "l.")


def public_tuples(dice):
    """Keys of several public tables, joined with each other and not, absent and not."""
    kind = dice.choice(["JOIN", "LEFT JOIN", "LEFT JOIN"])
    source = f"visits v {kind} regions r ON v.city = r.city"
    keys = ["r.region", "r.city"]
    if dice.random() < 0.5:
        source += f" {dice.choice(['JOIN', 'LEFT JOIN'])} regions q ON r.region = q.region"
        keys += ["q.city", "q.region"]
    if dice.random() < 0.2:
        keys.append("v.kind")
    if dice.random() < 0.4:
        source += (
            f" WHERE {dice.choice(['r.region = $north$', 'r.city IS NOT NULL', 'r.region <> $south$ OR r.city IS NULL'])}"
        )
    chosen = dice.sample(keys, dice.choice([1, 2]))
    items = ", ".join(f"{key} AS k{place}" for place, key in enumerate(chosen))
    groups = ", ".join(str(place + 1) for place in range(len(chosen)))
    return f"SELECT {items}, {aggregate(dice, 'visits', 'v.')} AS a FROM {source} GROUP BY {groups}".replace("$", "'")


def clamped_in_groups(dice):
    """A clamp of a person's own aggregate in each group."""
    key = dice.choice(["kind", "rating", "good", "day", "DATE_TRUNC('month', day)", "EXTRACT(year FROM day)", "rating % 2"])
    inner = dice.choice(["SUM(spent)", "SUM(spent)", "COUNT(*)", "MAX(spent)", "SUM(rating)", "SUM(spent * rating)"])
    low, high = dice.choice([(0, 60), (-100, 300), (5, 5000), (-3, 0)])
    outer = dice.choice(
        [f"SUM(LEAST(GREATEST(s, {low}), {high}))", f"AVG(LEAST(GREATEST(s, {low}), {high}))", "COUNT(*)", "SUM(s)"]
    )
    where = f" WHERE {dice.choice(PREDICATES['visits'])}" if dice.random() < 0.2 else ""
    sub = f"SELECT id, {key} AS m, {inner} AS s FROM visits{where} GROUP BY id, {key}"
    return f"SELECT m, {outer} AS a FROM ({sub}) t GROUP BY m"


def told_apart(dice):
    """DISTINCT rows and inner groups of few values: as many of a person as there are values, NULL among them."""
    table, columns = dice.choice(
        [("visits", ["kind"]), ("visits", ["good"]), ("visits", ["good", "kind"]), ("people", ["sex"]), ("visits", [])]
    )
    names = ", ".join(["id", *columns])
    where = f" WHERE {dice.choice(PREDICATES[table])}" if dice.random() < 0.3 else ""
    inner = dice.choice(
        [f"SELECT DISTINCT {names} FROM {table}{where}", f"SELECT {names} FROM {table}{where} GROUP BY {names}"]
    )
    if columns and dice.random() < 0.5:
        return f"SELECT {columns[0]}, COUNT(*) AS a FROM ({inner}) t GROUP BY {columns[0]}"
    return f"SELECT COUNT(*) AS a FROM ({inner}) t"


def narrowed(dice):
    """Conditions about the very expression that is measured, and arms of a CASE."""
    number = dice.choice(["ABS(spent)", "spent * rating", "rating + 1", "spent", "ROUND(spent)", "rating"])
    low, high = dice.choice([(0, 7), (1, 3), (-50, 50), (10, 10)])
    condition = dice.choice(
        [f"{number} BETWEEN {low} AND {high}", f"{number} > {low} AND {number} < {high}", f"{number} <= {high}"]
    )
    function = dice.choice(["SUM", "AVG"])
    return dice.choice(
        [
            f"SELECT {function}({number}) AS a FROM visits WHERE {condition}",
            f"SELECT {function}({number}) FILTER (WHERE {condition}) AS a FROM visits",
            f"SELECT {function}(CASE WHEN {condition} THEN {number} END) AS a FROM visits",
            f"SELECT kind, {function}(CASE WHEN {condition} THEN {number} ELSE 1 END) AS a FROM visits GROUP BY kind",
        ]
    )


def distinct_rows(dice):
    outer = dice.choice(["COUNT(*)", "AVG(rating)"])
    return f"SELECT kind, {outer} AS a FROM (SELECT DISTINCT id, kind, rating FROM visits) t GROUP BY kind"


def shadow(dice):
    outer = dice.choice(["COUNT(*)", "SUM(spent)", "COUNT(DISTINCT id)"])
    return f"WITH people AS (SELECT * FROM visits) SELECT {outer} AS a FROM people"
