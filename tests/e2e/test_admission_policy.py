"""The chart's admission policy: a ScaledObject that is wrong is refused when it is applied.

The API server itself evaluates the policy. What the scaler accepts has to pass: a policy that
refuses too much would prevent any scaling.
"""

import json
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lightkube
import pytest
import pytest_asyncio
from lightkube import ApiError, codecs
from lightkube.resources.core_v1 import Namespace
from lightkube.types import PatchType

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.spec import spec
from testbed import charts
from testbed.cluster import manifests
from testbed.cluster.resources import ScaledObject
from testbed.processes import until
from testbed.triggers import access
from tests.repository.test_examples import ADDRESS, EXAMPLES, read

pytestmark = pytest.mark.usefixtures("helm")


SOUND = {"workload": "bert", "threshold": "70"}
"""A trigger without a mistake."""
BESIDE = "not given; expected it beside demandRouter and demandModel"
WRONG: Sequence[tuple[dict[str, str | None], str]] = (
    (
        {"activationTreshold": "5"},
        '"activationTreshold": unknown key; known are workload, namespace,',
    ),
    ({"tresholdFromEnv": "X"}, '"tresholdFromEnv": unknown key'),
    ({"workload": None}, "workload: not given; expected [kind/]name such as deployment/bert"),
    (
        {"threshold": None},
        "threshold: not given; expected the target per replica, such as 70, or a demand",
    ),
    (
        {"threshold": "seventy"},
        'threshold: "seventy"; expected a number above 0 without a unit, such as 70',
    ),
    ({"threshold": "1e999"}, 'threshold: "1e999"; expected a number above 0'),
    ({"threshold": "9" * 400}, '9"; expected a number above 0'),
    ({"threshold": "70\n%"}, 'threshold: "70 %"; expected a number above 0'),
    ({"threshold": "70%"}, 'threshold: "70%"; expected a number'),
    ({"threshold": "0"}, 'threshold: "0"; expected a number above 0'),
    ({"activationThreshold": "-1"}, 'activationThreshold: "-1"; expected a number from 0'),
    ({"window": "120"}, 'window: "120"; expected a duration such as 30s, 2m or 1h30m'),
    ({"warmup": " "}, 'warmup: " "; expected a duration'),
    ({"signal": "utilisation"}, 'signal: "utilisation"; expected one of utilization, memory,'),
    ({"onUnknown": "0"}, 'onUnknown: "0"; expected one of hold, error, zero'),
    ({"threshold": "95"}, 'threshold: "95"; expected at most 90 for a percentage'),
    ({"signal": "memory"}, "activationThreshold: not given; required for this signal"),
    (
        {"workload": None, "query": "x", "threshold": "7"},
        "activationThreshold: not given; required for this signal",
    ),
    (
        {"demandThreshold": "5"},
        "demandQuery: not given; expected it, or demandPreset, beside the other keys of a demand",
    ),
    (
        {"demandPreset": "vllm-requests", "demandQuery": "sum(x)"},
        "demandPreset: demandQuery is set too; keep one",
    ),
    ({"demandRouter": "deployment/llama-epp"}, f"demandPreset: {BESIDE}"),
    ({"demandQuery": "sum(x)", "demandModel": "llama"}, f"demandPreset: {BESIDE}"),
)
"""What is changed of that trigger, None for a key that it lacks, and what refuses it says."""


class Gate(NamedTuple):
    """A namespace whose scaler has the policy."""

    client: lightkube.AsyncClient
    namespace: str

    @property
    def address(self) -> str:
        return f"{charts.RELEASE}.{self.namespace}.svc:6000"

    def scaled_object(self, *metadata: dict[str, str], **fields: str) -> dict[str, Any]:
        triggers = [
            {"type": "external", "metadata": {"scalerAddress": self.address} | one} | fields
            for one in metadata
        ]
        return {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"namespace": self.namespace, "name": f"so-{uuid.uuid4().hex[:8]}"},
            "spec": {"scaleTargetRef": {"name": "bert"}, "triggers": triggers},
        }

    async def refusal(self, document: dict[str, Any]) -> str | None:
        """Return why the API server refuses an object; None when it would accept it."""
        try:
            await self.client.create(codecs.from_dict(document), dry_run=True)
        except ApiError as error:
            return str(error.status.message)
        return None


@asynccontextmanager
async def open_gate(kubeconfig: Path, namespace: str, **values: str) -> AsyncIterator[Gate]:
    """Install the policy for a release in a namespace of its own, until the block ends."""
    configuration = lightkube.KubeConfig.from_file(kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="e2e", trust_env=False)
    gate = Gate(client, namespace)
    policy = _policy(namespace, {"admissionPolicy.enabled": "true", **values})
    try:
        await client.apply(codecs.from_dict(manifests.namespace(namespace)))
        for each in policy:
            await client.apply(codecs.from_dict(each), force=True)
        await _until_it_refuses(gate)
        yield gate
    finally:
        for each in policy:
            await client.delete(type(codecs.from_dict(each)), each["metadata"]["name"])
        await client.delete(Namespace, namespace)
        await client.close()


