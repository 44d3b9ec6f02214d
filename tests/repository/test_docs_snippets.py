"""Each piece of YAML in the pages can be read; our triggers, settings and values in it are taken.

`tests/workbench/check/test_own_files.py` finds nothing in the ScaledObjects among them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
import yaml

from keda_gpu_scaler import settings, trigger
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger.access import Namespaces
from testbed import charts
from testbed.triggers import access
from tests.repository.chart import shapes
from tests.repository.test_docs import ROOT
from tests.repository.test_examples import is_ours

BLOCK = re.compile(r"^( *)```yaml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ALLOWED = dict.fromkeys(("accelerators.md", "alert-webhook.md"), Policy.ALLOW)
"""Pages that tell operators to let triggers read all namespaces."""
GATEWAYS = Namespaces(frozenset({"envoy-gateway-system"}))
"""Another namespace that a page tells operators to allow."""
MOUNTED = re.compile(r"/var/run/secrets/\S+/(\S+)")


class Piece(NamedTuple):
    """One object in a page."""

    page: Path
    document: Any

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.document['metadata']['name']}"


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def pieces(page: Path) -> Iterator[Piece]:
    """Return every object of every piece of YAML in a page."""
    for _, text in BLOCK.findall(page.read_text()):
        yield from (Piece(page, document) for document in yaml.load_all(text, yaml.CSafeLoader))


PIECES = [piece for page in pages() for piece in pieces(page) if isinstance(piece.document, dict)]
SCALED_OBJECTS = [piece for piece in PIECES if piece.document.get("kind") == "ScaledObject"]
FRAGMENTS = [
    Piece(piece.page, {"metadata": {"namespace": "inference", "name": "part"}, "spec": spec})
    for piece in PIECES
    for spec in [piece.document]
    if "triggers" in spec
]
"""Snippets of triggers alone, on pages about a few of their keys."""
_VALUES = yaml.safe_load((charts.CHART / "values.yaml").read_text()).keys()
VALUES = {
    yaml.safe_dump(piece.document): piece.page.name
    for piece in PIECES
    if piece.document.keys() <= _VALUES
}
SOURCES = {
    text: page
    for text, page in VALUES.items()
    if "sources" in yaml.safe_load(text).get("settings", ())
}
SETTINGS = {
    yaml.safe_dump(piece.document): piece.page.name
    for piece in PIECES
    if piece.document.keys() & {"sources", "other_namespaces"}
}


def triggers(piece: Piece) -> list[dict[str, Any]]:
    """Return the triggers of a ScaledObject that are for this scaler."""
    return [one for one in piece.document["spec"]["triggers"] if is_ours(one)]


def test_each_trigger_of_ours_is_taken_without_a_warning(subtests: pytest.Subtests) -> None:
    for piece in SCALED_OBJECTS + FRAGMENTS:
        with subtests.test(piece.name):
            named = piece.document["metadata"]
            policy = ALLOWED.get(piece.page.name, Policy.NAMESPACED)
            terms = {"own_promql": policy, "influxql_sources": frozenset({"influxdb"})}
            allowed = access("default", "influxdb", others=GATEWAYS, **terms)
            for one in triggers(piece):
                found = trigger.parse(
                    ScaledObject(named["namespace"], named["name"]), one["metadata"], allowed
                )
                assert found.warnings == ()
                assert found.pods.namespace == named["namespace"]


@pytest.mark.needs("helm")
@pytest.mark.parametrize("text", VALUES, ids=VALUES.values())
def test_helm_takes_values_of_the_chart(text: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    assert charts.template("--values", str(file))


@pytest.mark.needs("helm")
@pytest.mark.parametrize("text", SOURCES, ids=SOURCES.values())
def test_helm_test_sends_a_trigger_that_these_sources_allow(text: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    found = shapes.Release(tuple(charts.objects(charts.template("--values", str(file)))))
    (test,) = found.the("Pod")["spec"]["containers"]
    given = [word.split("=", 2) for word in test["args"] if word.startswith("--")]
    (named,) = (words[1] for words in given if words[0] == "--scaled-object")
    metadata = dict(words[1:] for words in given if words[0] == "--metadata")
    allowed = settings.load(shapes.mounted(found, tmp_path / "pod")).access
    assert not trigger.parse(ScaledObject(*named.split("/")), metadata, allowed).warnings


@pytest.mark.parametrize("text", SETTINGS, ids=SETTINGS.values())
def test_the_scaler_takes_a_file_of_settings(text: str, tmp_path: Path) -> None:
    for name in MOUNTED.findall(text):
        (tmp_path / name).write_text("secret")
        if name.endswith(".crt"):
            trustme.CA().cert_pem.write_to_path(str(tmp_path / name))
    file = tmp_path / "settings.yaml"
    file.write_text(MOUNTED.sub(rf"{tmp_path}/\1", text))
    source = {} if "sources" in text else {"KEDA_GPU_SCALER_PROMETHEUS_URL": "http://a:9090"}
    assert settings.load({"KEDA_GPU_SCALER_CONFIG": str(file), **source}).sources
