"""A thousand and more ways to write a statement that touches the table `visits`, from lists and by a seed."""

# ruff: noqa: E501 -- statements stand side by side

import itertools
import random

NAMES = [
    "visits", "VISITS", "Visits", '"visits"', "public.visits", 'public."visits"', '"public"."visits"', "PUBLIC.VISITS",
    "clinic.public.visits", '"clinic"."public"."visits"', "ONLY visits", "ONLY (visits)", "visits*", "visits *", "(visits)",
    "visits AS v", "visits v", 'visits AS "pg_class"', "public . visits", "public/**/./**/visits", "visits TABLESAMPLE SYSTEM (100)",
    "visits TABLESAMPLE BERNOULLI (100) REPEATABLE (1)", 'U&"\\0076isits"', "U&\"!0076isits\" UESCAPE '!'", "LATERAL (SELECT * FROM visits) x",
    "visits CROSS JOIN pg_class", "pg_class, visits", "pg_class JOIN visits ON true", "(SELECT * FROM visits) AS pg_class",
    "(TABLE visits) x", "(VALUES (1)) v(x), visits", "ROWS FROM (generate_series(1, 2)) g, visits", "information_schema.tables, visits",
    "visits NATURAL JOIN visits v2", "visits v(a)", '"visits" "select"', "visits\n--x\n", "visits/*x*/", "/* a /* b */ c */visits",
]  # fmt: skip

LISTS = ["*", "count(*)", "visits", "visits.*", "city", "array_agg(city)", "min(ctid::text)", "tableoid", "1", "string_agg(city, ',')",
         "row_to_json(visits)", "to_jsonb(visits.*)", "xmlagg(xmlelement(name x, city))", "(visits).city", "count(visits)",
         "max(city) FILTER (WHERE true)", "json_agg(visits)", "DISTINCT city", "", "exists(select 1 from visits)"]  # fmt: skip

SHAPES = [
    "SELECT {list} FROM {name}",
    "select {list} from {name} limit 1",
    "SELECT {list} FROM {name} WHERE true ORDER BY 1",
    "WITH w AS (SELECT {list} FROM {name}) SELECT * FROM w",
    "WITH pg_class AS (SELECT {list} FROM {name}) SELECT * FROM pg_class",
    "WITH visits AS (SELECT {list} FROM {name}) SELECT * FROM visits",
    "WITH visits AS MATERIALIZED (SELECT * FROM {name}) TABLE visits",
    "SELECT (SELECT {list} FROM {name} LIMIT 1)",
    "SELECT ARRAY(SELECT {list} FROM {name})",
    "SELECT relname, (SELECT count(*) FROM {name}) FROM pg_class",
    "SELECT * FROM pg_class WHERE EXISTS (SELECT 1 FROM {name})",
    "SELECT relname FROM pg_class WHERE relname IN (SELECT city FROM {name})",
    "SELECT 1 UNION ALL SELECT 1 FROM {name}",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM {name}) THEN 1 ELSE 0 END",
    "(((SELECT {list} FROM {name})))",
    "SELECT * FROM (SELECT {list} FROM {name}) AS x",
    "/* {name} */ SELECT {list} -- from pg_class\r\nFROM {name}",
    "\n\t SELECT\n{list}\fFROM\v{name}",
    "SELECT count(*) FROM pg_class c, LATERAL (SELECT {list} FROM {name}) x",
    "VALUES ((SELECT count(*) FROM {name}))",
    "EXPLAIN ANALYZE SELECT {list} FROM {name}",
    "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT {list} FROM {name}",
    "PREPARE p AS SELECT {list} FROM {name}",
    "DECLARE c CURSOR WITH HOLD FOR SELECT {list} FROM {name}",
    "COPY (SELECT {list} FROM {name}) TO STDOUT",
    "SELECT {list} INTO other FROM {name}",
    "CREATE TEMP TABLE t AS SELECT {list} FROM {name}",
    "CREATE VIEW v AS SELECT {list} FROM {name}",
    "SELECT {list} FROM {name} FOR UPDATE",
    "SET search_path = pg_catalog; SELECT {list} FROM {name}",
    "BEGIN; SELECT {list} FROM {name}; COMMIT",
    "SELECT 1; SELECT {list} FROM {name}",
    "SELECT 1;;; SELECT {list} FROM {name};",
]

