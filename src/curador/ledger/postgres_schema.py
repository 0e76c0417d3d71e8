"""What a ledger is inside PostgreSQL: its tables, the rules that the server keeps by itself, and who may do what.

The schema belongs to an owner's role, which makes it and is not used afterwards. A curator comes as the writer's role. It may
read, add entries, answers and lines, and call `move_total`, the one function that changes a running sum; it can change or
remove nothing. Triggers refuse the same to the owner, and to whoever else was granted too much.

Claim   Whatever statements a writer sends, in whatever order: an entry follows the last one by number and hash; the sum that
        it says is that of the entry before it, plus what it reserves, minus what it gives back; it gives back what an open
        reservation of the same asker had, once; a running sum moves by exactly what the last entry moved, once, and stays
        within its limit; the study's limit never changes; no entry is added while the one before it is not counted.
Needs   The tables are those that `digest_schema` describes. What the owner's role or a superuser does with triggers switched
        off is for the chain and the witness to find.

Text is compared by its bytes (collation "C"): ticks of one width compare as numbers, and no index depends on the words of
a language, whose order changes with the server's operating system.

    python -m curador.ledger.postgres_schema SCHEMA WRITER      prints the statements for the owner to run
"""

from __future__ import annotations

import hashlib
import re
import sys
from typing import TYPE_CHECKING, Final

from curador.errors import InvalidParameter
from curador.ledger.amounts import DELTA_TICK, DIGITS, TICK
from curador.ledger.entry import LATER, EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.ledger.store import Cursor

SCHEMAS: Final = ("8c789d067352d4918304e15a5fd9163d8d60328aaf9418d0240292848173089b",)
"""Digests of all tables, constraints, indexes, functions and triggers, oldest first; PostgreSQL 16 and 18 give the same. Who
changes a word below adds one, and the statements by which an owner comes from the one before it."""

_NAME: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_AMOUNTS: Final = ("epsilon", "rho", "delta")
_KEPT: Final = ("entry", "answer", "prepared")  # rows are only ever added
_TABLES: Final = (*_KEPT, "total", "again")
_KINDS: Final = ", ".join(f"'{kind}'" for kind in (*(kind.value for kind in EntryKind), *LATER))
_WITHIN: Final = ",\n".join(
    f"    CONSTRAINT {name}_within CHECK ({name} ~ '^[0-9]{{{DIGITS}}}$' AND {name}_limit ~ '^[0-9]{{{DIGITS}}}$'"
    f" AND {name} <= {name}_limit)"
    for name in _AMOUNTS
)
_SPENT: Final = '"delta":"([0-9/]+)","epsilon":"([0-9/]+)","rho":"([0-9/]+)"'
_BODY: Final = (
    f'^[{{]"after":[{{]"data_version":[0-9]+,"failures":[0-9]+,"spent":[{{]{_SPENT}[}}][}}],"amounts":[{{]{_SPENT}[}}],'
)
"""How the text of every entry begins: keys are sorted, and nothing before the amounts is anybody's words."""

_TOKENS: Final = {
    "kinds": _KINDS,
    "within": _WITHIN,
    "body": _BODY,
    "ticks": f"{DELTA_TICK.denominator}, {TICK.denominator}, {TICK.denominator}",
}
_TRIGGERS: Final = (
    *(("entry", "entry_follows"), ("total", "total_follows"), ("again", "again_follows")),
    *((table, f"{table}_stays") for table in _TABLES),
    *((table, f"{table}_is_not_emptied") for table in _TABLES),
)

