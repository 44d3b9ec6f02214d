"""Each generated table of a page is what the code gives now."""

import dataclasses
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli, trigger
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.demand.presets import PRESETS, PodMetric, Preset
from keda_gpu_scaler.evidence.kubernetes.groups import GROUPED
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import GPU_RESOURCES, OTHER_RESOURCES, Profile
from keda_gpu_scaler.record import record
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.spec.workload import KINDS_BY_ALIAS, Kind, Workload
from keda_gpu_scaler.web.triggers import CHANGE_KEYS
from keda_gpu_scaler.workbench.check import RULES
from keda_gpu_scaler.workbench.explain import gates, why_not
from testbed import setting_rows
from tests.support.exposed import exposed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OF_A_TRIGGER = "namespace, scaled_object, metric"
"""Labels that the page names once, for all metrics that begin with them."""
_OPTIONS = "grpc."
"""Prefixes of gRPC options, which are dotted words like the events of the log."""


def section(page: Path, name: str) -> list[str]:
    """Return the lines between a page's markers of this name."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page.read_text(), re.DOTALL)
    assert found, f"{page.name} has no section {name}"
    return found[1].splitlines()


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---"] * len(head)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def trigger_row(name: str, key: trigger.Key) -> list[str]:
    default = f"`{key.default}`" if key.default else key.otherwise.replace("<", r"\<")
    return [f'<a id="{name.lower()}"></a>`{name}`', default, key.meaning]


def test_every_key_of_a_trigger() -> None:
    """The third column, of values, is for `test_schema.py`."""
    written = [line.split(" | ") for line in section(DOCS / "specification.md", "trigger-keys")]
    rows = [trigger_row(name, key) for name, key in trigger.KEYS.items()]
    expected = table(["key", "default", "meaning"], rows)
    assert [" | ".join([*cells[:2], *cells[3:]]) for cells in written] == expected


def kind_words(kind: Kind) -> str:
    """Return a kind, and in brackets how else it is written."""
    words = [word for word in KINDS_BY_ALIAS if KINDS_BY_ALIAS[word] is kind and "." not in word]
    plurals = {f"{word}s" for word in words}
    others = [f"`{word}`" for word in words if word != kind and word not in plurals]
    return f"`{kind}` ({', '.join(others)})" if others else f"`{kind}`"


def test_every_kind_of_workload() -> None:
    grouped = [f"`{kind}`" for kind in Kind if Workload(kind, "ml", "x").is_grouped]
    assert " ".join(section(DOCS / "specification.md", "kinds")) == (
        f"{', '.join(map(kind_words, Kind))}. "
        f"A replica of {' and '.join(grouped)} is a group of pods."
    )


def test_every_scale_target_with_groups() -> None:
    rows = [
        [
            f"`{target}`",
            ", ".join(f"`{label}`" for label in grouped.whose),
            "; or ".join(
                [
                    *(" and ".join(f"`{label}`" for label in group) for group in grouped.groups),
                    *(f"a pod alone with `{label}`" for label in grouped.alone),
                ]
            ),
        ]
        for target, grouped in GROUPED.items()
    ]
    head = ["scale target", "labels that say whose a pod is", "labels that name its replica"]
    assert section(DOCS / "states.md", "groups") == table(head, rows)


def setting_lines() -> list[str]:
    """Return the table of settings; those that several kinds of sources share are one row."""
    variables: dict[tuple[str, str, str], list[str]] = {}
    for row in setting_rows.describe():
        kind, _, name = row.key.partition("_")
        same = name if kind in KINDS else row.key, row.default, row.meaning
        variables.setdefault(same, []).append(f"`{row.variable}`")
    rows = [
        ["<br>".join(shared) + (f" (`{default}`)" if default else ""), meaning]
        for (_, default, meaning), shared in variables.items()
    ]
    return table(["variable (default)", "meaning"], rows)


def test_every_setting() -> None:
    assert section(DOCS / "settings.md", "settings") == setting_lines()


def metric_lines() -> list[str]:
    """Return the table of metrics; the labels that all of a trigger have are named above it."""
    rows = []
    for metric in exposed():
        labels = ", ".join(metric.labels).removeprefix(OF_A_TRIGGER).lstrip(", ")
        name = f"`{metric.name}`"
        rows.append([f"{name} ({labels})" if labels else name, metric.meaning])
    return table(["metric (labels)", "meaning"], rows)


def test_every_metric() -> None:
    assert sorted(section(DOCS / "metrics.md", "metrics")) == sorted(metric_lines())


def test_every_event_of_the_log() -> None:
    page = (DOCS / "metrics.md").read_text().partition("## Log events")[2]
    rows = re.findall(r"^- (`[^:]+):", page, re.MULTILINE)
    explained = [event for row in rows for event in re.findall(r"`([a-z_.]+)`", row)]
    assert sorted(explained) == sorted(events())


def events() -> set[str]:
    """Return the name of every event: the dotted words of those modules that may write a log."""
    modules = (ROOT / "keda_gpu_scaler").rglob("*.py")
    writing = [text for each in modules if "structlog" in (text := each.read_text())]
    words = re.findall(r'"([a-z]+\.[a-z_]+)"', "".join(writing))
    return {word for word in words if not word.startswith(_OPTIONS)}


def profile_row(name: str, profile: Profile) -> list[str]:
    if not profile.conventions:
        return [f"`{name}`", profile.exporter, "no series names a pod", "-", "-"]
    metric_sources = profiles.metric_sources(name, Signal.UTILIZATION)
    pods = dict.fromkeys(f"`{way.labels.namespace}`, `{way.labels.pod}`" for way in metric_sources)
    metrics = dict.fromkeys(
        f"`{one.name}`" for way in metric_sources for one in way.measure.metrics
    )
    signals = profiles.signals(name)
    others = [signal for signal in signals if signal is not Signal.UTILIZATION]
    shown = "all" if set(signals) == set(Signal) - {Signal.NUMBER} else ", ".join(others)
    exporter = profile.exporter if profile.verified else f"{profile.exporter} ‡"
    return [f"`{name}`", exporter, " or ".join(pods), ", ".join(metrics), shown]


def test_every_profile() -> None:
    """Where its names come from is the page's own, and so are rows of what is not read."""
    _, _, *lines = section(DOCS / "exporters.md", "profiles")
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert [cells[:-1] for cells in rows if cells[0] != "-"] == [
        profile_row(name, profile) for name, profile in profiles.PROFILES.items()
    ]
    assert {len(cells) for cells in rows} == {6}


