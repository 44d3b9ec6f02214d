"""What the product tells people is in plain words: a verb where one will do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository.test_docs import ROOT

ROUNDABOUT = re.compile(r"\b(ask(s|ed)? for|says?|said|whose|by the word of)\b")
"""A load needs replicas, a pod requests a GPU, a signal is active."""
REASONS = [
    *(ROOT / "keda_gpu_scaler/decision").glob("*.py"),
    *(ROOT / "keda_gpu_scaler/record").glob("*.py"),
    *(ROOT / "keda_gpu_scaler/workbench/explain").glob("*.py"),
    ROOT / "keda_gpu_scaler/autoscaling/rules.py",
    ROOT / "keda_gpu_scaler/alerts/store.py",
    ROOT / "keda_gpu_scaler/web/timeline.py",
    ROOT / "keda_gpu_scaler/workbench/backtest/advice.py",
    ROOT / "keda_gpu_scaler/workbench/backtest/output.py",
    ROOT / "keda_gpu_scaler/workbench/check/demands.py",
    ROOT / "keda_gpu_scaler/workbench/check/scaling.py",
]


def texts(module: Path) -> Iterator[str]:
    """Yield the texts of several words in a module, without its docstrings."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    docstrings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in docstrings and " " in str(node.value):
            yield str(node.value)


@pytest.mark.parametrize("module", REASONS, ids=lambda module: module.stem)
def test_reasons_use_plain_verbs(module: Path) -> None:
    assert [text for text in texts(module) if ROUNDABOUT.search(text)] == []
