"""What `make e2e-all` does with generations that fail, and with one that is interrupted."""

from tests.e2e import ran
from tests.e2e.every_generation import Outcome, run_all

NAMES = "2.21/1.36", "2.20/1.35", "2.16/1.35"


def some(name: str, *, failed: int = 0) -> ran.Ran:
    keda, kubernetes = name.split("/")
    return ran.Ran(
        keda=f"{keda}.0",
        kubernetes=f"{kubernetes}.3",
        mark="generations",
        passed=20,
        failed=failed,
        skipped=2,
    )


def test_a_generation_that_fails_or_does_not_start_hides_no_other() -> None:
    outcomes = {
        NAMES[0]: Outcome([some(NAMES[0], failed=3)], 1, interrupted=False),
        NAMES[1]: Outcome([], 4, interrupted=False),
        NAMES[2]: Outcome([some(NAMES[2])], 0, interrupted=False),
    }
    found, missing = run_all(NAMES, outcomes.__getitem__)
    assert found == [some(NAMES[0], failed=3), some(NAMES[2])]
    assert missing == ["2.20/1.35: did not run to its end (pytest's status 4)"]


def test_an_interruption_ends_the_rest_and_keeps_what_ran() -> None:
    outcomes = {
        NAMES[0]: Outcome([some(NAMES[0])], 0, interrupted=False),
        NAMES[1]: Outcome([], 2, interrupted=True),
    }
    found, missing = run_all(NAMES, outcomes.__getitem__)
    assert found == [some(NAMES[0])]
    assert missing == [
        "2.20/1.35: did not run to its end (pytest's status 2)",
        "2.16/1.35: not run",
    ]


def test_a_run_says_what_ran_on_what() -> None:
    assert str(some("2.20/1.35")) == (
        "KEDA 2.20.0 with Kubernetes 1.35.3, those marked `generations`: "
        "20 passed, 0 failed, 2 skipped"
    )
    assert some("2.20/1.35").generation == ("2.20", "1.35")
