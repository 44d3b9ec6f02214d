"""InfluxQL: no text breaks out of its quotes, and of users' queries only reads are sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.query import influxql
from keda_gpu_scaler.query.influxql import LONGEST_CHARACTERS, METRIC, Schema, Span
from tests.query.test_promql_texts import HOSTILE

SPAN = Span(1_700_000_000_000, 1_700_000_300_000)
METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
MEAN = 'SELECT mean("gauge") FROM "DCGM_FI_DEV_GPU_UTIL" WHERE time > now() - 1m'
SPEAKABLE = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


def scanned(shown: str) -> tuple[str, str]:
    """Read a literal as InfluxDB's scanner does; return what it stands for, and what follows."""
    ending, found = shown[0], ""
    characters = iter(range(1, len(shown)))
    for position in characters:
        char = shown[position]
        if char == ending:
            return found, shown[position + 1 :]
        assert char != "\n", "a bad string"
        if char == "\\":
            char = {"n": "\n", "\\": "\\", '"': '"', "'": "'"}[shown[next(characters)]]
        found += char
    raise AssertionError("a string without an end")


@given(SPEAKABLE | st.sampled_from(HOSTILE), st.text(max_size=5))
def test_what_is_quoted_stays_in_its_quotes_and_is_what_it_was(given: str, after: str) -> None:
    assert scanned(influxql.quoted_string(given) + after) == (given, after)
    assert scanned(influxql.quoted_name(given) + after) == (given, after)


@pytest.mark.parametrize("given", ["a\rb", "a\0b"])
def test_what_influxql_cannot_say_is_not_said(given: str) -> None:
    assert not influxql.is_speakable(given)
    for quote in (influxql.quoted_string, influxql.quoted_name):
        with pytest.raises(ValueError, match="without carriage returns and NUL"):
            quote(given)


def test_a_question_about_points_names_metrics_namespaces_and_times() -> None:
    asked = influxql.points_text(Schema(), METRICS, SPAN, {"ml", "lab"})

    assert asked == (
        'SELECT "gauge" FROM "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE" '
        "WHERE time > 1700000000000ms AND time <= 1700000300000ms "
        "AND \"pod\" != '' AND (\"namespace\" = 'lab' OR \"namespace\" = 'ml') GROUP BY *"
    )


def test_a_question_about_a_database_quotes_its_name() -> None:
    assert influxql.policies('a"b') == 'SHOW RETENTION POLICIES ON "a\\"b"'


@pytest.mark.parametrize(
    ("schema", "metric"),
    [
        (Schema(), "gpu_load"),
        (Schema(measurement="telegraf", field=METRIC), "gauge"),
        (Schema(measurement="telegraf", field="gauge"), influxql.UTILIZATION),
    ],
    ids=["measurement", "field", "neither names it"],
)
def test_a_metric_is_named_by_what_the_schema_says(schema: Schema, metric: str) -> None:
    assert schema.metric("gpu_load", "gauge") == metric


@pytest.mark.parametrize(("tag", "is_unique"), [("UUID", True), ("gpu", False)])
def test_a_gpu_is_known_by_its_uuid_alone(tag: str, *, is_unique: bool) -> None:
    assert Schema(gpu_tag=tag).knows_uuids == is_unique


def test_a_question_about_the_last_hour_asks_for_one_point_each_step() -> None:
    schema = Schema("prometheus", METRIC, "ns", "Pod", "gpu")
    asked = influxql.points_text(schema, METRICS, SPAN._replace(each_ms=120_000), {"ml"})

    assert asked == (
        'SELECT last("DCGM_FI_DEV_GPU_UTIL") AS "DCGM_FI_DEV_GPU_UTIL", '
        'last("DCGM_FI_PROF_GR_ENGINE_ACTIVE") AS "DCGM_FI_PROF_GR_ENGINE_ACTIVE" '
        'FROM "prometheus" WHERE time > 1700000000000ms AND time <= 1700000300000ms '
        "AND \"Pod\" != '' AND (\"ns\" = 'ml') GROUP BY time(120000ms), * fill(none)"
    )


def test_a_question_about_gpus_asks_nothing_of_pods() -> None:
    asked = influxql.points_text(
        Schema(field="value"), METRICS[:1], SPAN, {"GPU-1"}, names_gpus=True
    )

    assert asked == (
        'SELECT "value" FROM "DCGM_FI_DEV_GPU_UTIL" WHERE time > 1700000000000ms '
        "AND time <= 1700000300000ms AND (\"UUID\" = 'GPU-1') GROUP BY *"
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(MEAN, id="the mean of a cluster"),
        pytest.param(MEAN.lower(), id="lower case"),
        pytest.param(f" \t\n{MEAN}\n", id="space around it"),
        pytest.param(f"{MEAN} GROUP BY time(15s) fill(none)", id="grouped by time"),
        pytest.param(
            'SELECT mean("value") FROM "gpu" WHERE "pod" =~ /^it\'s/ AND time > NOW () - 1m',
            id="a regex with a quote",
        ),
        pytest.param(
            'SELECT last("into_the_queue") FROM "q" WHERE time > now() - 1m', id="into in a name"
        ),
    ],
)
def test_a_selection_about_now_is_sent_as_it_is(given: str) -> None:
    assert influxql.selection(given) == given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("DROP MEASUREMENT x", "begins with SELECT", id="drop"),
        pytest.param("SHOW DATABASES", "begins with SELECT", id="show"),
        pytest.param("SELECTED", "begins with SELECT", id="no word"),
        pytest.param("", "begins with SELECT", id="empty"),
        pytest.param(f"-- a comment\n{MEAN}", "begins with SELECT", id="comment"),
        pytest.param(f"{MEAN}; DROP DATABASE x", "a single statement", id="two"),
        pytest.param(
            f"{MEAN} AND a =~ /'/; DROP DATABASE x --'", "a single statement", id="two in disguise"
        ),
        pytest.param(MEAN.replace("FROM", 'INTO "y" FROM'), "writes nothing", id="into"),
        pytest.param(MEAN.replace("FROM", 'iNtO"y" FROM'), "writes nothing", id="mixed case"),
        pytest.param(MEAN.replace(" FROM", 'πINTO "y" FROM'), "writes nothing", id="after a token"),
        pytest.param(MEAN.replace(" FROM", '/**/INTO "y" FROM'), "writes nothing", id="comments"),
        pytest.param(MEAN.replace(" FROM", '*1.0into "y" FROM'), "writes nothing", id="a number"),
        pytest.param(MEAN.replace(" FROM", '*.5INTO "y" FROM'), "writes nothing", id="a fraction"),
        pytest.param(MEAN.partition(" WHERE")[0], "a time range such as", id="no time"),
        pytest.param(f"{MEAN}\0", "without control characters", id="NUL"),
        pytest.param(f"{MEAN}\r", "without control characters", id="carriage return"),
        pytest.param(
            f"{MEAN}{' ' * LONGEST_CHARACTERS}", f"at most {LONGEST_CHARACTERS}", id="long"
        ),
    ],
)
def test_what_does_not_plainly_read_is_refused(given: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        influxql.selection(given)
