"""The words for kinds, as kubectl takes them; docs/specification.md lists them all."""

import pytest

from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import Kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("deployment deployments deploy Deployment deployments.apps deploy.apps", Kind.DEPLOYMENT),
        ("vllmruntime vllmruntimes vr vllmruntimes.production-stack.vllm.ai", Kind.DEPLOYMENT),
        ("modelservings.workload.serving.volcano.sh ModelServing", Kind.MODEL_SERVING),
        (
            "ksvc kservice service.serving.knative.dev services.serving.knative.dev",
            Kind.KNATIVE_SERVICE,
        ),
        ("cronjob cronjobs cj cronjobs.batch", Kind.CRON_JOB),
    ],
)
def test_kubectls_words_are_understood(words: str, kind: Kind) -> None:
    assert {workload.parse_kind(word) for word in words.split()} == {kind}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pod", r"a kind out of deployment, .*, cronjob \(a namespace has a key of its own\)$"),
        ("statefullset", r"did you mean statefulset\?"),
        ("service services svc Service", "a Knative service is a ksvc"),
        ("deployments.batch", "a kind out of"),
    ],
)
def test_what_is_no_kind_is_refused_with_the_kinds(words: str, expected: str) -> None:
    for word in words.split():
        with pytest.raises(ValueError, match=expected):
            workload.parse_kind(word)
