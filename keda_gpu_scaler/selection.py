"""The pods of a scale target that no rule for names or owners is known for: those it selects.

Pure. Which they are only the Kubernetes API can say, by the target's own label selector; each pod
it selects then has the target among its owners, under a kind that no object has.
"""

from dataclasses import dataclass

from keda_gpu_scaler.spec import NO_NAME, Owner


@dataclass(frozen=True, slots=True)
class Selected:
    """Exactly the pods that the label selector of one scale target selects.

    Neither names nor any other evidence can tell them: while the Kubernetes API does not say whom
    the target selects, nothing is known of the workload (`states.is_told`).
    """

    namespace: str
    resource: str
    """The target's, as kubectl calls it: `models.example.com`."""
    name: str
    prefix: str = ""
    regex: str = NO_NAME
    owner: Owner | None = None

    def __str__(self) -> str:
        """Return kubectl's notation: resource/name."""
        return f"{self.resource}/{self.name}"

    @property
    def selected_by(self) -> Owner:
        """How its pods say that it selects them; no kind of object has a slash in its name."""
        return Owner(f"{self.resource}/scale", self.name)

    def matches(self, _pod: str) -> bool:
        """Match no pod: names tell nothing."""
        return False

    def replica_of(self, pod: str) -> str:
        """Return the pod."""
        return pod

    def owns(self, above: frozenset[Owner]) -> bool | None:
        """Tell whether the target selects a pod with these owners."""
        return self.selected_by in above
