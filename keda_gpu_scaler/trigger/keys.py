"""The keys of a trigger's metadata: what each means, and its default.

Pure data; the documentation's tables are compared with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from keda_gpu_scaler import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key that a user may write."""

    meaning: str
    default: str | None = None
    """The value when the key is not given; None when there is no fixed one."""
    otherwise: str = "-"
    """What applies where there is no fixed default, in words."""


KEYS: Mapping[str, Key] = {
    "workload": Key(
        meaning="whose pods are measured: [kind/]name, a bare name is a Deployment",
        otherwise="required, unless podPattern or query is given; with "
        "KEDA_GPU_SCALER_KUBERNETES the ScaledObject's scaleTargetRef",
    ),
    "namespace": Key(
        meaning="the namespace of the workload; another one only where the settings allow it",
        otherwise="the ScaledObject's",
    ),
    "podPattern": Key(
        meaning="RE2 pattern for whole pod names, for pods that no rule for a kind finds",
        otherwise="derived from workload",
    ),
    "signal": Key(
        meaning="what is measured of each GPU; with query, the unit of its numbers",
        default="utilization",
    ),
    "profile": Key(meaning="how the exporter names metrics and labels", default="auto"),
    "threshold": Key(
        meaning="target per replica in the signal's unit; at most 90 for percentages",
        otherwise="required, unless a demand scales alone",
    ),
    "aggregation": Key(
        meaning="over replicas: sum, max or p95 for metricType AverageValue, average for Value",
        default="sum",
    ),
    "gpuAggregation": Key(
        meaning="over the GPUs of one pod: average, max or sum",
        otherwise="average; sum for memory-used and power",
    ),
    "window": Key(
        meaning="for scaling in: the load is the mean over this time",
        otherwise="2m; 1m where the exporter's number is itself an average",
    ),
    "activationThreshold": Key(
        meaning="active while any GPU is above this",
        otherwise="2; required for memory, memory-used, power, temperature and number",
    ),
    "activationWindow": Key(
        meaning="idle means: no GPU was above activationThreshold in this time", default="2m"
    ),
    "activationWorkload": Key(
        meaning="also active while the GPUs of this workload are: [kind/]name, same namespace"
    ),
    "demandQuery": Key(meaning="PromQL for one number that exists at zero replicas: the demand"),
    "demandPreset": Key(
        meaning="a demand that LLM servers or routers show, by name, in place of demandQuery"
    ),
    "demandRouter": Key(
        meaning="whose pods show a preset of a router: [kind/]name",
        otherwise="required by presets of routers",
    ),
    "demandRouterNamespace": Key(
        meaning="the namespace of that router; another one only where the settings allow it",
        otherwise="the workload's",
    ),
    "demandModel": Key(
        meaning="the only model that counts at that router", otherwise="-; required by some presets"
    ),
    "demandActivationThreshold": Key(meaning="active while the demand is above this", default="0"),
    "demandThreshold": Key(
        meaning="the demand that one replica can serve: with it the demand also scales",
        otherwise="-; with demandPreset, the preset's",
    ),
    "demandOnEmpty": Key(
        meaning="what an unknown demand means without pods: error, inactive or active",
        otherwise="error; inactive with a preset that cannot wake",
    ),
    "startTimeout": Key(
        meaning="a pod that was never Ready and is younger than this is starting", default="30m"
    ),
    "warmup": Key(
        meaning="pods whose series are younger are still starting, where readiness is not known",
        default="2m",
    ),
    "onUnknown": Key(
        meaning="the answer when the load is unknown: hold, error or zero", default="hold"
    ),
    "forFormula": Key(
        meaning="true: the trigger is in a scalingModifiers.formula, and KEDA's polls get a number "
        "that says whether it is active",
        default="false",
    ),
    "maxAge": Key(meaning="a sample older than this is stale", default="3m"),
    "query": Key(
        meaning="custom PromQL in place of the profile's metric: one element per GPU or pod"
    ),
    "source": Key(meaning="the name of a source in the process settings", default="default"),
    "metricName": Key(
        meaning="the metric's name in the HPA, without the index that KEDA adds",
        otherwise="gpu-<signal>; gpu-demand without threshold",
    ),
}

KEDA_KEYS = frozenset(
    {"scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey"}
)
"""KEDA reads these itself and forwards them like all other keys."""
FROM_ENV = "FromEnv"
"""KEDA resolves the value of such a key from the target's environment and keeps the suffix."""


def is_of_keda(key: str) -> bool:
    return key.removesuffix(FROM_ENV) in KEDA_KEYS


_BESIDE_METADATA = "belongs beside the trigger's metadata, not into it"
_NAMED_SOURCE = "a trigger names a source of the scaler's settings: use source"
_OF_A_SOURCE = "remove it: a source's credentials, headers and limits are in the scaler's settings"
_HINTS = {
    "metrictype": _BESIDE_METADATA,
    "usecachedmetrics": _BESIDE_METADATA,
    "authenticationref": _BESIDE_METADATA,
    "serveraddress": _NAMED_SOURCE,
    "prometheusaddress": _NAMED_SOURCE,
    "url": _NAMED_SOURCE,
    **dict.fromkeys(
        ("authmodes", "customheaders", "cortexorgid", "queryparameters", "timeout", "awsregion"),
        _OF_A_SOURCE,
    ),
    "ignorenullvalues": 'write onUnknown: hold (the default), error for "false", zero for "true"',
    "deployment": "write workload: deployment/<name>",
    "targetvalue": "did you mean threshold?",
}
_KEYS_BY_LOWER_CASE = {key.lower(): key for key in (*KEYS, *sorted(KEDA_KEYS))}


def hint(key: str) -> str:
    """Return what to do about an unknown key: the nearest known one, or where it belongs."""
    suffix = FROM_ENV if key.endswith(FROM_ENV) else ""
    word = key.removesuffix(FROM_ENV).lower()
    if word in _HINTS:
        return _HINTS[word]
    if meant := errors.nearest(word, _KEYS_BY_LOWER_CASE):
        return f"did you mean {_KEYS_BY_LOWER_CASE[meant]}{suffix}?"
    return f"known are {', '.join(KEYS)}"