_STATEMENTS: Final = """
CREATE TABLE @schema@.entry (
    sequence BIGINT NOT NULL CONSTRAINT entry_by_sequence PRIMARY KEY CONSTRAINT sequence_from_zero CHECK (sequence >= 0),
    hash TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CONSTRAINT known_kind CHECK (kind IN (@kinds@)),
    id TEXT COLLATE "C" NOT NULL CONSTRAINT one_entry_an_id UNIQUE,
    analyst TEXT COLLATE "C",
    question_key TEXT COLLATE "C",
    data_version BIGINT NOT NULL,
    settles TEXT COLLATE "C" CONSTRAINT settled_once UNIQUE,
    body TEXT COLLATE "C" NOT NULL
);
CREATE INDEX entry_by_analyst ON @schema@.entry (analyst, sequence);
CREATE INDEX entry_by_kind ON @schema@.entry (kind, sequence);
CREATE INDEX entry_by_question ON @schema@.entry (question_key, data_version, sequence);
CREATE TABLE @schema@.answer (
    sequence BIGINT NOT NULL CONSTRAINT answer_by_sequence PRIMARY KEY
        CONSTRAINT answer_of_an_entry REFERENCES @schema@.entry (sequence),
    question_key TEXT COLLATE "C" NOT NULL,
    data_version BIGINT NOT NULL,
    content BYTEA NOT NULL
);
CREATE INDEX answer_by_question ON @schema@.answer (question_key, data_version, sequence);
CREATE TABLE @schema@.total (
    holder TEXT COLLATE "C" NOT NULL CONSTRAINT one_total_a_holder PRIMARY KEY,
    epsilon TEXT COLLATE "C" NOT NULL,
    rho TEXT COLLATE "C" NOT NULL,
    delta TEXT COLLATE "C" NOT NULL,
    epsilon_limit TEXT COLLATE "C" NOT NULL,
    rho_limit TEXT COLLATE "C" NOT NULL,
    delta_limit TEXT COLLATE "C" NOT NULL,
    counted BIGINT NOT NULL DEFAULT -1, -- the last entry that is in the sums
@within@
);
CREATE TABLE @schema@.again (
    line TEXT COLLATE "C" NOT NULL CONSTRAINT one_line_an_entry PRIMARY KEY,
    released TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL CONSTRAINT at_least_once CHECK (number >= 1),
    CONSTRAINT one_line_a_day UNIQUE (released, holder, day)
);
CREATE TABLE @schema@.prepared (
    study TEXT COLLATE "C" NOT NULL,
    data_version BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    CONSTRAINT one_copy_a_version PRIMARY KEY (study, data_version)
);

CREATE FUNCTION @schema@.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema@, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION @schema@.holder_of(analyst TEXT) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = @schema@, pg_temp AS $$
    SELECT coalesce('analyst:' || analyst, 'owner')
$$;

-- what an entry says in ticks: the whole study after it (epsilon, rho, delta), and its own amounts
CREATE FUNCTION @schema@.ticks_of(body TEXT) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE
SET search_path = @schema@, pg_temp AS $$
DECLARE
    words TEXT[] := regexp_match(body, '@body@');
    ticks NUMERIC[] := ARRAY[@ticks@];
    made NUMERIC[] := '{}';
    above NUMERIC;
    below NUMERIC;
BEGIN
    FOR place IN 1..6 LOOP
        above := split_part(words[place], '/', 1)::NUMERIC * ticks[(place - 1) % 3 + 1];
        below := coalesce(nullif(split_part(words[place], '/', 2), ''), '1')::NUMERIC;
        IF above IS NULL OR mod(above, below) <> 0 THEN
            RAISE EXCEPTION 'an entry must say whole ticks' USING ERRCODE = 'check_violation';
        END IF;
        made := made || div(above, below);
    END LOOP;
    RETURN ARRAY[made[2], made[3], made[1], made[5], made[6], made[4]];
END $$;

CREATE FUNCTION @schema@.require_next_entry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = @schema@, pg_temp AS $$
DECLARE
    last entry%ROWTYPE;
    reservation entry%ROWTYPE;
    own NUMERIC[] := ticks_of(NEW.body);
    before NUMERIC[] := '{0,0,0,0,0,0}';
    direction INTEGER := CASE NEW.kind WHEN 'reserved' THEN 1 WHEN 'voided' THEN -1 ELSE 0 END;
BEGIN
    PERFORM 1 FROM total WHERE holder = 'study' FOR UPDATE; -- one writer at a time, also one that takes no turn
    SELECT * INTO last FROM entry ORDER BY sequence DESC LIMIT 1;
    IF NEW.sequence <> coalesce(last.sequence + 1, 0)
        OR NEW.hash <> encode(sha256(convert_to(NEW.body, 'UTF8')), 'hex')
        OR position('"previous":"' || coalesce(last.hash, repeat('0', 64)) || '"' IN NEW.body) = 0 THEN
        RAISE EXCEPTION 'an entry must follow the last one' USING ERRCODE = 'check_violation';
    END IF;
    IF last.sequence IS NOT NULL THEN
        before := ticks_of(last.body);
        IF last.kind IN ('reserved', 'voided') AND before[4:6] <> '{0,0,0}' AND EXISTS (
            SELECT FROM unnest(ARRAY['study', holder_of(last.analyst)]) AS one (holder)
            WHERE NOT EXISTS (SELECT FROM total WHERE total.holder = one.holder AND counted = last.sequence)
        ) THEN
            RAISE EXCEPTION 'the last entry must be counted before another' USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    IF NEW.kind = 'voided' THEN
        SELECT * INTO reservation FROM entry
        WHERE id = NEW.settles AND kind = 'reserved' AND analyst IS NOT DISTINCT FROM NEW.analyst;
        IF NOT FOUND OR (ticks_of(reservation.body))[4:6] <> own[4:6] THEN
            RAISE EXCEPTION 'only what was reserved is given back' USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    FOR place IN 1..3 LOOP
        IF own[place] <> before[place] + direction * own[place + 3] THEN
            RAISE EXCEPTION 'an entry must add up' USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    RETURN NEW;
END $$;

CREATE FUNCTION @schema@.require_counted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = @schema@, pg_temp AS $$
DECLARE
    last entry%ROWTYPE;
    own NUMERIC[];
    had NUMERIC[] := '{0,0,0}';
    has NUMERIC[] := ARRAY[NEW.epsilon, NEW.rho, NEW.delta]::NUMERIC[];
    direction INTEGER;
BEGIN
    SELECT * INTO last FROM entry ORDER BY sequence DESC LIMIT 1;
    own := ticks_of(last.body);
    direction := CASE last.kind WHEN 'reserved' THEN 1 WHEN 'voided' THEN -1 ELSE 0 END;
    IF NEW.holder <> 'study' AND NEW.holder <> holder_of(last.analyst) THEN
        RAISE EXCEPTION 'a total must be that of the last asker' USING ERRCODE = 'check_violation';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        had := ARRAY[OLD.epsilon, OLD.rho, OLD.delta]::NUMERIC[];
        IF NEW.holder <> OLD.holder OR (NEW.holder = 'study' AND (NEW.epsilon_limit, NEW.rho_limit, NEW.delta_limit)
            <> (OLD.epsilon_limit, OLD.rho_limit, OLD.delta_limit)) THEN
            RAISE EXCEPTION 'the limit of a study holds for ever' USING ERRCODE = 'check_violation';
        END IF;
        IF OLD.counted = last.sequence THEN
            direction := 0; -- it is in the sum already
        END IF;
    END IF;
    FOR place IN 1..3 LOOP
        IF has[place] IS DISTINCT FROM had[place] + direction * own[place + 3]
            OR (NEW.holder = 'study' AND has[place] <> own[place]) THEN
            RAISE EXCEPTION 'a total must move by what the last entry says' USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    NEW.counted := last.sequence;
    RETURN NEW;
END $$;

CREATE FUNCTION @schema@.require_more() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema@, pg_temp AS $$
BEGIN
    IF (NEW.line, NEW.released, NEW.holder, NEW.day) <> (OLD.line, OLD.released, OLD.holder, OLD.day)
        OR NEW.number <= OLD.number THEN
        RAISE EXCEPTION 'a line is only counted on' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

-- the one function of the writer; limits that are NULL stay
CREATE FUNCTION @schema@.move_total(
    who TEXT, epsilon_spent TEXT, rho_spent TEXT, delta_spent TEXT, epsilon_most TEXT, rho_most TEXT, delta_most TEXT
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp AS $$
BEGIN
    UPDATE total SET
        epsilon = epsilon_spent, rho = rho_spent, delta = delta_spent,
        epsilon_limit = coalesce(epsilon_most, epsilon_limit),
        rho_limit = coalesce(rho_most, rho_limit),
        delta_limit = coalesce(delta_most, delta_limit)
    WHERE holder = who;
    IF NOT FOUND THEN
        INSERT INTO total (holder, epsilon, rho, delta, epsilon_limit, rho_limit, delta_limit)
        VALUES (who, epsilon_spent, rho_spent, delta_spent, epsilon_most, rho_most, delta_most);
    END IF;
END $$;

CREATE TRIGGER entry_follows BEFORE INSERT ON @schema@.entry FOR EACH ROW EXECUTE FUNCTION @schema@.require_next_entry();
CREATE TRIGGER total_follows BEFORE INSERT OR UPDATE ON @schema@.total
    FOR EACH ROW EXECUTE FUNCTION @schema@.require_counted();
CREATE TRIGGER again_follows BEFORE UPDATE ON @schema@.again FOR EACH ROW EXECUTE FUNCTION @schema@.require_more();
"""


