"""Screenshots of the status page, with workloads in every state."""

import base64
from collections.abc import Iterator, Mapping

from testbed import programs
from testbed.browser import DESKTOP, PHONE, started
from tools.pictures import fleet

SCALE = 0.75
"""Of a wide screen: a page of the documentation is not as wide."""
PAGES: Mapping[str, tuple[str, str, int, int]] = {
    "status-list": ("/", "light", DESKTOP, 900),
    "status-trigger": ("/triggers/inference/mistral-7b", "light", DESKTOP, 1080),
    "status-phone": ("/", "dark", PHONE, 860),
}
"""Each picture's path, color scheme, width and height."""


def pictures() -> Iterator[tuple[str, bytes]]:
    """Yield each picture's name and PNG."""
    programs.build(["chromium", "chromedriver"])
    with fleet.opened(fleet.fleet(), minutes=120) as url, started() as browser:
        for name, (path, scheme, width, height) in PAGES.items():
            browser.look(url + path, scheme, width)
            scale = SCALE if width == DESKTOP else 1.0
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
            shot = browser.command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
            yield name, base64.b64decode(shot["data"])
