"""The words for kinds, as kubectl takes them."""

import pytest

from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import Kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("deployment deployments deploy Deployment deployments.apps deploy.apps", Kind.DEPLOYMENT),
        ("vllmruntime vllmruntimes vr vllmruntimes.production-stack.vllm.ai", Kind.DEPLOYMENT),
        ("statefulset statefulsets sts StatefulSet statefulset.apps", Kind.STATEFUL_SET),
        ("replicaset replicasets rs replicasets.apps", Kind.REPLICA_SET),
        ("rollout rollouts ro rollouts.argoproj.io", Kind.ROLLOUT),
        (
            "leaderworkerset leaderworkersets lws leaderworkersets.leaderworkerset.x-k8s.io",
            Kind.LEADER_WORKER_SET,
        ),
        (
            "modelserving ModelServing modelservings.workload.serving.volcano.sh",
            Kind.MODEL_SERVING,
        ),
        ("podclique podcliques pclq podcliques.grove.io", Kind.POD_CLIQUE),
        (
            "inferenceservice inferenceservices isvc inferenceservices.serving.kserve.io",
            Kind.INFERENCE_SERVICE,
        ),
        (
            "ksvc kservice service.serving.knative.dev services.serving.knative.dev",
            Kind.KNATIVE_SERVICE,
        ),
        ("daemonset daemonsets ds daemonsets.apps", Kind.DAEMON_SET),
        ("job jobs jobs.batch", Kind.JOB),
        ("cronjob cronjobs cj cronjobs.batch", Kind.CRON_JOB),
    ],
    ids=lambda value: value if isinstance(value, Kind) else "",
)
def test_kubectls_words_are_understood(words: str, kind: Kind) -> None:
    assert {workload.parse_kind(word) for word in words.split()} == {kind}


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"deployment, statefulset, .*, cronjob$"):
        workload.parse_kind("pod")


def test_a_typo_in_a_kind_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean statefulset\?"):
        workload.parse_kind("statefullset")


@pytest.mark.parametrize("word", ["service", "services", "svc", "Service"])
def test_a_plain_service_is_told_apart_from_knatives(word: str) -> None:
    with pytest.raises(ValueError, match="a Knative service is a ksvc"):
        workload.parse_kind(word)


def test_a_group_must_be_the_kinds_own() -> None:
    with pytest.raises(ValueError, match="a kind out of"):
        workload.parse_kind("deployments.batch")
