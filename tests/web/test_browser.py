"""The pages in a real Chromium: what people see, without one thing that is not ours.

The evaluator, the history and the HTTP server are the product's; the cluster is made up. Nothing in
a page may come from another host, fail in the console, or break the page's own policy.

`RECORD=1` writes the pictures of docs/explain.md anew.
"""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.support import programs, showroom
from tests.support.showroom import Address, Shown, ShownPod, opened, shown

pytestmark = pytest.mark.needs("chromium", "chromedriver")

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST_IMAGE_BYTES = 150_000
SCALE = 0.75
"""Of the pictures of a wide screen: a page of the documentation is not as wide."""
WAIT_SECONDS = 20
DESKTOP, PHONE = 1280, 390
SEEN = [(scheme, width) for scheme in ("light", "dark") for width in (DESKTOP, PHONE)]
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

HOSTILE = (
    "\"><script>window.hostile='ran'</script><img src=//evil.example/x onerror=window.hostile=1>"
    "' onmouseover='window.hostile=2' {{7*7}} &lt;b&gt; \u202eesrever\u202c \u200f\u05d0"
)
LONG = (HOSTILE + "x" * 253)[:253]
NAME_SHOWN = 200
"""Of a GPU's name: a UUID with its slice has 50."""
LONG_POD = f"hostile-{LONG}"[:253]
SILENT_POD = f"hostile-silent-{HOSTILE}"
LONG_NAME = "n" * 60 + "." + "a" * 192


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

    def command(self, name: str, **words: Any) -> Any:  # noqa: ANN401 - of Chromium's protocol
        """Give a command that WebDriver has no word for."""
        return self.driver.execute_cdp_cmd(name, words)

    def run(self, script: str, *words: object) -> Any:  # noqa: ANN401 - what a script returns
        """Run a script of the test's; the page's policy does not apply to it."""
        return self.driver.execute_script(script, *words)

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements that fit."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """Click the first element that fits."""
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def follow(self, selector: str) -> None:
        """Click the first element that fits, and wait for the page that it leads to."""
        self.run("window.isLeft = false")
        self.click(selector)
        self.until("return window.isLeft === undefined && document.readyState === 'complete'")

    def until(self, script: str) -> None:
        """Wait until a script returns something true."""
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
        """Return the URLs that were requested since the last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def _log(self, name: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(name)  # type: ignore[no-untyped-call]  # of Selenium's
        return entries

    def complaints(self, address: Address) -> list[str]:
        """Return what went wrong since the last time, and which other hosts were asked."""
        others = [url for url in self.requests() if not url.startswith(f"{address.url}/")]
        problems = [entry["message"] for entry in self._log("browser")]
        problems += others + list(self.run("return window.violations"))
        self.driver.get("about:blank")  # A page refreshes itself, for the next test to see.
        return problems


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that can reach this machine alone; the driver fetches nothing."""
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


@pytest.fixture(scope="module")
def fleet() -> Iterator[Address]:
    """Ten workloads in every state, watched for two hours."""
    with opened(showroom.fleet(), minutes=120) as address:
        yield address


def busy(_minute: float) -> float:
    """Return the load of a GPU at any time."""
    return 90.0


def hostile() -> list[Shown]:
    """Return workloads whose every text wants to be markup."""
    return [
        shown(
            "hostile",
            ShownPod(name=LONG_POD, load=busy, gpus=(LONG, f"{HOSTILE}-2")),
            ShownPod(name=SILENT_POD, load=busy, gpus=(f"3-{LONG}",), silent=-3),
            namespace="ml",
        ),
        shown("refused", namespace="ml", demandQuery=f'vector(1) # "{HOSTILE}"'),
        shown(LONG_NAME, namespace="n" * 63, alert=LONG),
        shown("alerted", namespace="ml", alert=HOSTILE),
    ]


@pytest.mark.parametrize(("scheme", "width"), SEEN)
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/triggers/inference/mistral-7b",
        "/triggers/speech/tts",
    ],
)
def test_every_page_can_be_used_by_everybody(
    browser: Browser, fleet: Address, path: str, scheme: str, width: int
) -> None:
    browser.look(fleet.url + path, scheme, width)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.barriers() == []
    assert not browser.is_wider_than_the_screen()
    assert browser.complaints(fleet) == []


@pytest.mark.parametrize("has_script", [True, False])
def test_lists_are_filtered(browser: Browser, fleet: Address, *, has_script: bool) -> None:
    browser.command("Emulation.setScriptExecutionDisabled", value=not has_script)
    try:
        browser.look(f"{fleet.url}/")
        browser.all("input[name=name]")[0].send_keys("inference/")
        browser.follow("form button")
        assert len(browser.all("tbody tr")) == 4
        browser.follow("nav .active")
        assert len(browser.all("tbody tr")) == 2
        browser.follow("tbody th a")
        assert browser.all("h1")[0].text == "inference/llama-70b"
        browser.click("summary")
        assert browser.all("details[open] table")
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.complaints(fleet) == []


def test_texts_of_others_are_shown_as_they_are_and_run_nowhere(browser: Browser) -> None:
    with opened(hostile()) as address:
        for path, texts in {
            "/": [LONG_NAME, HOSTILE, "bad_data"],
            "/triggers/ml/hostile": [
                LONG_POD,
                SILENT_POD,
                LONG[:NAME_SHOWN],
                f"{HOSTILE}-2",
                f"3-{LONG}"[:NAME_SHOWN],
            ],
            "/triggers/ml/refused": [f'# "{HOSTILE}"', "bad_data"],
            f"/triggers/{'n' * 63}/{LONG_NAME}": [LONG_NAME, LONG],
            "/triggers/ml/alerted": [HOSTILE],
        }.items():
            for scheme, width in SEEN:
                browser.look(address.url + path, scheme, width)
                shown_text = browser.run("return document.body.textContent")
                assert [text for text in texts if text not in shown_text] == []
                assert not browser.is_wider_than_the_screen()
            assert browser.run("return window.hostile") is None
            assert browser.run("return document.scripts.length") == 1
            assert browser.run("return document.querySelectorAll('main img').length") == 0
            assert browser.barriers() == []
            assert browser.complaints(address) == []


def test_a_page_renews_itself_until_it_is_in_use(browser: Browser) -> None:
    renew = "document.dispatchEvent(new Event('visibilitychange'))"
    with opened(showroom.many(3)) as address:
        browser.look(f"{address.url}/triggers/team-00/model-0000")
        browser.run(f"window.before = document.querySelector('h1'); {renew}")
        browser.until("return !window.before.isConnected")
        browser.click("summary")
        browser.requests()
        browser.run(renew)
        assert browser.requests() == []
        assert browser.all("#live")[0].text == ""
        browser.look(f"{address.url}/")
    browser.run(renew)
    browser.until("return document.getElementById('live').textContent.startsWith('not renewed')")
    browser.complaints(address)  # that nothing answers any more


@pytest.mark.parametrize(
    ("name", "path", "screen"),
    [
        ("status-list", "/", ("light", DESKTOP, 900)),
        ("status-trigger", "/triggers/inference/mistral-7b", ("light", DESKTOP, 1080)),
        ("status-phone", "/", ("dark", PHONE, 860)),
    ],
)
def test_the_pictures_of_the_documentation_are_of_these_pages(
    browser: Browser, fleet: Address, name: str, path: str, screen: tuple[str, int, int]
) -> None:
    scheme, width, height = screen
    browser.look(fleet.url + path, scheme, width)
    scale = SCALE if width == DESKTOP else 1.0
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
    taken = browser.command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    picture, kept = base64.b64decode(taken["data"]), IMAGES / f"{name}.png"
    if os.environ.get("RECORD"):
        IMAGES.mkdir(exist_ok=True)
        kept.write_bytes(picture)
    for image in (picture, kept.read_bytes()):
        assert _size(image) == (width * scale, height * scale)
        assert len(image) < LARGEST_IMAGE_BYTES


def _size(picture: bytes) -> tuple[int, int]:
    """Return the width and the height that a PNG says."""
    assert picture.startswith(b"\x89PNG")
    return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")
