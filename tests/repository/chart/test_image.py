"""The four lines from a checkout to a release: each uses what the line before it made.

No container engine is here, so a stand-in keeps the names of images, and Helm shows what it would
install.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.repository.chart import charts
from tests.repository.test_docs import ROOT

ENGINE = """\
#!/bin/sh
# A container engine that knows the names of images alone: those it has, and those it pushed.
set -eu
has() { grep -qxF "$1" "$IMAGES" || { echo "no such image: $1" >&2; exit 1; }; }
case $1 in
    build) while [ "$1" != --tag ]; do shift; done; echo "$2" >> "$IMAGES" ;;
    tag) has "$2"; echo "$3" >> "$IMAGES" ;;
    push) has "$2"; echo "$2" >> "$IMAGES.pushed" ;;
esac
"""


@pytest.mark.needs("helm")
def test_the_four_lines_install_the_image_that_they_push(tmp_path: Path) -> None:
    readme = (charts.CHART / "README.md").read_text()
    (text,) = re.findall(r"```sh\n(make image\n(?:.+\n)+)```\n", readme)
    *commands, install = text.splitlines()
    assert len(commands) == 3
    engine, images = tmp_path / "docker", tmp_path / "images"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        ["/bin/sh", "-eu", "-c", "\n".join(commands)],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "IMAGES": str(images)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    built, tagged = images.read_text().splitlines()
    assert built in done.stdout.splitlines()
    pushed = (tmp_path / "images.pushed").read_text().splitlines()
    assert pushed == [tagged]
    program, verb, release, chart, *flags = shlex.split(install)
    assert (program, verb) == ("helm", "install")
    made = charts.run(program, "template", release, str(ROOT / chart), *flags)
    assert f"image: {tagged}\n" in made
