"""Texts of somebody who wants the console, a notebook or a spreadsheet to do something: none may do more than stand there.

Whatever runs calls `pwned()`, which the pages of the tests count.
"""

MARKUP = (
    "<img src=x onerror=pwned()>",
    "<script>pwned()</script>",
    '"><svg onload=pwned()>',
    "</title><script>pwned()</script>",
    "{@html '<b onclick=pwned()>'}",
    "{{constructor.constructor('pwned()')()}}",
    "${pwned()}",
    "javascript:pwned()",
    "<a href='javascript:pwned()'>x</a>",
    "<style>*{display:none}</style>",
    "<iframe srcdoc='<script>parent.pwned()</script>'>",
    "\\u003cscript\\u003epwned()\\u003c/script\\u003e",
    "&lt;script&gt;pwned()&lt;/script&gt;",
    "]]><script>pwned()</script>",
    "';pwned();//",
    "__proto__",
    "constructor",
)

FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(A1)", '=HYPERLINK("http://example.invalid","x")', "=cmd|' /C calc'!A0")

SIGNS = (
    "right\u202eto left",  # turns what follows around
    "isolate\u2066d\u2069",
    "no\u200bwidth\ufeff",
    "bell\x07and\x1b[31mred",
    "tags\U000e0041\U000e0042",
    "mark\u200f\u200e",
    "Ångström ±",
)

LONG = "long " + "x" * 400

ALL = (*MARKUP, *FORMULAS, *SIGNS, LONG)

HIDDEN = "\u202e\u202d\u2066\u2067\u2068\u2069\u200b\u200e\u200f\ufeff\x07\x1b\U000e0041"
"""Signs that no page may show as they are."""
