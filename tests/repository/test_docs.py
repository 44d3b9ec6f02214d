"""The documentation says what the code does: every key, every default, every target."""

import re
from pathlib import Path

import trustme
import yaml

from keda_gpu_scaler import settings, trigger
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import Profile
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject, Signal
from tests.support import go_modules
from tests.support.exposed import exposed
from tests.support.go_modules import pinned
from tests.support.prometheus import KINDS
from tests.support.triggers import access

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_OPTIONS = "grpc."
"""Prefixes of gRPC options, which are dotted words like the events of the log."""


def section(page: Path, name: str) -> list[str]:
    """Return the lines between a page's markers of this name."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page.read_text(), re.DOTALL)
    assert found, f"{page.name} has no section {name}"
    return found[1].splitlines()


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---"] * len(head)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def trigger_row(name: str, key: trigger.Key) -> list[str]:
    default = f"`{key.default}`" if key.default else key.otherwise.replace("<", r"\<")
    return [f"`{name}`", default, key.meaning]


def setting_rows() -> list[list[str]]:
    return [
        [f"`{row.variable}`", f"`{row.default}`" if row.default else "", row.meaning]
        for row in settings.describe()
    ]


def metric_rows() -> list[list[str]]:
    return [
        [f"`{metric.name}`", metric.kind, ", ".join(metric.labels), metric.meaning]
        for metric in exposed()
    ]


def profile_row(name: str, profile: Profile) -> list[str]:
    if not profile.conventions:
        return [f"`{name}`", profile.exporter, "no series names a pod", "-", "-"]
    metric_sources = profiles.metric_sources(name, Signal.UTILIZATION)
    pods = dict.fromkeys(f"`{way.labels.namespace}`, `{way.labels.pod}`" for way in metric_sources)
    metrics = dict.fromkeys(
        f"`{one.name}`" for way in metric_sources for one in way.measure.metrics
    )
    others = ", ".join(signal for signal in profile.signals if signal is not Signal.UTILIZATION)
    exporter = profile.exporter if profile.verified else f"{profile.exporter} ‡"
    return [f"`{name}`", exporter, " or ".join(pods), ", ".join(metrics), others]


def test_the_page_on_exporters_has_every_profile_with_what_it_reads() -> None:
    page = ROOT / "docs" / "exporters.md"
    head = ["profile", "whose series", "namespace and pod", "utilization from", "other signals"]
    rows = [profile_row(name, profile) for name, profile in profiles.PROFILES.items()]
    assert section(page, "profiles") == table(head, rows)


def test_the_page_on_exporters_has_the_order_in_which_auto_reads_them() -> None:
    page = (ROOT / "docs" / "exporters.md").read_text()
    (order,) = re.findall(r"the first of: dcgm-exporter,\s([^.]+)\.", page)
    assert tuple(re.findall(r"`([\w-]+)`", order)) == profiles.DETECTED


def test_the_page_on_triggers_has_every_key_with_its_default() -> None:
    page = ROOT / "docs" / "trigger.md"
    rows = [trigger_row(name, key) for name, key in trigger.KEYS.items()]
    assert section(page, "trigger-keys") == table(["key", "default", "meaning"], rows)


def test_the_page_on_triggers_explains_every_key_of_this_version() -> None:
    page = (ROOT / "docs" / "trigger.md").read_text()
    explained = set(re.findall(r"`(\w+)(?:: [\w-]+)?`", page))
    assert trigger.KEYS.keys() <= explained


def test_the_page_on_settings_has_every_setting_with_its_default() -> None:
    page = ROOT / "docs" / "settings.md"
    assert section(page, "settings") == table(["variable", "default", "meaning"], setting_rows())


def test_the_file_on_the_settings_page_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    token, file = tmp_path / "token", tmp_path / "settings.yaml"
    token.write_text("secret")
    file.write_text(text.replace("/var/run/secrets/mimir/token", str(token)))

    loaded = settings.load({"KEDA_GPU_SCALER_CONFIG": str(file)})

    assert set(loaded.sources) == set(yaml.safe_load(text)["sources"])


def test_every_file_on_the_page_on_tenancy_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tenancy.md").read_text()
    token, authority = tmp_path / "token", tmp_path / "service-ca.crt"
    token.write_text("secret")
    trustme.CA().cert_pem.write_to_path(str(authority))
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(re.sub(r"/var/run/secrets/\S+/(\S+)", rf"{tmp_path}/\1", text))
        source = {} if "sources" in text else {"KEDA_GPU_SCALER_PROMETHEUS_URL": "http://a:9090"}
        loaded = settings.load({"KEDA_GPU_SCALER_CONFIG": str(file), **source})
        assert "default" in loaded.sources
    assert number == 3


def test_the_page_on_metrics_has_every_metric_with_its_labels() -> None:
    page = ROOT / "docs" / "metrics.md"
    expected = table(["metric", "type", "labels", "meaning"], metric_rows())
    assert sorted(section(page, "metrics")) == sorted(expected)


def test_the_page_on_metrics_has_exactly_the_events_of_the_log() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text().partition("## Log events")[2]
    rows = re.findall(r"^\| (`[^|]+) \| \w+(?:, \w+)* \|", page, re.MULTILINE)
    explained = [event for row in rows for event in re.findall(r"`([a-z_.]+)`", row)]
    assert sorted(explained) == sorted(events())


def events() -> set[str]:
    """Return the name of every event: the dotted words of those modules that may write a log."""
    modules = (ROOT / "keda_gpu_scaler").rglob("*.py")
    writing = [text for each in modules if "structlog" in (text := each.read_text())]
    words = re.findall(r'"([a-z]+\.[a-z_]+)"', "".join(writing))
    return {word for word in words if not word.startswith(_OPTIONS)}


def test_the_page_on_servers_has_every_server_that_tests_run_on() -> None:
    page = (ROOT / "docs" / "servers.md").read_text()
    run = re.findall(r"^\|[^|]*\|[^|]* runs? on .*: `([\w-]+)` \|", page, re.MULTILINE)
    assert run == list(KINDS)


def test_every_state_is_explained() -> None:
    page = (ROOT / "docs" / "states.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) >= set(State)


def test_every_example_is_on_the_page_of_recipes() -> None:
    page = (ROOT / "docs" / "recipes.md").read_text().partition("## Every example")[2]
    listed = page.partition("\n## ")[0]
    linked = set(re.findall(r"\(\.\./(examples/scaledobjects/[\w.-]+)\)", listed))
    examples = (ROOT / "examples" / "scaledobjects").iterdir()
    assert linked == {str(path.relative_to(ROOT)) for path in examples}


def test_every_make_target_is_in_the_contributing_guide_and_in_its_own_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):.* ## ", makefile, re.MULTILINE))
    guide = (ROOT / "CONTRIBUTING.md").read_text().partition("## Every target")[2]
    listed = guide.partition("\n## ")[0]
    assert targets == set(re.findall(r"^\| `make ([a-z0-9-]+)`", listed, re.MULTILINE))
    assert {"help", "demo", "test", "check", "proto", "lock", "tools", "bench", "clean"} <= targets


def test_the_readme_names_the_versions_that_the_scenarios_run() -> None:
    proved = README.read_text().partition("**Tested on the real programs:**")[2].partition("## ")[0]
    said = re.findall(r"(KEDA|Kubernetes|Prometheus)\s([0-9.]+[0-9])", proved)
    prometheus = pinned("tools", "github.com/prometheus/prometheus")
    assert said == [
        ("KEDA", go_modules.keda("2.21")),
        ("Kubernetes", go_modules.kubernetes("1.36")),
        # As a Go module, Prometheus 3.15.0 is called 0.315.0.
        ("Prometheus", re.sub(r"^0\.3(\d+)", r"3.\1", prometheus)),
        ("KEDA", go_modules.keda("2.20")),
        ("Kubernetes", go_modules.kubernetes("1.35")),
        ("KEDA", go_modules.keda("2.16")),
        ("Kubernetes", go_modules.kubernetes("1.37")),
    ]


def test_the_example_on_the_page_on_influxdb_is_accepted() -> None:
    page = (ROOT / "docs" / "influxdb.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    document = yaml.safe_load(text)
    (external,) = document["spec"]["triggers"]
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    allowed = access("influxdb", own_promql=Policy.ALLOW, influxql_sources=frozenset({"influxdb"}))
    found = trigger.parse(named, external["metadata"], allowed)
    assert found.workload == f"deployment/{document['spec']['scaleTargetRef']['name']}"
    assert found.demand is not None
    assert not found.warnings


def test_the_page_on_influxdb_names_the_settings_that_there_are() -> None:
    page = (ROOT / "docs" / "influxdb.md").read_text()
    keys = {row.key.removeprefix("influxdb_") for row in settings.describe()}
    assert set(re.findall(r"`(\w+_tag|measurement|field|step|delay)`", page)) <= keys
    assert set(re.findall(r"KEDA_GPU_SCALER_\w*[A-Z]", page)) <= {
        row.variable for row in settings.describe()
    }


def test_whoever_installs_is_told_first_that_the_image_has_to_be_built() -> None:
    chart = ROOT / "deploy" / "helm" / "keda-gpu-scaler"
    for page in (README, chart / "README.md", ROOT / "docs" / "chart.md"):
        before, install, _ = re.split(r"(helm install .*)", page.read_text(), maxsplit=1)
        assert "image" in before.rpartition("\n## ")[2]
        assert "--set image.repository=" in install
