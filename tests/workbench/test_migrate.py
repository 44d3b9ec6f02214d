"""KEDA's prometheus triggers become this scaler's, in the user's own text."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from keda_gpu_scaler.workbench.check import read_objects
from keda_gpu_scaler.workbench.check.findings import Severity
from keda_gpu_scaler.workbench.migrate import Migration, migrate
from tests.workbench.check.cases import RECIPE, STAYS, beside, changed, key, report, spec

ADDRESS = "keda-gpu-scaler.keda.svc:6000"
PAGE = Path(__file__).parents[2] / "docs/migrate/keda-prometheus.md"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UTIL, ENGINE = 'DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}', "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
WAITING, RUNNING = "vllm:num_requests_waiting", "vllm:num_requests_running"
KV = "vllm:kv_cache_usage_perc"


def kedas(query: str, threshold: str = "70", *more: str) -> str:
    """Return a ScaledObject that KEDA's own trigger scales."""
    (start, _, _) = RECIPE.partition("        query")
    return key(start, f"query: '{query}'", f'threshold: "{threshold}"', *more)


def valued(source: str) -> str:
    return beside(source, "metricType: Value")


def moved(source: str) -> Migration:
    return migrate("one.yaml", source, ADDRESS)


def metadata(text: str) -> Mapping[str, str]:
    """Return what the first trigger of a text says, apart from its address."""
    (trigger, *_) = read_objects({"one.yaml": text}, "")[0][0].triggers
    return {name: value for name, value in trigger.metadata.items() if name != "scalerAddress"}


