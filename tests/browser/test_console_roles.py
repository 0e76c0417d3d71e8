"""Each role's main path in a real browser, on the real service: what is seen works, reads well and stays on this host.

Every page is drawn wide and narrow, light and dark, into build/screenshots, for people to look at.
"""

import json

import pytest
from console_pages import LOOKS, PAGES, watched
from console_server import serve, write_study

pytestmark = pytest.mark.slow

LOOKED_AT = {"desktop-light", "phone-dark"}

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(income) AS mean_income\nFROM people\nGROUP BY city"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serve(write_study(tmp_path_factory.mktemp("console"))) as found:
        yield found


def ask(seen, question, *, sandbox=False):
    """Ask as a person does; return what the answer's title line says. What is stored is shown without another word."""
    page = seen.page
    seen.type_question(question)
    before = page.locator("#answer-title").element_handle() if page.locator("#answer-title").count() else None
    page.locator(".price button.main").click()
    sure = page.get_by_role("dialog").get_by_role("button", name="Ask for")
    if not sandbox:
        page.wait_for_function(
            "old => document.querySelector('dialog[open]') || document.querySelector('#answer-title') !== old", arg=before
        )
        if sure.count():
            sure.click()
    page.locator("#answer-title").wait_for()
    seen.settle()
    return page.locator(".answer > header").inner_text()


def test_an_analyst_asks_and_takes_the_answer_along(chromium, tmp_path):
    """Preview, confirmation, answer with its chart, the same again for nothing, four files, the history.

    On a service of its own: nobody asked before.
    """
    with serve(write_study(tmp_path)) as served, watched(chromium, served) as seen:
        seen.login("analyst")
        page = seen.page
        seen.settle()
        seen.type_question(BY_CITY)
        assert "could ask this" in page.locator(".price").inner_text()
        assert page.locator(".price .whisker").count() == 4, "one bar of n, three of a mean by size"
        spent = served.service.budget(served.service.admit(served.tokens["analyst"], door="test", peer="test"))["spent_share"]
        assert spent == 0, "a preview spends nothing"
        page.get_by_role("slider").fill("6")
        seen.await_preview()
        assert "5 % of your budget" in page.locator(".price").inner_text()
        page.get_by_role("slider").fill("3")
        seen.await_preview()

        head = ask(seen, BY_CITY)
        assert "cost 1 % of your budget" in head
        assert page.locator(".answer tbody tr").count() == 8
        assert page.locator(".answer svg[role=img]").count() == 2
        assert page.locator(".answer th.reach", has_text="± 95 %").count() == 2
        assert "stored" in ask(seen, BY_CITY).lower(), "the same question is free"

        for name, begins in {"CSV": b"city,n,n_low", "Arrow": b"\xff\xff\xff\xff", "Receipt": b"{", "Notebook": b"{"}.items():
            with page.expect_download() as taken:
                page.locator(".downloads").get_by_role("button", name=name).click()
            taken.value.save_as(tmp_path / name)
            assert (tmp_path / name).read_bytes().startswith(begins), name
            assert taken.value.suggested_filename.startswith("answer-")
        assert json.loads((tmp_path / "Notebook").read_text())["nbformat"] == 4

        seen.turn_to("history")
        assert page.locator(".list > li").count() == 2, "one paid for, one given again"
        page.get_by_role("button", name="Show the answer").first.click()
        page.get_by_role("dialog").locator("tbody tr").first.wait_for()
        assert seen.faults() == []
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Access token").wait_for()
        assert seen.faults() == []


def test_a_refusal_stands_at_its_place(chromium, served):
    """The word that is wrong is underlined, the sentence and its hint stand below, and nothing can be asked."""
    with watched(chromium, served) as seen:
        seen.login("analyst")
        seen.type_question("SELECT city,\n  AVG(incom) AS m\nFROM people GROUP BY city")
        page = seen.page
        page.locator(".problem").wait_for()
        assert page.locator(".cm-refused").inner_text() == "incom"
        assert "income" in page.locator(".problem").inner_text(), "the hint"
        assert page.locator(".price button.main").is_disabled()
        assert page.locator(".cm-content").get_attribute("aria-invalid") == "true"
        assert seen.faults() == []
        seen.shoot("refused-desktop-light")


