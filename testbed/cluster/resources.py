"""KEDA's resources, for the Kubernetes client."""

from lightkube.generic_resource import create_namespaced_resource

ScaledObject = create_namespaced_resource("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
TriggerAuthentication = create_namespaced_resource(
    "keda.sh", "v1alpha1", "TriggerAuthentication", "triggerauthentications"
)
