# ruff: noqa: DTZ001 -- no zone is meant

"""A table as a European office writes it: semicolons, decimal commas, days first, N/A, ids in three spellings."""

import datetime as dt
import random
import zipfile
from xml.sax.saxutils import escape

HEADER = ("Customer ID", "Country", "Unit Price (£)", "Invoice Date", "Quantity")
COUNTRIES = ("México", "Zürich", "Peru")
PEOPLE = 60
LINE = 'format = { separator = ";", decimal = ",", thousands = ".", dates = "%d/%m/%Y", nulls = ["N/A"] }'


def european_rows(number=600, seed=3):
    """(id, country, price in cents, moment, quantity or None): the truth."""
    draw = random.Random(seed)
    return [
        (
            13000 + draw.randrange(PEOPLE),
            draw.choice(COUNTRIES),
            draw.randrange(100, 900_000),
            dt.datetime(2010, draw.randrange(1, 13), draw.randrange(1, 29), 8, 26),
            None if draw.randrange(20) == 0 else draw.randrange(100),
        )
        for _ in range(number)
    ]


def european_lines(rows, seed=4):
    """The same as lines: ids plain, with a blank behind them, and with .0."""
    draw = random.Random(seed)
    for person, country, cents, moment, quantity in rows:
        price = f"{cents / 100:,.2f}".translate(str.maketrans(",.", ".,"))
        number = "N/A" if quantity is None else quantity
        yield f"{person}{draw.choice(('', ' ', '.0'))};{country};{price};{moment:%d/%m/%Y %H:%M};{number}"


def write_european(file, rows, encoding="utf-8-sig"):
    lines = [";".join(HEADER), *european_lines(rows)]
    file.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    return file


def european_study(source, line="", ids="integer", price="decimal", when="timestamp"):
    """The text of a study file."""
    return f"""
version = 1
name = "eu"
budget = {{ epsilon = "3", delta = "1e-8" }}
max_units = 1_000
ledger = "eu.ledger"
[engine]
worker = "inline"
[tables.sales]
source = "{source}"
{line}
unit = "Customer ID"
caps = {{ rows = 32 }}
[tables.sales.columns]
"Customer ID" = {{ type = "{ids}" }}
"Unit Price (£)" = {{ type = "{price}", bounds = [0, 10000] }}
"Invoice Date" = {{ type = "{when}" }}
Quantity = {{ type = "integer", bounds = [0, 100] }}
[analysts]
ana = {{ share = "20%" }}
"""


# ---- workbooks -----------------------------------------------------------------------------------------------------


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def write_workbook(file, sheets):
    """Write {name: rows} as .xlsx, by hand: what a reader sees is what stands here. A tuple of one text is an error cell."""
    parts = {f"xl/worksheets/sheet{place}.xml": _sheet(rows) for place, rows in enumerate(sheets.values(), 1)}
    named = "".join(
        f'<sheet name="{escape(name)}" sheetId="{place}" r:id="r{place}"/>' for place, name in enumerate(sheets, 1)
    )
    parts["xl/workbook.xml"] = f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{named}</sheets></workbook>'
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22))
    parts["xl/styles.xml"] = f'<styleSheet xmlns="{_MAIN}"><cellXfs count="3">{styles}</cellXfs></styleSheet>'
    relations = [("worksheet", f"worksheets/sheet{place}.xml") for place in range(1, len(sheets) + 1)] + [
        ("styles", "styles.xml")
    ]
    parts["xl/_rels/workbook.xml.rels"] = _relations(relations)
    parts["_rels/.rels"] = _relations([("officeDocument", "xl/workbook.xml")])
    kinds = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    kinds += '<Default Extension="xml" ContentType="application/xml"/>'
    parts["[Content_Types].xml"] = f'<Types xmlns="{_PACKAGE}/content-types">{kinds}</Types>'
    with zipfile.ZipFile(file, "w") as book:
        for name, content in parts.items():
            book.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
    return file


def _relations(targets):
    lines = (
        f'<Relationship Id="r{place}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for place, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(lines)}</Relationships>'


def _sheet(rows):
    lines = (
        f'<row r="{number}">{"".join(_cell(f"{chr(65 + place)}{number}", value) for place, value in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def _cell(place, value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, tuple):
        return f'<c r="{place}" t="e"><v>{value[0]}</v></c>'
    if isinstance(value, dt.datetime):
        days = (value - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)
        return f'<c r="{place}" s="2"><v>{days!r}</v></c>'
    if isinstance(value, dt.date):
        return f'<c r="{place}" s="1"><v>{(value - dt.date(1899, 12, 30)).days}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
