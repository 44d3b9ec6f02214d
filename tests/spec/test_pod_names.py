"""Names of pods: those that Kubernetes gives and no others, as `naming` writes them anew."""

from collections.abc import Callable, Iterator
from functools import lru_cache

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.spec import pod_names
from keda_gpu_scaler.spec.workload import Kind, Workload
from tests.support import naming

compiled = lru_cache(re2.compile)
KINDS = st.sampled_from(list(Kind))
LENGTHS = (1, *range(26, 62), 253)
"""Those at which a name begins to be cut, or another part of it, are among them."""
RULES = (
    pod_names.of_deployment,
    pod_names.of_set,
    pod_names.of_stateful_set,
    pod_names.of_leader_worker_set,
    pod_names.of_model_serving,
    pod_names.of_job,
    pod_names.of_cron_job,
    pod_names.of_knative_service,
    pod_names.of_inference_service,
)


def near(pod: str) -> Iterator[str]:
    """Yield a name, and others with a character more, less or changed where parts of it meet."""
    yield from (pod, f"x{pod}", f"{pod}\n", f"{pod}b", pod[:-1])
    for at in [at for at, character in enumerate(pod) if character == "-"][-4:]:
        for changed in ("", "-0", "--", "-z", "a"):
            yield pod[:at] + changed + pod[at + 1 :]
            yield pod[:at] + changed + pod[at + 2 :]


def fits(owner: Workload, pod: str) -> bool:
    """Tell whether a name fits, of which this process and Prometheus think alike."""
    is_ours = owner.matches(pod)
    assert is_ours == (compiled(owner.regex).fullmatch(pod) is not None)
    return is_ours


@pytest.mark.parametrize("kind", Kind)
def test_a_name_fits_exactly_if_kubernetes_could_have_given_it(kind: Kind) -> None:
    for length in LENGTHS:
        owner = Workload(kind, "prod", ("v.web" + "a" * 250)[:length])
        pods = list(naming.examples(kind, owner.name))
        assert owner.prefix == pod_names.shared_prefix(pods)
        assert all(fits(owner, pod) for pod in pods)
        for name in {name for pod in pods for name in near(pod)}:
            assert fits(owner, name) is naming.could_be(kind, owner.name, name), name


@given(st.data(), KINDS, KINDS, naming.names(1, 80), st.sampled_from(["", "-2", "-canary", "b"]))
def test_a_pod_of_any_owner_fits_exactly_if_it_could_be_the_workloads(
    data: st.DataObject, kind: Kind, other: Kind, name: str, more: str
) -> None:
    """Also where names are ambiguous, which `Workload` lists: there it could be either's."""
    owner = Workload(kind, "prod", name)
    assert fits(owner, data.draw(naming.pods(kind, name)))
    pod = data.draw(naming.pods(other, (name + more)[:253]))
    assert fits(owner, pod) is naming.could_be(kind, name, pod)


def test_forms_that_become_the_same_by_cutting_are_written_once() -> None:
    names = pod_names.union(pod_names.of_inference_service("a" * 60))
    assert len(names.forms) == 2


@pytest.mark.parametrize(
    ("texts", "shared"),
    [(["ab", "abc"], "ab"), (["ab", "b"], ""), (["a"], "a"), ([], ""), (["", "a"], "")],
)
def test_the_shared_prefix_is_what_all_start_with(texts: list[str], shared: str) -> None:
    assert pod_names.shared_prefix(texts) == shared


@given(st.sampled_from(RULES), naming.names(1, 80))
def test_nothing_of_an_owners_name_follows_the_prefix(
    rule: Callable[[str], Iterator[pod_names.Form]], name: str
) -> None:
    forms = pod_names.union(rule(name)).forms
    others = pod_names.union(rule("x" * len(name))).forms
    assert [rest for _, rest in forms] == [rest for _, rest in others]
