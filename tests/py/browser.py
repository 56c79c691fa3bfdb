"""Chromium without a window, that opens pages of plans."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

_OPTIONS = (
    "--headless=new",
    # Containers have neither user namespaces nor a large /dev/shm.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--window-size=1200,900",
)
# Everything in shadow trees, which is where bokeh draws.
_DEEP = """
const found = [];
const walk = (root) => {
  for (const element of root.querySelectorAll("*")) {
    if (element.matches(arguments[0])) found.push(element);
    if (element.shadowRoot) walk(element.shadowRoot);
  }
};
walk(document);
const inside = (one) => one.shadowRoot ? [...one.shadowRoot.querySelectorAll("div")] : [];
const said = (one) => one.innerText || inside(one).map((part) => part.innerText).join(" ");
return found.filter((one) => one.getClientRects().length).map(said);
"""


def programs() -> tuple[str, str] | None:
    """Paths of Chromium and of its driver; None where they are not installed."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    return (found[0], found[1]) if found[0] and found[1] else None


@dataclass(frozen=True)
class Browser:
    """An open browser.

    Attributes:
        driver: of it.
    """

    driver: Chrome

    def open(self, page: Path) -> float:
        """Opens a page; says after how many seconds its tables are filled."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        start = time.perf_counter()
        self.driver.get(page.resolve().as_uri())
        self.wait("return document.documentElement.dataset.ready === 'yes'")
        return time.perf_counter() - start

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments: Any, limit_s: float = 30.0) -> Any:
        """Waits until a script returns something true."""
        end = time.perf_counter() + limit_s
        while not (found := self.run(script, *arguments)):
            if time.perf_counter() > end:
                raise TimeoutError(f"not within {limit_s} s: {script}; {self.errors()}")
            time.sleep(0.02)
        return found

    def show(self, figure: str) -> Any:
        """Scrolls to a figure and waits until it is drawn."""
        name = f"figure-{figure}"
        self.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", name)
        self.wait("return document.getElementById(arguments[0]).dataset.drawn === 'yes'", name)
        self.wait("return document.getElementById(arguments[0]).clientHeight > 100", name)
        return self.run("return document.getElementById(arguments[0])", name)

    def texts(self, selector: str) -> list[str]:
        """Texts of all visible elements, shadow trees included."""
        found: list[str] = self.run(_DEEP, selector)
        return found

    def errors(self) -> list[str]:
        """What was logged as a warning or worse since the page was opened."""
        rows = self.driver.get_log("browser")
        return [row["message"] for row in rows if row["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened; what lies in the page is none."""
        rows = [json.loads(row["message"])["message"] for row in self.driver.get_log("performance")]
        urls = [
            row["params"]["request"]["url"]
            for row in rows
            if row["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def command(self, name: str, **values: Any) -> None:
        """A command of Chromium's own protocol."""
        self.driver.execute_cdp_cmd(name, values)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, until the block ends."""
    found = programs()
    assert found is not None, "chromium and chromedriver are not installed"
    options = ChromeOptions()
    options.binary_location = found[0]
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(found[1]))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
