"""The tree of the documentation's site: what lies where in the repository lies there in the site.

MkDocs reads one folder. The pages link to files outside of it (the README, the examples, the
deployment), and their links have to work in the repository's own view as well. So the site mirrors
the repository, and no link is rewritten.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDERS = ("deploy", "examples")
"""Folders with files that pages link to."""
LANGUAGES = {"zh": "简体中文", "ja": "日本語"}
"""The folders of docs with translations, and what their languages are called."""
MOVED: dict[str, str] = {
    "concepts": "how-it-works",
    "draining": "operations#scale-in-without-losing-requests",
    "expectations": "arithmetic#what-to-expect",
    "faq": "troubleshooting#questions",
    "glossary": "how-it-works#words",
    "influxdb": "servers#influxdb",
    "ja/arithmetic": "arithmetic",
    "ja/concepts": "how-it-works",
    "ja/expectations": "arithmetic#what-to-expect",
    "ja/faq": "ja/troubleshooting",
    "ja/how-it-works": "how-it-works",
    "ja/unknown": "states",
    "ja/wrong-signal": "exporters#which-number-of-the-gpu",
    "migrate/alert-webhook": "webhook#from-a-webhook-that-adds-replicas",
    "migrate/gpu-exporter": "migrate/exporters#gpu_exporter",
    "migrate/managed-cloud-adapter": "migrate/adapters#a-managed-clouds-adapter",
    "migrate/pmady-keda-gpu-scaler": "migrate/exporters#pmadykeda-gpu-scaler",
    "migrate/prometheus-adapter": "migrate/adapters",
    "observe": "migrate#observe-before-you-switch",
    "platforms": "install#platforms",
    "presets": "llm#presets",
    "production": "operations#before-production",
    "release": "testing#how-a-release-is-made",
    "roadmap": "limits#what-is-planned",
    "shared-gpus": "exporters#shared-gpus",
    "traces": "observability#traces",
    "trigger": "specification",
    "unknown": "states",
    "wrong-signal": "exporters#which-number-of-the-gpu",
    "zh/arithmetic": "arithmetic",
    "zh/concepts": "how-it-works",
    "zh/expectations": "arithmetic#what-to-expect",
    "zh/how-it-works": "how-it-works",
    "zh/influxdb": "servers#influxdb",
    "zh/unknown": "states",
    "zh/wrong-signal": "exporters#which-number-of-the-gpu",
}
"""Where a page of docs went that other sites may link to, by the folder of its old address."""


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


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead from a page to its translations, below its title."""
    docs, source = Path(config.docs_dir).name, page.file.src_uri
    translations = {
        name: posixpath.join(docs, folder, posixpath.relpath(source, docs))
        for folder, name in LANGUAGES.items()
    }
    links = [
        f"[{name}]({posixpath.relpath(uri, posixpath.dirname(source))})"
        for name, uri in translations.items()
        if files.get_file_from_path(uri)
    ]
    title, _, rest = markdown.partition("\n")
    return f"{title}\n\n{' · '.join(links)}\n{rest}" if links else markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Lead from the address of each page that moved to where its facts are."""
    for old, new in MOVED.items():
        stub = Path(config.site_dir, "docs", old, "index.html")
        page, _, anchor = posixpath.relpath(new, old).partition("#")
        address = f"{page}/#{anchor}" if anchor else f"{page}/"
        stub.parent.mkdir(parents=True)
        stub.write_text(f'<meta http-equiv="refresh" content="0; url={address}">\n')


def _published(root: Path, docs: Path) -> list[Path]:
    folders = [docs, *(root / each for each in FOLDERS)]
    inside = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sorted([*root.glob("*.md"), *inside])


def _mounted(path: Path, root: Path, config: MkDocsConfig) -> File:
    uri = path.relative_to(root).as_posix()
    return File(uri, str(root), config.site_dir, config.use_directory_urls)
