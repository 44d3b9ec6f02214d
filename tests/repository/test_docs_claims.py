"""Names on the pages exist, and numbers that operators rely on are those of the code."""

import re

import pytest
import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from keda_gpu_scaler.alerts import LIMIT
from keda_gpu_scaler.alerts.replicas import EXCHANGE_SECONDS
from keda_gpu_scaler.alerts.store import LATE_SECONDS
from keda_gpu_scaler.check import FINDINGS_LIMIT, documents
from keda_gpu_scaler.decision.newest import FULL_GROWTH, FULL_LOAD
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.transport import authentication
from tests.repository import test_alerts
from tests.repository.test_docs import DOCS, ROOT
from tests.support import setting_rows
from tests.support.exposed import exposed

PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
OF_THE_PAST = {"CHANGELOG.md", "versions.md"}
"""They name what was removed as well."""
TEXTS = [page.read_text(encoding="utf-8") for page in PAGES if page.name not in OF_THE_PAST]
DEFAULTS = {row.variable: row.default for row in setting_rows.describe()}
_WORDS = {"5h": "five hours", 10: "ten", 10_000: "ten thousand"}


def names(pattern: str) -> set[str]:
    """Return every name of this form on the pages."""
    return {name for text in TEXTS for name in re.findall(pattern, text)}


def test_every_variable_is_a_setting() -> None:
    assert names(r"\bKEDA_GPU_SCALER_\w*[A-Z]\b") <= DEFAULTS.keys()


def test_every_metric_exists() -> None:
    assert names(r"\bkeda_gpu_scaler_\w+") <= {metric.name for metric in exposed()}


def test_every_alert_exists_and_has_a_runbook() -> None:
    whole = names(r"\bKedaGpuScaler\w+")
    grouped = {
        f"KedaGpuScaler{end}"
        for ends in names(r"\bKedaGpuScaler\(([\w|]+)\)")
        for end in ends.split("|")
    }
    assert whole | grouped == test_alerts.rules().keys()


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("check.md", f"limits of one text are {documents.BYTES_LIMIT >> 20} MiB"),
        ("check.md", f"{documents.VALUES_LIMIT:,} values and {documents.DEPTH_LIMIT} levels"),
        ("check.md", f"{FINDINGS_LIMIT:,} findings"),
        ("arithmetic.md", f"| 50 | \N{MULTIPLICATION SIGN}{100 * FULL_LOAD / 50:.2f} |"),
        ("arithmetic.md", f"| 90 | \N{MULTIPLICATION SIGN}{FULL_GROWTH:.2f} |"),
        ("exporters.md", f"dcgm-exporter, `{'`, `'.join(profiles.DETECTED)}`."),
        ("webhook.md", f"more than {_WORDS[LATE_SECONDS]} seconds after"),
        ("webhook.md", f"ask each other every {EXCHANGE_SECONDS:g} seconds"),
        ("webhook.md", f"knows {_WORDS[LIMIT]} alerts at most"),
        ("webhook.md", f"takes longer than {authentication.BODY_SECONDS:g} s"),
        ("webhook.md", f"is larger than {authentication.BODY_BYTES >> 20} MiB"),
        ("webhook.md", f"The default of {_WORDS[DEFAULTS['KEDA_GPU_SCALER_WEBHOOK_LIFETIME']]}"),
    ],
)
def test_a_number_or_an_order_is_that_of_the_code(page: str, said: str) -> None:
    assert said in " ".join((DOCS / page).read_text(encoding="utf-8").split())


def test_the_hook_for_pre_commit_passes_yaml_that_is_not_for_it() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *arguments = hook["entry"].split()
    assert program == "keda-gpu-scaler"
    given = "kind: ConfigMap\n"  # a commit often changes other YAML alone
    assert CliRunner().invoke(cli.app, [*arguments, "-"], input=given).exit_code == 0
