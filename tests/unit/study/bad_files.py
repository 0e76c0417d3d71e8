# ruff: noqa: E501 -- a table: one file and its sentence a row
"""Study files that must be refused, and the exact sentence that each gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bad:
    """A file, the line that is named (None: none is), the sentence after it, and the hint (None: none, or the parser's own)."""

    name: str
    text: str
    line: int | None
    sentence: str
    hint: str | None = None


GOOD = """version = 1
name = "visits"
budget = { epsilon = "3", delta = "1e-6" }
ledger = "visits.ledger"
[tables.visits]
source = "visits.parquet"
unit = "user_id"
[tables.visits.columns]
spent = { type = "float", bounds = [0, 500] }
"""


def change(old, new):
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


COL = 'spent = { type = "float", bounds = [0, 500] }'
UNIT = 'unit = "user_id"\n'


def column(text):
    return change(COL, text)


def table(text):
    return change(UNIT, text)


def more(text):
    return GOOD + text


USERS = '[tables.users]\nsource = "users.parquet"\n'


def path(written, users='unit = "id"\n'):
    return change(UNIT, f"unit = {written}\n") + USERS + users


BAD_FILES = [
    Bad(
        "version missing",
        change("version = 1\n", ""),
        None,
        "version must be present; got nothing.",
        "write version = 1 in the first line",
    ),
    Bad(
        "version 2",
        change("version = 1", "version = 2"),
        1,
        "version must be 1; got 2.",
        "this curador reads version 1 of the study file",
    ),
    Bad("version text", change("version = 1", 'version = "1"'), 1, "version must be a whole number; got '1'."),
    Bad("name missing", change('name = "visits"\n', ""), None, "name must be present; got nothing.", 'write name = "visits"'),
    Bad("name empty", change('name = "visits"', 'name = ""'), 2, "name must be some text of at most 200 characters; got ''."),
    Bad("name number", change('name = "visits"', "name = 5"), 2, "name must be text in quotes; got 5."),
    Bad(
        "name long",
        change('name = "visits"', f'name = "{"x" * 201}"'),
        2,
        "name must be some text of at most 200 characters; got 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx....",
    ),
    Bad(
        "top unknown",
        change("version = 1\n", "version = 1\nbugdet = 5\n"),
        2,
        "bugdet must be a known key (adjacency, allow_large_delta, analysts, budget, engine, least_spend, ledger, max_units, name, tables, unit, version); got 'bugdet'.",
        "did you mean budget?",
    ),
    Bad(
        "top unknown far",
        change("version = 1\n", "version = 1\nzzzzzz = 5\n"),
        2,
        "zzzzzz must be a known key (adjacency, allow_large_delta, analysts, budget, engine, least_spend, ledger, max_units, name, tables, unit, version); got 'zzzzzz'.",
    ),
    Bad(
        "least spend",
        change("version = 1\n", 'version = 1\nleast_spend = "101%"\n'),
        2,
        "least_spend must be a share from 0 % to 100 %, such as \"0.01%\"; got '101%'.",
    ),
    Bad(
        "least spend number",
        change("version = 1\n", "version = 1\nleast_spend = 0.0001\n"),
        2,
        'least_spend must be a share from 0 % to 100 %, such as "0.01%"; got 0.0001.',
    ),
    Bad(
        "answer every",
        GOOD + '\n[engine]\nanswer_every = "soon"\n',
        len(GOOD.split("\n")) + 2,
        '[engine] answer_every must be a duration such as "2s", or "off"; got \'soon\'.',
    ),
    Bad(
        "a deadline between two ticks",
        GOOD + '\n[engine]\nanswer_every = "7s"\n',
        len(GOOD.split("\n")) + 1,
        "[engine] deadline must be a whole number of answer_every, which is 7s; got '60s'.",
    ),
    Bad(
        "budget missing",
        change('budget = { epsilon = "3", delta = "1e-6" }\n', ""),
        None,
        "budget must be present; got nothing.",
        'write budget = { epsilon = "3", delta = "1e-6" }',
    ),
    Bad(
        "budget number",
        change('budget = { epsilon = "3", delta = "1e-6" }', "budget = 3"),
        3,
        'budget must be a table such as { epsilon = "3", delta = "1e-6" }; got 3.',
    ),
    Bad(
        "epsilon missing",
        change('epsilon = "3", ', ""),
        3,
        "budget.epsilon must be present; got nothing.",
        'write budget = { epsilon = "3" }',
    ),
    Bad("epsilon zero", change('epsilon = "3"', "epsilon = 0"), 3, "budget.epsilon must be positive; got 0."),
    Bad(
        "epsilon word",
        change('epsilon = "3"', 'epsilon = "much"'),
        3,
        "budget.epsilon must be a number; got 'much'.",
        'write 0.1, "1e-6", "1/3" or a Fraction',
    ),
    Bad(
        "epsilon nan",
        change('epsilon = "3"', "epsilon = nan"),
        3,
        "budget.epsilon must be a number; got NaN.",
        'write 0.1, "1e-6", "1/3" or a Fraction',
    ),
    Bad("epsilon true", change('epsilon = "3"', "epsilon = true"), 3, "budget.epsilon must be a number; got True."),
    Bad(
        "epsilon hex",
        change('epsilon = "3"', "epsilon = 0x" + "f" * 600),
        3,
        "budget.epsilon must be a number of at most 400 characters; got a longer one.",
    ),
    Bad("delta one", change('delta = "1e-6"', "delta = 1"), 3, "budget.delta must be strictly between 0 and 1; got 1."),
    Bad("delta zero", change('delta = "1e-6"', "delta = 0.0"), 3, "budget.delta must be strictly between 0 and 1; got 0.0."),
    Bad(
        "delta_keys",
        change('delta = "1e-6"', 'delta = "1e-6", delta_keys = "1e-6"'),
        3,
        "budget.delta_keys must be below budget.delta; got '1e-6'.",
    ),
    Bad(
        "delta_keys pure",
        change('delta = "1e-6"', 'delta_keys = "1e-6"'),
        3,
        "budget.delta_keys must be absent where there is no delta; got '1e-6'.",
    ),
    Bad(
        "budget key",
        change('delta = "1e-6"', 'detla = "1e-6"'),
        3,
        "budget.detla must be a known key (delta, delta_keys, epsilon); got 'detla'.",
        "did you mean delta?",
    ),
    Bad(
        "adjacency",
        change("version = 1\n", 'version = 1\nadjacency = "swap"\n'),
        2,
        'adjacency must be "add_or_remove_one" or "replace_one"; got \'swap\'.',
    ),
    Bad(
        "ledger missing",
        change('ledger = "visits.ledger"\n', ""),
        None,
        "ledger must be present; got nothing.",
        'write ledger = "visits.ledger"',
    ),
    Bad(
        "ledger in memory",
        change('ledger = "visits.ledger"', 'ledger = ":memory:"'),
        4,
        "ledger must be a file, as visits is one: a ledger in memory forgets what was spent; got ':memory:'.",
        'name a file; ":memory:" is for made-up data frames, and a sandbox needs no ledger',
    ),
    Bad("ledger empty", change('ledger = "visits.ledger"', 'ledger = ""'), 4, "ledger must be a file name; got ''."),
    Bad("ledger number", change('ledger = "visits.ledger"', "ledger = 7"), 4, "ledger must be text in quotes; got 7."),
    Bad(
        "max_units zero",
        change("version = 1\n", "version = 1\nmax_units = 0\n"),
        2,
        "max_units must be a whole number from 1 to 2^62; got 0.",
    ),
    Bad(
        "max_units float",
        change("version = 1\n", "version = 1\nmax_units = 1e9\n"),
        2,
        "max_units must be a whole number; got 1e+9.",
    ),
    Bad(
        "allow",
        change("version = 1\n", 'version = 1\nallow_large_delta = "yes"\n'),
        2,
        "allow_large_delta must be true or false; got 'yes'.",
    ),
    Bad("threads", more("[engine]\nthreads = 0\n"), 11, "[engine] threads must be a whole number from 1 to 1,024; got 0."),
    Bad(
        "memory",
        more('[engine]\nmemory = "4 parsecs"\n'),
        11,
        "[engine] memory must be a size such as \"4GB\"; got '4 parsecs'.",
    ),
    Bad(
        "memory fraction",
        more('[engine]\nmemory = "0.5B"\n'),
        11,
        "[engine] memory must be a size such as \"4GB\"; got '0.5B'.",
    ),
    Bad("spill", more("[engine]\nspill = true\n"), 11, '[engine] spill must be a size such as "4GB"; got true.'),
    Bad(
        "deadline", more('[engine]\ndeadline = "0s"\n'), 11, "[engine] deadline must be a duration such as \"60s\"; got '0s'."
    ),
    Bad(
        "prepare",
        more('[engine]\nprepare = "sometimes"\n'),
        11,
        "[engine] prepare must be one of auto, always, never; got 'sometimes'.",
    ),
    Bad("worker", more('[engine]\nworker = "thread"\n'), 11, "[engine] worker must be one of process, inline; got 'thread'."),
    Bad(
        "engine key",
        more("[engine]\ntreads = 2\n"),
        11,
        "[engine] treads must be a known key (answer_every, deadline, kind, memory, prepare, prepared, spill, store, threads, unit_rows, unit_work, url, worker, workers); got 'treads'.",
        "did you mean threads?",
    ),
    Bad(
        "engine address with a password",
        more('[engine]\nurl = "postgresql://me:secret@db/shop"\n'),
        11,
        "[engine] url must be an address without user, password, token and options; got one that has them.",
        "who logs in is said by the environment, and the password by ~/.pgpass or the like: many may read a study file",
    ),
    Bad(
        "engine address",
        more('[engine]\nurl = "db.example.org/shop"\n'),
        11,
        '[engine] url must be an address such as "postgresql://db.example.org/shop"; got another text.',
    ),
    Bad(
        "unit table",
        change("version = 1\n", 'version = 1\nunit = "customer"\n'),
        2,
        "unit must be a table such as { name = \"customer\" }; got 'customer'.",
    ),
    Bad("unit name", more('[unit]\nname = ""\n'), 11, "[unit] name must be some text of at most 200 characters; got ''."),
    Bad(
        "no tables",
        "\n".join(GOOD.split("\n")[:4]) + "\n",
        None,
        "tables must be present; got nothing.",
        "write [tables.visits] and below it source and unit",
    ),
    Bad(
        "tables wrong",
        "\n".join(GOOD.split("\n")[:4]) + "\ntables = 5\n",
        5,
        "tables must be a table with a table below it for each table of the study; got 5.",
    ),
    Bad(
        "tables empty",
        "\n".join(GOOD.split("\n")[:4]) + "\n[tables]\n",
        5,
        "[tables] must be tables of which at least one is private; got no table.",
        'a table of people needs unit = "<its column>"',
    ),
    Bad(
        "table wrong",
        "\n".join(GOOD.split("\n")[:4]) + "\n[tables]\nvisits = 5\n",
        6,
        '[tables] visits must be a table such as { source = "visits.parquet", unit = "user_id" }; got 5.',
    ),
    Bad(
        "table key",
        change('source = "visits.parquet"', 'sorce = "visits.parquet"'),
        6,
        "[tables.visits] sorce must be a known key (caps, caps_max, columns, description, format, key, public, source, unique, unit); got 'sorce'.",
        "did you mean source?",
    ),
    Bad(
        "source missing",
        change('source = "visits.parquet"\n', ""),
        5,
        "[tables.visits] source must be present; got nothing.",
        'write source = "visits.parquet"',
    ),
    Bad(
        "source empty",
        change('source = "visits.parquet"', 'source = ""'),
        6,
        "[tables.visits] source must be a file, a glob, a DuckDB file with #table, or \"frame\"; got ''.",
    ),
    Bad(
        "unit missing",
        table(""),
        5,
        '[tables.visits] unit must be a column, "row", or { column = …, references = … }; got nothing.',
        'say whose rows these are: unit = "user_id"; or public = true if they are of nobody',
    ),
    Bad(
        "unit empty",
        table('unit = ""\n'),
        7,
        "[tables.visits] unit must be a column, \"row\", or { column = …, references = … }; got ''.",
        'say whose rows these are: unit = "user_id", or "row" where every row is its own',
    ),
    Bad(
        "unit number",
        table("unit = 5\n"),
        7,
        '[tables.visits] unit must be a column, "row", or { column = …, references = … }; got 5.',
    ),
    Bad(
        "unit list",
        table('unit = ["a"]\n'),
        7,
        '[tables.visits] unit must be a column, "row", or { column = …, references = … }; got ["a"].',
    ),
    Bad(
        "unit reserved",
        table('unit = "__unit"\n'),
        7,
        "[tables.visits] unit must be a column, \"row\", or { column = …, references = … }; got '__unit'.",
    ),
    Bad(
        "unit path without column",
        table('unit = { references = "users" }\n'),
        7,
        "[tables.visits] unit.column must be present; got nothing.",
        'write unit = { column = "user_id", references = "users" }',
    ),
    Bad(
        "unit path key",
        table('unit = { column = "u", reference = "users" }\n'),
        7,
        "[tables.visits] unit.reference must be a known key (column, references); got 'reference'.",
        "did you mean references?",
    ),
    Bad(
        "references unknown",
        path('{ column = "user_id", references = "user" }'),
        7,
        '[tables.visits] unit.references must be a table of this study, or a column of one: "orders" or "orders.o_orderkey"; got \'user\'.',
        "did you mean users?",
    ),
    Bad(
        "references unknown column",
        path('{ column = "user_id", references = "usrs.id" }'),
        7,
        '[tables.visits] unit.references must be a table of this study, or a column of one: "orders" or "orders.o_orderkey"; got \'usrs.id\'.',
        "did you mean users?",
    ),
    Bad(
        "references number",
        path('{ column = "user_id", references = 5 }'),
        7,
        '[tables.visits] unit.references must be a table of this study, or a column of one: "orders" or "orders.o_orderkey"; got 5.',
    ),
    Bad(
        "references public",
        path('{ column = "user_id", references = "users" }', "public = true\n")
        + '[tables.other]\nsource = "o"\nunit = "u"\n',
        7,
        "[tables.visits] unit.references must be a private table; got 'users'.",
        "users is public: its rows belong to nobody",
    ),
    Bad(
        "references row",
        path('{ column = "user_id", references = "users" }', 'unit = "row"\n'),
        7,
        "[tables.visits] unit.references must be a table that holds its unit in a column; got 'users'.",
        'name the key that the column equals: references = ["users", "<column>"]',
    ),
    Bad(
        "references itself",
        table('unit = { column = "user_id", references = "visits.id" }\n'),
        7,
        "[tables.visits] unit must be a chain of references that ends at a unit; got visits -> visits.",
        "one table must name its unit's own column",
    ),
    Bad(
        "cycle",
        path('{ column = "user_id", references = "users.id" }', 'unit = { column = "last", references = "visits.id" }\n'),
        7,
        "[tables.visits] unit must be a chain of references that ends at a unit; got visits -> users -> visits.",
        "one table must name its unit's own column",
    ),
    Bad(
        "references keyless",
        path('{ column = "line", references = "users" }', 'unit = { column = "order", references = "orders.id" }\n')
        + '[tables.orders]\nsource = "o"\nunit = "u"\n',
        7,
        "[tables.visits] unit.references must be a table that holds its unit in a column; got 'users'.",
        'name the key that the column equals: references = ["users", "<column>"]',
    ),
    Bad(
        "references ambiguous",
        path('{ column = "u", references = "a.b" }')
        + '[tables.a]\nsource = "a"\nunit = "b"\n[tables."a.b"]\nsource = "b"\nunit = "c"\n',
        7,
        '[tables.visits] unit.references must be a table of this study, or a column of one: "orders" or "orders.o_orderkey"; got \'a.b\'.',
        'write ["<table>"] or ["<table>", "<column>"]: the text can be read in two ways',
    ),
    Bad(
        "two kinds",
        GOOD + USERS + 'unit = "row"\n',
        12,
        "[tables.users] unit must be of one kind with that of visits; got 'row'.",
        "a study protects one kind of unit; give the other tables a study of their own, or a unit column",
    ),
    Bad(
        "two rows",
        table('unit = "row"\n') + USERS + 'unit = "row"\n',
        7,
        "[tables.visits] unit must be of one kind with that of users; got 'row'.",
        "a study protects one kind of unit; give the other tables a study of their own, or a unit column",
    ),
    Bad(
        "unit types",
        path('{ column = "user_id", references = "users" }').replace(COL, 'user_id = { type = "string" }')
        + 'columns.id = { type = "integer" }\n',
        13,
        "[tables.users] columns.id.type must be string, the type of visits.user_id; got integer.",
    ),
    Bad(
        "unit types of two columns",
        column('user_id = { type = "string" }') + USERS + 'unit = "id"\ncolumns.id = { type = "integer" }\n',
        13,
        "[tables.users] columns.id.type must be string, the type of visits.user_id; got integer.",
    ),
    Bad(
        "unit types of a key",
        path('{ column = "user_id", references = "users.key" }').replace(COL, 'user_id = { type = "string" }')
        + 'columns.key = { type = "integer" }\n',
        9,
        "[tables.visits.columns] user_id.type must be integer, the type of users.key; got string.",
    ),
    Bad(
        "unit float",
        column('user_id = { type = "float" }'),
        9,
        "[tables.visits.columns] user_id.type must be a type that can name a unit; got float.",
        'who somebody is must be exact: declare the column as "integer" or "string"',
    ),
    Bad(
        "only public",
        table("public = true\n"),
        5,
        "tables must be tables of which at least one is private; got none.",
        'a table of people needs unit = "<its column>"',
    ),
    Bad(
        "public and unit",
        table('unit = "user_id"\npublic = true\n'),
        8,
        "[tables.visits] public must be absent for a table with a unit; got true.",
    ),
    Bad(
        "public caps",
        table("public = true\ncaps = { rows = 5 }\n"),
        8,
        "[tables.visits] caps must be absent for a public table; got { rows = 5 }.",
        "a public table belongs to nobody",
    ),
    Bad(
        "public caps_max",
        table("public = true\ncaps_max = { rows = 5 }\n"),
        8,
        "[tables.visits] caps_max must be absent for a public table; got { rows = 5 }.",
        "a public table belongs to nobody",
    ),
    Bad(
        "public unique",
        table("public = true\nunique = true\n"),
        8,
        "[tables.visits] unique must be absent for a public table; got true.",
        "a public table belongs to nobody",
    ),
    Bad("public text", table('public = "yes"\n'), 7, "[tables.visits] public must be true or false; got 'yes'."),
    Bad(
        "private key",
        table('unit = "user_id"\nkey = ["id"]\n'),
        8,
        '[tables.visits] key must be absent for a private table; got ["id"].',
        "key is for public tables; say unique = true for units",
    ),
    Bad("key text", table('public = true\nkey = "id"\n'), 8, "[tables.visits] key must be a list of columns; got 'id'."),
    Bad("key item", table("public = true\nkey = [1]\n"), 8, "[tables.visits] key must be a list of texts in quotes; got 1."),
    Bad(
        "key repeated",
        table('public = true\nkey = ["a", "a"]\n'),
        8,
        '[tables.visits] key must be a list without repetition; got ["a", "a"].',
    ),
    Bad(
        "caps zero",
        table('unit = "user_id"\ncaps = { rows = 0 }\n'),
        8,
        "[tables.visits] caps.rows must be a whole number from 1 to 1,000,000; got 0.",
    ),
    Bad(
        "caps float",
        table('unit = "user_id"\ncaps = { rows = 1.5 }\n'),
        8,
        "[tables.visits] caps.rows must be a whole number; got 1.5.",
    ),
    Bad(
        "caps number",
        table('unit = "user_id"\ncaps = 10\n'),
        8,
        "[tables.visits] caps must be a table such as { rows = 20, groups = 5 }; got 10.",
    ),
    Bad(
        "caps key",
        table('unit = "user_id"\ncaps = { row = 10 }\n'),
        8,
        "[tables.visits] caps.row must be a known key (groups, rows, rows_per_group); got 'row'.",
        "did you mean rows?",
    ),
    Bad(
        "caps_max low",
        table('unit = "user_id"\ncaps = { rows = 20 }\ncaps_max = { rows = 10 }\n'),
        9,
        "[tables.visits] caps_max.rows must be at least caps.rows, which is 20; got 10.",
    ),
    Bad(
        "caps_max zero",
        table('unit = "user_id"\ncaps = { rows = 5 }\ncaps_max = { groups = 0 }\n'),
        9,
        "[tables.visits] caps_max.groups must be a whole number from 1 to 1,000,000; got 0.",
    ),
    Bad(
        "case tables",
        GOOD + '[tables.VISITS]\nsource = "x"\nunit = "u"\n',
        10,
        "[tables.VISITS] must be unlike 'visits' in more than letter case; got 'VISITS'.",
    ),
    Bad(
        "reserved table",
        GOOD + '[tables.__x]\nsource = "x"\nunit = "u"\n',
        10,
        "[tables.__x] must be a name of 1 to 200 characters, without NUL, that does not begin with \"__\"; got '__x'.",
    ),
    Bad(
        "case columns",
        column('spent = { type = "float" }\nSpent = { type = "float" }'),
        10,
        "[tables.visits.columns] Spent must be unlike 'spent' in more than letter case; got 'Spent'.",
    ),
    Bad(
        "reserved column",
        column('__rank = { type = "integer" }'),
        9,
        "[tables.visits.columns] __rank must be a name of 1 to 200 characters, without NUL, that does not begin with \"__\"; got '__rank'.",
    ),
    Bad(
        "nul column",
        column('"a\\u0000" = { type = "integer" }'),
        9,
        '[tables.visits.columns] "a\\u0000" must be a name of 1 to 200 characters, without NUL, that does not begin with "__"; got \'a\\x00\'.',
    ),
    Bad(
        "type missing",
        column("spent = { bounds = [0, 1] }"),
        9,
        "[tables.visits.columns] spent.type must be present; got nothing.",
        'write type = "integer", or boolean, decimal, float, string, date, timestamp',
    ),
    Bad(
        "type synonym",
        column('spent = { type = "int" }'),
        9,
        "[tables.visits.columns] spent.type must be one of boolean, integer, decimal, float, string, date, timestamp; got 'int'.",
        "did you mean integer?",
    ),
    Bad(
        "type typo",
        column('spent = { type = "flaot" }'),
        9,
        "[tables.visits.columns] spent.type must be one of boolean, integer, decimal, float, string, date, timestamp; got 'flaot'.",
        "did you mean float?",
    ),
    Bad(
        "type far",
        column('spent = { type = "blob" }'),
        9,
        "[tables.visits.columns] spent.type must be one of boolean, integer, decimal, float, string, date, timestamp; got 'blob'.",
    ),
    Bad(
        "column text",
        column('spent = "float"'),
        9,
        "[tables.visits.columns] spent must be a table such as { type = \"integer\", bounds = [0, 100] }; got 'float'.",
    ),
    Bad(
        "column key",
        column('spent = { type = "float", bound = [0, 1] }'),
        9,
        "[tables.visits.columns] spent.bound must be a known key (bounds, description, length, nullable, type, values); got 'bound'.",
        "did you mean bounds?",
    ),
    Bad(
        "bounds swapped",
        column('spent = { type = "float", bounds = [500, 0] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two numbers, lower below upper; got [500, 0].",
        "write bounds = [0, 500]",
    ),
    Bad(
        "bounds equal",
        column('spent = { type = "float", bounds = [1, 1.0] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two numbers, lower below upper; got [1, 1.0].",
        "bounds with nothing between them would replace every value",
    ),
    Bad(
        "bounds one",
        column('spent = { type = "float", bounds = [1] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two numbers, lower below upper; got [1].",
    ),
    Bad(
        "bounds number",
        column('spent = { type = "float", bounds = 5 }'),
        9,
        "[tables.visits.columns] spent.bounds must be a list of two values, lower below upper; got 5.",
    ),
    Bad(
        "bounds inf",
        column('spent = { type = "float", bounds = [0, inf] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two numbers, lower below upper; got [0, inf].",
        'write a finite number: 0.5, 100 or "1e-6"',
    ),
    Bad(
        "bounds nan",
        column('spent = { type = "float", bounds = [0, nan] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two numbers, lower below upper; got [0, nan].",
        'write a finite number: 0.5, 100 or "1e-6"',
    ),
    Bad(
        "bounds word",
        column('spent = { type = "float", bounds = ["low", "high"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two numbers, lower below upper; got ["low", "high"].',
        'write a finite number: 0.5, 100 or "1e-6"',
    ),
    Bad(
        "bounds far float",
        column('spent = { type = "float", bounds = [0, 1e301] }'),
        9,
        "[tables.visits.columns] spent.bounds must be between -1e300 and 1e300; got [0, 1e+301].",
    ),
    Bad(
        "bounds far int",
        column('spent = { type = "integer", bounds = [0, 4611686018427387905] }'),
        9,
        "[tables.visits.columns] spent.bounds must be between -2^62 and 2^62; got [0, 4611686018427387905].",
    ),
    Bad(
        "bounds far decimal",
        column('spent = { type = "decimal", bounds = [0, 1e39] }'),
        9,
        "[tables.visits.columns] spent.bounds must be between -1e38 and 1e38; got [0, 1e+39].",
    ),
    Bad(
        "bounds fraction",
        column('spent = { type = "integer", bounds = [0, 0.5] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two whole numbers, lower below upper; got [0, 0.5].",
        'an integer column holds whole numbers; declare type = "decimal" or "float" for others',
    ),
    Bad(
        "bounds integer text",
        column('spent = { type = "integer", bounds = ["0", "5"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two whole numbers, lower below upper; got ["0", "5"].',
        'an integer column holds whole numbers: write them without quotes, or declare type = "string"',
    ),
    Bad(
        "bounds of string",
        column('spent = { type = "string", bounds = ["a", "z"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be absent for a string column; got ["a", "z"].',
        "bounds are for numbers, dates and timestamps; list what may stand there with values",
    ),
    Bad(
        "bounds of boolean",
        column('spent = { type = "boolean", bounds = [false, true] }'),
        9,
        "[tables.visits.columns] spent.bounds must be absent for a boolean column; got [false, true].",
        "bounds are for numbers, dates and timestamps; list what may stand there with values",
    ),
    Bad(
        "bounds date number",
        column('spent = { type = "date", bounds = [1992, 1998] }'),
        9,
        "[tables.visits.columns] spent.bounds must be two dates, lower below upper; got [1992, 1998].",
        'write a day of the years 1 to 9999 as "2024-12-31"; with a time of day the type is "timestamp"',
    ),
    Bad(
        "bounds date time",
        column('spent = { type = "date", bounds = [1992-01-01T00:00:00, 1998-01-01] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two dates, lower below upper; got ["1992-01-01T00:00:00", "1998-01-01"].',
        'write a day of the years 1 to 9999 as "2024-12-31"; with a time of day the type is "timestamp"',
    ),
    Bad(
        "bounds date none",
        column('spent = { type = "date", bounds = ["1992-02-30", "1998-01-01"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two dates, lower below upper; got ["1992-02-30", "1998-01-01"].',
        'write a day of the years 1 to 9999 as "2024-12-31"; with a time of day the type is "timestamp"',
    ),
    Bad(
        "bounds date week",
        column('spent = { type = "date", bounds = ["1992-W01-1", "1998-01-01"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two dates, lower below upper; got ["1992-W01-1", "1998-01-01"].',
        'write a day of the years 1 to 9999 as "2024-12-31"; with a time of day the type is "timestamp"',
    ),
    Bad(
        "bounds date swapped",
        column('spent = { type = "date", bounds = ["1998-01-01", "1992-01-01"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two dates, lower below upper; got ["1998-01-01", "1992-01-01"].',
        'write bounds = ["1992-01-01", "1998-01-01"]',
    ),
    Bad(
        "bounds timestamp",
        column('spent = { type = "timestamp", bounds = ["yesterday", "1992-01-01"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two timestamps, lower below upper; got ["yesterday", "1992-01-01"].',
        'write a time of the years 1 to 9999 as "2024-12-31T23:59:59"',
    ),
    Bad(
        "bounds timestamp far",
        column('spent = { type = "timestamp", bounds = ["0001-01-01T00:00:00+10:00", "1992-01-01"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two timestamps, lower below upper; got ["0001-01-01T00:00:00+10:00", "1992-01-01"].',
        'write a time of the years 1 to 9999 as "2024-12-31T23:59:59"',
    ),
    Bad(
        "bounds time",
        column('spent = { type = "timestamp", bounds = [07:32:00, "1992-01-01"] }'),
        9,
        '[tables.visits.columns] spent.bounds must be two timestamps, lower below upper; got [07:32:00, "1992-01-01"].',
        'write a time of the years 1 to 9999 as "2024-12-31T23:59:59"',
    ),
    Bad(
        "values string number",
        column('spent = { type = "string", values = ["a", 5] }'),
        9,
        "[tables.visits.columns] spent.values must be a list of strings; got 5.",
        'a string column holds text: write "5" with quotes, or declare another type',
    ),
    Bad(
        "values string date",
        column('spent = { type = "string", values = [2024-01-01] }'),
        9,
        '[tables.visits.columns] spent.values must be a list of strings; got "2024-01-01".',
        'a string column holds text: write "2024-01-01" with quotes, or declare another type',
    ),
    Bad(
        "values integer text",
        column('spent = { type = "integer", values = [1, "2"] }'),
        9,
        "[tables.visits.columns] spent.values must be a list of whole numbers; got '2'.",
        'an integer column holds whole numbers: write them without quotes, or declare type = "string"',
    ),
    Bad(
        "values boolean text",
        column('spent = { type = "boolean", values = ["true"] }'),
        9,
        "[tables.visits.columns] spent.values must be a list of booleans; got 'true'.",
        "a boolean column holds true and false, without quotes",
    ),
    Bad(
        "values empty",
        column('spent = { type = "string", values = [] }'),
        9,
        "[tables.visits.columns] spent.values must be a list of 1 to 100,000 strings; got [].",
    ),
    Bad(
        "values text",
        column('spent = { type = "string", values = "abc" }'),
        9,
        "[tables.visits.columns] spent.values must be a list of values; got 'abc'.",
    ),
    Bad(
        "values repeated",
        column('spent = { type = "string", values = ["a", "b", "a"] }'),
        9,
        "[tables.visits.columns] spent.values must be a list without repetition; got 'a'.",
        "it repeats value number 1",
    ),
    Bad(
        "values repeated decimal",
        column('spent = { type = "decimal", values = [1, "1.0"] }'),
        9,
        "[tables.visits.columns] spent.values must be a list without repetition; got '1.0'.",
        "it repeats value number 1",
    ),
    Bad(
        "values far",
        column('spent = { type = "integer", values = [9223372036854775807] }'),
        9,
        "[tables.visits.columns] spent.values must be between -2^62 and 2^62; got 9223372036854775807.",
    ),
    Bad(
        "values long",
        column('spent = { type = "string", values = ["abc"], length = 2 }'),
        9,
        "[tables.visits.columns] spent.values must be a list of strings of at most 2 characters, the declared length; got 'abc'.",
    ),
    Bad(
        "values nul",
        column('spent = { type = "string", values = ["a\\u0000"] }'),
        9,
        "[tables.visits.columns] spent.values must be a list of strings without NUL; got 'a\\x00'.",
    ),
    Bad(
        "values lines",
        column('spent = { type = "string", values = [\n  "a",\n  "b", # two\n  3,\n] }'),
        12,
        "[tables.visits.columns] spent.values must be a list of strings; got 3.",
        'a string column holds text: write "3" with quotes, or declare another type',
    ),
    Bad(
        "length of number",
        column('spent = { type = "float", length = 5 }'),
        9,
        "[tables.visits.columns] spent.length must be absent for a float column; got 5.",
        "length is the longest LENGTH of a string column",
    ),
    Bad(
        "length zero",
        column('spent = { type = "string", length = 0 }'),
        9,
        "[tables.visits.columns] spent.length must be a whole number from 1 to 1,000,000,000; got 0.",
    ),
    Bad(
        "description empty",
        column('spent = { type = "float", description = "" }'),
        9,
        "[tables.visits.columns] spent.description must be a text of 1 to 1,000 characters, without NUL; got ''.",
    ),
    Bad(
        "nullable text",
        column('spent = { type = "float", nullable = "no" }'),
        9,
        "[tables.visits.columns] spent.nullable must be true or false; got 'no'.",
    ),
    Bad(
        "subtable",
        column("") + '[tables.visits.columns."total spent"]\ntype = "float"\nbounds = [500, 0]\n',
        12,
        '[tables.visits.columns."total spent"] bounds must be two numbers, lower below upper; got [500, 0].',
        "write bounds = [0, 500]",
    ),
    Bad(
        "dotted",
        change("[tables.visits.columns]\n", "")[: -len(COL) - 1]
        + 'columns.spent.type = "float"\ncolumns.spent.bounds = [500, 0]\n',
        9,
        "[tables.visits] columns.spent.bounds must be two numbers, lower below upper; got [500, 0].",
        "write bounds = [0, 500]",
    ),
    Bad(
        "share",
        more("[analysts]\nana = { share = 0.2 }\n"),
        11,
        '[analysts] ana.share must be a share above 0 % and at most 100 %, such as "20%"; got 0.2.',
    ),
    Bad(
        "share high",
        more('[analysts]\nana = { share = "101%" }\n'),
        11,
        "[analysts] ana.share must be a share above 0 % and at most 100 %, such as \"20%\"; got '101%'.",
    ),
    Bad(
        "share zero",
        more('[analysts]\nana = { share = "0%" }\n'),
        11,
        "[analysts] ana.share must be a share above 0 % and at most 100 %, such as \"20%\"; got '0%'.",
    ),
    Bad(
        "analyst text",
        more('[analysts]\nana = "20%"\n'),
        11,
        "[analysts] ana must be a table such as { share = \"20%\" }; got '20%'.",
    ),
    Bad(
        "analyst key",
        more('[analysts]\nana = { shares = "20%" }\n'),
        11,
        "[analysts] ana.shares must be a known key (share, tables, train); got 'shares'.",
        "did you mean share?",
    ),
    Bad(
        "analyst tables",
        more('[analysts]\nana = { tables = ["visit"] }\n'),
        11,
        "[analysts] ana.tables must be a list of tables of this study; got 'visit'.",
        "did you mean visits?",
    ),
    Bad(
        "analyst tables none",
        more("[analysts]\nana = { tables = [] }\n"),
        11,
        "[analysts] ana.tables must be a list of tables without repetition; got [].",
        "leave it out for all tables",
    ),
    Bad(
        "analyst tables twice",
        more('[analysts]\nana = { tables = ["visits", "visits"] }\n'),
        11,
        '[analysts] ana.tables must be a list of tables without repetition; got ["visits", "visits"].',
        "leave it out for all tables",
    ),
    Bad(
        "analyst tables text",
        more('[analysts]\nana = { tables = "visits" }\n'),
        11,
        "[analysts] ana.tables must be a list of tables; got 'visits'.",
    ),
    Bad(
        "analyst owner",
        more('[analysts]\nOwner = { share = "20%" }\n'),
        11,
        '[analysts] Owner must be a name of 1 to 200 characters, without NUL, that does not begin with "__" and is not "owner"; got \'Owner\'.',
    ),
    Bad(
        "analysts case",
        more("[analysts]\nana = {}\nAna = {}\n"),
        12,
        "[analysts] Ana must be unlike 'ana' in more than letter case; got 'Ana'.",
    ),
    Bad("train", more("[analysts]\nana = { train = 1 }\n"), 11, "[analysts] ana.train must be true or false; got 1."),
    Bad(
        "array of tables",
        more('[[analysts]]\nname = "ana"\n'),
        10,
        '[analysts] must be a table with a table below it for each analyst; got [{ name = "ana" }].',
    ),
    Bad("not toml", change('name = "visits"', "name = visits"), 2, "the text must be TOML; got 'name = visits'."),
    Bad(
        "repeated key",
        change('name = "visits"', 'name = "visits"\nname = "other"'),
        3,
        "the text must be TOML; got 'name = \"other\"'.",
    ),
    Bad("unclosed", GOOD + "[analysts\n", 10, "the text must be TOML; got '[analysts'."),
    Bad("empty", "", None, "version must be present; got nothing.", "write version = 1 in the first line"),
]
