"""The chart's admission policy: a ScaledObject that is wrong is refused when it is applied.

The API server itself evaluates the policy. What the scaler accepts has to pass: a policy that
refuses too much would prevent any scaling.
"""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import lightkube
import pytest
import pytest_asyncio
from lightkube import ApiError, codecs
from lightkube.types import PatchType

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.spec import spec
from tests.e2e import manifests
from tests.e2e.gate import Gate, open_gate
from tests.e2e.resources import ScaledObject
from tests.e2e.wrong_triggers import SOUND, WRONG
from tests.repository.chart import charts
from tests.repository.test_examples import ADDRESS, EXAMPLES, read
from tests.support.triggers import access

pytestmark = pytest.mark.usefixtures("helm")


@pytest_asyncio.fixture
async def gate(kubeconfig: Path, lab_name: str) -> AsyncIterator[Gate]:
    """A namespace whose scaler has the policy."""
    async with open_gate(kubeconfig, lab_name) as opened:
        yield opened


@pytest.mark.core
async def test_each_mistake_is_refused_in_words_that_name_key_value_and_what_was_expected(
    gate: Gate,
) -> None:
    for case, (metadata, said) in WRONG.items():
        refusal = await gate.refusal(gate.scaled_object(metadata))
        assert refusal is not None, case
        assert said in refusal, case
        with pytest.raises(errors.SpecError):  # the scaler says so too
            trigger.parse(spec.ScaledObject("ml", "bert"), metadata, access())


async def test_all_mistakes_of_all_triggers_are_told_at_once(gate: Gate) -> None:
    first, second = {"workload": "a", "threshold": "x"}, {**SOUND, "window": "5", "treshold": "1"}
    refusal = await gate.refusal(gate.scaled_object(first, second))
    assert refusal is not None
    for said in ('threshold: "x"', 'window: "5"', '"treshold": unknown key'):
        assert said in refusal


async def test_the_first_of_thousands_of_mistakes_are_told(gate: Gate) -> None:
    """The API server shows a message of 5 KiB at most, and of a longer one nothing."""
    for key in ("k", "\U0001f600"):
        unknown = {f"{key}{number}": "v" for number in range(1000, 3000)}
        refusal = await gate.refusal(gate.scaled_object({**SOUND, **unknown}))
        assert refusal is not None
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
    formula = gate.scaled_object(average, name="gpu")
    formula["spec"]["advanced"] = {"scalingModifiers": {"formula": "gpu", "target": "70"}}
    assert await gate.refusal(formula) is None
    formula["spec"]["triggers"][0] |= {"metricType": "Value"}
    formula["spec"]["triggers"][0]["metadata"]["aggregation"] = "sum"
    assert await gate.refusal(formula) is None
    formula["spec"]["advanced"]["scalingModifiers"] = {"formula": ""}
    assert "metricType: Value multiplies a sum" in str(await gate.refusal(formula))


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


async def test_triggers_of_other_scalers_are_none_of_its_business(gate: Gate) -> None:
    document = gate.scaled_object({"scalerAddress": f"other.{gate.namespace}.svc:6000", "x": "y"})
    assert await gate.refusal(document) is None
    document["spec"]["triggers"] = [
        {"type": "cpu", "metadata": {"value": "50"}, "metricType": "Utilization"},
        {
            "type": "cron",
            "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *"}
            | {"desiredReplicas": "2"},
        },
    ]
    assert await gate.refusal(document) is None


async def test_the_name_alone_is_its_service_where_keda_is_in_the_same_namespace_and_only_there(
    gate: Gate, kubeconfig: Path, lab_name: str
) -> None:
    alone = {"scalerAddress": f"{charts.RELEASE}:6000", "x": "y"}
    document = gate.scaled_object(alone)
    assert await gate.refusal(document) is None
    same = f"{lab_name}-same"
    async with open_gate(kubeconfig, same, **{"keda.namespace": same}) as shared:
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


async def test_with_evidence_of_kubernetes_the_workload_may_be_left_out(
    kubeconfig: Path, lab_name: str
) -> None:
    values = {"kubernetesApi.enabled": "true"}
    async with open_gate(kubeconfig, lab_name, **values) as gate:
        assert await gate.refusal(gate.scaled_object({"threshold": "70"})) is None
