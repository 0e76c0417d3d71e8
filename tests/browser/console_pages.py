"""How the tests go through the console: as a role, page by page, with everything watched that must not happen."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostile_texts import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console_server import Served
    from playwright.sync_api import Browser, Page

SHOTS = Path(__file__).parents[2] / "build" / "screenshots"

DESKTOP, PHONE = (1280, 800), (390, 844)
LOOKS = {
    "desktop-light": (DESKTOP, "light"),
    "desktop-dark": (DESKTOP, "dark"),
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}

PAGES = {
    "analyst": ("ask", "history", "promise"),
    "owner": ("budget", "history", "tokens", "study", "ask", "checks", "promise"),
    "auditor": ("checks", "history", "budget", "study", "promise"),
}

ORDINARY = ("the server responded with a status of 4",)
"""What a browser writes into its console of refusals, which are answers of ours."""

CANARY = """
window.__pwned = 0;
window.pwned = () => { window.__pwned += 1; };
document.addEventListener("securitypolicyviolation", (event) => {
  const where = event.target?.outerHTML?.slice(0, 200) ?? "";
  console.error(`policy: ${event.violatedDirective} ${event.sourceFile}:${event.lineNumber} ${where}`);
});
"""

DRAWN = "() => [...document.querySelectorAll('.chart')].every((one) => one.querySelector('svg'))"
STILL = """() => Promise.all(
  document.getAnimations().filter((one) => one.effect.getTiming().iterations === 1).map((one) => one.finished)
)"""


@dataclass(slots=True)
class Watched:
    """A page, and what happened in it: errors, dialogs, requests to other hosts."""

    page: Page
    served: Served
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    requests: int = 0

    def open(self) -> None:
        """Load the console anew."""
        self.page.goto(f"{self.served.url}/")
        self.page.locator("#token, nav").first.wait_for()

    def login(self, role: str) -> None:
        """Log in as a role, by the form."""
        self.open()
        self.page.get_by_label("Access token").fill(self.served.tokens[role])
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("navigation").wait_for()

    def turn_to(self, name: str) -> None:
        """Go to a page and wait until what it loads is there."""
        self.page.locator(f'nav a[href="#/{name}"]').click()
        self.page.locator(f'nav a[href="#/{name}"][aria-current]').wait_for()
        self.settle()

    def settle(self) -> None:
        """Wait until nothing loads or moves."""
        self.page.wait_for_function("() => !document.querySelector('.skeleton, .spinner')")
        if self.page.locator(".ask").count():
            self.page.locator(".cm-content").wait_for()
            self.page.wait_for_function("() => !document.querySelector('.skeleton, .spinner')")
        self.page.wait_for_function(DRAWN)
        self.page.evaluate(STILL)

    def type_question(self, text: str) -> None:
        """Replace what stands in the editor, as a person does."""
        self.page.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Escape")
        self.await_preview()

    def await_preview(self) -> None:
        """Wait until the preview is that of the text."""
        self.page.wait_for_timeout(400)  # its own pause after the last key
        self.page.wait_for_function("() => !document.querySelector('.price .spinner')")

    def shoot(self, name: str) -> None:
        """Keep a picture of the whole page."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.evaluate("() => window.scrollTo(0, 0)")
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    def faults(self) -> list[str]:
        """What is wrong with what is shown now: by axe, by its width, and by what no page may hold."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        serious = [_told(one) for one in found if one["impact"] in {"serious", "critical"}]
        return [*serious, *self.hostile_faults()]

    def hostile_faults(self) -> list[str]:
        """Idem, without axe."""
        found = [f"pwned {times} times" for times in [self.page.evaluate("() => window.__pwned")] if times]
        wide = self.page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        seen = self.page.evaluate("() => document.body.innerText + document.title")
        hidden = sorted({f"U+{ord(sign):04X}" for sign in seen if sign in HIDDEN})
        return [
            *found,
            *([f"{wide} px wider than the screen"] if wide > 0 else []),
            *([f"hidden signs on the page: {hidden}"] if hidden else []),
            *self.errors,
            *(f"a request left for {one}" for one in self.elsewhere),
        ]


def _told(violation: dict[str, Any]) -> str:
    nodes = "; ".join(node["html"][:120] for node in violation["nodes"][:3])
    return f"axe: {violation['id']} ({violation['impact']}): {nodes}"


@contextlib.contextmanager
def watched(browser: Browser, served: Served, look: str = "desktop-light") -> Iterator[Watched]:
    """Open a fresh window, with nothing let out of this host."""
    (width, height), scheme = LOOKS[look]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        accept_downloads=True,
        has_touch=look.startswith("phone"),
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.add_init_script(CANARY)
    page = context.new_page()
    page.set_default_timeout(60_000)  # a busy machine is no fault
    seen = Watched(page, served)

    def route(request: Any) -> None:
        seen.requests += 1
        if request.request.url.startswith(f"{served.url}/"):
            request.continue_()
        else:
            seen.elsewhere.append(request.request.url[:200])
            request.abort()

    context.route("**/*", route)
    page.on("console", lambda said: _note(seen, said))
    page.on("pageerror", lambda error: seen.errors.append(f"script error: {error}"[:500]))
    page.on("dialog", lambda dialog: (seen.errors.append(f"dialog: {dialog.message}"[:200]), dialog.dismiss()))
    try:
        yield seen
    finally:
        context.close()


def _note(seen: Watched, said: Any) -> None:
    if said.type in {"error", "warning"} and not any(one in said.text for one in ORDINARY):
        seen.errors.append(f"console {said.type}: {said.text}"[:500])
