"""Values are refused early where Kubernetes or cert-manager would refuse their objects."""

import pytest

from tests.repository.chart import charts

pytestmark = pytest.mark.needs("helm")


def _set(*values: str) -> list[str]:
    return [word for value in values for word in ("--set", value)]


ISSUED = [
    "tls.enabled=true",
    "tls.certManager.enabled=true",
    "tls.certManager.issuerRef.name=ca",
]
LABEL = r"podLabels.app\.kubernetes\.io/"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"{LABEL}component=x"], "podLabels has app.kubernetes.io/component, by which the"),
        ([f"{LABEL}instance=x"], "podLabels has app.kubernetes.io/instance, by which the"),
        ([f"{LABEL}name=x"], "podLabels has app.kubernetes.io/name, by which the Deployment"),
        (["podAnnotations.checksum/settings=x"], "podAnnotations has checksum/settings, by which"),
        (
            ["admissionPolicy.validationActions={Deny,Warn}"],
            "admissionPolicy.validationActions has Deny and Warn, which would say everything twice",
        ),
        (
            [*ISSUED, "tls.certManager.renewBefore=2160h"],
            "tls.certManager.renewBefore is 2160h, which is not before a certificate of 2160h is",
        ),
        (
            [*ISSUED, "tls.certManager.duration=90m", "tls.certManager.renewBefore=1h31m"],
            "set it to less than tls.certManager.duration, such as a third of it",
        ),
        (
            [*ISSUED, "tls.certManager.client.duration=1h"],
            "tls.certManager.client.renewBefore is 4380h, which is not before a certificate of 1h",
        ),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_with_what_to_do(
    values: list[str], message: str
) -> None:
    assert message in charts.refusal(*_set(*values))


def test_a_certificate_is_renewed_while_it_is_good_whatever_the_units() -> None:
    times = ("tls.certManager.duration=1h30m30s", "tls.certManager.renewBefore=90m29s")
    assert "renewBefore: 90m29s" in charts.template(*_set(*ISSUED, *times))


def test_a_certificate_of_the_longest_names_has_no_name_that_is_too_long() -> None:
    """X.509 ends a common name at 64 characters, and cert-manager refuses a longer one."""
    longest = charts.template(
        *_set(*ISSUED, "keda.namespace=keda"), release="a" * 50, namespace="b" * 63
    )
    found = [one for one in charts.objects(longest) if one["kind"] == "Certificate"]
    assert len(found) == 2
    assert all(len(one["spec"].get("commonName", "")) <= 64 for one in found)
    assert f"{'a' * 50}-keda-gpu-scaler"[:50] + f".{'b' * 63}.svc" in found[0]["spec"]["dnsNames"]


def test_a_cluster_without_admission_policies_is_not_given_one() -> None:
    flags = ("--set=admissionPolicy.enabled=true", "--kube-version")
    told = charts.refusal(*flags, "1.29.14")
    assert "admissionPolicy.enabled needs Kubernetes 1.30, and this cluster has v1.29.14" in told
    assert "ValidatingAdmissionPolicy" in charts.template(*flags, "1.30.0-eks-1")
