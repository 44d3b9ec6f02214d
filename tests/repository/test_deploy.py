"""The deployed permissions allow what the scaler does, and nothing more."""

import yaml

from keda_gpu_scaler.sources.kubernetes import following
from tests.repository.test_docs import ROOT


def test_the_role_reads_what_is_followed_and_the_scale_of_anything_and_no_more() -> None:
    parts = yaml.safe_load_all((ROOT / "deploy" / "kubernetes-evidence.yaml").read_text())
    roles = {part["kind"]: part for part in parts}
    assert roles.keys() == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    allowed = [
        (group, resource, tuple(rule["verbs"]))
        for rule in roles["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    assert all(
        rule.keys() == {"apiGroups", "resources", "verbs"} for rule in roles["ClusterRole"]["rules"]
    )
    followed = (following.PODS, following.REPLICA_SETS, following.JOBS, following.SCALED_OBJECTS)
    watched = [(one.group, one.plural, ("list", "watch")) for one in followed]
    assert allowed == [*watched, ("*", "*/scale", ("get",))]
    assert (
        roles["ClusterRoleBinding"]["roleRef"]["name"] == roles["ClusterRole"]["metadata"]["name"]
    )
    (subject,) = roles["ClusterRoleBinding"]["subjects"]
    account = roles["ServiceAccount"]["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
