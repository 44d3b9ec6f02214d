"""Environment and file → settings, or one message that names every mistake."""

from pathlib import Path

import pytest

from keda_gpu_scaler import errors, settings
from keda_gpu_scaler.query.influxql import METRIC, Schema
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.settings import (
    InfluxdbSettings,
    LogFormat,
    LogLevel,
    PrometheusSettings,
    ScrapeSettings,
)
from keda_gpu_scaler.spec.demand import Pace

PREFIX = "KEDA_GPU_SCALER_"
URL = "http://prometheus:9090"
WORD = "hunter2"
"""A secret that must not show."""


def load(file: str = "", **variables: str) -> settings.Settings:
    """Load from these variables; `file` is the path of the settings file."""
    environ = {PREFIX + name: value for name, value in variables.items()}
    return settings.load(environ | {PREFIX + "CONFIG": file, "PATH": "/bin"})


def refusal(file: str = "", **variables: str) -> list[str]:
    """Return the mistakes in these settings, one per line."""
    with pytest.raises(errors.SettingsError) as caught:
        load(file, **variables)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    heading, *mistakes = str(caught.value).splitlines()
    plural = "" if len(mistakes) == 1 else "s"
    assert heading == f"{len(mistakes)} mistake{plural} in the process settings:"
    return mistakes


@pytest.fixture
def yaml(tmp_path: Path) -> Path:
    return tmp_path / "settings.yaml"


def test_the_url_of_a_prometheus_is_enough() -> None:
    loaded = load(PROMETHEUS_URL=URL)
    assert loaded.sources == {"default": PrometheusSettings(url=URL)}


def test_the_defaults_are_what_the_documentation_promises() -> None:
    loaded = load(PROMETHEUS_URL=URL)
    assert str(loaded.grpc_address) == ":6000"
    assert str(loaded.http_address) == ":8080"
    assert loaded.config is None
    assert (loaded.log_level, loaded.log_format) == (LogLevel.INFO, LogFormat.AUTO)
    assert loaded.own_promql is Policy.NAMESPACED
    assert loaded.give_up_seconds == 3600
    assert loaded.shutdown_grace_seconds == 20
    assert loaded.connection_max_age_seconds == 600
    assert loaded.max_concurrent_rpcs == 5000
    assert loaded.demand_pace == Pace(interval_seconds=5, queries_per_second=10)


def test_every_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc")
    loaded = load(
        GRPC_ADDRESS="127.0.0.1:0",
        HTTP_ADDRESS="[::1]:81",
        LOG_LEVEL="DEBUG",
        LOG_FORMAT="json",
        OWN_PROMQL="Deny",
        GIVE_UP="2h",
        SHUTDOWN_GRACE="0s",
        CONNECTION_MAX_AGE="5m",
        MAX_CONCURRENT_RPCS="7",
        DEMAND_INTERVAL="1m30s",
        DEMAND_QUERIES_PER_SECOND="3",
        PROMETHEUS_URL=URL,
        PROMETHEUS_STEP="30s",
        PROMETHEUS_TIMEOUT="1500ms",
        PROMETHEUS_MAX_RESPONSE_BYTES="1MiB",
        PROMETHEUS_BEARER_TOKEN_FILE=str(token),
        PROMETHEUS_HEADERS="X-Scope-OrgID=team-a",
    )
    assert loaded.grpc_address == ("127.0.0.1", 0)
    assert loaded.http_address == ("::1", 81)
    assert (loaded.log_level, loaded.log_format) == (LogLevel.DEBUG, LogFormat.JSON)
    assert loaded.own_promql is Policy.DENY
    assert loaded.give_up_seconds == 7200
    assert loaded.shutdown_grace_seconds == 0
    assert loaded.connection_max_age_seconds == 300
    assert loaded.max_concurrent_rpcs == 7
    assert loaded.demand_pace == Pace(interval_seconds=90, queries_per_second=3)
    source = loaded.sources["default"]
    assert isinstance(source, PrometheusSettings)
    assert (source.step_seconds, source.timeout_seconds) == (30, 1.5)
    assert source.max_response_bytes == 2**20
    assert source.bearer_token_file == token
    assert source.headers["X-Scope-OrgID"].get_secret_value() == "team-a"