WHOLE = [
    "TABLE visits", "TABLE ONLY visits", "table public.visits", "TABLE visits*", "COPY visits TO STDOUT", "COPY public.visits (city) TO STDOUT",
    "COPY visits TO PROGRAM 'cat'", "COPY BINARY visits TO STDOUT", "COPY visits FROM STDIN", "DO 'begin perform 1 from visits; end'",
    "DO LANGUAGE sql 'select * from visits'", "LOCK TABLE visits", "ANALYZE visits", "VACUUM visits", "TRUNCATE visits", "CLUSTER visits",
    "REINDEX TABLE visits", "INSERT INTO visits DEFAULT VALUES RETURNING *", "UPDATE visits SET city = city RETURNING *",
    "DELETE FROM visits RETURNING *", "WITH d AS (DELETE FROM visits RETURNING *) SELECT * FROM d",
    "MERGE INTO visits USING visits v ON false WHEN NOT MATCHED THEN DO NOTHING", "CREATE TABLE x AS TABLE visits",
    "CREATE TABLE x (LIKE visits INCLUDING ALL)", "CREATE TABLE x () INHERITS (visits)", "ALTER TABLE visits OWNER TO analyst",
    "GRANT SELECT ON visits TO analyst", "CREATE FUNCTION f() RETURNS text LANGUAGE sql AS 'select city from visits'",
    "CREATE RULE r AS ON SELECT TO visits DO INSTEAD SELECT 1", "CREATE MATERIALIZED VIEW m AS TABLE visits",
    "SELECT query_to_xml('select * from visits', true, true, '')", "SELECT table_to_xml('visits', true, true, '')",
    "SELECT database_to_xml(true, true, '')", "SELECT schema_to_xml('public', true, true, '')",
    "SELECT query_to_xml_and_xmlschema('select city from visits', true, true, '')", "SELECT table_to_xml('visits'::regclass, true, false, '')",
    "SELECT pg_catalog.query_to_xml('table visits', true, true, '')", 'SELECT "query_to_xml"(\'table visits\', true, true, \'\')',
    'SELECT U&"qu\\0065ry_to_xml"(\'table visits\', true, true, \'\')', "SELECT * FROM ts_stat('select to_tsvector(city) from visits')",
    "SELECT ts_rewrite('a'::tsquery, 'select city::tsquery, city::tsquery from visits')", "SELECT cursor_to_xml('c', 1, true, true, '')",
    "SELECT xpath('/', query_to_xml('table visits', true, true, ''))", "SELECT * FROM xmltable('/*' PASSING table_to_xml('visits', true, true, '') COLUMNS a text)",
    "SELECT dblink('', 'table visits')", "SELECT lo_import('visits')", "SELECT pg_read_file('base')", "SELECT currtid2('visits', '(0,1)')",
    "SELECT pg_get_viewdef('visits'::regclass)", "SELECT 'visits'::regclass", "SELECT row(visits.*) FROM visits", "SELECT NULL::visits",
    "SELECT (json_populate_record(NULL::visits, '{}')).*", "SELECT * FROM json_populate_recordset(NULL::visits, '[{}]')",
    "SELECT most_common_vals FROM pg_stats WHERE tablename = 'visits'", "SELECT * FROM pg_statistic", "SELECT stavalues1 FROM pg_statistic",
    "SELECT * FROM heap_page_items(get_raw_page('visits', 0))", "SELECT pg_relation_filepath('visits')", "EXECUTE visits", "FETCH ALL FROM visits",
    "SELECT * FROM pg_stat_user_tables", "SELECT pg_stat_get_live_tuples('visits'::regclass)", "SELECT n_live_tup FROM pg_stat_all_tables",
    "SELECT query FROM pg_stat_activity", "SELECT set_config('search_path', 'public', false), (SELECT count(*) FROM visits)",
    "SELECT current_setting('x' || (SELECT count(*) FROM visits)::text, true)", "IMPORT FOREIGN SCHEMA public FROM SERVER s INTO public",
    "SELECT * FROM pg_catalog.visits", "SELECT * FROM information_schema.visits", "SELECT $$select * from visits$$", "SELECT 'visits'",
    "SELECT count(*) FROM pg_class visits", "SELECT visits.relname FROM pg_class AS visits", "SELECT 1 AS visits", 'SELECT 1 "visits"',
    "HANDLER visits OPEN", "SHOW visits", "DESCRIBE visits", "FROM visits", "FROM visits SELECT *", "PIVOT visits ON city", "SUMMARIZE visits",
    "SELECT * FROM visits QUALIFY true", "SELECT * FROM visits MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS true)", "SELECT city FROM visits WINDOW w AS ()",
    "SELECT * FROM visits PIVOT (count(*) FOR city IN ('a'))", "CALL visits()", "NOTIFY visits", "LISTEN visits", "REFRESH MATERIALIZED VIEW visits",
    "SELECT * FROM \u0076isits", "SELECT * FROM visits\u00a0", "SELECT * FROM\u3000visits", "SELECT\ufeff * FROM visits", "SELECT * FROM v\u0131sits",
    "SELECT * FROM visits\u200b", "SELECT 1 --\r, (SELECT city FROM visits)", "SELECT E'\\' FROM visits --'", "SELECT '\\' , city FROM visits --'",
    "SELECT $a$ ' $a$, city FROM visits --'", "SELECT $é$ ' $é$, city FROM visits", "SELECT /* /* */ 1, city FROM visits -- */",
    "SELECT B'1', city FROM visits", "SELECT N'x', city FROM visits", "SELECT 'a'\n'b', city FROM visits", "SELECT 1.e1, city FROM visits",
    "SELECT 1 OPERATOR(pg_catalog.+) (SELECT count(*) FROM visits)", "SELECT ALL city FROM visits", "SELECT DISTINCT ON (city) city FROM visits",
    "SELECT city FROM visits FETCH FIRST ROW ONLY", "SELECT city FROM visits OFFSET 0 ROWS", "SELECT count(*) OVER () FROM visits",
    "SELECT unnest(array_agg(city)) FROM visits", "SELECT city FROM visits GROUP BY GROUPING SETS ((city), ())", "SELECT 1 FROM visits HAVING true",
    "SELECT pg_typeof(v) FROM visits v", "SELECT v::text FROM visits v", 'SELECT city COLLATE "C" FROM visits', "SELECT (SELECT v FROM visits v LIMIT 1)::text",
    "SELECT * FROM (pg_class CROSS JOIN visits)", "SELECT * FROM ((visits))", "SELECT * FROM visits JOIN LATERAL (SELECT 1) x ON true",
]  # fmt: skip

