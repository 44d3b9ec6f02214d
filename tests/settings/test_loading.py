"""Environment and file → settings, or one message that names every mistake."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from keda_gpu_scaler import errors, settings
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.query.influxql import METRIC, Schema
from keda_gpu_scaler.settings import (
    InfluxdbSettings,
    LogLevel,
    PrometheusSettings,
    ScrapeSettings,
    Settings,
)
from keda_gpu_scaler.settings.loading import fields
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec.spec import Pace
from testbed import setting_rows

PREFIX = "KEDA_GPU_SCALER_"
URL = "http://prometheus:9090"
WORD = "hunter2"
"""A secret that must not show."""
A_DURATION = "expected a duration such as 30s, 2m or 1h30m"
NO_VISIBLE = "a value that is not shown; expected a token of visible ASCII characters"
ALONE = "expected webhook_token or webhook_token_file with it"
A_KIND = "expected a mapping with the type prometheus or scrape or influxdb"
A_TARGET = (
    "expected targets such as http://10.0.0.1:9400/metrics (one exporter) or "
    "dns+http://dcgm-exporter.gpu:9400/metrics (every address of the name)"
)


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


def test_settings_come_from_the_environment() -> None:
    """Their defaults are those of the documentation, in `tests/repository/test_docs.py`."""
    loaded = load(
        LOG_LEVEL="DEBUG",
        OWN_PROMQL="Deny",
        KUBERNETES="true",
        SHUTDOWN_GRACE="0s",
        DEMAND_INTERVAL="1m30s",
        PROMETHEUS_URL=URL,
        PROMETHEUS_MAX_RESPONSE_BYTES="1MiB",
        PROMETHEUS_BEARER_TOKEN=f"{WORD}\n",
        PROMETHEUS_NAMESPACES="ml,web",
        OTHER_NAMESPACES="shared",
    )
    assert (loaded.log_level, loaded.access.own_promql) == (LogLevel.DEBUG, Policy.DENY)
    assert (loaded.kubernetes, loaded.shutdown_grace_seconds) == (True, 0)
    assert loaded.demand_pace == Pace(interval_seconds=90, queries_per_second=10)
    token = SecretStr(WORD)
    assert loaded.sources["default"] == PrometheusSettings.model_validate(
        {"url": URL, "max_response_bytes": 2**20, "bearer_token": token, "namespaces": "ml,web"}
    )
    assert WORD not in f"{loaded!r} {loaded.model_dump_json()}"
    names = {name: loaded.access.source_names(name) for name in ("ml", "batch")}
    assert names == {"ml": {"default"}, "batch": frozenset()}
    assert [name in loaded.access.others for name in ("shared", "ml")] == [True, False]


def test_an_influxdb_can_be_asked() -> None:
    layout = {"FIELD": "{metric}", "MEASUREMENT": "prometheus", "NAMESPACE_TAG": "kube_namespace"}
    given = {"URL": "http://influxdb:8086/", "DATABASE": "telegraf", "DELAY": "0s", **layout}
    loaded = load(**{f"INFLUXDB_{name}": text for name, text in given.items()})
    source = loaded.sources["default"]
    assert isinstance(source, InfluxdbSettings)
    assert (source.url, source.delay_seconds) == ("http://influxdb:8086", 0)
    assert source.layout == Schema("prometheus", METRIC, "kube_namespace")
    assert loaded.access.influxql_sources == {"default"}
    assert not loaded.access.direct_sources


def test_an_empty_value_counts_as_not_set_and_one_source_has_to_be() -> None:
    loaded = load(PROMETHEUS_URL=URL, PROMETHEUS_STEP="", SCRAPE_TARGETS=" ")
    assert loaded.sources == {"default": PrometheusSettings(url=URL)}


INFLUXDB = {"INFLUXDB_URL": "http://influxdb:8086", "INFLUXDB_DATABASE": "telegraf"}
PROMETHEUS = {"PROMETHEUS_URL": URL}


@pytest.mark.parametrize(
    ("given", "mistakes"),
    [
        (
            {
                "PROMETHEUS_URL": "prometheus:9090",
                "PROMETHEUS_STEP": "15",
                "GRPC_ADDRESS": "6000",
                "LOG_LEVEL": "loud",
                "KUBERNETES": "perhaps",
                "MAX_CONCURRENT_RPCS": "0",
            },
            [
                (
                    'GRPC_ADDRESS: "6000"; '
                    "expected an address such as :6000, 127.0.0.1:6000 or [::1]:6000"
                ),
                "LOG_LEVEL: \"loud\"; expected 'debug', 'info', 'warning' or 'error'",
                'KUBERNETES: "perhaps"; expected a valid boolean, unable to interpret input',
                'MAX_CONCURRENT_RPCS: "0"; expected greater than or equal to 1',
                'PROMETHEUS_URL: "prometheus:9090"; expected a URL such as http://prometheus:9090',
                f'PROMETHEUS_STEP: "15"; {A_DURATION} (a number needs a unit: s, m or h)',
            ],
        ),
        ({"PROMETHEUS_STEP": "15s"}, ["PROMETHEUS_URL; it has to be set"]),
        ({"SCRAPE_INTERVAL": "15s"}, ["SCRAPE_TARGETS; it has to be set"]),
        ({"INFLUXDB_URL": "http://influxdb:8086"}, ["INFLUXDB_DATABASE; it has to be set"]),
        (
            PROMETHEUS | {"PROMETHEUS_BEARER_TOKEN": WORD, "PROMETHEUS_USERNAME": "me"},
            ['PROMETHEUS_USERNAME: "me"; expected no bearer_token beside it'],
        ),
        (
            INFLUXDB | {"INFLUXDB_FIELD": "{metric}"},
            ['INFLUXDB_FIELD: "{metric}"; expected {metric} in measurement or field, not in both'],
        ),
        (
            PROMETHEUS | {"PROMETHEUS_PASWORD": WORD, "webhooklifetime": "1h", "XYZ": "1"},
            [
                (
                    "PROMETHEUS_PASWORD: unknown setting; "
                    "did you mean KEDA_GPU_SCALER_PROMETHEUS_PASSWORD?"
                ),
                "XYZ: unknown setting",
                "webhooklifetime: unknown setting; did you mean KEDA_GPU_SCALER_WEBHOOK_LIFETIME?",
            ],
        ),
        (
            PROMETHEUS | {"PROMETHEUS_STEP_SECONDS": "9"},
            [
                (
                    "PROMETHEUS_STEP_SECONDS: unknown setting; "
                    "did you mean KEDA_GPU_SCALER_PROMETHEUS_STEP?"
                )
            ],
        ),
        *(
            (PROMETHEUS | {name: "{}"}, [f"{name}: unknown setting"])
            for name in ("SCRAPE", "SOURCES", "SOURCES_EU")
        ),
        (
            {"PROMETHEUS_URL": f"http://me:{WORD}@prometheus"},
            [
                (
                    'PROMETHEUS_URL: "http://***@prometheus"; expected a URL such as '
                    "http://prometheus:9090, without a user or password: those have separate "
                    "settings (username and password, bearer_token or bearer_token_file, headers)"
                )
            ],
        ),
        (
            PROMETHEUS | {"PROMETHEUS_HEADERS": f"Authorization: {WORD}"},
            [
                (
                    "PROMETHEUS_HEADERS: a value that is not shown; "
                    'expected name=value,name=value or {"name": "value"}'
                )
            ],
        ),
        (
            {"SCRAPE_TARGETS": f"http://b,a:9400/m?token={WORD}"},
            [f'SCRAPE_TARGETS: "a:9400/m?***"; {A_TARGET}'],
        ),
        (
            {"PROMETHEUS_URL": f"http://a?token={WORD}\n{WORD}"},
            ['PROMETHEUS_URL: "http://a?***"; expected a URL such as http://prometheus:9090'],
        ),
        (
            PROMETHEUS | {"WEBHOOK_TOKEN": f"{WORD} and more", "WEBHOOK_LIFETIME": "1s"},
            [
                f"WEBHOOK_TOKEN: {NO_VISIBLE}",
                'WEBHOOK_LIFETIME: "1s"; expected a duration of at least 1m',
            ],
        ),
        (
            PROMETHEUS | {"WEBHOOK_PEERS": "http://a:8080"},
            [f'WEBHOOK_PEERS: "http://a:8080"; {ALONE}'],
        ),
        (
            PROMETHEUS | {"WEBHOOK_LIFETIME": "x" * 1000},
            [f'WEBHOOK_LIFETIME: "{"x" * 100}..."; {A_DURATION}'],
        ),
    ],
)
def test_a_mistake_has_its_name_as_written_its_value_and_what_was_expected(
    given: dict[str, str], mistakes: list[str]
) -> None:
    shown = refusal(**given)
    assert shown == [f"- {PREFIX}{mistake}" for mistake in mistakes]
    assert WORD not in "".join(shown)


def test_two_definitions_of_the_default_source_are_refused(yaml: Path) -> None:
    expected = "expected one definition of `default`, and not"
    assert refusal(PROMETHEUS_URL=URL, SCRAPE_TARGETS="http://a") == [
        f"- sources; {expected} prometheus_… and scrape_…"
    ]
    yaml.write_text("sources: {default: {type: scrape, targets: http://a}}")
    assert refusal(str(yaml), PROMETHEUS_URL=URL) == [
        f"- sources in {yaml}; {expected} prometheus_… and sources.default"
    ]


SERVICES = {
    "SERVICE_HOST": "10.0.0.1",
    "SERVICE_PORT": "6000",
    "PORT": "tcp://10.0.0.1:6000",
    "PORT_6000_TCP": "tcp://10.0.0.1:6000",
    "PROMETHEUS_SERVICE_PORT_HTTP": "8080",
    "METRICS_PORT_8080_TCP_PORT": "8080",
}
"""What Kubernetes says of Services of this name."""
NO_LINKS = {"PORT": "6001", "METRICS_PORT": "http://scaler:8080", "METRICS_PORT_8080_TCP": "8080"}


def test_what_kubernetes_says_of_services_is_no_setting_and_any_other_port_is_unknown() -> None:
    assert load(PROMETHEUS_URL=URL, **SERVICES) == load(PROMETHEUS_URL=URL)
    unknown = [f"- {PREFIX}{name}: unknown setting" for name in sorted(NO_LINKS)]
    assert sorted(refusal(PROMETHEUS_URL=URL, **NO_LINKS)) == sorted(unknown)


def test_the_file_names_several_sources(yaml: Path) -> None:
    yaml.write_text(
        """
        webhook_lifetime: 2h
        claims_without_gpus: [nic, rdma.example.com]
        resources_without_gpus: [example.com/, example.org/nic]
        sources:
          eu:
            type: prometheus
            url: https://eu.example
            step: 30s
            headers: {X-Scope-OrgID: "7"}
            username: 007
          edge:
            type: scrape
            targets: [http://a:9400, http://b:9400/gpu]
        """
    )
    loaded = load(str(yaml))
    assert loaded.config == yaml
    assert loaded.webhook_lifetime_seconds == 7200
    assert loaded.claims_without_gpus == {"nic", "rdma.example.com"}
    assert loaded.resources_without_gpus == {"example.com/", "example.org/nic"}
    eu, edge = loaded.sources["eu"], loaded.sources["edge"]
    assert isinstance(eu, PrometheusSettings)
    assert (eu.url, eu.step_seconds, eu.username) == ("https://eu.example", 30, "007")
    assert eu.headers["X-Scope-OrgID"].get_secret_value() == "7"
    assert loaded.access.direct_sources == {"edge"}
    assert edge == ScrapeSettings(targets=("http://a:9400/metrics", "http://b:9400/gpu"))


def test_the_environment_wins_over_the_file_setting_by_setting(yaml: Path) -> None:
    edge = "sources: {edge: {type: scrape, targets: http://a, interval: }}"
    yaml.write_text(f"prometheus_url: {URL}\nprometheus_step: 30s\nwebhook_lifetime: 2h\n{edge}")
    loaded = load(str(yaml), PROMETHEUS_STEP="1m")
    assert loaded.sources == {
        "default": PrometheusSettings(url=URL, step_seconds=60),
        "edge": ScrapeSettings(targets=("http://a",)),
    }
    assert loaded.webhook_lifetime_seconds == 7200


def test_mistakes_in_the_file_are_named_by_their_place_and_no_secret_is_shown(yaml: Path) -> None:
    yaml.write_text(
        f"""
        webhooklifetime: 1h
        page_seconds: 2h
        scrape: {{targets: http://a}}
        prometheus_url: http://a
        prometheus_step: 15
        log_level: {{{WORD}: 1}}
        claims_without_gpus: [{{name: {WORD}}}]
        sources:
          eu: {{type: prometheus, url: 5, pasword: {WORD}, password: [{WORD}]}}
          EU: {{type: scrape, targets: http://a}}
          jp: {{url: http://a}}
          cn: {{type: scrape, interval: [5s]}}
          uk: {WORD}
        """
    )
    shown = refusal(str(yaml), WEBHOOK_LIFETIME="1s")
    assert shown == [
        f"- webhooklifetime in {yaml}: unknown setting; did you mean webhook_lifetime?",
        f"- page_seconds in {yaml}: unknown setting",
        f"- scrape in {yaml}: unknown setting",
        f"- log_level in {yaml}; expected 'debug', 'info', 'warning' or 'error'",
        f"- claims_without_gpus in {yaml}; expected a valid string",
        '- KEDA_GPU_SCALER_WEBHOOK_LIFETIME: "1s"; expected a duration of at least 1m',
        f'- prometheus_step in {yaml}: "15"; {A_DURATION} (a number needs a unit: s, m or h)',
        f'- sources.eu.url in {yaml}: "5"; expected a URL such as http://prometheus:9090',
        f"- sources.eu.password in {yaml}; expected a valid string",
        f"- sources.eu.pasword in {yaml}: unknown setting; did you mean password?",
        (
            f"- sources.EU in {yaml}; String should match pattern "
            "'^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$'"
        ),
        f"- sources.jp in {yaml}; {A_KIND}",
        f"- sources.cn.targets in {yaml}; it has to be set",
        f"- sources.cn.interval in {yaml}; {A_DURATION}",
        f"- sources.uk in {yaml}; {A_KIND}",
    ]
    assert WORD not in "".join(shown)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("a: [1", "YAML text in UTF-8; line 1 is not: ", id="not YAML"),
        pytest.param(f"password: {WORD}\n\tx: 1", "YAML text in UTF-8; line 2 is not", id="tab"),
        pytest.param("a: &a {a: *a}", "", id="a mapping in itself"),
        pytest.param("{a: " * 999, "YAML text in UTF-8", id="too deep"),
        pytest.param("- a", "a YAML mapping of names to values", id="list"),
        pytest.param("config: b.yaml", "a YAML mapping of names to values, without the", id="file"),
        pytest.param(b"\xff", "YAML text in UTF-8", id="no UTF-8"),
    ],
)
def test_a_file_of_another_shape(yaml: Path, content: str | bytes, expected: str) -> None:
    yaml.write_bytes(content.encode() if isinstance(content, str) else content)
    mistake, *_ = refusal(str(yaml), PROMETHEUS_URL=URL)
    if expected:
        assert mistake.startswith(f'- KEDA_GPU_SCALER_CONFIG: "{yaml}"; expected {expected}')
    assert WORD not in mistake


def test_a_file_that_cannot_be_read_is_refused_with_all_other_mistakes(yaml: Path) -> None:
    file, setting = refusal(str(yaml), PROMETHEUS_URL=URL, WEBHOOK_LIFETIME="x")
    assert file.endswith("a YAML file that this process can read (No such file or directory)")
    assert setting.startswith("- KEDA_GPU_SCALER_WEBHOOK_LIFETIME")


@pytest.mark.parametrize("content", ["", "sources:", "webhook_lifetime:\nsources: {default: }"])
def test_an_empty_file_says_nothing(yaml: Path, content: str) -> None:
    yaml.write_text(content)
    assert load(str(yaml), PROMETHEUS_URL=URL).sources == {"default": PrometheusSettings(url=URL)}


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("SCRAPE", {"TARGETS": "http://a:9400/metrics"}),
        ("PROMETHEUS", {"URL": "http://a:9090"}),
        ("INFLUXDB", {"URL": "http://a:8086", "DATABASE": "telegraf"}),
    ],
)
def test_the_defaults_shown_are_accepted_as_values(kind: str, needed: dict[str, str]) -> None:
    prefix = f"KEDA_GPU_SCALER_{kind}_"
    others = [f"KEDA_GPU_SCALER_{name.upper()}_" for name in KINDS if name.upper() != kind]
    variables = {
        row.variable: row.default
        for row in setting_rows.describe()
        if row.default and not row.variable.startswith(tuple(others))
    }
    named = {prefix + name: text for name, text in needed.items()}

    assert settings.load(variables | named) == settings.load(named)
    assert any(name.startswith(prefix) for name in variables)


SECRETS = [key for key, field in fields(Settings) if "SecretStr" in repr(field.annotation)]


@pytest.mark.parametrize("key", SECRETS)
def test_a_setting_that_holds_a_secret_is_not_shown_with_a_mistake(key: str) -> None:
    shown = refusal(**{key.upper(): "a b"})
    assert f"- {PREFIX}{key.upper()}: a value that is not shown;" in "\n".join(shown)