def test_exporters_can_be_asked_directly() -> None:
    loaded = load(SCRAPE_TARGETS="http://a:9400,dns+http://b:9400", SCRAPE_INTERVAL="10s")
    targets = ("http://a:9400/metrics", "dns+http://b:9400/metrics")
    assert loaded.sources == {"default": ScrapeSettings(targets=targets, interval_seconds=10)}


def test_an_influxdb_can_be_asked() -> None:
    loaded = load(
        INFLUXDB_URL="http://influxdb:8086/",
        INFLUXDB_DATABASE="telegraf",
        INFLUXDB_RETENTION_POLICY="a week",
        INFLUXDB_FIELD="{metric}",
        INFLUXDB_MEASUREMENT="prometheus",
        INFLUXDB_NAMESPACE_TAG="kube_namespace",
        INFLUXDB_NAMESPACES="ml",
        INFLUXDB_USERNAME="scaler",
        INFLUXDB_PASSWORD=WORD,
        INFLUXDB_STEP="10s",
        INFLUXDB_DELAY="0s",
    )
    source = loaded.sources["default"]
    assert isinstance(source, InfluxdbSettings)
    assert (source.url, source.database) == ("http://influxdb:8086", "telegraf")
    assert source.retention_policy == "a week"
    assert (source.step_seconds, source.delay_seconds) == (10, 0)
    assert source.layout == Schema("prometheus", METRIC, "kube_namespace")
    assert loaded.access.source_names("ml") == {"default"}
    assert loaded.access.source_names("lab") == frozenset()
    assert loaded.access.influxql_sources == {"default"}
    assert not loaded.access.direct_sources
    assert WORD not in repr(loaded)


def test_this_process_own_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "PROMETHEUS_URL", URL)
    assert settings.load().sources == {"default": PrometheusSettings(url=URL)}


def test_an_empty_value_counts_as_not_set() -> None:
    loaded = load(PROMETHEUS_URL=URL, PROMETHEUS_STEP="", SCRAPE_TARGETS=" ")
    assert loaded.sources == {"default": PrometheusSettings(url=URL)}


def test_a_secret_with_a_line_break_at_its_end_is_taken_without_it() -> None:
    source = load(PROMETHEUS_URL=URL, PROMETHEUS_BEARER_TOKEN=f"{WORD}\n").sources["default"]
    assert isinstance(source, PrometheusSettings)
    assert source.bearer_token is not None
    assert source.bearer_token.get_secret_value() == WORD


def test_without_a_source_it_is_said_how_to_give_one() -> None:
    (mistake,) = refusal()
    assert mistake.startswith(
        "- sources; expected at least one: set KEDA_GPU_SCALER_PROMETHEUS_URL"
    )
    assert "KEDA_GPU_SCALER_SCRAPE_TARGETS" in mistake
    assert "KEDA_GPU_SCALER_INFLUXDB_URL" in mistake
    assert "KEDA_GPU_SCALER_CONFIG" in mistake


def test_all_mistakes_are_named_as_they_were_written_with_value_and_expectation() -> None:
    assert refusal(
        PROMETHEUS_URL="prometheus:9090",
        PROMETHEUS_STEP="15",
        GRPC_ADDRESS="6000",
        LOG_LEVEL="loud",
        MAX_CONCURRENT_RPCS="0",
        DEMAND_INTERVAL="999ms",
        DEMAND_QUERIES_PER_SECOND="0.5",
    ) == [
        (
            '- KEDA_GPU_SCALER_GRPC_ADDRESS: "6000"; '
            "expected an address such as :6000, 127.0.0.1:6000 or [::1]:6000"
        ),
        "- KEDA_GPU_SCALER_LOG_LEVEL: \"loud\"; expected 'debug', 'info', 'warning' or 'error'",
        '- KEDA_GPU_SCALER_MAX_CONCURRENT_RPCS: "0"; expected a whole number of at least 1',
        '- KEDA_GPU_SCALER_DEMAND_INTERVAL: "999ms"; expected a duration of at least 1s',
        '- KEDA_GPU_SCALER_DEMAND_QUERIES_PER_SECOND: "0.5"; expected a whole number of at least 1',
        (
            '- KEDA_GPU_SCALER_PROMETHEUS_URL: "prometheus:9090"; '
            "expected a URL such as http://prometheus:9090"
        ),
        (
            '- KEDA_GPU_SCALER_PROMETHEUS_STEP: "15"; expected a duration such as 30s, 2m or 1h30m '
            "(a number needs a unit: s, m or h)"
        ),
    ]


