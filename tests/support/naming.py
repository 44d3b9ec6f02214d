"""How Kubernetes names pods, written a second time: by running its steps instead of by a regex.

Each function takes one owner's name and draws one pod's; nothing is shared with the product.
"""

import hashlib
from collections.abc import Callable

from hypothesis import strategies as st

from keda_gpu_scaler.spec.workload import Kind

_RANDOM_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def names(low: int = 1, high: int = 253) -> st.SearchStrategy[str]:
    """Object names of these lengths: letters, digits, inner dashes and dots."""
    ends = st.text("abcdeftz049", min_size=1, max_size=1)
    inner = st.text("abcdefghz0123456789-", min_size=max(low - 2, 0), max_size=high - 2)
    whole = st.builds(lambda first, middle, last: first + middle + last, ends, inner, ends)
    dotted = st.builds(lambda a, b: f"{a}.{b}", ends, whole).filter(lambda name: len(name) <= high)
    return whole | dotted if low > 1 else ends | whole | dotted


def random_suffixes() -> st.SearchStrategy[str]:
    """The five characters that the API server appends."""
    return st.text(_RANDOM_ALPHABET, min_size=5, max_size=5)


def template_hash(template: bytes) -> str:
    """The pod-template-hash: FNV-32a in decimal, each digit encoded in the random alphabet."""
    value = 0x811C9DC5
    for byte in template:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_RANDOM_ALPHABET[ord(digit) % 27] for digit in str(value))


def generated(base: str, suffix: str) -> str:
    """What the API server makes of `generateName`."""
    return base[:58] + suffix


def knative_child(parent: str, suffix: str) -> str:
    """Knative's name for a dependent of `parent`."""
    if len(parent) <= 63 - len(suffix):
        return parent + suffix
    digest = hashlib.md5(parent.encode(), usedforsecurity=False).hexdigest()
    return parent[: 31 - len(suffix)] + digest + suffix


@st.composite
def deployment_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of a ReplicaSet of a Deployment."""
    hashed = draw(st.binary(max_size=8).map(template_hash) | st.text("456789bcdf", min_size=1))
    return generated(f"{name}-{hashed[:10]}-", draw(random_suffixes()))


@st.composite
def job_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of a Job, Indexed or not."""
    index = draw(st.none() | st.integers(0, 11) | st.integers(0, 2**31 - 2))
    if index is None:
        return generated(f"{name}-", draw(random_suffixes()))
    appended = f"-{index}-"
    return name[: 58 - len(appended)] + appended + draw(random_suffixes())


@st.composite
def knative_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of a revision that Knative named."""
    revision = knative_child(name, f"-{draw(st.integers(1, 99_999)):05d}")
    return draw(deployment_pods(knative_child(revision, "-deployment")))


@st.composite
def set_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of a DaemonSet or of a bare ReplicaSet."""
    return generated(f"{name}-", draw(random_suffixes()))


@st.composite
def stateful_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of a StatefulSet."""
    return f"{name}-{draw(st.integers(0, 5000))}"


@st.composite
def group_pods(draw: st.DrawFn, name: str) -> str:
    """A leader or a worker of a LeaderWorkerSet."""
    worker = draw(st.just("") | st.integers(1, 99).map("-{}".format))
    return draw(stateful_pods(name)) + worker


@st.composite
def cron_job_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of a Job that a CronJob started between 2017 and 2046."""
    return draw(job_pods(f"{name}-{draw(st.integers(25_000_000, 39_999_999))}"))


@st.composite
def predictor_pods(draw: st.DrawFn, name: str) -> str:
    """A pod of an InferenceService's predictor."""
    predictor = name + draw(st.sampled_from(["-predictor", "-predictor-default"]))
    return draw(deployment_pods(predictor) | knative_pods(predictor))


_DRAWN_BY: dict[Kind, Callable[[str], st.SearchStrategy[str]]] = {
    Kind.DEPLOYMENT: deployment_pods,
    Kind.ROLLOUT: deployment_pods,
    Kind.REPLICA_SET: set_pods,
    Kind.DAEMON_SET: set_pods,
    Kind.STATEFUL_SET: stateful_pods,
    Kind.LEADER_WORKER_SET: group_pods,
    Kind.JOB: job_pods,
    Kind.CRON_JOB: cron_job_pods,
    Kind.KNATIVE_SERVICE: knative_pods,
    Kind.INFERENCE_SERVICE: predictor_pods,
}


@st.composite
def pods(draw: st.DrawFn, kind: Kind, name: str) -> str:
    """A pod of the owner of this kind and name."""
    return draw(_DRAWN_BY[kind](name))
