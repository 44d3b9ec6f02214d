"""What we show is clean, and each way to spoil an example is found."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


def written(*documents: dict[str, Any]) -> str:
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    assert isinstance(text, str)
    return text


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


class Example(NamedTuple):
    """A ScaledObject of ours, to be spoilt."""

    document: dict[str, Any]
    trigger: dict[str, Any]
    """The one for this scaler."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The trigger's strings."""
        found: dict[str, Any] = self.trigger["metadata"]
        return found

    @property
    def spec(self) -> dict[str, Any]:
        """The ScaledObject's own fields."""
        found: dict[str, Any] = self.document["spec"]
        return found


Where = Callable[[Example], dict[str, Any]]
When = Callable[[Example], bool]


class Mutation(NamedTuple):
    """One way to spoil an example, and what then has to be found."""

    name: str
    finds: str
    spoil: Callable[[Example], object]
    when: When
    """Which examples can be spoilt in this way."""


def metadata(example: Example) -> dict[str, Any]:
    return example.metadata


def spec(example: Example) -> dict[str, Any]:
    return example.spec


def trigger(example: Example) -> dict[str, Any]:
    return example.trigger


def document(example: Example) -> dict[str, Any]:
    return example.document


def always(_: Example) -> bool:
    return True


def misspell(where: Where, key: str, finds: str) -> Mutation:
    def spoil(example: Example) -> None:
        of = where(example)
        of[key[:-1]] = of.pop(key)

    return Mutation(f"misspell {key}", finds, spoil, lambda example: key in where(example))


def remove(where: Where, key: str, finds: str) -> Mutation:
    return Mutation(
        f"remove {key}",
        finds,
        lambda example: where(example).pop(key),
        lambda example: key in where(example),
    )


def put(where: Where, key: str, value: object, finds: str, when: When = always) -> Mutation:
    return Mutation(
        f"{key}: {value!r}", finds, lambda example: where(example).update({key: value}), when
    )


def is_percentage(example: Example) -> bool:
    signal = example.metadata.get("signal", "utilization")
    return signal in {"utilization", "memory"} and example.metadata.get("gpuAggregation") != "sum"


def goes_to_zero(example: Example) -> bool:
    return bool(example.spec.get("minReplicaCount", 0) == 0)


def stays(example: Example) -> bool:
    return not goes_to_zero(example)


def shows_idle_blips(example: Example) -> bool:
    signal = example.metadata.get("signal", "utilization")
    return goes_to_zero(example) and signal == "utilization" and "query" not in example.metadata


def has_no_target(example: Example) -> bool:
    return "demandThreshold" not in example.metadata


def is_alone(example: Example) -> bool:
    return len(example.spec["triggers"]) == 1


def put_to_sleep(example: Example) -> None:
    """Leave nothing that wakes it."""
    example.spec.update({"minReplicaCount": 0, "triggers": [example.trigger]})
    example.trigger["type"] = "external"
    for key in [*example.metadata]:
        if key.startswith("demand") or key == "activationWorkload":
            del example.metadata[key]


