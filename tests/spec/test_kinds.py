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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pod", r"a kind out of deployment, statefulset, .*, cronjob$"),
        ("statefullset", r"did you mean statefulset\?"),
        ("service services svc Service", "a Knative service is a ksvc"),
        ("deployments.batch", "a kind out of"),
    ],
    ids=["unknown", "a typo", "a plain service", "the group of another kind"],
)
def test_what_is_no_kind_is_refused_with_the_kinds(words: str, expected: str) -> None:
    for word in words.split():
        with pytest.raises(ValueError, match=expected):
            workload.parse_kind(word)
