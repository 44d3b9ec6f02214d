"""The files that follow from others: `python -m tools.generated NAME...` writes them.

With --check it writes nothing, prints what would change, and fails if anything would.
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import page, results
from testbed.programs import ROOT
from tools import fixed_times, keda_schema, schema
from tools.chart import files
from tools.pictures import replicas

MADE: Mapping[str, Callable[[], Mapping[Path, str]]] = {
    "chart-values": files.of_values,
    "chart": files.rendered,
    "times": fixed_times.page,
    "schema": lambda: {schema.FILE: schema.text()},
    "figures": lambda: {
        ROOT / path: text for path, text in page.files(results.committed()).items()
    },
    "replicas": lambda: {ROOT / "docs/images/replicas.svg": replicas.replicas()},
    "keda-schema": lambda: {keda_schema.FILE: keda_schema.text()},
}


def main() -> None:
    """Write or check the files of each name, in this order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=MADE)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    changed: list[str] = []
    for name in asked.names:
        for path, text in MADE[name]().items():
            if asked.check:
                changed += _difference(path, text)
            else:
                path.write_text(text, encoding="utf-8")
    sys.stdout.writelines(changed)
    sys.exit(bool(changed))


def _difference(path: Path, text: str) -> list[str]:
    before = path.read_text(encoding="utf-8").splitlines(keepends=True)
    name = str(path.relative_to(ROOT))
    return list(difflib.unified_diff(before, text.splitlines(keepends=True), name, "generated"))


if __name__ == "__main__":
    main()
