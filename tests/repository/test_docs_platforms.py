"""What the pages on platforms and servers show is taken: values by Helm, triggers by check."""

import re
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import cli, settings
from keda_gpu_scaler.spec.kinds import Kind
from tests.repository.chart import charts
from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces
from tests.support import go_modules

PLATFORMS, SERVERS = ROOT / "docs" / "platforms.md", ROOT / "docs" / "llm.md"
VALUES = [piece.document for piece in pieces(PLATFORMS) if "settings" in piece.document]
SCALED = [
    piece.document
    for page in (SERVERS, ROOT / "docs" / "install.md")
    for piece in pieces(page)
    if piece.document.get("kind") == "ScaledObject"
]


def name(values: dict[str, Any]) -> str:
    """Return the address that values name."""
    found = values["settings"]
    return str(found.get("prometheus_url") or found["sources"]["default"]["url"])


@pytest.mark.needs("helm")
@pytest.mark.parametrize("values", VALUES, ids=name)
def test_helm_takes_the_values_of_a_platform(values: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"image": {"repository": "a.example/scaler"}, **values}))
    assert name(values) in charts.template("--values", str(file))


@pytest.mark.parametrize("values", VALUES, ids=name)
def test_the_settings_of_a_platform_are_taken(values: dict[str, Any], tmp_path: Path) -> None:
    token, authority, file = (tmp_path / each for each in ("token", "service-ca.crt", "a.yaml"))
    token.write_text("secret")
    trustme.CA().cert_pem.write_to_path(str(authority))
    mounts = [mount["mountPath"] for mount in values.get("extraVolumeMounts", ())]
    text = yaml.safe_dump(values["settings"])
    for mount in mounts:
        text = text.replace(f"{mount}/", f"{tmp_path}/")
    file.write_text(text)

    loaded = settings.load({"KEDA_GPU_SCALER_CONFIG": str(file)})

    assert "default" in loaded.sources
    assert (str(tmp_path) in text) == bool(mounts)


@pytest.mark.parametrize("scaled", SCALED, ids=lambda one: one["metadata"]["name"])
def test_check_finds_nothing_in_a_scaled_object_of_these_pages(
    scaled: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "page.yaml"
    file.write_text(yaml.safe_dump(scaled))
    done = CliRunner().invoke(cli.app, ["check", str(file), "--fail-on", "warning"])
    assert done.exit_code == 0, done.output
    assert "checked 1 KEDA object" in done.output


def test_the_cluster_to_try_it_on_has_the_keda_that_the_scenarios_run() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    (line,) = re.findall(r"^kubectl apply .*/kedacore/keda/.*$", page, re.MULTILINE)
    assert set(re.findall(r"\d+\.\d+\.\d+", line)) == {go_modules.keda("2.21")}


def test_every_kind_that_the_page_on_servers_names_is_one() -> None:
    named = set(re.findall(r"`(\w+)/NAME`", SERVERS.read_text()))
    aliases = {str(kind) for kind in Kind} | {"lws"}
    assert named
    assert named <= aliases


def test_each_platform_says_what_is_not_proved() -> None:
    page = PLATFORMS.read_text()
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[2:]
    assert [part.splitlines()[0] for part in parts] == [
        "OpenShift",
        "Amazon EKS",
        "Google GKE",
        "Azure AKS",
    ]
    assert [part.splitlines()[0] for part in parts if "Not proved: " not in part] == []