def _policy(namespace: str, values: dict[str, str]) -> list[charts.Object]:
    where = {"keda.namespace": charts.NAMESPACE, **values}
    flags = [f"--set={key}={value}" for key, value in where.items()]
    found = charts.objects(charts.template(*flags, namespace=namespace))
    policy = [one for one in found if one["kind"].startswith("ValidatingAdmissionPolicy")]
    assert len(policy) == 2
    return policy


async def _until_it_refuses(gate: Gate) -> None:
    """Wait until the API server applies the policy, some time after it has accepted it."""

    async def refuses() -> bool:
        return "keda-gpu-scaler: " in str(await gate.refusal(gate.scaled_object({})))

    await until(refuses, 30, "the policy is enforced")


@pytest_asyncio.fixture
async def gate(kubeconfig: Path, lab_name: str) -> AsyncIterator[Gate]:
    async with open_gate(kubeconfig, lab_name) as opened:
        yield opened


@pytest.mark.core
async def test_all_mistakes_are_told_at_once_in_words_that_name_key_value_and_what_was_expected(
    gate: Gate,
) -> None:
    for changes, words in WRONG:
        metadata = {key: text for key, text in (SOUND | changes).items() if text is not None}
        assert words in str(await gate.refusal(gate.scaled_object(metadata))), changes
        with pytest.raises(errors.SpecError):  # the scaler says so too
            trigger.parse(spec.ScaledObject("ml", "bert"), metadata, access())

    first, second = {"workload": "a", "threshold": "x"}, {**SOUND, "window": "5", "treshold": "1"}
    refusal = await gate.refusal(gate.scaled_object(first, second))
    for words in ('threshold: "x"', 'window: "5"', '"treshold": unknown key'):
        assert words in str(refusal)
    # The API server shows a message of 5 KiB at most, and of a longer one nothing.
    for key in ("k", "\U0001f600"):
        unknown = {f"{key}{number}": "v" for number in range(1000, 3000)}
        refusal = str(await gate.refusal(gate.scaled_object({**SOUND, **unknown})))
        assert f'"{key}' in refusal  # any of them: the API server orders a map's keys at random
        assert "unknown key; known are workload, namespace," in refusal
        assert refusal.endswith("… and more")


async def test_a_metric_type_that_does_not_fit_is_refused(gate: Gate) -> None:
    """KEDA does not send it to the scaler: only the policy can refuse it."""
    average = {**SOUND, "aggregation": "average"}
    runs_away = await gate.refusal(gate.scaled_object(SOUND, metricType="Value"))
    assert runs_away is not None
    assert "metricType: Value multiplies a sum by the number of pods" in runs_away
    for fields in ({}, {"metricType": "AverageValue"}):
        sticks = await gate.refusal(gate.scaled_object(average, **fields))
        assert sticks is not None
        assert "aggregation: average needs metricType: Value" in sticks

    assert await gate.refusal(gate.scaled_object(average, metricType="Value")) is None
    # A formula has its own, and that of its triggers is ignored.
    formula = gate.scaled_object(average, name="gpu", metricType="Value")
    formula["spec"]["minReplicaCount"] = 1
    modifiers: dict[str, str] = {"formula": "gpu", "target": "70"}
    formula["spec"]["advanced"] = {"scalingModifiers": modifiers}
    for text in ("gpu", "gpu / 70", " 2*gpu / 70 * 3"):
        modifiers["formula"] = text
        sticks = await gate.refusal(formula)
        assert "average needs metricType: Value beside the formula" in str(sticks), text
    modifiers["formula"] = "gpu + gpu"
    assert await gate.refusal(formula) is None
    modifiers |= {"formula": "gpu", "metricType": "Value"}
    assert await gate.refusal(formula) is None
    formula["spec"]["triggers"][0]["metadata"]["aggregation"] = "sum"
    assert "metricType: Value multiplies a sum" in str(await gate.refusal(formula))
    modifiers["metricType"] = "AverageValue"
    assert await gate.refusal(formula) is None
    formula["spec"]["advanced"]["scalingModifiers"] = {"formula": ""}
    assert "metricType: Value multiplies a sum" in str(await gate.refusal(formula))


async def test_a_formula_needs_the_key_where_it_could_remove_all_replicas(gate: Gate) -> None:
    formula = gate.scaled_object(SOUND, name="gpu")
    formula["spec"]["advanced"] = {"scalingModifiers": {"formula": "gpu", "target": "70"}}
    (ours,) = formula["spec"]["triggers"]
    formula["spec"]["minReplicaCount"] = 1
    assert await gate.refusal(formula) is None
    formula["spec"]["minReplicaCount"] = 2
    for fields in ({"minReplicaCount": 0}, {"minReplicaCount": 2, "idleReplicaCount": 0}):
        formula["spec"] |= fields
        ours["metadata"].pop("forFormula", None)
        assert 'forFormula: not "true"' in str(await gate.refusal(formula))
        ours["metadata"]["forFormula"] = "true"
        assert await gate.refusal(formula) is None
    assert "useCachedMetrics: true" in str(
        await gate.refusal(
            formula | {"spec": formula["spec"] | {"triggers": [ours | {"useCachedMetrics": True}]}}
        )
    )


