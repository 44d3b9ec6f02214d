"""What we show is clean, and a mistake in an example is found."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler.check import check
from keda_gpu_scaler.check.findings import Severity
from keda_gpu_scaler.check.objects import Terms
from tests.check.cases import report

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
SCALED = sorted((ROOT / "examples" / "scaledobjects").glob("*.yaml"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ADDRESS = "keda-gpu-scaler.keda.svc:6000"
NOTED = {
    "chart.md": {"no-maximum"},
    "influxdb.md": {"needs-setting"},
    "tls.md": {"no-maximum"},
    "webhook.md": {"push-without-signal"},
}
"""Pages whose pieces leave out what they are not about, or tell operators of a setting."""
ASKS_OPERATORS = {"influxdb": {"needs-setting"}}
"""Examples that tell operators of a setting."""


def names(text: str) -> set[str]:
    return {one.rule.name for one in report(text).findings}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_example_is_clean(path: Path) -> None:
    assert names(path.read_text(encoding="utf-8")) == ASKS_OPERATORS.get(path.stem, set())


def test_all_examples_together_are_clean() -> None:
    texts = {str(path): path.read_text(encoding="utf-8") for path in EXAMPLES}
    found = [(Path(one.file).stem, one.rule.name) for one in check(texts, Terms()).findings]
    assert found == [(stem, rule) for stem, rules in ASKS_OPERATORS.items() for rule in rules]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_yaml_of_a_page_is_clean(page: Path) -> None:
    found = [
        one
        for _, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        for one in report(text).findings
    ]
    if page.name == "keda-prometheus.md":  # it shows the recipe that people come from
        found = [one for one in found if one.rule.name != "average-recipe"]
    assert [one for one in found if one.rule.severity is not Severity.NOTE] == []
    assert {one.rule.name for one in found} == NOTED.get(page.name, set())


def put_to_sleep(spec: dict[str, Any], trigger: dict[str, Any]) -> None:
    """Leave nothing that wakes it."""
    spec |= {"minReplicaCount": 0, "triggers": [trigger]}
    trigger["type"] = "external"
    for key in [*trigger["metadata"]]:
        if key.startswith("demand") or key == "activationWorkload":
            del trigger["metadata"][key]


def scale_by_an_average(_: dict[str, Any], trigger: dict[str, Any]) -> None:
    """Leave no demand that scales, which an average excludes."""
    trigger["metadata"]["aggregation"] = "average"
    trigger["metadata"].pop("demandThreshold", None)


@pytest.mark.parametrize(
    ("finds", "spoil"),
    [
        ("unknown-key", lambda _, trigger: trigger["metadata"].update(treshold="70")),
        ("missing-key", lambda _, trigger: trigger["metadata"].pop("threshold")),
        ("wrong-value", lambda _, trigger: trigger["metadata"].update(threshold="70 %")),
        ("wrong-type", lambda _, trigger: trigger["metadata"].update(threshold=70)),
        ("no-maximum", lambda spec, _: spec.pop("maxReplicaCount")),
        ("sum-with-value", lambda _, trigger: trigger.update(metricType="Value")),
        ("average-without-value", scale_by_an_average),
        ("other-workload", lambda _, trigger: trigger["metadata"].update(workload="another")),
        ("cached-metrics", lambda _, trigger: trigger.update(useCachedMetrics=True)),
        ("nothing-wakes", put_to_sleep),
    ],
)
def test_a_mistake_in_an_example_is_found(
    finds: str,
    spoil: Callable[[dict[str, Any], dict[str, Any]], object],
    subtests: pytest.Subtests,
) -> None:
    for path in SCALED:
        documents = list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
        spec = documents[-1]["spec"]
        triggers = spec["triggers"]
        (ours,) = [one for one in triggers if one["metadata"].get("scalerAddress") == ADDRESS]
        spoil(spec, ours)
        with subtests.test(path.stem):
            assert finds in names(yaml.dump_all(documents, Dumper=yaml.CSafeDumper))
