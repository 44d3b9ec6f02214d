"""Names on the pages exist."""

import re

import pytest
import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from testbed import setting_rows
from tests.repository import test_alerts
from tests.repository.test_docs import DOCS, ROOT
from tests.support.exposed import exposed

PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
OF_THE_PAST = {"CHANGELOG.md", "versions.md"}
"""They name what was removed as well."""
TEXTS = [page.read_text(encoding="utf-8") for page in PAGES if page.name not in OF_THE_PAST]
NAMES = {
    r"\bKEDA_GPU_SCALER_\w*[A-Z]\b": {row.variable for row in setting_rows.describe()},
    r"\bkeda_gpu_scaler_\w+": {metric.name for metric in exposed()},
    r"\bKedaGpuScaler\w+": test_alerts.rules().keys(),
}


@pytest.mark.parametrize("pattern", NAMES)
def test_every_setting_metric_and_alert_exists(pattern: str) -> None:
    assert {name for text in TEXTS for name in re.findall(pattern, text)} <= NAMES[pattern]


def test_the_hook_for_pre_commit_passes_yaml_that_is_not_for_it() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *arguments = hook["entry"].split()
    assert program == "keda-gpu-scaler"
    given = "kind: ConfigMap\n"  # a commit often changes other YAML alone
    assert CliRunner().invoke(cli.app, [*arguments, "-"], input=given).exit_code == 0
