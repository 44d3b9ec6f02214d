"""A real Chromium, and what it says of the pages that it was sent to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from testbed import programs

WAIT_SECONDS = 20
DESKTOP, PHONE = 1280, 390
_AXE = "axe_playwright_python/axe.min.js"
_NOTED = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
_JUDGED = """
const [done] = arguments;
axe.run({ preload: false }).then(
  (found) => done(found.violations.flatMap((one) =>
    one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`))),
  (error) => done([String(error)]));
"""


@dataclass(slots=True)
class Browser:
    """One Chromium, and what it says of the pages that it was sent to."""

    driver: webdriver.Chrome

    def look(self, url: str, scheme: str = "light", width: int = DESKTOP) -> None:
        """Open a page as somebody with such a screen does."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", features=[feature])
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE}
        self.command("Emulation.setDeviceMetricsOverride", **screen)
        self.driver.get(url)

    def command(self, name: str, **words: Any) -> Any:
        """Give a command that WebDriver has no word for."""
        return self.driver.execute_cdp_cmd(name, words)

    def run(self, script: str, *words: object) -> Any:
        """Run a script of the test's; the page's policy does not apply to it."""
        return self.driver.execute_script(script, *words)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def follow(self, selector: str) -> None:
        """Click the first element that fits, and wait for the page that it leads to."""
        self.run("window.isLeft = false")
        self.click(selector)
        self.until("return window.isLeft === undefined && document.readyState === 'complete'")

    def until(self, script: str) -> None:
        WebDriverWait(self.driver, WAIT_SECONDS).until(lambda driver: driver.execute_script(script))

    def barriers(self) -> list[str]:
        """Return what axe finds that keeps people out."""
        axe = metadata.distribution("axe-playwright-python").locate_file(_AXE)
        self.run(Path(str(axe)).read_text())
        violations: list[str] = self.driver.execute_async_script(_JUDGED)
        return violations

    def is_wider_than_the_screen(self) -> bool:
        """Tell whether the page has to be moved sideways."""
        script = "const page = document.documentElement; return page.scrollWidth > innerWidth"
        return bool(self.run(script))

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def _log(self, name: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(name)  # type: ignore[no-untyped-call]  # of Selenium's
        return entries

    def complaints(self, url: str) -> list[str]:
        """Return what went wrong since the last time, and which other hosts were asked."""
        others = [other for other in self.requests() if not other.startswith(f"{url}/")]
        problems = [entry["message"] for entry in self._log("browser")]
        problems += others + list(self.run("return window.violations"))
        self.driver.get("about:blank")  # A page refreshes itself, for the next test to see.
        return problems


@contextmanager
def started() -> Iterator[Browser]:
    """Start a Chromium that can reach this machine alone; the driver fetches nothing."""
    options = webdriver.ChromeOptions()
    options.binary_location = programs.path("chromium")
    for word in (
        "--headless=new",
        "--no-sandbox",  # root cannot have one; what is shown comes from this machine
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--hide-scrollbars",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(programs.path("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_script_timeout(5 * WAIT_SECONDS)
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _NOTED})
        yield Browser(driver)
    finally:
        driver.quit()
