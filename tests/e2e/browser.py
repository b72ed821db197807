"""A person at the web page: a real browser, looked at and typed into."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

PATIENCE = 60.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
IMAGES = Path(__file__).parents[2] / "docs" / "img"
# Pictures are taken only when this is set, so that a test run leaves the tree as it was.
TAKES_PICTURES = bool(os.environ.get("HEADRACE_PICTURES"))


def start_browser():
    """A clean browser; skips where there is none."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    from selenium.webdriver.chrome.service import Service

    os.environ["SE_OFFLINE"] = "true"  # the driver is here: nothing is looked for elsewhere
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1440,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


class Page:
    """The page of one server in one browser."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url
        browser.get(url + "/")
        self.wait(lambda: self.text("#health") == "running")

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def text(self, selector):
        """What an element shows; read by script, in one step: the page redraws itself."""
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('\\n')",
            selector,
        )

    def texts(self, selector):
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector
        )

    def click(self, selector):
        """By script, for the same reason."""
        self.browser.execute_script(
            "document.querySelector(arguments[0])"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))",
            selector,
        )

    def type(self, text, *, replace=True):
        """Types into the editor as a person does, instead of what is there."""
        (field,) = self.all("#text")
        if replace:
            field.send_keys("\ue009a\ue000")  # Ctrl-A, and all keys up
            field.send_keys("\ue003")
        field.send_keys(text)
        field.send_keys("\ue00c")  # Escape: the list of choices must not take the next key

    def run(self, text):
        self.type(text)
        self.click("#run")

    def rows(self):
        """The cells of the rows that a query has shown so far."""
        return self.browser.execute_script(
            "return [...document.querySelectorAll('#results > .body > table tbody tr')]"
            ".map(r => [...r.cells].map(c => c.textContent))"
        )

    def wait(self, good, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not (seen := good()):
            assert time.monotonic() < deadline, self.text("main") + "\n" + str(self.problems())
            time.sleep(0.1)
        return seen

    def picture(self, name, *, dark=False):
        if TAKES_PICTURES:
            theme = "dark" if dark else "light"
            self.browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
            time.sleep(0.3)  # for what was set to be painted
            IMAGES.mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(str(IMAGES / f"{name}.png"))

    def problems(self):
        """What the browser complains of: refused by policy, missing, thrown."""
        log = self.browser.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def requests(self):
        """The addresses of everything that was asked for."""
        messages = [
            json.loads(e["message"])["message"] for e in self.browser.get_log("performance")
        ]
        return [
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
        ]

    def first_paint(self):
        """Milliseconds from asking for the page to the first thing seen."""
        return self.browser.execute_script(
            "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
        )
