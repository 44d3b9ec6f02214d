"""The documentation's site: what `make docs` refuses, and that pages look as they were meant."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.test_docs import ROOT

pytestmark = pytest.mark.slow

SEPARATOR = re.compile(r"^\|(?: *:?-+:? *\|)+$", re.MULTILINE)
"""The second line of a table."""
LOADED = re.compile(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="(?:https?:)?//[^"]*"')
"""What a browser would fetch from another host."""
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def words() -> list[str]:
    """Return the arguments that `make docs` gives MkDocs."""
    makefile = (ROOT / "Makefile").read_text()
    (told,) = re.findall(r"/mkdocs \$\(or \$\(ARGS\),(.*?)\)$", makefile, re.MULTILINE)
    return [sys.executable, "-m", "mkdocs", *told.split()]


def build(root: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder as `make docs` does."""
    return subprocess.run(
        words(),
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a folder with the repository's configuration, a home, one page and one example."""
    kept, _, _ = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    (tmp_path / "mkdocs.yml").write_text(f"{kept}\nnav: [README.md, docs/one.md]\n")
    for folder in ("tools", "docs", "examples", "deploy"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "tools" / "site.py", tmp_path / "tools")
    (tmp_path / "README.md").write_text("# Home\n\n## At home\n\n[one](docs/one.md#part-one)\n")
    (tmp_path / "examples" / "a.yaml").write_text("a: 1\n")
    links = "[home](../README.md#at-home), [example](../examples/a.yaml)"
    (tmp_path / "docs" / "one.md").write_text(f"# One\n\n## Part one\n\n{links}\n")
    return tmp_path


HEADINGS = {
    "`<unknown>` targets": "unknown-targets",
    "To zero & back: *how*": "to-zero--back-how",
    "一 GPU": "一-gpu",
}
"""Headings with the anchors that the repository's view gives them."""


def test_links_and_anchors_are_those_of_the_repository_s_view(small: Path) -> None:
    parts = [f"## {heading}\n\n[here](#{anchor})\n" for heading, anchor in HEADINGS.items()]
    with (small / "docs" / "one.md").open("a") as page:
        page.write("\n".join(["", *parts]))
    done = build(small)
    assert done.returncode == 0, done.stderr
    shown = (small / "build" / "site" / "docs" / "one" / "index.html").read_text()
    assert 'href="../../#at-home"' in shown
    assert 'href="../../examples/a.yaml"' in shown
    assert (small / "build" / "site" / "examples" / "a.yaml").read_text() == "a: 1\n"


def test_a_page_leads_to_its_translations_below_its_title(small: Path) -> None:
    (small / "docs" / "zh").mkdir()
    (small / "docs" / "zh" / "one.md").write_text("# 一\n\n[One](../one.md)\n")
    navigation = small / "mkdocs.yml"
    own = navigation.read_text().replace("docs/one.md]", "docs/one.md, docs/zh/one.md]")
    navigation.write_text(own)

    done = build(small)

    assert done.returncode == 0, done.stderr
    one, home, chinese = (
        (small / "build" / "site" / page / "index.html").read_text()
        for page in ("docs/one", "", "docs/zh/one")
    )
    assert re.search(r'</h1>\s*<p><a href="../zh/one/">简体中文</a></p>', one)
    assert re.search(r"</h1>\s*<h2", home)
    assert re.search(r'</h1>\s*<p><a href="../../one/">One</a></p>', chinese)


BROKEN = {
    "a page": "two.md",
    "a file": "../examples/b.yaml",
    "an anchor of another page": "../README.md#elsewhere",
    "an anchor of its own": "#nowhere",
}
"""Links that lead nowhere."""


def test_each_broken_link_page_without_entry_and_entry_without_page_is_refused(small: Path) -> None:
    one = small / "docs" / "one.md"
    links = " ".join(f"[{what}]({link})" for what, link in BROKEN.items())
    one.write_text(f"{one.read_text()}\n{links}\n")
    (small / "docs" / "forgotten.md").write_text("# Forgotten\n")
    navigation = small / "mkdocs.yml"
    navigation.write_text(navigation.read_text().replace("docs/one.md]", "docs/one.md, gone.md]"))

    done = build(small)

    assert done.returncode == 1
    wrong = [*BROKEN.values(), "docs/forgotten.md", "gone.md"]
    assert [each for each in wrong if each not in done.stderr] == []
    assert f"Aborted with {len(wrong)} warnings in strict mode" in done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the whole site, built."""
    into = tmp_path_factory.mktemp("site")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [*words(), "--site-dir", str(into)]
    subprocess.run(command, cwd=ROOT, env=environment, timeout=120, check=True)
    return into


def pages() -> list[Path]:
    """Return every page of the site."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def built(site: Path, page: Path) -> str:
    """Return the text of a page as the site shows it."""
    name = page.relative_to(ROOT).with_suffix("")
    folder = name.parent if name.name in {"README", "index"} else name
    return (site / folder / "index.html").read_text()


def test_every_table_and_every_list_of_a_page_is_one_in_the_site(site: Path) -> None:
    for page in pages():
        shown = built(site, page)
        tables = SEPARATOR.findall(FENCED.sub("", page.read_text()))
        assert shown.count("<table>") - shown.count('class="highlighttable"') == len(tables), page
        assert not re.search(r"<p>(?:[^<]|<(?!/p>))*\n *(?:[-*]|1\.) ", shown), page
        assert "<p>```" not in shown, page


def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text()), page