def test_an_unknown_variable_is_refused_with_the_nearest_known_one() -> None:
    assert refusal(PROMETHEUS_URL=URL, PROMETHEUS_PASWORD=WORD, Give_Up="1h", XYZ="1") == [
        "- KEDA_GPU_SCALER_Give_Up: unknown setting; did you mean KEDA_GPU_SCALER_GIVE_UP?",
        (
            "- KEDA_GPU_SCALER_PROMETHEUS_PASWORD: unknown setting; "
            "did you mean KEDA_GPU_SCALER_PROMETHEUS_PASSWORD?"
        ),
        "- KEDA_GPU_SCALER_XYZ: unknown setting; expected a setting that exists",
    ]


@pytest.mark.parametrize("name", ["PROMETHEUS_STEP_SECONDS", "SCRAPE", "SOURCES", "SOURCES_EU"])
def test_the_names_of_fields_in_the_code_are_no_settings(name: str) -> None:
    (mistake,) = refusal(PROMETHEUS_URL=URL, **{name: "{}"})
    assert mistake.startswith(f"- KEDA_GPU_SCALER_{name}: unknown setting")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVICE_HOST", "10.0.0.1"),
        ("SERVICE_PORT", "6000"),
        ("SERVICE_PORT_GRPC", "6000"),
        ("PORT", "tcp://10.0.0.1:6000"),
        ("PORT_6000_TCP", "tcp://10.0.0.1:6000"),
        ("PORT_6000_TCP_ADDR", "10.0.0.1"),
        ("METRICS_SERVICE_HOST", "fd00::1"),
        ("METRICS_PORT", "tcp://[fd00::1]:8080"),
        ("PROMETHEUS_SERVICE_PORT_HTTP", "8080"),
        ("METRICS_PORT_8080_TCP_PROTO", "tcp"),
        ("METRICS_PORT_8080_TCP_PORT", "8080"),
    ],
)
def test_what_kubernetes_says_of_services_is_no_setting(name: str, value: str) -> None:
    assert load(PROMETHEUS_URL=URL, **{name: value}) == load(PROMETHEUS_URL=URL)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("PORT", "6001", "did you mean KEDA_GPU_SCALER_GRPC_ADDRESS?"),
        ("GRPC_PORT", "6001", "did you mean KEDA_GPU_SCALER_GRPC_ADDRESS?"),
        ("METRICS_PORT", "http://scaler:8080", "did you mean KEDA_GPU_SCALER_HTTP_ADDRESS?"),
        ("METRICS_PORT_8080_TCP", "8080", "expected a setting that exists"),
        ("METRICS_SERVICE_PORT", ":8080", "expected a setting that exists"),
    ],
)
def test_a_port_that_is_no_link_of_a_service_is_an_unknown_setting(
    name: str, value: str, hint: str
) -> None:
    assert refusal(PROMETHEUS_URL=URL, **{name: value}) == [
        f"- KEDA_GPU_SCALER_{name}: unknown setting; {hint}"
    ]


def test_settings_without_the_one_they_belong_to_are_refused() -> None:
    assert refusal(PROMETHEUS_STEP="15s") == [
        "- KEDA_GPU_SCALER_PROMETHEUS_URL: not set; expected a value"
    ]
    assert refusal(SCRAPE_INTERVAL="15s") == [
        "- KEDA_GPU_SCALER_SCRAPE_TARGETS: not set; expected a value"
    ]
    assert refusal(INFLUXDB_URL="http://influxdb:8086") == [
        "- KEDA_GPU_SCALER_INFLUXDB_DATABASE: not set; expected a value"
    ]


def test_settings_that_do_not_go_together_are_all_named() -> None:
    assert refusal(PROMETHEUS_URL=URL, PROMETHEUS_BEARER_TOKEN=WORD, PROMETHEUS_USERNAME="me") == [
        (
            "- KEDA_GPU_SCALER_PROMETHEUS_BEARER_TOKEN, KEDA_GPU_SCALER_PROMETHEUS_USERNAME; "
            "expected only one of them"
        )
    ]
    assert refusal(PROMETHEUS_URL=URL, PROMETHEUS_USERNAME="a:b", PROMETHEUS_PASSWORD=WORD) == [
        (
            '- KEDA_GPU_SCALER_PROMETHEUS_USERNAME: "a:b"; '
            "expected a user without a colon, as basic authentication wants it"
        )
    ]


