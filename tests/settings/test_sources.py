"""The settings of a source: right once they exist."""

import pytest
from pydantic import ValidationError

from keda_gpu_scaler.settings import PrometheusSettings, ScrapeSettings

URL = "http://prometheus:9090"


def test_the_query_of_a_target_is_not_shown() -> None:
    settings = ScrapeSettings(targets=("http://a:9400/m?token=hunter2", "dns+http://b"))

    assert settings.targets[0] == "http://a:9400/m?token=hunter2"
    assert settings.model_dump()["targets"] == ("http://a:9400/m?***", "dns+http://b/metrics")


def test_a_scrape_may_take_as_long_as_the_interval_and_no_longer() -> None:
    assert ScrapeSettings(targets=("http://a",), interval_seconds=2).timeout_seconds == 2
    with pytest.raises(ValidationError, match="a timeout of at most the interval"):
        ScrapeSettings(targets=("http://a",), interval_seconds=2, timeout_seconds=3)


def test_secrets_never_show() -> None:
    secrets = {"username": "me", "password": "hunter2", "headers": "X=hunter2"}
    settings = PrometheusSettings.model_validate({"url": URL, **secrets})
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"password": "a"}, "username with it"),
        ({"username": "a:b", "password": "c"}, "should match pattern"),
        ({"key_file": __file__}, "cert_file with it"),
        ({"ca_file": __file__}, "a PEM file with certificates"),
        ({"cert_file": __file__}, "a PEM file with certificates"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, str], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        PrometheusSettings.model_validate({"url": URL, **given})


@pytest.mark.parametrize("header", ["authorization", "X-Tenant"])
def test_the_header_of_the_namespace_is_one_that_nothing_else_sets(header: str) -> None:
    given = {"url": URL, "headers": {"x-tenant": "a"}, "namespace_header": header}
    with pytest.raises(ValidationError, match="a header that nothing else sets"):
        PrometheusSettings.model_validate(given)