def _spelt(metric: PodMetric) -> list[str]:
    """Return a metric's names, without those that only have `_` for `:`."""
    others = {name.replace(":", "_") for name in metric.names if ":" in name}
    return [f"`{name}`" for name in metric.names if name not in others]


def preset_cells(preset: Preset) -> list[str]:
    quantities = [
        [f"{', '.join(_spelt(one))} ({one.since.removesuffix(' and later')})" for one in each]
        for each in preset.added
    ]
    added = "; plus ".join("; or ".join(one) for one in quantities)
    single = {each.added[0]: f"`{each.name}`" for each in PRESETS.values() if len(each.added) == 1}
    if len(preset.added) > 1 and set(preset.added) <= single.keys():
        added = f"those of {' and '.join(single[each] for each in preset.added)}"
    threshold = "-" if preset.threshold is None else f"{preset.threshold:g}"
    return [f"`{preset.name}`{' †' * preset.wakes}", added, threshold]


def test_every_preset() -> None:
    """What is counted, and why a threshold is what it is, are the page's own words."""
    _, _, *lines = section(DOCS / "llm.md", "presets")
    rows = [line.strip("| ").split(" | ") for line in lines]
    shown = [[name, added, threshold] for name, _, added, threshold in rows]
    assert shown == list(map(preset_cells, PRESETS.values()))


def test_every_rule_of_check() -> None:
    rules = (DOCS / "check.md").read_text().partition("## Rules")[2]
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.+) \|$", rules, re.MULTILINE)
    assert rows == [(one.name, one.severity.value, one.meaning) for one in RULES.values()]


@pytest.mark.parametrize("names", [(), *((name,) for name in cli.COMMANDS)])
def test_every_command(names: tuple[str, ...]) -> None:
    """With what its help says on a terminal of 80 columns."""
    command = " ".join(["keda-gpu-scaler", *names, "--help"])
    (shown,) = re.findall(
        rf"^```console\n\$ {re.escape(command)}\n(.*?)\n```$",
        (DOCS / "commands.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    runner = CliRunner(env={"COLUMNS": "80"})
    done = runner.invoke(cli.app, [*names, "--help"], prog_name="keda-gpu-scaler")
    assert shown == "\n".join(line.rstrip() for line in done.output.splitlines())


SHOWN = (
    Summary,
    record.Record,
    record.SourceRecord,
    record.PodRecord,
    record.GpuRecord,
    record.Activation,
    record.MetricRecord,
    gates.Gates,
    why_not.WhyNot,
)
"""What `explain` prints as JSON, each with a list of its own."""


def listed_words(name: str) -> list[str]:
    """Return the words that a list of the page on `explain` is about."""
    lines = "\n".join(section(DOCS / "explain.md", name))
    items = re.findall(r"^- ((?:`[^`]+`(?:, )?)+):", lines, re.MULTILINE)
    return [word for item in items for word in re.findall(r"`([^`]+)`", item)]


@pytest.mark.parametrize("shown", SHOWN)
def test_every_field_of_explain(shown: type) -> None:
    inherited = {name for base in shown.__bases__ for name in field_names(base)}
    expected = [name for name in field_names(shown) if name not in inherited]
    assert listed_words(shown.__name__) == expected


def test_what_the_history_shows() -> None:
    assert listed_words("Change") == ["at", *CHANGE_KEYS]


def field_names(shown: type) -> list[str]:
    return (
        [one.name for one in dataclasses.fields(shown)] if dataclasses.is_dataclass(shown) else []
    )


def test_every_gate() -> None:
    assert listed_words("gates") == list(gates.NAMES)


def test_every_resource_that_is_a_gpu_or_none() -> None:
    text = (DOCS / "states.md").read_text()
    for heading, starts in (("gpu resources", GPU_RESOURCES), ("other resources", OTHER_RESOURCES)):
        part = text.partition(f"<!-- {heading} -->")[2].partition(f"<!-- /{heading} -->")[0]
        assert tuple(re.findall("`([^`]+)`", part)) == starts