def test_two_kinds_of_default_source_are_refused() -> None:
    assert refusal(PROMETHEUS_URL=URL, SCRAPE_TARGETS="http://a") == [
        (
            "- KEDA_GPU_SCALER_PROMETHEUS_URL, KEDA_GPU_SCALER_SCRAPE_TARGETS; "
            "expected only one of them to say what `default` is"
        )
    ]


def test_the_name_of_a_metric_has_one_place() -> None:
    given = {"INFLUXDB_URL": "http://influxdb:8086", "INFLUXDB_DATABASE": "telegraf"}
    assert refusal(**given, INFLUXDB_FIELD="{metric}") == [
        (
            "- KEDA_GPU_SCALER_INFLUXDB_MEASUREMENT, KEDA_GPU_SCALER_INFLUXDB_FIELD; "
            "expected {metric} in one of them at most"
        )
    ]
    assert refusal(**given, INFLUXDB_FIELD="a\nb") == [
        '- KEDA_GPU_SCALER_INFLUXDB_FIELD: "a\\nb"; expected a name of visible characters'
    ]


def test_no_secret_is_shown_with_a_mistake() -> None:
    shown = "\n".join(
        refusal(
            PROMETHEUS_URL=f"http://me:{WORD}@prometheus",
            PROMETHEUS_BEARER_TOKEN=f"{WORD} with a space",
            PROMETHEUS_HEADERS=f"Authorization: {WORD}",
            PROMETHEUS_PASWORD=WORD,
        )
    )
    assert WORD not in shown
    assert 'KEDA_GPU_SCALER_PROMETHEUS_URL: "http://***@prometheus"' in shown
    assert "KEDA_GPU_SCALER_PROMETHEUS_BEARER_TOKEN: a value that is not shown" in shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("SCRAPE_TARGETS", "http://a/m?token={}#x", "http://a/m?***"),
        ("SCRAPE_TARGETS", "http://a/m,a:9400/m?token={}", "http://a/m,a:9400/m?***"),
        ("PROMETHEUS_URL", "http://a?token={}", "http://a?***"),
        ("WEBHOOK_PEERS", "http://a?token={}", "http://a?***"),
    ],
)
def test_the_query_of_a_url_is_not_shown_with_a_mistake(name: str, value: str, shown: str) -> None:
    (mistake,) = refusal(**{"PROMETHEUS_URL": URL, name: value.format(WORD)})

    assert mistake.startswith(f'- KEDA_GPU_SCALER_{name}: "{shown}"; expected ')
    assert WORD not in mistake


def test_a_long_value_is_cut() -> None:
    (mistake,) = refusal(PROMETHEUS_URL=URL, GIVE_UP="x" * 1000)
    assert len(mistake) < 250
    assert "x..." in mistake


def test_the_file_names_several_sources(yaml: Path) -> None:
    yaml.write_text(
        """
        give_up: 2h
        sources:
          eu:
            type: prometheus
            url: https://eu.example
            step: 30s
            headers: {X-Scope-OrgID: "7"}
          edge:
            type: scrape
            targets: [http://a:9400, http://b:9400/gpu]
        """
    )
    loaded = load(str(yaml))
    assert loaded.config == yaml
    assert loaded.give_up_seconds == 7200
    eu, edge = loaded.sources["eu"], loaded.sources["edge"]
    assert isinstance(eu, PrometheusSettings)
    assert (eu.url, eu.step_seconds) == ("https://eu.example", 30)
    assert eu.headers["X-Scope-OrgID"].get_secret_value() == "7"
    assert edge == ScrapeSettings(targets=("http://a:9400/metrics", "http://b:9400/gpu"))


def test_the_environment_wins_over_the_file_setting_by_setting(yaml: Path) -> None:
    yaml.write_text(f"prometheus_url: {URL}\nprometheus_step: 30s\ngive_up: 2h\n")
    loaded = load(str(yaml), PROMETHEUS_STEP="1m")
    assert loaded.sources == {"default": PrometheusSettings(url=URL, step_seconds=60)}
    assert loaded.give_up_seconds == 7200


