"""A workload → a first ScaledObject for it, as text. Pure."""

from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import Kind
from keda_gpu_scaler.workbench.survey.usage import Usage

_APIS = {
    Kind.DEPLOYMENT: "",
    Kind.STATEFUL_SET: "    apiVersion: apps/v1\n    kind: StatefulSet\n",
    Kind.ROLLOUT: "    apiVersion: argoproj.io/v1alpha1\n    kind: Rollout\n",
}
"""What KEDA can scale of what owns pods, and how a ScaledObject names it."""
_TEXT = """\
# {verdict}
# {gpu_hours:.0f} GPU-hours, {idle_hours:.0f} of them idle; at most {replicas} replicas.
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: "{name}"
  namespace: "{namespace}"
spec:
  scaleTargetRef:
{api}    name: "{name}"
  # 0 needs something that wakes it: a demand or an alert.
  minReplicaCount: 1
  # As many as there were.
  maxReplicaCount: {replicas}
  triggers:
    - type: external
      metadata:
        scalerAddress: keda-gpu-scaler.keda:6000
{source}        workload: {kind}/{name}
        # `backtest` finds the cheapest one.
        threshold: "70"
"""


def scaled_object(usage: Usage, source: str) -> str | None:
    """Return a ScaledObject that `check` passes; None: KEDA cannot scale it, or it is not known.

    Whoever is scraped can name anything: what is no name in Kubernetes is none here.
    """
    kind, (namespace, _, name) = usage.used.kind.lower(), usage.used
    is_name = workload.is_namespace(namespace) and workload.is_name(name)
    if not (usage.is_judged and is_name and kind in _APIS):
        return None
    return _TEXT.format(
        verdict=usage.verdict,
        gpu_hours=usage.gpu_hours,
        idle_hours=usage.idle_hours,
        replicas=usage.replicas,
        api=_APIS[Kind(kind)],
        kind=kind,
        source="" if source == "default" else f'        source: "{source}"\n',
        name=name,
        namespace=namespace,
    )