def require_name(name: str, what: str) -> str:
    """Return a name that needs no quoting tricks; others are refused."""
    if _NAME.fullmatch(name) is None:
        raise InvalidParameter.must_be(
            what, "at most 63 small letters, digits and _, not beginning with pg_ or a digit", name
        )
    return name


def schema_text(schema: str, writer: str) -> str:
    """Return the statements by which an owner makes a schema with the tables of a ledger, for a writer's role that exists."""
    own, role = f'"{require_name(schema, "schema")}"', f'"{require_name(writer, "writer")}"'
    text = _STATEMENTS
    for token, meaning in {"schema": own, **_TOKENS}.items():
        text = text.replace(f"@{token}@", meaning)
    made = [f"BEGIN;\nCREATE SCHEMA {own};", f"REVOKE ALL ON SCHEMA {own} FROM PUBLIC;", text.strip()]
    for table in _TABLES:
        place, refuse = f"{own}.{table}", f"EXECUTE FUNCTION {own}.refuse_change()"
        acts = "UPDATE OR DELETE" if table in _KEPT else "DELETE"
        made.append(f"CREATE TRIGGER {table}_stays BEFORE {acts} ON {place} FOR EACH ROW {refuse};")
        made.append(f"CREATE TRIGGER {table}_is_not_emptied BEFORE TRUNCATE ON {place} FOR EACH STATEMENT {refuse};")
    for table, trigger in _TRIGGERS:  # also where a session says that it only replays what another server decided
        made.append(f"ALTER TABLE {own}.{table} ENABLE ALWAYS TRIGGER {trigger};")
    made.append(f"REVOKE ALL ON ALL TABLES IN SCHEMA {own} FROM PUBLIC;")
    made.append(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {own} FROM PUBLIC;")
    made.append(f"GRANT USAGE ON SCHEMA {own} TO {role};")
    made.append(f"GRANT SELECT ON ALL TABLES IN SCHEMA {own} TO {role};")
    made.append(f"GRANT INSERT ON {', '.join(f'{own}.{table}' for table in (*_KEPT, 'again'))} TO {role};")
    made.append(f"GRANT UPDATE (number) ON {own}.again TO {role};")
    made.append(f"GRANT EXECUTE ON FUNCTION {own}.move_total TO {role};")
    return "\n".join([*made, "COMMIT;\n"])


_CATALOGUE: Final = (
    # tables: none is unlogged, hides rows, is part of another or has a rule instead of what is asked
    """SELECT c.relname, c.relkind::text, c.relpersistence::text, c.relrowsecurity, c.relforcerowsecurity, c.relispartition,
        (SELECT count(*) FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)),
        (SELECT count(*) FROM pg_rewrite r WHERE r.ev_class = c.oid)
    FROM pg_class c WHERE c.relnamespace = %(space)s::oid AND c.relkind <> 'i' AND c.relkind <> 't' ORDER BY 1""",
    """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, o.collname,
        pg_get_expr(d.adbin, d.adrelid), a.attidentity::text, a.attgenerated::text
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_collation o ON o.oid = a.attcollation LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (c.oid, a.attnum)
    WHERE c.relnamespace = %(space)s::oid AND c.relkind <> 'i' ORDER BY c.relname, a.attnum""",
    # what may not be NULL is above: servers from 18 on list it here as well
    """SELECT c.relname, k.conname, k.convalidated, k.condeferrable, pg_get_constraintdef(k.oid)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE c.relnamespace = %(space)s::oid AND k.contype <> 'n' ORDER BY 1, 2""",
    """SELECT c.relname, i.indisvalid, i.indisunique, i.indisready, pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = %(space)s::oid AND c.relkind = 'i'
        AND EXISTS (SELECT FROM pg_class t WHERE t.oid = i.indrelid AND t.relkind <> 't') ORDER BY 1""",
    """SELECT c.relname, CASE WHEN t.tgisinternal THEN f.proname ELSE t.tgname END, t.tgenabled::text,
        CASE WHEN t.tgisinternal THEN '' ELSE pg_get_triggerdef(t.oid) END
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc f ON f.oid = t.tgfoid
    WHERE c.relnamespace = %(space)s::oid ORDER BY 1, 2, 3""",
    """SELECT p.proname, pg_get_function_identity_arguments(p.oid), format_type(p.prorettype, NULL), p.prosecdef,
        p.provolatile::text, p.proisstrict, l.lanname, array_to_string(p.proconfig, '; '), p.prosrc
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = %(space)s::oid ORDER BY 1, 2""",
)


def digest_schema(cursor: Cursor, schema: str) -> str:
    """Return a digest of the tables, constraints, indexes, triggers and functions as the server's catalogue declares them.

    Whoever switches a trigger off, drops a constraint or changes a function changes it; the schema's own name does not.
    """
    cursor.execute("SELECT oid::bigint, quote_ident(nspname) FROM pg_namespace WHERE nspname = %(name)s", {"name": schema})
    found = cursor.fetchone()
    if found is None:
        return ""
    space, own = found
    told: list[Sequence[tuple[object, ...]]] = []
    for statement in _CATALOGUE:
        cursor.execute(statement, {"space": space})
        rows = cursor.fetchall()
        told.append([tuple(_without_name(value, own) for value in row) for row in rows])
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _without_name(value: object, own: str) -> object:
    if not isinstance(value, str):
        return value
    return re.sub(rf'(?<![\w"]){re.escape(own)}(\.|, pg_temp)', r"own\1", value)


def main(arguments: Sequence[str]) -> int:
    """Print the statements for the owner."""
    if len(arguments) != 2:
        sys.stderr.write("python -m curador.ledger.postgres_schema SCHEMA WRITER\n")
        return 2
    try:
        sys.stdout.write(schema_text(*arguments))
    except InvalidParameter as refused:
        sys.stderr.write(f"{refused}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