def _sound() -> Iterator[dict[str, str]]:
    yield SOUND
    yield {**SOUND, "threshold": " 70 ", "window": "1h30m", "warmup": "0s", "maxAge": "90s"}
    yield {**SOUND, "thresholdFromEnv": "TARGET"} | {"threshold": "7e1"}
    yield {"workloadFromEnv": "NAME", "thresholdFromEnv": "TARGET", "signalFromEnv": "SIGNAL"}
    yield {"podPattern": "bert-.*", "threshold": ".5", "enableTLS": "true", "caCertFromEnv": "CA"}
    yield {**SOUND, "threshold": "150", "gpuAggregation": "sum"}
    yield {**SOUND, "threshold": "500", "signal": "power", "activationThreshold": "90"}
    yield {"query": "x", "threshold": "500", "activationThreshold": "0"}
    yield {"query": "x", "threshold": "+1.5E+007", "activationThreshold": "1e-400"}
    yield {**SOUND, "demandQuery": "sum(x)", "demandThreshold": "5", "demandOnEmpty": "inactive"}
    yield {**SOUND, "demandPreset": "vllm-requests", "demandThreshold": "8"}
    router = {"demandRouter": "deployment/llama-epp", "demandModel": "llama"}
    yield {**SOUND, "demandPreset": "llm-d-epp-queue", **router}
    yield {**SOUND, "demandPresetFromEnv": "PRESET", "demandThreshold": "8"}


@pytest.mark.core
async def test_what_is_right_or_cannot_be_known_yet_passes_and_so_does_every_example(
    gate: Gate,
) -> None:
    for metadata in _sound():
        assert await gate.refusal(gate.scaled_object(metadata)) is None, metadata
    for path in EXAMPLES:
        document = json.loads(json.dumps(read(path)).replace(ADDRESS, gate.address))
        document["metadata"]["namespace"] = gate.namespace
        assert gate.address in json.dumps(document)
        assert await gate.refusal(document) is None, path.name

    # Triggers of other scalers are none of its business.
    document = gate.scaled_object({"scalerAddress": f"other.{gate.namespace}.svc:6000", "x": "y"})
    cpu = {"type": "cpu", "metadata": {"value": "50"}, "metricType": "Utilization"}
    cron = {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "2"}
    document["spec"]["triggers"] += [cpu, {"type": "cron", "metadata": cron}]
    assert await gate.refusal(document) is None


async def test_the_name_alone_is_its_service_where_keda_is_in_the_same_namespace_and_only_there(
    gate: Gate, kubeconfig: Path, lab_name: str
) -> None:
    alone = {"scalerAddress": f"{charts.RELEASE}:6000", "x": "y"}
    document = gate.scaled_object(alone)
    assert await gate.refusal(document) is None
    same = f"{lab_name}-same"
    values = {"keda.namespace": same, "kubernetesApi.enabled": "true"}
    async with open_gate(kubeconfig, same, **values) as shared:
        # With evidence of Kubernetes the workload may be left out.
        assert await shared.refusal(shared.scaled_object({"threshold": "70"})) is None
        for address in (alone, {"scalerAddress": f"dns:///{charts.RELEASE}:6000", "x": "y"}):
            refusal = await shared.refusal(shared.scaled_object(address))
            assert '"x": unknown key' in str(refusal), address
        other = shared.scaled_object({"scalerAddress": f"other-{charts.RELEASE}:6000", "x": "y"})
        assert await shared.refusal(other) is None


async def test_one_that_was_wrong_before_can_be_labelled_and_deleted(
    kubeconfig: Path, lab_name: str
) -> None:
    configuration = lightkube.KubeConfig.from_file(kubeconfig)
    wrong = {"workload": "bert", "threshold": "seventy"}
    async with lightkube.AsyncClient(configuration, trust_env=False) as client:
        await client.apply(codecs.from_dict(manifests.namespace(lab_name)), field_manager="e2e")
        document = Gate(client, lab_name).scaled_object(wrong)
        await client.create(codecs.from_dict(document))
        name = document["metadata"]["name"]
        async with open_gate(kubeconfig, lab_name) as gate:
            merge = partial(
                gate.client.patch,
                ScaledObject,
                name,
                namespace=lab_name,
                patch_type=PatchType.MERGE,
            )
            await merge({"metadata": {"labels": {"seen": "true"}, "finalizers": []}})
            with pytest.raises(ApiError, match="seventy"):
                await merge({"spec": {"maxReplicaCount": 3}})
            await gate.client.delete(ScaledObject, name, namespace=lab_name)
