"""The pages in a real Chromium: what people see, without one thing that is not ours.

Decisions, history and the HTTP server are the product's; the cluster is made up. Nothing in a page
may come from another host, fail in the console, or break the page's own policy.
"""

from collections.abc import Iterator

import pytest

from testbed.browser import DESKTOP, PHONE, Browser, started
from tests.web.shown import answered, fleet, opened, pods

pytestmark = pytest.mark.needs("chromium", "chromedriver")

SEEN = [(scheme, width) for scheme in ("light", "dark") for width in (DESKTOP, PHONE)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as driven:
        yield driven


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with opened(fleet()) as address:
        yield address


@pytest.mark.parametrize(("scheme", "width"), SEEN)
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/triggers/inference/llama-70b",
        "/triggers/speech/tts",
    ],
)
def test_every_page_can_be_used_by_everybody(
    browser: Browser, url: str, path: str, scheme: str, width: int
) -> None:
    browser.look(url + path, scheme, width)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.barriers() == []
    assert not browser.is_wider_than_the_screen()
    assert browser.complaints(url) == []


@pytest.mark.parametrize("has_script", [True, False])
def test_lists_are_filtered(browser: Browser, url: str, *, has_script: bool) -> None:
    browser.command("Emulation.setScriptExecutionDisabled", value=not has_script)
    try:
        browser.look(f"{url}/")
        browser.all("input[name=name]")[0].send_keys("inference/")
        browser.follow("form button")
        assert len(browser.all("tbody tr")) == 2
        browser.follow("nav .active")
        assert len(browser.all("tbody tr")) == 1
        browser.follow("tbody th a")
        assert browser.all("h1")[0].text == "inference/llama-70b"
        browser.click("summary")
        assert browser.all("details[open] table")
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.complaints(url) == []


def test_a_page_renews_itself_until_it_is_in_use(browser: Browser) -> None:
    renew = "document.dispatchEvent(new Event('visibilitychange'))"
    with opened([answered("bert", *pods("bert", 70))]) as address:
        browser.look(f"{address}/triggers/ml/bert")
        browser.run(f"window.before = document.querySelector('h1'); {renew}")
        browser.until("return !window.before.isConnected")
        browser.click("summary")
        browser.requests()
        browser.run(renew)
        assert browser.requests() == []
        assert browser.all("#live")[0].text == ""
        browser.look(f"{address}/")
    browser.run(renew)
    browser.until("return document.getElementById('live').textContent.startsWith('not renewed')")
    browser.complaints(address)  # that nothing answers any more
