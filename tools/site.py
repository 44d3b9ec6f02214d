"""The tree of the documentation's site: what lies where in the repository lies there in the site.

MkDocs reads one folder. The pages link to files outside of it (the README, the examples, the
deployment), and their links have to work in the repository's own view as well. So the site mirrors
the repository, and no link is rewritten.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDERS = ("deploy", "examples")
"""Folders with files that pages link to."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that they have in the repository's view."""
    config.mdx_configs["toc"]["slugify"] = _anchor
    return config


def _anchor(heading: str, separator: str) -> str:
    """Return a heading's anchor: its letters, digits and hyphens of any script, in lower case.

    The extensions' own take `<unknown>` for a tag and leave it out.
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Give each page the path it has in the repository, and add what the pages link to."""
    for page in tuple(files):
        if page.src_dir == config.docs_dir:
            files.remove(page)
    root = Path(config.config_file_path).parent
    for path in _published(root, Path(config.docs_dir)):
        files.append(_mounted(path, root, config))
    return files


def _published(root: Path, docs: Path) -> list[Path]:
    folders = [docs, *(root / each for each in FOLDERS)]
    inside = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sorted([*root.glob("*.md"), *inside])


def _mounted(path: Path, root: Path, config: MkDocsConfig) -> File:
    uri = path.relative_to(root).as_posix()
    return File(uri, str(root), config.site_dir, config.use_directory_urls)
