"""One name is of one thing: no two files and no two public classes of the product have the same."""

import ast
from collections import Counter
from pathlib import Path

PRODUCT = Path(__file__).parents[2] / "keda_gpu_scaler"
FILES = [path for path in PRODUCT.rglob("*.py") if path.parent.name != "pb"]
"""Of `cli/` only the classes count: a file there is named like what its command runs."""
SAME_FILES = {"__init__.py", "source.py"}
"""Each kind of source has its own."""
SAME_CLASSES = {
    "Aggregation",  # PromQL's, a node like Call, and that of a trigger
    "Key",  # of a trigger, and of an alert
    "Options",  # of a command
    "ScaledObject",  # its name, and as the API server writes it
}


def several(names: list[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_two_files_have_one_name() -> None:
    assert several([path.name for path in FILES if path.parent.name != "cli"]) == SAME_FILES


def test_no_two_classes_have_one_name() -> None:
    nodes = [node for path in FILES for node in ast.parse(path.read_text("utf-8")).body]
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert several([name for name in names if not name.startswith("_")]) == SAME_CLASSES