MUTATIONS = (
    *(
        misspell(metadata, key, "unknown-key")
        for key in ("workload", "threshold", "demandQuery", "demandThreshold", "window", "query")
    ),
    misspell(metadata, "scalerAddress", "missing-field"),
    misspell(trigger, "metadata", "unknown-field"),
    *(
        misspell(spec, key, "unknown-field")
        for key in ("minReplicaCount", "maxReplicaCount", "scaleTargetRef", "cooldownPeriod")
    ),
    remove(metadata, "threshold", "missing-key"),
    remove(metadata, "scalerAddress", "missing-field"),
    remove(spec, "scaleTargetRef", "missing-field"),
    remove(spec, "triggers", "missing-field"),
    remove(spec, "maxReplicaCount", "no-maximum"),
    remove(trigger, "type", "missing-field"),
    remove(trigger, "metadata", "missing-field"),
    remove(document, "spec", "missing-field"),
    remove(lambda example: example.document["metadata"], "name", "missing-field"),
    put(metadata, "threshold", "95", "wrong-value", is_percentage),
    *(
        put(metadata, "threshold", value, "wrong-value")
        for value in ("0", "-1", "nan", "70 %", "1e400", "")
    ),
    *(
        put(metadata, key, value, "wrong-value")
        for key, value in (
            ("window", "90"),
            ("maxAge", "2h"),
            ("activationWindow", "0s"),
            ("onUnknown", "Hold"),
            ("gpuAggregation", "mean"),
            ("metricName", "s0-gpu"),
        )
    ),
    put(metadata, "threshold", 70, "wrong-type"),
    put(spec, "maxReplicaCount", "8", "wrong-type"),
    put(spec, "minReplicaCount", 1000, "replica-bounds"),
    put(trigger, "metricType", "Value", "sum-with-value"),
    put(metadata, "aggregation", "average", "average-without-value", has_no_target),
    put(metadata, "metricType", "Value", "unknown-key"),
    put(metadata, "workload", "another", "other-workload"),
    put(trigger, "useCachedMetrics", value=True, finds="cached-metrics"),
    put(metadata, "activationThreshold", "1", "never-idle", shows_idle_blips),
    put(metadata, "activationWindow", "20s", "short-activation-window", goes_to_zero),
    put(spec, "cooldownPeriod", 30, "short-cooldown", goes_to_zero),
    put(spec, "pollingInterval", 15, "polling-without-effect", stays),
    put(spec, "fallback", {"failureThreshold": 3, "replicas": 2}, "unused-fallback", is_alone),
    put(
        spec,
        "advanced",
        {
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}
            }
        },
        "short-stabilization",
    ),
    put(lambda of: of.document["metadata"], "name", "a" * 55, "name-too-long"),
    put(document, "kind", "ScaledObjekt", "unknown-field"),
    put(document, "apiVersion", "v1", "unknown-field"),
    Mutation("nothing wakes", "nothing-wakes", put_to_sleep, always),
)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_spoilt_example_is_found(mutation: Mutation, subtests: pytest.Subtests) -> None:
    spoilt = 0
    for path in SCALED:
        *others, last = yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        (ours,) = [
            one
            for one in last["spec"]["triggers"]
            if one["metadata"].get("scalerAddress") == ADDRESS
        ]
        example = Example(last, ours)
        if mutation.when(example):
            spoilt += 1
            mutation.spoil(example)
            with subtests.test(path.stem):
                assert mutation.finds in names(written(*others, last))
    assert spoilt, "no example could be spoilt in this way"


def test_a_second_scaler_of_an_example_is_found(subtests: pytest.Subtests) -> None:
    for path in SCALED:
        text = path.read_text(encoding="utf-8")
        second = list(yaml.load_all(text, yaml.CSafeLoader))[-1]
        second["metadata"]["name"] = "second"
        with subtests.test(path.stem):
            found = check({"one.yaml": text, "two.yaml": written(second)}, Terms()).findings
            beside = ASKS_OPERATORS.get(path.stem, set())
            other = [(one.rule.name, one.file) for one in found if one.rule.name not in beside]
            assert other == [("shared-workload", "two.yaml")]


@pytest.mark.parametrize(
    ("grace_seconds", "lifecycle", "finds"),
    [
        (130, {"preStop": {"sleep": {"seconds": 10}}}, set()),
        (120, {"preStop": {"sleep": {"seconds": 10}}}, {"short-grace"}),
        (130, {}, {"no-pre-stop"}),
    ],
)
def test_a_workload_of_an_example_that_cuts_requests_off_is_found(
    grace_seconds: int, lifecycle: dict[str, Any], finds: set[str], subtests: pytest.Subtests
) -> None:
    container = {"name": "a", "ports": [{"containerPort": 8000}], "lifecycle": lifecycle}
    pod = {"terminationGracePeriodSeconds": grace_seconds, "containers": [container]}
    for path in SCALED:
        *others, last = yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        reference = last["spec"]["scaleTargetRef"]
        workload = {
            "apiVersion": "apps/v1",
            "kind": reference.get("kind", "Deployment"),
            "metadata": last["metadata"] | {"name": reference["name"]},
            "spec": {"template": {"spec": pod}},
        }
        terms = Terms(longest_request_seconds=120)
        with subtests.test(path.stem):
            found = check({"one.yaml": written(*others, last, workload)}, terms).findings
            assert {one.rule.name for one in found} == finds | ASKS_OPERATORS.get(path.stem, set())
