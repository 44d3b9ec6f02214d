"""What reads foreign bytes, as functions that fail where a promise is broken.

Each takes any bytes. A refusal that the caller is told of is an answer; every other exception, and
every broken promise about what was accepted, is a defect.
"""

import contextlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from keda_gpu_scaler import errors, promql, trigger
from keda_gpu_scaler.alerts.notifications import read_notification
from keda_gpu_scaler.promql import Policy, parsing, tree
from keda_gpu_scaler.promql.lexer import tokens
from keda_gpu_scaler.promql.tree import Selector
from keda_gpu_scaler.query import influxql
from keda_gpu_scaler.query.profiles import NAMESPACE_LABELS
from keda_gpu_scaler.settings import load
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources import influxdb
from keda_gpu_scaler.sources.prometheus import client as prometheus
from keda_gpu_scaler.sources.scrape import page_samples
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.transport.http_client import HttpAnswer
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access

_ACCESS = Access({"default": EVERY_NAMESPACE}, own_promql=Policy.NAMESPACED)
_OURS = ScaledObject("team-a", "bert")
_HOSTILE = promql.Values("team-b", '"} or secret{a="', "'\\\"`} or secret{a=~`.*|{workload}")
"""No trigger could have these; what is filled in must not get out of its string all the same."""
_DATE = "Sun, 22 Nov 2026 10:00:00 GMT"


def metadata(data: bytes) -> None:
    """Read a trigger: each line is a key, an equals sign and a value."""
    lines = (line.partition("=") for line in _text(data).split("\n"))
    with contextlib.suppress(errors.SpecError):
        spec = trigger.parse(_OURS, {key: value for key, _, value in lines}, _ACCESS)
        assert math.isfinite(spec.threshold)
        assert spec.threshold > 0


def own_promql(data: bytes) -> None:
    """Confine a tenant's PromQL to its namespace."""
    for read in (_own, _number):
        with contextlib.suppress(ValueError):
            _check_confined(read(_text(data)))


def _own(text: str) -> str:
    return promql.own(text, Policy.NAMESPACED, "team-a", _HOSTILE).text


def _number(text: str) -> str:
    return promql.number(text, Policy.NAMESPACED, "team-a", _HOSTILE)


def _check_confined(sent: str) -> None:
    """Check that every selector of a text that is sent reads the one namespace alone."""
    for node, _ in tree.nodes(parsing.tree_of(tokens(sent))):
        if isinstance(node, Selector):
            for matchers in node.alternatives:
                assert any(
                    (one.sign, one.value) == ("=", "team-a") and one.label in NAMESPACE_LABELS
                    for one in matchers
                ), sent


def own_influxql(data: bytes) -> None:
    """Accept one SELECT that writes nothing."""
    with contextlib.suppress(ValueError):
        sent = influxql.selection(_text(data))
        assert ";" not in sent
        assert sent.strip().lower().startswith("select")


def prometheus_json(data: bytes) -> None:
    """Read an answer of Prometheus in each of the ways in which one is read."""
    answer = HttpAnswer(200, "application/json", data, _DATE)
    for read in (prometheus.parse_matrix, prometheus.parse_vector):
        with contextlib.suppress(errors.SourceError):
            _check_times(read(answer))
    with contextlib.suppress(errors.SourceError):
        assert math.isfinite(prometheus.parse_clock(answer).seconds)
    with contextlib.suppress(errors.SourceError):
        _check_number(prometheus.parse_number(answer))


def influxdb_json(data: bytes) -> None:
    answer = HttpAnswer(200, "application/json", data, _DATE)
    with contextlib.suppress(errors.SourceError):
        for field in influxdb.parse_fields(answer):
            assert all(map(math.isfinite, field.row.times))
    with contextlib.suppress(errors.SourceError):
        _check_number(influxdb.parse_number(answer))


def exposition_text(data: bytes) -> None:
    """Read the page of an exporter, and once more as its next page."""
    with contextlib.suppress(errors.SourceError):
        first = page_samples.parse(data, 0)
        again = page_samples.parse(data, 0, first.series)
        assert again.series == first.series
        assert all(labels.name for labels in first.series)
        assert not any(map(math.isinf, first.values))


def webhook(data: bytes) -> None:
    with contextlib.suppress(ValueError, errors.RequestError):
        read_notification(json.loads(data), None)


def settings_file(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "settings.yaml")
        path.write_bytes(data)
        with contextlib.suppress(errors.SettingsError):
            load({"KEDA_GPU_SCALER_CONFIG": str(path)})


def _check_times(rows: Iterable[Row]) -> None:
    for row in rows:
        assert all(map(math.isfinite, row.times))


def _check_number(number: float | None) -> None:
    assert number is None or 0 <= number < 2.0**53


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        metadata,
        own_promql,
        own_influxql,
        prometheus_json,
        influxdb_json,
        exposition_text,
        webhook,
        settings_file,
    )
}
CORPUS = Path(__file__).parent / "corpus"
"""A folder for each target: inputs that reach far, and those that once broke something."""