def test_a_source_of_the_environment_stands_beside_those_of_the_file(yaml: Path) -> None:
    yaml.write_text("sources: {edge: {type: scrape, targets: http://a}}")
    assert set(load(str(yaml), PROMETHEUS_URL=URL).sources) == {"default", "edge"}


def test_a_default_source_in_both_places_is_refused(yaml: Path) -> None:
    yaml.write_text("sources: {default: {type: scrape, targets: http://a}}")
    assert refusal(str(yaml), PROMETHEUS_URL=URL) == [
        (
            f"- KEDA_GPU_SCALER_PROMETHEUS_URL, sources.default in {yaml}; "
            "expected only one of them to say what `default` is"
        )
    ]


def test_mistakes_in_the_file_are_named_by_their_place(yaml: Path) -> None:
    yaml.write_text(
        """
        giveup: 1h
        config: other.yaml
        prometheus_url: http://me:hunter2@a
        prometheus_step: 15
        sources:
          eu: {type: prometheus, url: 5, pasword: hunter2}
          EU: {type: scrape, targets: http://a}
          us: {type: influx}
          jp: {url: http://a}
          cn: {type: scrape, interval: [5s]}
        """
    )
    assert refusal(str(yaml)) == [
        (
            f'- prometheus_url in {yaml}: "http://***@a"; expected a URL such as '
            "http://prometheus:9090, without a user or password: those have settings of their own "
            "(username and password, bearer_token or bearer_token_file, headers)"
        ),
        (
            f'- prometheus_step in {yaml}: "15"; expected a duration such as 30s, 2m or 1h30m '
            "(a number needs a unit: s, m or h)"
        ),
        f'- sources.eu.url in {yaml}: "5"; expected a URL such as http://prometheus:9090',
        f"- sources.eu.pasword in {yaml}: unknown setting; did you mean password?",
        (
            f'- sources.EU in {yaml}: "EU"; expected a source name of lower-case letters, digits '
            "and inner dashes, 63 at most"
        ),
        f'- sources.us.type in {yaml}: "influx"; expected prometheus or scrape or influxdb',
        f"- sources.jp.type in {yaml}; expected prometheus or scrape or influxdb",
        f"- sources.cn.targets in {yaml}: not set; expected a value",
        (
            f"- sources.cn.interval in {yaml}: \"['5s']\"; "
            "expected a duration such as 30s, 2m or 1h30m"
        ),
        f"- giveup in {yaml}: unknown setting; did you mean give_up?",
        f"- config in {yaml}: unknown setting; expected a setting that exists",
    ]


def test_the_names_of_fields_and_models_in_the_code_are_no_settings_of_the_file(
    yaml: Path,
) -> None:
    yaml.write_text(
        f"""
        give_up_seconds: 2h
        Give_Up: 2h
        scrape: {{targets: http://a}}
        sources: {{eu: {{type: prometheus, url: '{URL}', step_seconds: 9s}}}}
        """
    )
    assert refusal(str(yaml)) == [
        f"- sources.eu.step_seconds in {yaml}: unknown setting; expected a setting that exists",
        f"- give_up_seconds in {yaml}: unknown setting; did you mean give_up?",
        f"- Give_Up in {yaml}: unknown setting; did you mean give_up?",
        f"- scrape in {yaml}: unknown setting; did you mean scrape_timeout?",
    ]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        pytest.param(f"sources: [{WORD}]", "sources", id="sources"),
        pytest.param(f"sources: {{a: {WORD}}}", "sources.a", id="source"),
        pytest.param(f"sources: {{a: [{WORD}]}}", "sources.a", id="list"),
    ],
)
def test_sources_of_another_shape_are_refused_and_not_shown(
    yaml: Path, content: str, place: str
) -> None:
    yaml.write_text(content)
    assert refusal(str(yaml), PROMETHEUS_URL=URL) == [
        f"- {place} in {yaml}; expected a mapping of names to values"
    ]


def test_what_stands_where_a_text_should_is_not_shown(yaml: Path) -> None:
    yaml.write_text(f"scrape_targets: [{{url: http://a, password: {WORD}}}]\nlog_level: {{a: 1}}")
    assert refusal(str(yaml)) == [
        f"- log_level in {yaml}; expected 'debug', 'info', 'warning' or 'error'",
        (
            f"- scrape_targets in {yaml}; expected targets such as http://10.0.0.1:9400/metrics "
            "(one exporter) or dns+http://dcgm-exporter.gpu:9400/metrics (every address of the "
            "name)"
        ),
    ]