def test_names_are_completed_by_keys_alone(chromium, served):
    """Completion knows the study's tables and columns; a question is written, previewed and asked without a mouse."""
    with watched(chromium, served) as seen:
        seen.login("analyst")
        page = seen.page
        page.locator(".cm-content").focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("SELECT COUNT(*) AS n FROM people WHERE birth", delay=5)
        page.locator(".cm-tooltip-autocomplete li", has_text="birth_year").wait_for()
        assert seen.faults() == []
        page.wait_for_timeout(150)  # keys that come sooner are taken for typing
        page.keyboard.press("Enter")
        page.keyboard.type(" > 2000")
        seen.await_preview()
        page.keyboard.press("ControlOrMeta+Enter")
        page.get_by_role("dialog").wait_for()
        assert seen.faults() == []
        for _ in range(6):
            if (page.evaluate("() => document.activeElement.innerText") or "").startswith("Ask for"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.locator("#answer-title").wait_for()
        assert page.evaluate("() => document.activeElement.id") == "answer-title", "the reader is where the answer is"


def test_the_sandbox_costs_nothing_and_says_so(chromium, served):
    """Answers about invented rows are marked, and cannot be taken for others."""
    with watched(chromium, served) as seen:
        seen.login("analyst")
        seen.page.get_by_text("Sandbox", exact=True).click()
        head = ask(seen, "SELECT city, COUNT(*) AS n FROM people WHERE birth_year < 1950 GROUP BY city", sandbox=True)
        assert "free" in head
        assert "Made up" in seen.page.locator(".answer").inner_text()
        assert seen.page.locator(".downloads").count() == 0
        assert seen.faults() == []
        seen.shoot("sandbox-desktop-light")


def test_the_owner_grants_and_revokes_and_is_asked_again(chromium, served):
    """A token is shown once; its session ends when it is revoked."""
    with watched(chromium, served) as seen, watched(chromium, served) as other:
        seen.login("owner")
        seen.turn_to("tokens")
        page = seen.page
        page.get_by_role("button", name="Grant access").click()
        page.get_by_label("Analyst of the study").select_option("bruno")
        page.get_by_label("Most a question").fill("2")
        page.get_by_role("button", name="Next").click()
        page.get_by_role("button", name="Yes, grant it").click()
        served.tokens["granted"] = page.locator(".secret code").inner_text()
        assert seen.faults() == []
        page.get_by_role("button", name="I have kept it").click()
        assert page.locator("tbody tr", has_text="bruno").count() == 1

        other.login("granted")
        assert "At most 2" in other.page.locator(".price").inner_text()
        page.locator("tbody tr", has_text="bruno").get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").wait_for(state="hidden")
        assert "revoked" in page.locator("tbody tr", has_text="bruno").inner_text()
        other.page.locator('nav a[href="#/history"]').click()
        other.page.get_by_text("Your session has ended").wait_for()
        assert seen.faults() == []


def test_the_owner_buys_a_survey(chromium, served):
    """It is confirmed first, and what was found is said."""
    with watched(chromium, served) as seen:
        seen.login("owner")
        seen.turn_to("study")
        page = seen.page
        page.get_by_role("button", name="Run the survey").click()
        page.get_by_role("dialog").get_by_role("button", name="Run the survey").click()
        page.get_by_text("What was found").wait_for()
        seen.settle()
        assert "visits" in page.locator(".found").inner_text()
        assert seen.faults() == []


def test_an_auditor_reads_and_cannot_ask(chromium, served):
    """The chain verified, a receipt, the odds; no page to ask on."""
    with watched(chromium, served) as seen:
        seen.login("auditor")
        page = seen.page
        seen.settle()
        assert "The book is whole" in page.locator("main").inner_text()
        assert page.locator('nav a[href="#/ask"]').count() == 0
        seen.turn_to("promise")
        assert "of 100 guesses right" in page.locator("main").inner_text()
        seen.turn_to("history")
        if page.get_by_role("button", name="Receipt").count():
            page.get_by_role("button", name="Receipt").first.click()
            page.locator(".receipt").wait_for()
            assert '"question"' in page.locator(".receipt").inner_text()
        assert seen.faults() == []


def test_a_wrong_token_is_refused_in_one_sentence(chromium, served):
    """Whatever is wrong with it."""
    with watched(chromium, served) as seen:
        seen.open()
        seen.page.get_by_label("Access token").fill("curador_0000000000000000_x")
        seen.page.get_by_role("button", name="Log in").click()
        seen.page.locator(".problem").wait_for()
        assert seen.faults() == []
        seen.shoot("login-refused-desktop-light")


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_reads_well(chromium, served, look):
    """No serious finding of axe, nothing wider than the screen, no request elsewhere, on every page of every role.

    Axe looks at both widths and at both colours, and not at each with each.
    """
    with watched(chromium, served, look) as seen:
        seen.open()
        assert seen.faults() == []
        seen.shoot(f"login-{look}")
        for role, pages in PAGES.items():
            seen.login(role)
            for name in pages:
                seen.turn_to(name)
                if name == "ask" and role == "analyst":
                    ask(seen, BY_CITY)
                assert (seen.faults() if look in LOOKED_AT else seen.hostile_faults()) == [], (role, name)
                seen.shoot(f"{role}-{name}-{look}")
            seen.page.get_by_role("button", name="Log out").click()
            seen.page.get_by_label("Access token").wait_for()


def test_an_answer_fits_a_phone_and_a_button_stands_beside_its_title(chromium, served):
    """Two numbers with their ranges need no sideways scrolling; what a page is for stands in the row of its title."""
    with watched(chromium, served, "phone-dark") as seen:
        seen.login("analyst")
        ask(seen, BY_CITY)
        width = seen.page.locator(".answer .table-scroll").evaluate("(one) => one.scrollWidth - one.clientWidth")
        assert width <= 0, f"{width} px of the table are not seen"
        assert seen.page.locator(".answer td .under").first.is_visible(), "the range stands below its number"
    with watched(chromium, served) as seen:
        seen.login("owner")
        seen.turn_to("tokens")
        title, button = (seen.page.locator(f".page-head {one}").bounding_box() for one in ("h1", "button"))
        assert button["x"] > title["x"] + title["width"], "beside it"
        assert button["width"] < 300, "as wide as its text"
        assert "asks nothing" in seen.page.locator("tbody tr", has_text="Auditor").inner_text()


def test_first_paint(chromium, served, capsys):
    """Printed, never asserted: how soon something is seen, and how much was fetched for it."""
    with watched(chromium, served) as seen:
        seen.open()
        painted = seen.page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        size = seen.page.evaluate(
            "() => performance.getEntriesByType('resource').reduce((sum, one) => sum + one.encodedBodySize, 0)"
        )
        with capsys.disabled():
            print(f"\nconsole: first paint after {painted:.0f} ms, {seen.requests} requests, {size / 1000:.0f} kB")
        assert seen.elsewhere == []


def test_a_long_question_shows_time_alone_and_is_paid_once(chromium, tmp_path):
    """The page is loaded again in the middle: the question is found again, its time goes on, one charge is made."""
    with serve(write_study(tmp_path, every=4)) as served, watched(chromium, served) as seen:
        seen.login("analyst")
        seen.type_question(BY_CITY)
        page = seen.page
        page.locator(".price button.main").click()
        page.get_by_role("dialog").get_by_role("button", name="Ask for").click()
        page.get_by_role("progressbar").wait_for()
        assert "of at most" in page.locator(".result").inner_text()
        assert seen.faults() == []
        seen.shoot("running-desktop-light")
        page.reload()
        page.get_by_text("A question is under way").or_(page.locator("#answer-title")).first.wait_for()
        page.locator("#answer-title").wait_for()
        assert page.locator(".answer tbody tr").count() == 8
        kinds = [line["kind"] for line in served.service.curator.log()]
        assert kinds.count("reserved") == 1
        assert seen.faults() == []
