"""Which matchers keep a selector to the data of one namespace.

Pure. A series can name two namespaces: the one of the pod it is about and, where its target was
scraped without `honor_labels`, the target's own. Then `namespace` is the target's, and the pod's is
in another label, such as `exported_namespace`. Neither may be another namespace's data:

- a selector that has a matcher on one of these other labels gets that label pinned;
- every other selector gets `namespace` pinned, and the other labels must be empty or the same, so
  that who runs an exporter does not see the pods of everybody on it.

A series that names no namespace at all is nobody's, and not shown.
"""

from collections.abc import Sequence

from promql_parser import Matcher

from keda_gpu_scaler import profiles
from keda_gpu_scaler.promql import text

TARGETS_OWN = "namespace"
"""The label that is the pod's or the scrape target's."""
_PODS = tuple(label for label in profiles.NAMESPACE_LABELS if label != TARGETS_OWN)


def matchers(given: Sequence[Matcher], namespace: str) -> list[str]:
    """Return what is added to a selector's matchers to confine it.

    Matchers add up: one of the user's that says something else leaves nothing to show.

    Args:
        given: the selector's own matchers.
        namespace: the only one to be seen.
    """
    named = {one.name for one in given}
    pinned = next((label for label in _PODS if label in named), TARGETS_OWN)
    same_or_none = text.quoted(f"|{namespace}")
    others = [f"{label}=~{same_or_none}" for label in _PODS if label != pinned]
    return [f"{pinned}={text.quoted(namespace)}", *others]