def test_settings_made_by_hand_do_not_look_at_the_environment(
    yaml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + "GIVE_UP", "3h")
    yaml.write_text("shutdown_grace: 7s")
    made = settings.Settings(config=yaml, sources={"default": PrometheusSettings(url=URL)})
    assert (made.give_up_seconds, made.shutdown_grace_seconds) == (3600, 7)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("a: [1", "YAML; line 1 is not: ", id="not YAML"),
        pytest.param("password: hunter2\n\tx: 1", "YAML; line 2 is not: ", id="tab"),
        pytest.param("\x00", "YAML without control characters", id="control characters"),
        pytest.param("- a", "a YAML mapping of names to values", id="list"),
    ],
)
def test_a_file_of_another_shape_is_refused(yaml: Path, content: str, expected: str) -> None:
    yaml.write_text(content)
    (mistake,) = refusal(str(yaml), PROMETHEUS_URL=URL)
    assert mistake.startswith(f'- KEDA_GPU_SCALER_CONFIG: "{yaml}"; expected {expected}')
    assert WORD not in mistake


def test_a_file_that_cannot_be_read_is_refused(yaml: Path) -> None:
    (mistake,) = refusal(str(yaml), PROMETHEUS_URL=URL)
    assert mistake.endswith("a YAML file that this process can read (No such file or directory)")
    yaml.write_bytes(b"\xff")
    (mistake,) = refusal(str(yaml), PROMETHEUS_URL=URL)
    assert mistake.endswith("expected YAML text in UTF-8")


@pytest.mark.parametrize("content", ["", "sources:", "give_up:\nsources: {default: }"])
def test_an_empty_file_says_nothing(yaml: Path, content: str) -> None:
    yaml.write_text(content)
    assert load(str(yaml), PROMETHEUS_URL=URL).sources == {"default": PrometheusSettings(url=URL)}


def test_a_value_left_empty_in_the_file_is_not_set(yaml: Path) -> None:
    yaml.write_text(f"sources: {{eu: {{type: prometheus, url: '{URL}', step: , username: ''}}}}")
    assert load(str(yaml)).sources == {"eu": PrometheusSettings(url=URL)}


def test_it_is_said_who_may_use_a_source_and_measure_whose_pods() -> None:
    loaded = settings.load(
        {
            "KEDA_GPU_SCALER_PROMETHEUS_URL": "http://prometheus:9090",
            "KEDA_GPU_SCALER_PROMETHEUS_NAMESPACES": "ml,web",
            "KEDA_GPU_SCALER_OTHER_NAMESPACES": "shared",
        }
    )
    assert loaded.access.source_names("ml") == {"default"}
    assert loaded.access.source_names("batch") == frozenset()
    assert "shared" in loaded.access.others
    assert "ml" not in loaded.access.others


def test_by_default_everybody_uses_every_source_and_measures_his_own_pods() -> None:
    loaded = settings.load({"KEDA_GPU_SCALER_SCRAPE_TARGETS": "http://a:9400/metrics"})
    assert loaded.access.source_names("anybody") == {"default"}
    assert "anybody" not in loaded.access.others


def test_claims_that_are_for_no_gpu_are_named(yaml: Path) -> None:
    written = {"KEDA_GPU_SCALER_PROMETHEUS_URL": URL}
    assert settings.load(written).claims_without_gpus == frozenset()
    named = {**written, "KEDA_GPU_SCALER_CLAIMS_WITHOUT_GPUS": "nic, rdma.example.com"}
    assert settings.load(named).claims_without_gpus == {"nic", "rdma.example.com"}
    assert settings.load(named).model_dump()["claims_without_gpus"] == "nic,rdma.example.com"
    yaml.write_text("claims_without_gpus: [nic, rdma.example.com]")
    assert load(str(yaml), PROMETHEUS_URL=URL).claims_without_gpus == {
        "nic",
        "rdma.example.com",
    }
    wrong = {**written, "KEDA_GPU_SCALER_CLAIMS_WITHOUT_GPUS": "Nic*"}
    with pytest.raises(errors.SettingsError, match="names of objects such as nic,"):
        settings.load(wrong)
