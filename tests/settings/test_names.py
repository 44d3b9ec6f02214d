"""The rows that the documentation shows."""

import pytest

from keda_gpu_scaler import errors, settings
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.settings.loading import fields
from keda_gpu_scaler.settings.sources import KINDS
from tests.support.setting_rows import Row, describe


def test_every_setting_has_a_row_with_both_names_and_a_meaning() -> None:
    rows = describe()
    assert len({row.variable for row in rows}) == len(rows)
    for row in rows:
        assert row.variable == f"KEDA_GPU_SCALER_{row.key.upper()}"
        assert row.meaning.endswith(".")
    assert {row.key.partition("_")[0] for row in rows} >= {"grpc", *KINDS}


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
        for row in describe()
        if row.default and not row.variable.startswith(tuple(others))
    }
    named = {prefix + name: text for name, text in needed.items()}

    assert settings.load(variables | named) == settings.load(named)
    assert any(name.startswith(prefix) for name in variables)


def test_a_row_carries_the_unit_in_its_text() -> None:
    row = next(row for row in describe() if row.key == "shutdown_grace")
    assert row == Row(
        "KEDA_GPU_SCALER_SHUTDOWN_GRACE",
        "shutdown_grace",
        "20s",
        "How long the process waits for open calls when it stops. It must be below "
        "terminationGracePeriodSeconds.",
    )


SECRETS = [key for key, field in fields(Settings) if "SecretStr" in repr(field.annotation)]


@pytest.mark.parametrize("key", SECRETS)
def test_a_setting_that_holds_a_secret_is_not_shown_with_a_mistake(key: str) -> None:
    variable = f"KEDA_GPU_SCALER_{key.upper()}"
    with pytest.raises(errors.SettingsError, match=f"{variable}: a value that is not shown;"):
        settings.load({variable: "a b"})
