"""The rules beside what KEDA and the HPA did in a real cluster, sync by sync and poll by poll."""

import pytest

from tests.support import episodes
from tests.support.episodes import Poll, Sync

NAMES = sorted(path.stem for path in episodes.FOLDER.glob("*.json"))
EXPLAINED = {
    ("metrics", 82.403): (
        "KEDA's next poll came while a failed request of the HPA closed its cache: it asked nothing"
        " and took that for inactive (docs/upstream/keda-failed-poll-taken-for-inactive.md)"
    ),
}
"""Why the replicas differ after a sync or poll, by the episode and its time."""


@pytest.mark.parametrize("name", NAMES)
def test_the_rules_set_the_replicas_that_the_real_controllers_set(name: str) -> None:
    compared = episodes.compared(episodes.read(name))
    different = {each.cause.at: str(each) for each in compared if not each.is_equal}
    explained = {at for episode, at in EXPLAINED if episode == name}
    assert different.keys() == explained, different


def test_hundreds_of_syncs_and_polls_are_recorded_with_changes_in_each_episode() -> None:
    compared = {name: list(episodes.compared(episodes.read(name))) for name in NAMES}
    causes = [each.cause for comparisons in compared.values() for each in comparisons]
    assert len(compared) == 13
    for kind in Sync, Poll:
        assert sum(isinstance(cause, kind) for cause in causes) > 200
    for comparisons in compared.values():
        assert sum(each.before != each.after for each in comparisons) >= 5
    assert len(EXPLAINED) <= len(causes) / 100