ROW_TYPES = [
    "SELECT (NULL::visits).city", "SELECT NULL::public.visits IS NULL", 'SELECT (NULL::"visits").*', "SELECT pg_column_size(NULL::visits)",
    "SELECT count(*) FROM json_populate_recordset(NULL::visits, '[]')", "SELECT * FROM json_populate_recordset(NULL::visits, '[]')",
    "SELECT * FROM jsonb_populate_record(NULL::clinic.public.visits, '{}')", "SELECT count(*) FROM unnest('{}'::visits[])",
    "SELECT sum(spent) FROM unnest('{}'::public.visits[])", "SELECT * FROM unnest(ARRAY[]::visits[]) v", "SELECT cardinality('{}'::_visits)",
    "SELECT CAST(NULL AS visits)", "SELECT CAST('{}' AS VISITS ARRAY)", "SELECT * FROM jsonb_to_record('{}') AS x(a visits)",
    "SELECT * FROM jsonb_to_recordset('[]') AS x(a public._visits)", "SELECT visits '(,,,,,,,)'", "SELECT (visits '(,,,,,,,)').city",
    "SELECT visits('()')", "SELECT TREAT(NULL AS visits)", "SELECT JSON_VALUE('{}', '$' RETURNING visits)", "SELECT JSON_QUERY('{}', '$' RETURNING visits)",
    "SELECT * FROM json_table('[]', '$[*]' COLUMNS (a visits PATH '$'))", "SELECT NULL::visits%TYPE", "SELECT visits.city%TYPE FROM pg_class",
    "SELECT ARRAY[]::visits[]", "SELECT ('{}'::visits[])[1].city", "SELECT coalesce(NULL::visits, NULL)", "SELECT NULL::visits::text",
    "SELECT * FROM ROWS FROM (json_populate_recordset(NULL::visits, '[]')) v", "SELECT '{}'::visits[] = '{}'", "SELECT 1 FROM pg_class WHERE NULL::visits IS NOT NULL",
]  # fmt: skip
"""They name the type of the table's rows."""

DEAD = [
    "SELECT coalesce(0, (SELECT 1 FROM ({query}) x))",
    "SELECT 0 WHERE false AND EXISTS ({query})",
    "SELECT CASE WHEN true THEN 0 ELSE (SELECT count(*) FROM ({query}) x) END",
    "WITH unused AS ({query}) SELECT 0 AS count",
    "SELECT count(*) FROM pg_class WHERE false AND EXISTS ({query})",
    "EXPLAIN ANALYZE SELECT 0 WHERE false AND EXISTS ({query})",
    "SELECT 0 FROM pg_class LEFT JOIN LATERAL ({query}) x ON false LIMIT 1",
]
"""Where PostgreSQL drops what touches a table before it asks whether the role may read it."""


def touching():
    """Return the statements that touch the table, however they are wrapped."""
    whole = set(WHOLE)
    plain = [f"SELECT {items} FROM {name}" for items, name in itertools.product(("count(*)", "1"), NAMES)] + ROW_TYPES
    dead = [shape.format(query=query) for shape, query in itertools.product(DEAD, plain)]
    return list(dict.fromkeys([*plain, *dead, *(text for text in spellings() if text not in whole)]))


def spellings(most=1_400, seed=20):
    """Return the statements, each once: all whole ones, then combinations drawn by the seed."""
    chosen = random.Random(seed)
    made = [shape.format(list=items, name=name) for shape, items, name in itertools.product(SHAPES, LISTS, NAMES)]
    chosen.shuffle(made)
    cases = (str.upper, str.lower, str.title)
    varied = [chosen.choice(cases)(one) if chosen.random() < 0.1 else one for one in made]
    return list(dict.fromkeys([*WHOLE, *varied]))[:most]
