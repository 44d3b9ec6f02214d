"""Every figure in README.md is what a `make` target gives, which is named beside it."""

import json
import operator
import re
from statistics import median

import pytest

from keda_gpu_scaler.record.build import record
from keda_gpu_scaler.workbench.explain import text
from testbed.programs import ROOT
from tests.repository.test_docs import DOCS, section
from tests.web.shown import answered, pods

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIGURES = json.loads((ROOT / "benchmarks" / "figures.json").read_text(encoding="utf-8"))
PLAIN = " ".join(README.split())


def expected(row: str, below: int = 0) -> dict[str, str]:
    """Return a row of what `make expectations` prints, or one below it, by its columns."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section(DOCS / "arithmetic.md", "expectations")
    )
    number = next(number for number, cells in enumerate(rows) if cells[0].startswith(row))
    return dict(zip(head, rows[number + below], strict=True))


def figure(benchmark: str, key: str) -> list[list[str]]:
    """Return the cells of a table of `make bench`."""
    details = FIGURES[benchmark]["details"]
    return next(each["cells"] for each in details if each["key"] == key)


def test_rollouts_lost_nodes_and_exporters_are_as_expected() -> None:
    ours, theirs = "the cluster's evidence", "`sum`, models load at 100 %"
    rollout = expected("a rollout", 1)
    assert f"stays at **{rollout[ours]}**; with `sum()` it goes to {rollout[theirs]}" in PLAIN
    nodes = expected("3 of 4 nodes of 12 replicas are lost for 6 minutes")
    assert f"the fewest are **{nodes[ours]}**, with `sum()` {nodes[theirs]} (" in PLAIN
    away = expected("the only, busy replica's exporter is away for 15 minutes")
    assert (away[ours], away[theirs]) == ("1", "0")


def test_the_picture_shows_what_the_words_beside_it_say() -> None:
    picture = (DOCS / "images" / "replicas.svg").read_text(encoding="utf-8")
    (title,) = re.findall("<title>(.*?)</title>", picture)
    found = re.findall(r" (this scaler|sum\(\)|avg\(\)): at most (\d+)", title)
    (ours, most), (sums, too_many), (_, few), *idle = found
    assert [(ours, most), (sums, most), ("avg()", few)] == idle
    assert (
        f"with models that load at 100 %, sum() goes to {too_many} replicas and this scaler to"
        f" {most}; with models that load at 0 %, both go to {most}; avg() stays at {few}"
    ) in PLAIN


def test_the_wake_and_the_bill_are_as_measured() -> None:
    waits = {row[0]: row[1] for row in figure("wake", "wake")}
    assert f"**{waits['this scaler, `external-push`']}** with `external-push`" in PLAIN
    own = waits["KEDA's own prometheus trigger"]
    assert f"{own} with KEDA's prometheus" in PLAIN
    bills = {row["key"]: row for row in FIGURES["polling"]["rows"]}
    idle, busy = (
        median(map(operator.truediv, bills[key]["measured"], bills[key]["reference"]))
        for key in ("polling.bill", "polling.bill.busy")
    )
    assert (
        f"{idle:.1f} times the CPU time of KEDA's own triggers on an idle machine, and {busy:.1f}"
        " times [on a busy one]"
    ) in PLAIN
    some, many = ({row[0]: row for row in figure("polling", "sizes")}[f"{count} ScaledObjects"]
                  for count in ("100", "1,000"))  # fmt: skip
    assert f"{some[2]} MiB and {some[1]} % of a core for 100 ScaledObjects" in PLAIN
    assert f"{many[2]} MiB and {many[1]} % for 1,000" in PLAIN
    queries = {row[0]: row for row in figure("polling", "queries")}["1,000 triggers"]
    assert (
        f"sends **{queries[1]}** queries a minute; KEDA's own triggers send {queries[2]}" in PLAIN
    )


def test_the_first_decision_is_as_measured() -> None:
    rows = figure("first", "first")
    install, start, right = (f"{float(cell):.1f} s" for cell in (*rows[0][1:], rows[2][1]))
    assert (
        f"`helm install` takes {install} with the image on the node, {start} of them the scaler's;"
        f" {right} after its ScaledObject a workload has the right number of replicas"
    ) in PLAIN


def test_explain_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    bert = answered("bert", *pods("bert", 100, 100, 100), namespace="inference")
    text.write([record(bert)], None)
    (block,) = re.findall(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    shown = [line for line in block.splitlines() if line != "…"]
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in printed if line in shown] == shown


def test_every_target_that_the_readme_names_exists() -> None:
    targets = re.findall(r"`make ([a-z0-9-]+)`", PLAIN)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"pictures", "expectations", "bench", "bench-wake", "bench-decisions"} <= {*targets}
    assert [each for each in targets if not re.search(rf"^{each}: ", makefile, re.MULTILINE)] == []