BERT = {"workload": "bert", "threshold": "70"}
MOVED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "the average": (kedas(f"avg({UTIL})"), BERT),
    "by value": (valued(kedas(f"avg({UTIL})")), BERT),
    "of all pods": (kedas("avg(DCGM_FI_DEV_GPU_UTIL)"), BERT),
    "one element for each pod": (kedas(f"avg by (pod) ({UTIL})"), BERT),
    "not aggregated": (kedas(UTIL), BERT),
    "a sum by a count": (kedas(f"sum({UTIL}) / count({UTIL})"), BERT),
    "as a share": (kedas(f"avg({UTIL}) / 100", "0.7"), BERT),
    "a share": (kedas(f"avg({ENGINE})", "0.7"), BERT),
    "a share in percent": (kedas(f"100 * avg({ENGINE})"), BERT),
    "0 for nothing": (kedas(f"avg({UTIL}) or vector(0)"), BERT),
    "over a time": (kedas(f"avg(avg_over_time({UTIL}[5m]))"), BERT | {"window": "5m"}),
    "over a time, outside": (kedas(f"avg_over_time(avg({UTIL})[10m:])"), BERT | {"window": "10m"}),
    "a sum": (kedas(f"sum({UTIL})"), BERT | {"gpuAggregation": "sum"}),
    "the hottest GPU of a pod": (
        kedas(f"avg(max by (pod) ({UTIL}))"),
        BERT | {"gpuAggregation": "max"},
    ),
    "a sum of means": (kedas(f"sum(avg by (pod) ({UTIL}))"), BERT),
    "the hottest": (
        kedas(f"max({UTIL})"),
        BERT | {"aggregation": "max", "gpuAggregation": "max"},
    ),
    "when active": (
        kedas(f"avg({UTIL})", "70", 'activationThreshold: "5"'),
        BERT | {"activationThreshold": "5"},
    ),
    "another exporter": (kedas("avg(nvidia_gpu_duty_cycle)"), BERT),
    "AMD": (kedas("avg(gpu_gfx_activity)"), BERT),
    "the share of memory": (
        kedas(f"100 * avg({USED} / ({USED} + {FREE}))", "70", 'activationThreshold: "35"'),
        BERT | {"signal": "memory", "activationThreshold": "35"},
    ),
    "the share of all memory": (
        kedas(f"sum({USED}) / sum({USED} + {FREE})", "0.7", 'activationThreshold: "0.35"'),
        BERT | {"signal": "memory", "activationThreshold": "35"},
    ),
    "mean memory": (
        kedas(f"sum({USED}) / count({USED})", "5000", 'activationThreshold: "100"'),
        {"workload": "bert", "signal": "memory-used", "gpuAggregation": "average"}
        | {"threshold": "5000", "activationThreshold": "100"},
    ),
    "memory in MiB": (
        kedas(f"sum({USED})", "5000", 'activationThreshold: "100"'),
        {"workload": "bert", "signal": "memory-used", "threshold": "5000"}
        | {"activationThreshold": "100"},
    ),
    "memory in bytes": (
        kedas("avg(nvidia_gpu_memory_used_bytes)", "5242880000", 'activationThreshold: "1048576"'),
        {"workload": "bert", "signal": "memory-used", "gpuAggregation": "average"}
        | {"threshold": "5000", "activationThreshold": "1"},
    ),
    "waiting and running": (
        kedas(f"sum({WAITING}) + sum({RUNNING})", "16"),
        {"workload": "bert", "demandPreset": "vllm-requests", "demandThreshold": "16"},
    ),
    "running": (
        kedas(f'sum({RUNNING}{{namespace="inference"}})', "8", 'activationThreshold: "1"'),
        {"workload": "bert", "demandPreset": "vllm-running", "demandThreshold": "8"}
        | {"demandActivationThreshold": "1"},
    ),
    "the mean of running": (
        valued(kedas(f"avg({RUNNING})", "8")),
        {"workload": "bert", "demandPreset": "vllm-running", "demandThreshold": "8"},
    ),
    "running by replica": (
        kedas(f"sum({RUNNING}) / count({RUNNING})", "8"),
        {"workload": "bert", "demandPreset": "vllm-running", "demandThreshold": "8"},
    ),
    "0 for no requests": (
        kedas(f"(sum({WAITING}) or vector(0)) + sum({RUNNING})", "16"),
        {"workload": "bert", "demandPreset": "vllm-requests", "demandThreshold": "16"},
    ),
    "both names of a metric": (
        kedas(f"avg({KV} or vllm:gpu_cache_usage_perc)", "0.8"),
        {"workload": "bert", "demandPreset": "vllm-kv-cache", "demandThreshold": "0.8"},
    ),
    "SGLang": (
        kedas("sum(sglang:num_queue_reqs + sglang:num_running_reqs)", "16"),
        {"workload": "bert", "demandPreset": "sglang-requests", "demandThreshold": "16"},
    ),
    "the KV cache in percent": (
        kedas(f"avg({KV}) * 100", "80"),
        {"workload": "bert", "demandPreset": "vllm-kv-cache", "demandThreshold": "0.8"},
    ),
    "TensorRT-LLM": (
        kedas('sum(nv_trt_llm_request_metrics{request_type="active"})', "16"),
        {"workload": "bert", "demandPreset": "triton-trtllm-requests", "demandThreshold": "16"},
    ),
    "a StatefulSet": (
        changed(
            kedas("avg(DCGM_FI_DEV_GPU_UTIL)"),
            ("    name: bert\n  min", "    kind: StatefulSet\n    name: bert\n  min"),
        ),
        BERT | {"workload": "statefulset/bert"},
    ),
    "a kind with no rule": (
        changed(
            kedas("avg(DCGM_FI_DEV_GPU_UTIL)"),
            (
                "    name: bert\n  min",
                "    apiVersion: kaito.sh/v1beta1\n    kind: InferenceSet\n    name: bert\n  min",
            ),
        ),
        {"threshold": "70"},
    ),
}
STAYING: Mapping[str, tuple[str, str]] = {
    "another metric": (kedas("sum(rabbitmq_queue_messages)"), "nothing is known of the metrics"),
    "no PromQL": (kedas("avg(DCGM_FI_DEV_GPU_UTIL"), "nothing is known of the metrics"),
    "no signal": (kedas("avg(DCGM_FI_DEV_MEM_COPY_UTIL)"), "no signal is made of DCGM_FI_DEV_MEM"),
    "a rate": (kedas(f"avg(rate({UTIL}[5m]))"), "no key says what rate does"),
    "a deviation": (kedas(f"stddev({UTIL})"), "no key says what stddev does"),
    "a minimum": (kedas(f"min({UTIL})"), "no key says what min does"),
    "a count": (kedas(f"count({UTIL})"), "no key says what count does"),
    "a difference": (kedas(f"100 - avg({UTIL})"), "no key says what - does"),
    "the past": (kedas(f"avg({UTIL} offset 5m)"), "no key says what offset or @ does"),
    "a quantile": (kedas(f"quantile(0.9, {UTIL})"), "no key says what quantile does"),
    "a factor": (kedas(f"avg({UTIL}) * 2"), "the unit of its number is not known"),
    "two parts": (
        kedas('avg(DCGM_FI_DEV_GPU_UTIL{gpu="0"}) + avg(DCGM_FI_DEV_GPU_UTIL{gpu="1"})'),
        "the unit of its number is not known",
    ),
    "a mean by a factor": (
        kedas(f"sum({RUNNING}) / count({RUNNING}) / 16", "1"),
        "no key says what its query makes of vllm-running",
    ),
    "memory by a factor": (
        kedas(f"avg({USED}) / 1024", "5", 'activationThreshold: "1"'),
        "the unit of its number is not known",
    ),
    "free memory": (
        kedas(f"avg({FREE} / ({USED} + {FREE}))", "0.2"),
        "the unit of its number is not known",
    ),
    "a sum by value": (valued(kedas(f"sum({UTIL})")), "metricType: Value multiplies its sum"),
    "another workload": (
        kedas('avg(DCGM_FI_DEV_GPU_UTIL{pod=~"gpt-.*"})'),
        "the pods of another workload",
    ),
    "another namespace": (
        kedas('avg(DCGM_FI_DEV_GPU_UTIL{namespace="gateway"})'),
        "another namespace than the ScaledObject's",
    ),
    "a queue alone": (kedas(f"sum({WAITING})", "5"), 'refuses demandPreset: "vllm-queue"'),
    **{
        f"requests and {what}": (
            kedas(f"sum({WAITING}) {more}", "16", 'activationThreshold: "1"'),
            "no key says what its query makes of vllm-",
        )
        for what, more in {
            "a number": f"+ sum({RUNNING}) + 10",
            "some of them twice": f"+ sum({RUNNING}) + sum({RUNNING})",
            "others in their place": f"or sum({RUNNING})",
        }.items()
    },
    "a ratio of requests": (kedas(f"sum({WAITING}) / sum({RUNNING})", "1"), "vllm-requests"),
    "a maximum of requests": (kedas(f"max({RUNNING})", "8"), "vllm-running"),
    "a router": (kedas("sum(llm_d_epp_request_running)", "16"), "needs"),
    "no preset": (kedas("sum(rate(vllm:prompt_tokens_total[1m]))"), "no preset counts vllm:prompt"),
    "out of reach": (kedas(f"avg({UTIL})", "95"), 'The scaler refuses threshold: "95"'),
    "memory without what is idle": (kedas(f"avg({USED})", "5000"), "activationThreshold"),
    "no number": (kedas(f"avg({UTIL})", "70%"), "its threshold is no number"),
    "a formula": (
        spec(
            beside(kedas(f"avg({UTIL})"), "name: gpu"),
            "advanced: {scalingModifiers: {formula: gpu, target: '70'}}",
        ),
        "whole ScaledObject without a formula",
    ),
    "in braces": (
        changed(
            STAYS,
            (
                STAYS[STAYS.index("    - type") :],
                f"    - {{type: prometheus, metadata: {{query: '{UTIL}', threshold: '70'}}}}\n",
            ),
        ),
        "write each key in a line of its own",
    ),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_recipe_becomes_a_trigger_that_check_takes(case: str) -> None:
    source, wanted = MOVED[case]
    migration = moved(source)
    assert (migration.triggers, migration.kept) == (1, ())
    assert metadata(migration.text) == wanted
    assert [
        one for one in report(migration.text).findings if one.rule.severity is Severity.ERROR
    ] == []


@pytest.mark.parametrize("case", STAYING)
def test_what_no_trigger_can_say_stays_with_the_reason(case: str) -> None:
    source, reason = STAYING[case]
    migration = moved(source)
    (said,) = migration.kept
    assert re.match(r"one\.yaml:1[23]:7: ScaledObject inference/bert: ", said)
    assert reason in said
    assert migration.text == source


def test_the_page_shows_what_it_writes() -> None:
    before, after = BLOCK.findall(PAGE.read_text(encoding="utf-8"))[:2]
    assert re.sub(r" *#.*\n", "", moved(before).text) == after


TEXT = """# Ours.
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: bert, namespace: inference}  # as the Deployment
spec:
  scaleTargetRef:
    name: bert
  maxReplicaCount: 12   # GPUs
  pollingInterval: 60  # slow
  fallback:
    failureThreshold: 3
    replicas: 4
  triggers:
    # The recipe.
  - metricType: Value
    type: prometheus
    useCachedMetrics: true
    authenticationRef:
      name: prometheus
    metadata:
      # Ours as well.
      threshold: "0.7"  # measured
      query: |
        avg(
          DCGM_FI_PROF_GR_ENGINE_ACTIVE{Hostname="a"}
        )
      # Where.
      serverAddress: http://prometheus.monitoring.svc:9090
      ignoreNullValues: "true"
---
kind: ConfigMap
"""
NEW = """# Ours.
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: bert, namespace: inference}  # as the Deployment
spec:
  scaleTargetRef:
    name: bert
  # At zero nothing would say that there is work.
  minReplicaCount: 1
  maxReplicaCount: 12   # GPUs
  # Was: 60. Between polls nothing wakes or is active.
  pollingInterval: 30  # slow
  # No fallback: while the load is unknown the replicas are held.
  triggers:
    # The recipe.
  - type: external
    metadata:
      # Ours as well.
      # Was: 0.7
      threshold: "70"  # measured
      # Was: avg( DCGM_FI_PROF_GR_ENGINE_ACTIVE{Hostname="a"} )
      # Not kept: what selects by Hostname.
      workload: bert
      # Where.
      # No serverAddress, authenticationRef: a source is in the scaler's settings.
      # No ignoreNullValues: without data the replicas are held.
      # No metricType: the number is a sum over the replicas.
      # No useCachedMetrics: the scaler asks its source once for all triggers.
      scalerAddress: keda-gpu-scaler.keda.svc:6000
---
kind: ConfigMap
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_what_changes_is_written_anew(ending: str) -> None:
    migration = moved(TEXT.replace("\n", ending))
    assert migration.kept == ()
    assert migration.text == NEW.replace("\n", ending)


def test_zero_stays_where_another_trigger_wakes() -> None:
    source = changed(kedas(f"avg({UTIL})"), ("Count: 1", "Count: 0"))
    queue = "    - {type: rabbitmq, metadata: {queueName: a}}\n"
    assert "minReplicaCount: 0\n" in moved(source + queue).text
    assert "minReplicaCount: 1\n" in moved(source).text


def test_an_alias_is_not_followed() -> None:
    shared = changed(kedas(f"avg({UTIL})"), ("      metadata:", "      metadata: &shared"))
    migration = moved(f"{shared}    - type: prometheus\n      metadata: *shared\n")
    assert migration.text == f"{shared}    - type: prometheus\n      metadata: *shared\n"
    assert len(migration.kept) == 2


def test_the_other_objects_of_a_file_are_moved() -> None:
    stays = kedas("sum(rabbitmq_queue_messages)").replace("bert", "queue")
    both = f"{stays}---\n{kedas(f'avg({UTIL})')}"
    migration = moved(both)
    assert migration.text.startswith(f"{stays}---\n")
    assert "type: external" in migration.text
    assert [said.partition(": ")[0] for said in migration.kept] == ["one.yaml:12:7"]


def test_the_triggers_of_a_platforms_kind_are_moved() -> None:
    recipe = kedas(f"avg({ENGINE})", "0.7")
    triggers = textwrap.indent(recipe[recipe.index("  triggers:") :], "    ")
    migration = moved(
        "apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\n"
        "metadata: {name: llama, namespace: serving}\nspec:\n  scaling:\n    minReplicas: 1\n"
        f"    maxReplicas: 4\n    keda:\n{triggers}"
    )
    assert migration.kept == ()
    assert "            workload: llama-kserve\n" in migration.text


def test_a_text_that_would_not_be_yaml_any_more_is_refused() -> None:
    source = changed(kedas(f"avg({UTIL})"), ('"70"', '"\n70"'))
    with pytest.raises(ValueError, match=r"one\.yaml: its YAML has a form that is not known here"):
        moved(source)


@pytest.mark.parametrize("ending", ["\r", "\x85", "\u2028"])
def test_a_line_that_only_yaml_ends_there_is_refused(ending: str) -> None:
    with pytest.raises(ValueError, match=r"other ends of lines than LF and CRLF"):
        moved(f"{TEXT}# a{ending}b\n")


def test_where_there_is_no_address_the_new_one_stands_before_the_workload() -> None:
    source = kedas(f"avg({UTIL})")
    text = changed(source, ("        serverAddress: http://prometheus.monitoring.svc:9090\n", ""))
    lines = [line.strip() for line in moved(text).text.splitlines()[13:]]
    assert lines == [
        f"scalerAddress: {ADDRESS}",
        f"# Was: avg({UTIL})",
        "workload: bert",
        'threshold: "70"',
    ]


def test_an_error_that_was_there_before_is_no_reason_to_stay() -> None:
    source = changed(kedas(f"avg({UTIL})"), ("Count: 1", "Count: 12"))
    assert moved(source).kept == ()


def test_a_patch_has_no_workload_to_name() -> None:
    patch = changed(kedas(f"avg({UTIL})"), ("  scaleTargetRef:\n    name: bert\n", ""))
    (said,) = moved(patch).kept
    assert said.endswith("only a whole ScaledObject without a formula can be moved")
