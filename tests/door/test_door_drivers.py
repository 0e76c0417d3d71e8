"""JDBC and ODBC at the door, where their drivers are on the machine; else the skip says which is not there."""

# ruff: noqa: E501 -- Java in a text

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAVEN = sorted(
    map(str, (Path.home() / ".m2" / "repository" / "org" / "postgresql" / "postgresql").glob("*/postgresql-*[0-9].jar"))
)
JARS = ("CURADOR_PGJDBC", "/usr/share/java/postgresql.jar", "/usr/share/java/postgresql-jdbc.jar", *MAVEN[-1:])
ODBC = ("CURADOR_PSQLODBC", "/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so", "/usr/lib/aarch64-linux-gnu/odbc/psqlodbcw.so")

JAVA = """
import java.sql.*;
import java.util.Properties;

public class Ask {
    public static void main(String[] said) throws Exception {
        Properties words = new Properties();
        words.setProperty("user", said[1]);
        words.setProperty("password", said[2]);
        words.setProperty("sslmode", "disable");
        words.setProperty("options", "-c curador.spend=1%");
        words.setProperty("prepareThreshold", "1");
        try (Connection connection = DriverManager.getConnection(said[0], words)) {
            DatabaseMetaData known = connection.getMetaData();
            try (ResultSet tables = known.getTables(null, "public", "%", new String[] {"TABLE"})) {
                while (tables.next()) System.out.println("table " + tables.getString("TABLE_NAME"));
            }
            try (ResultSet columns = known.getColumns(null, "public", "visits", "%")) {
                while (columns.next()) System.out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
            }
            try (ResultSet keys = known.getPrimaryKeys(null, "public", "visits")) { while (keys.next()) throw new Exception(); }
            try (ResultSet keys = known.getImportedKeys(null, "public", "visits")) { while (keys.next()) throw new Exception(); }
            String text = "SELECT city, count(*) AS n, avg(spent) AS mean FROM visits WHERE rating > ? AND city <> ? GROUP BY city";
            try (PreparedStatement asked = connection.prepareStatement(text)) {
                for (int time = 0; time < 3; time++) {  // the later ones are prepared by name, and in bytes
                    asked.setInt(1, 2);
                    asked.setString(2, "it's");
                    try (ResultSet rows = asked.executeQuery()) {
                        while (rows.next()) System.out.println("row " + time + " " + rows.getString(1) + " " + rows.getLong(2) + " " + rows.getDouble(3));
                    }
                }
            }
            connection.setAutoCommit(false);
            try (Statement asked = connection.createStatement()) {
                asked.setFetchSize(2);
                try (ResultSet rows = asked.executeQuery("SELECT rating, count(*) AS n FROM visits GROUP BY rating")) {
                    int count = 0;
                    while (rows.next()) count++;
                    System.out.println("fetched " + count);
                }
            }
            connection.rollback();
        }
    }
}
"""


def first_of(places):
    named = [os.environ.get(places[0]), *places[1:]]
    return next((place for place in named if place and Path(place).exists()), None)


def test_jdbc_asks(door, tmp_path):
    jar, java = first_of(JARS), shutil.which("java")
    if jar is None or java is None:
        pytest.skip("JDBC's driver for PostgreSQL is not there, or no java: set CURADOR_PGJDBC to its file")
    (tmp_path / "Ask.java").write_text(JAVA, encoding="utf-8")
    address = f"jdbc:postgresql://127.0.0.1:{door.port}/clinic"
    done = subprocess.run(
        [java, "-cp", jar, str(tmp_path / "Ask.java"), address, *door.user()],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "compiler" in done.stderr and "not found" in done.stderr:
        pytest.skip("java is there without its compiler")
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line for line in said if line.startswith("table")] == ["table secrets", "table towns", "table visits"]
    assert "column spent float8" in said
    rows = [line.split() for line in said if line.startswith("row")]
    assert len(rows) == 9
    assert len({tuple(row[2:]) for row in rows}) == 3  # three times the same
    assert "fetched 6" in said


def test_odbc_asks(door):
    driver = first_of(ODBC)
    pyodbc = pytest.importorskip("pyodbc", reason="pyodbc is not there", exc_type=ImportError)
    if driver is None:
        pytest.skip("ODBC's driver for PostgreSQL is not there: set CURADOR_PSQLODBC to its file")
    user, password = door.user()
    words = f"Driver={driver};Server=127.0.0.1;Port={door.port};Database=clinic;Uid={user};Pwd={password};SSLmode=disable"
    with pyodbc.connect(f"{words};ConnSettings=SET curador.spend='1%25'", autocommit=True) as connection:
        cursor = connection.cursor()
        assert {row.table_name for row in cursor.tables(schema="public")} == {"secrets", "towns", "visits"}
        assert "spent" in {row.column_name for row in cursor.columns(table="visits")}
        for known in (cursor.statistics("visits"), cursor.primaryKeys("visits"), cursor.foreignKeys(foreignTable="visits")):
            assert known.fetchall() == []
        found = cursor.execute(
            "SELECT city, count(*) AS n FROM visits WHERE rating > ? GROUP BY city ORDER BY city", 2
        ).fetchall()
        assert [row.city for row in found] == ["Basel", "Bern", "Chur"]
