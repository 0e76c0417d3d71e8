"""Hostile texts through the whole way in a real browser: keys, names, aliases, comments, files. They stand there, no more."""

import csv
import io
import json

import hostile_texts
import pytest
from console_pages import PAGES, watched
from console_server import Names, serve, write_study
from test_console_roles import ask

pytestmark = pytest.mark.slow

BAD = hostile_texts.MARKUP[0]
NAMES = Names(
    study=BAD,
    unit="<b onclick=pwned()>",
    column=BAD,
    analyst="<img src=x onerror=pwned()>",
    about=" ".join((*hostile_texts.MARKUP, *hostile_texts.SIGNS)),
    earned=hostile_texts.MARKUP[1],
    cities=hostile_texts.ALL,
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serve(write_study(tmp_path_factory.mktemp("hostile"), NAMES)) as found:
        yield found


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def test_hostile_keys_are_shown_as_they_are(chromium, served, tmp_path):
    """Every key of the list stands in the table as a text, and in every file with its own type and name."""
    with watched(chromium, served) as seen:
        seen.login("analyst")
        ask(seen, f"SELECT city, COUNT(*) AS {quoted(BAD)} -- </script><script>pwned()</script>\nFROM people GROUP BY city")
        page = seen.page
        cells = page.locator(".answer tbody th").all_inner_texts()
        assert len(cells) == len(hostile_texts.ALL)
        for text in hostile_texts.MARKUP:
            assert text in cells, "nothing of it was taken away, nothing obeyed"
        assert any(cell.endswith("…") and len(cell) == 100 for cell in cells), "the long one is cut"
        assert any(r"\u{202e}" in cell for cell in cells), "what turns the direction of writing is shown as its number"
        assert page.locator(".answer img, .answer script, .answer iframe, .answer style, .answer a").count() == 0
        assert seen.faults() == []
        seen.shoot("hostile-answer-desktop-light")

        files = {}
        for name in ("CSV", "Arrow", "Receipt", "Notebook"):
            with page.expect_download() as taken:
                page.locator(".downloads").get_by_role("button", name=name).click()
            assert set(taken.value.suggested_filename) <= set("answer-.receiptjsonipynbcsvarrows0123456789abcdef")
            taken.value.save_as(tmp_path / name)
            files[name] = (tmp_path / name).read_bytes()
        rows = list(csv.reader(io.StringIO(files["CSV"].decode(), newline="")))
        assert not [cell for row in rows for cell in row[:1] if cell[:1] in "=+-@\t\r" and cell], (
            "no spreadsheet computes a key"
        )
        assert all(row[1].lstrip("-").isdigit() for row in rows[1:]), "numbers stay numbers"
        notebook = json.loads(files["Notebook"])
        assert [cell["cell_type"] for cell in notebook["cells"]] == ["code"], (
            "no text of a question becomes prose with markup"
        )
        compile("".join(notebook["cells"][0]["source"]), "notebook", "exec")
        assert seen.hostile_faults() == []


@pytest.mark.parametrize("role", PAGES)
@pytest.mark.parametrize("look", ["desktop-light", "phone-dark"])
def test_no_page_obeys_a_name(chromium, served, role, look):
    """Names of study, unit, column and analysts, and questions, on every page of every role."""
    with watched(chromium, served, look) as seen:
        seen.login(role)
        for name in PAGES[role]:
            seen.turn_to(name)
            assert seen.hostile_faults() == [], name
        assert "<img src=x" in seen.page.title(), "the name of the study is a text"
        if role == "owner":
            seen.turn_to("study")
            assert hostile_texts.MARKUP[1] in seen.page.locator("main").inner_text(), "so is a description"


def test_completion_offers_a_hostile_name_as_a_text(chromium, served):
    """And puts it into the question in quotes."""
    with watched(chromium, served) as seen:
        seen.login("analyst")
        page = seen.page
        page.locator(".cm-content").focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("SELECT COUNT(*) AS n FROM people WHERE onerr", delay=5)
        page.locator(".cm-tooltip-autocomplete li", has_text="onerror").first.wait_for()
        page.wait_for_timeout(150)
        page.keyboard.press("Enter")
        assert page.locator(".cm-content").inner_text().endswith(quoted(BAD))
        page.keyboard.type(" > 3")
        seen.await_preview()
        assert page.locator(".problem").count() == 0
        assert seen.faults() == []


@pytest.mark.parametrize(
    "text", ["\u202eSELECT\u202c 1", "SELECT '<img src=x onerror=pwned()>'", "/* <script>pwned()</script> */ DROP", "\x00"]
)
def test_a_hostile_question_is_refused_as_a_text(chromium, served, text):
    """The sentence may quote it, and hidden signs are shown as their numbers."""
    with watched(chromium, served) as seen:
        seen.login("analyst")
        seen.type_question(text)
        seen.page.locator(".problem").wait_for()
        assert seen.faults() == []


def test_a_page_that_trusted_a_text_would_be_seen(chromium, served):
    """The canary of these tests works, and the page's policy alone would stop it: markup cannot be made of a text at all."""
    with watched(chromium, served) as seen:
        seen.open()
        thrown = seen.page.evaluate(
            """() => { try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=pwned()>"); return "made"; }
                       catch (error) { return error.name; } }"""
        )
        assert thrown == "TypeError"
        handler = "() => { try { document.body.setAttribute('onclick', 'pwned()'); } catch (error) { return error.name; } }"
        assert seen.page.evaluate(handler) == "TypeError"
        assert seen.page.evaluate("() => window.__pwned") == 0
        assert any("policy" in one for one in seen.errors), "and it is heard"
        seen.page.evaluate("() => pwned()")
        assert any("pwned" in one for one in seen.hostile_faults())
