"""The text of exporters: which lines are read, and what makes it unusable."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.simulator import changes, cluster
from keda_gpu_scaler.simulator import exposition as simulated
from keda_gpu_scaler.sources.scrape import exposition
from keda_gpu_scaler.transport.client import Answer

UTIL = "DCGM_FI_DEV_GPU_UTIL"
PAGE = f"""\
# HELP {UTIL} GPU utilization (in %).
# TYPE {UTIL} gauge
{UTIL}{{gpu="0",UUID="GPU-a",namespace="ml",pod="bert-0"}} 87
{UTIL}{{gpu="1",UUID="GPU-b",namespace="",pod=""}} 0
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{gpu="0",UUID="GPU-a",namespace="ml",pod="bert-0"}} 1980
"""


def page(text: str | bytes, status: int = 200) -> Answer:
    return Answer(status, "text/plain", text if isinstance(text, bytes) else text.encode())


def test_the_samples_of_known_metrics_are_read() -> None:
    labels = {"__name__": UTIL, "gpu": "0", "UUID": "GPU-a", "namespace": "ml", "pod": "bert-0"}
    idle = {"__name__": UTIL, "gpu": "1", "UUID": "GPU-b", "namespace": "", "pod": ""}

    assert exposition.samples(page(PAGE)) == [(labels, 87.0), (idle, 0.0)]


@pytest.mark.parametrize("kind", ["gauge", "counter", "untyped"])
def test_a_metric_keeps_its_name_whatever_type_it_claims(kind: str) -> None:
    text = f"# TYPE {UTIL} {kind}\n{UTIL} 1\n"

    assert exposition.samples(page(text)) == [({"__name__": UTIL}, 1.0)]


def test_every_metric_of_the_profiles_is_known() -> None:
    text = "".join(f"{name} 1\n" for name in profiles.KNOWN_METRICS)
    found = [labels["__name__"] for labels, _ in exposition.samples(page(text))]
    assert sorted(found) == sorted(profiles.KNOWN_METRICS)


def test_what_tells_a_busy_gpu_is_known() -> None:
    assert set(profiles.UTILIZATION_METRICS) <= profiles.KNOWN_METRICS


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("NaN", math.nan),
        ("+Inf", math.inf),
        ("-Inf", -math.inf),
        ("9223372036854775794", 9223372036854775794.0),
        ("1.5e+01", 15.0),
    ],
)
def test_every_number_of_the_format_is_read_as_a_float(spelled: str, value: float) -> None:
    ((_, found),) = exposition.samples(page(f"{UTIL} {spelled}\n"))

    assert isinstance(found, float)
    assert found == pytest.approx(value, nan_ok=True)


def test_a_label_may_hold_anything() -> None:
    text = f'{UTIL}{{pod="a\\"b\\\\c\\nd, }}é"}} 1\n'

    assert exposition.samples(page(text)) == [({"__name__": UTIL, "pod": 'a"b\\c\nd, }é'}, 1.0)]


def test_a_page_without_gpus_is_a_good_page() -> None:
    assert exposition.samples(page("# nothing here\n")) == []


@pytest.mark.parametrize("status", [204, 302, 404, 500])
def test_another_status_is_refused_in_the_exporters_words(status: int) -> None:
    with pytest.raises(errors.SourceRefusedError, match=f"HTTP {status}: no GPU to be found"):
        exposition.samples(page("no GPU\nto be found", status))


@given(st.integers(min_value=1, max_value=len(PAGE) - 1))
def test_a_page_cut_anywhere_in_a_line_is_refused_whole(end: int) -> None:
    assume(not PAGE[:end].endswith("\n"))
    with pytest.raises(errors.SourceMalformedError, match="the text is cut"):
        exposition.samples(page(PAGE[:end]))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("<html><body>login</body></html>\n", id="html"),
        pytest.param('{"status":"success"}\n', id="json"),
        pytest.param(f"{UTIL}\n", id="no value"),
        pytest.param(f"{UTIL}{{pod=bert}} 1\n", id="no quotes"),
        pytest.param(f'{UTIL}{{pod="bert" 1\n', id="no end of the labels"),
        pytest.param(f"{UTIL} many\n", id="a value in words"),
        pytest.param(f"{UTIL} {'9' * 400}\n", id="a number beyond a float"),
        pytest.param(b"\xff\xfe\n", id="not UTF-8"),
        pytest.param(f"{UTIL} 1\nOut of memory\n", id="words after a sample"),
    ],
)
def test_what_is_no_exposition_text_is_refused_whole(text: str | bytes) -> None:
    with pytest.raises(errors.SourceMalformedError):
        exposition.samples(page(text))


@given(st.binary(max_size=80) | st.text('{}",= \\\n#DCGM_1', max_size=80).map(str.encode))
def test_any_text_is_samples_or_a_source_error(text: bytes) -> None:
    try:
        found = exposition.samples(page(text + b"\n"))
    except errors.SourceError as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        assert all(isinstance(value, float) for _, value in found)


def test_the_simulators_page_is_read() -> None:
    world = cluster.Cluster()
    wanted = changes.checked(cluster.Wanted(), load=120, replicas=2)
    world.put(cluster.Key("ml", "bert"), wanted, 0)
    found = exposition.samples(page(simulated.whole_page(world, simulated.Style(), 60)))

    busy = [value for labels, value in found if labels["__name__"] == UTIL and labels.get("pod")]
    assert busy == [60.0, 60.0]
