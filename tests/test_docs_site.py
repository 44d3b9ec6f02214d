"""The documentation's site: what `make docs` refuses, and that pages look as they were meant."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import ROOT

SEPARATOR = re.compile(r"^\|(?: *:?-+:? *\|)+$", re.MULTILINE)
"""The second line of a table."""
LOADED = re.compile(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="(?:https?:)?//[^"]*"')
"""What a browser would fetch from another host."""
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def build(root: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder as `make docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
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


def append(page: Path, text: str) -> None:
    page.write_text(f"{page.read_text()}\n{text}\n")


def test_links_as_the_repository_s_view_follows_them_are_right_in_the_site(small: Path) -> None:
    done = build(small)
    assert done.returncode == 0, done.stderr
    page = (small / "build" / "site" / "docs" / "one" / "index.html").read_text()
    assert 'href="../../#at-home"' in page
    assert 'href="../../examples/a.yaml"' in page
    assert (small / "build" / "site" / "examples" / "a.yaml").read_text() == "a: 1\n"


@pytest.mark.parametrize(
    "link",
    [
        pytest.param("[x](two.md)", id="a-page"),
        pytest.param("[x](../examples/b.yaml)", id="a-file"),
        pytest.param("[x](../README.md#nowhere)", id="an-anchor-of-another-page"),
        pytest.param("[x](#nowhere)", id="an-anchor-of-its-own"),
    ],
)
def test_a_link_that_leads_nowhere_is_refused(small: Path, link: str) -> None:
    append(small / "docs" / "one.md", link)
    done = build(small)
    assert done.returncode == 1
    assert link[4:-1] in done.stderr


def test_a_page_that_the_navigation_lacks_is_refused(small: Path) -> None:
    (small / "docs" / "two.md").write_text("# Two\n")
    done = build(small)
    assert done.returncode == 1
    assert "docs/two.md" in done.stderr


def test_an_entry_without_a_page_is_refused(small: Path) -> None:
    (small / "docs" / "one.md").unlink()
    (small / "README.md").write_text("# Home\n")
    done = build(small)
    assert done.returncode == 1
    assert "docs/one.md" in done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the whole site, built."""
    into = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(into)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
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
